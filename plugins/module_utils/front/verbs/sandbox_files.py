# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_files``: copy a folder into a sandbox or workspace, or out of it."""

from __future__ import annotations

import contextlib
import os
import typing as t

from ...deadline import Deadline
from ...errors import InputError, SandboxError
from ...guest.filesystem import Entry
from ...guest.trees.selection import Selection
from ...guest.trees.synchronize import Download, Plan, Synchronization, Upload
from ..backends.opening import open_backend
from ..backends.protocol import Guest
from ..guests import check_guest, find_guest
from ..options.commands import timeout_of
from ..options.specs import GUEST_EXCLUSIVE, GUEST_REQUIRED, SANDBOX_FILES, Params
from ..options.target import with_target
from ..verb import Context, Result, Verb

#: Seconds that a copy without a timeout may take: a day, so that even that is bounded.
UNBOUNDED_SECONDS = 86400.0

#: Paths of one list in the result; all of them count.
LARGEST_LIST = 1000

UPLOAD, DOWNLOAD = "upload", "download"


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = with_target(params)
    check_guest(params)
    timeout = timeout_of(params)
    local = "src" if params["direction"] == UPLOAD else "dest"
    params = {**params, local: os.path.expanduser(params[local])}
    _check(params)
    with open_backend(params, context) as backend:
        guest = find_guest(params, backend)
        with _local_failures(params[local]):
            work = _work(params, guest, Deadline(UNBOUNDED_SECONDS if timeout is None else timeout))
            plan = work.plan()
            _raise_if_conflicting(params, plan)
            if not plan.difference.empty and not context.check_mode:
                work.apply(plan)
        return {**_result(params, plan), "sandbox": guest.name, "pod": guest.pod}


def _check(params: Params) -> None:
    if params["direction"] == DOWNLOAD and params["replace"]:
        raise InputError("replace is for uploads only.", next_step="Remove replace, or set direction to upload.")
    if params["direction"] == UPLOAD and not os.path.isdir(params["src"]):
        what = "is not a folder" if os.path.lexists(params["src"]) else "does not exist"
        step = "Name a folder, and select files of it by include." if what == "is not a folder" else "Correct the path."
        raise InputError(f"src {params['src']} {what} on this machine.", next_step=step)


def _work(params: Params, guest: Guest, deadline: Deadline) -> Synchronization:
    selection = Selection(params.get("include") or (), params.get("exclude") or ())
    options: dict[str, t.Any] = {"selection": selection, "delete": params["delete"], "deadline": deadline}
    if params["direction"] == UPLOAD:
        return Upload(guest.agent, params["src"], params["dest"], replace=params["replace"], **options)
    return Download(guest.agent, params["src"], params["dest"], **options)


@contextlib.contextmanager
def _local_failures(path: str) -> t.Iterator[None]:
    """Report what this machine does not allow."""
    try:
        yield
    except OSError as error:
        where = error.filename or path
        raise SandboxError(
            f"{where} on this machine could not be copied: {error.strerror or error}.",
            reason="transfer-failed",
            object=str(where),
            next_step="Check the path, its permissions and the space on the disk. Complete files were kept.",
        ) from None


def _raise_if_conflicting(params: Params, plan: Plan) -> None:
    conflicts = plan.difference.conflicts
    if conflicts:
        more = f" and {len(conflicts) - 1} more" if len(conflicts) > 1 else ""
        step = "Exclude it." if params["delete"] else "Remove it from dest, or set delete."
        raise SandboxError(
            f"{conflicts[0]}{more}: a folder on one side and a file or a link on the other. Nothing was changed.",
            reason="conflict",
            object=conflicts[0],
            next_step=step,
        )


def _result(params: Params, plan: Plan) -> Result:
    difference = plan.difference
    changed = sorted({*difference.copy, *difference.delete})[:LARGEST_LIST]
    sides = {"before": plan.target, "after": plan.source}
    shown = {
        side: {path: _shown(entries[path]) for path in changed if path in entries} for side, entries in sides.items()
    }
    return {
        "changed": not difference.empty,
        "src": params["src"],
        "dest": params["dest"],
        "count": len(difference.copy),
        "size": plan.size,
        "copied": list(difference.copy[:LARGEST_LIST]),
        "deleted": list(difference.delete[:LARGEST_LIST]),
        "skipped": [skipped._asdict() for skipped in plan.skipped[:LARGEST_LIST]],
        **({} if difference.empty else {"diff": shown}),
    }


def _shown(entry: Entry) -> str:
    """An entry in a difference."""
    if entry.is_link:
        return f"link to {entry.target}"
    content = f", {entry.size} bytes, sha256 {entry.sha256}" if entry.sha256 else ""
    return f"{entry.kind}, mode {entry.mode & 0o777:04o}{content}"


VERB = Verb(
    name="sandbox_files",
    options=SANDBOX_FILES,
    run=run,
    constraints={"mutually_exclusive": GUEST_EXCLUSIVE, "required_one_of": GUEST_REQUIRED},
)
