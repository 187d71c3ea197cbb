# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A folder made like another one, from this machine into a sandbox or back: compare first, then copy in one stream."""

from __future__ import annotations

import dataclasses
import errno
import os
import shutil
import typing as t

from ...deadline import Deadline
from ...errors import SandboxError
from ..agent import Agent
from ..errors import GuestRefusedError
from ..filesystem import DIRECTORY, FILE, LINK, OTHER, Entry, FileSystem
from .compare import Difference, compare, local_entries
from .selection import Selection
from .trees import DEFAULT_MAX_SIZE, Trees
from .unpacking import Skipped, leads_inside

#: Entries of the folder in the sandbox.
ENTRY_LIMIT = 200_000

#: Bytes of the paths that one request names.
_NAMES_LIMIT = 4 * 1024 * 1024

Entries = dict[str, Entry]


@dataclasses.dataclass(frozen=True)
class Plan:
    """What a synchronization does.

    Attributes:
        source, target: the entries of both sides that it compares, by their paths.
        difference: what is copied and deleted.
        skipped: entries that cannot be copied: pipes, sockets, devices, what the agent may not read, and links that
            lead out of the target of a download.
    """

    source: Entries
    target: Entries
    difference: Difference
    skipped: tuple[Skipped, ...]

    @property
    def size(self) -> int:
        """Bytes of the files that are copied."""
        return sum(self.source[path].size for path in self.difference.copy if self.source[path].is_file)


class Synchronization(t.Protocol):
    """One direction."""

    def plan(self) -> Plan:
        """Compare both sides; nothing is changed."""

    def apply(self, plan: Plan) -> None:
        """Copy and delete. Each file is complete or as it was; a failure leaves the rest undone."""


class Upload:
    """From a folder of this machine to one of a sandbox."""

    def __init__(
        self,
        agent: Agent,
        source: str,
        target: str,
        *,
        selection: Selection,
        delete: bool,
        replace: bool,
        deadline: Deadline,
    ) -> None:
        """Nothing is read yet.

        Args:
            source: the folder here.
            target: the folder there, which is created with its parents.
            delete: whether selected entries that only the target has are deleted.
            replace: whether existing files are replaced that the agent's user may not write.
        """
        self._agent = agent
        self._source = source
        self._target = target
        self._selection = selection
        self._delete = delete
        self._replace = replace
        self._deadline = deadline

    def plan(self) -> Plan:
        if not os.path.isdir(self._source):
            number = errno.ENOTDIR if os.path.lexists(self._source) else errno.ENOENT
            raise OSError(number, os.strerror(number), self._source)
        takes, enters = self._selection.takes, self._selection.enters
        found = local_entries(self._source, takes=takes, enters=enters, checksum=lambda _path: True)
        source = {path: entry for path, entry in found.items() if entry.kind != OTHER}
        skipped = tuple(Skipped(path, "not-a-file") for path in found if path not in source)
        target = self._remote(source, checksum=True)
        if self._delete:
            target = {**self._remote(None, checksum=False), **target}
        return Plan(source, target, compare(source, target, delete=self._delete, takes=takes), skipped)

    def _remote(self, names: Entries | None, *, checksum: bool) -> Entries:
        only = None if names is None else {path for name in names for path in (name, *_parents(name))}
        if only is not None and _length(only) > _NAMES_LIMIT:
            only = None
        files = FileSystem(self._agent)
        return _listed(files, self._target, self._deadline, checksum=checksum, only=only, missing_ok=True)

    def apply(self, plan: Plan) -> None:
        copy = set(plan.difference.copy)
        folders = {above for path in copy for above in _parents(path)}
        Trees(self._agent).upload(
            self._source,
            self._target,
            wanted=copy.__contains__,
            enter=folders.__contains__,
            delete=plan.difference.delete,
            replace=self._replace,
            deadline=self._deadline,
        )


class Download:
    """From a folder of a sandbox to one of this machine. The guest may be hostile; see ``Trees.download``."""

    def __init__(
        self,
        agent: Agent,
        source: str,
        target: str,
        *,
        selection: Selection,
        delete: bool,
        deadline: Deadline,
        max_size: int = DEFAULT_MAX_SIZE,
    ) -> None:
        """Nothing is read yet.

        Args:
            source: the folder there.
            target: the folder here, which is created with its parents.
            delete: whether selected entries that only the target has are deleted.
            max_size: bytes of all files together.
        """
        self._agent = agent
        self._source = source
        self._target = target
        self._selection = selection
        self._delete = delete
        self._deadline = deadline
        self._max_size = max_size

    def plan(self) -> Plan:
        takes = self._selection.takes
        files = FileSystem(self._agent)
        listed = _listed(files, self._source, self._deadline, checksum=True)
        found = {path: entry for path, entry in listed.items() if takes(path)}
        causes = {path: cause for path, entry in found.items() if (cause := _cause(entry))}
        source = {path: _received(entry) for path, entry in found.items() if path not in causes}
        enters = self._selection.enters
        target = local_entries(self._target, enters=enters, checksum=lambda path: path in source)
        difference = compare(source, target, delete=self._delete, takes=takes)
        plan = Plan(source, target, difference, tuple(Skipped(*one) for one in sorted(causes.items())))
        if plan.size > self._max_size:
            raise SandboxError(
                f"{self._source}: the files to download have {plan.size} bytes; {self._max_size} are allowed.",
                reason="transfer-failed",
                object=self._source,
                next_step="Select less of it. Nothing was changed.",
            )
        return plan

    def apply(self, plan: Plan) -> None:
        for path in plan.difference.delete:
            _remove(os.path.join(self._target, path))
        os.makedirs(self._target, exist_ok=True)
        for only in _batches(plan.difference.copy):
            Trees(self._agent).download(
                self._source,
                self._target,
                only=only,
                max_entries=ENTRY_LIMIT,
                max_size=self._max_size,
                deadline=self._deadline,
            )


def _listed(
    files: FileSystem,
    path: str,
    deadline: Deadline,
    *,
    checksum: bool,
    only: set[str] | None = None,
    missing_ok: bool = False,
) -> Entries:
    try:
        found = files.list(path, recursive=True, checksum=checksum, limit=ENTRY_LIMIT, only=only, deadline=deadline)
    except GuestRefusedError as error:
        if missing_ok and error.kind in ("not-found", "no-parent"):
            return {}
        raise
    return {entry.path: entry for entry in found}


def _cause(entry: Entry) -> str | None:
    """Why an entry of a sandbox is not downloaded."""
    if entry.kind == OTHER:
        return "not-a-file"
    if entry.kind == LINK and not leads_inside(entry.path, entry.target or "/"):
        return "outside"
    return "denied" if entry.kind == FILE and entry.sha256 is None else None


def _received(entry: Entry) -> Entry:
    """An entry with the mode that it gets here."""
    mode = entry.mode & 0o777
    return dataclasses.replace(entry, mode=mode | (0o700 if entry.kind == DIRECTORY else 0o400))


def _parents(path: str) -> list[str]:
    parts = path.split("/")
    return ["/".join(parts[:count]) for count in range(1, len(parts))]


def _length(paths: t.Iterable[str]) -> int:
    # Other characters than ASCII take six in JSON.
    return sum(6 * len(path) + 3 for path in paths)


def _batches(paths: t.Sequence[str]) -> t.Iterator[list[str]]:
    """The paths in as few requests as hold them; none when there are no paths."""
    batch: list[str] = []
    size = 0
    for path in paths:
        if size > _NAMES_LIMIT:
            yield batch
            batch, size = [], 0
        batch.append(path)
        size += _length([path])
    if batch:
        yield batch


def _remove(path: str) -> None:
    """Remove an entry of this machine, and never what a link leads to."""
    if os.path.isdir(path) and not os.path.islink(path):
        shutil.rmtree(path)
    else:
        os.unlink(path)
