# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files of a task into the sandbox and out of it, in constant memory, whole or not at all.

An agent that knows no files is asked to run programs instead, which takes a shell, ``cat``, ``dd`` and ``mv``.
"""

from __future__ import annotations

import contextlib
import typing as t
import uuid

from ...module_utils.deadline import Deadline
from ...module_utils.errors import SandboxError
from ...module_utils.guest.agent import Agent
from ...module_utils.guest.errors import GuestUnsupportedError
from ...module_utils.guest.files import Files
from ...module_utils.guest.local_file import complete_file
from .commands import RUN_SECONDS

#: Bytes of one command's input or output.
PIECE = 4 * 1024 * 1024

_APPEND = 'umask 077; cat >> "$1"'
_FINISH = (
    '[ ! -d "$2" ] && [ "$(wc -c < "$1")" -eq "$3" ] && chmod 644 "$1" && mv -f "$1" "$2" && exit; rm -f "$1"; exit 1'
)
_PIECE = 'dd if="$1" bs="$2" skip="$3" count=1'


class TransferError(SandboxError):
    """A file that could not be copied."""

    reason = "transfer-failed"


def put(agent: Agent, source: str, target: str) -> None:
    """Copy a file of this machine into the sandbox; it appears there when it is complete.

    Raises:
        TransferError: this machine's file cannot be read, or the sandbox does not take it.
        GuestError: the agent refuses, or is gone.
    """
    with _local(source), open(source, "rb") as file:
        try:
            Files(agent).put(file, target, deadline=Deadline(RUN_SECONDS))
        except GuestUnsupportedError:
            file.seek(0)
            _put_by_commands(agent, file, target)


def fetch(agent: Agent, source: str, target: str) -> None:
    """Copy a file of the sandbox to this machine; it appears here when it is complete.

    Raises:
        TransferError: this machine cannot write it, or the sandbox cannot read it.
        GuestError: the agent refuses, or is gone.
    """
    with _local(target), complete_file(target) as file:
        try:
            Files(agent).fetch(source, file, deadline=Deadline(RUN_SECONDS))
        except GuestUnsupportedError:
            _fetch_by_commands(agent, source, file)


def _put_by_commands(agent: Agent, file: t.BinaryIO, target: str) -> None:
    part, size = f"{target}.{uuid.uuid4().hex[:8]}.part", 0
    more = True
    while more:
        piece = file.read(PIECE)
        size += len(piece)
        more = len(piece) == PIECE
        _command(agent, target, _APPEND, part, stdin=piece)
    _command(agent, target, _FINISH, part, target, str(size))


def _fetch_by_commands(agent: Agent, source: str, file: t.BinaryIO) -> None:
    count = 0
    while True:
        piece = _command(agent, source, _PIECE, source, str(PIECE), str(count))
        file.write(piece)
        count += 1
        if len(piece) < PIECE:
            return


def _command(agent: Agent, path: str, script: str, *words: str, stdin: bytes = b"") -> bytes:
    argv = ["/bin/sh", "-c", script, "sh", *words]
    done = agent.execute(argv, deadline=Deadline(RUN_SECONDS), stdin=stdin, max_output=PIECE)
    if done.rc != 0:
        said = done.stderr.decode("utf-8", "replace").strip() or f"exit code {done.rc}"
        raise TransferError(
            f"{path} at {agent.peer.name} could not be copied: {said}.",
            object=agent.peer.name,
            next_step="Look whether the path exists there, may be used by the pod's user, and has room.",
        )
    return done.stdout


@contextlib.contextmanager
def _local(path: str) -> t.Iterator[None]:
    try:
        yield
    except OSError as error:
        raise TransferError(
            f"{path} on this machine could not be copied: {error.strerror or error}.",
            object=path,
            next_step="Look at the path, its permissions and the room on the disk.",
        ) from None
