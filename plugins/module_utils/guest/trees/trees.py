# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Whole folders into a sandbox and out of it, each as one stream."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import typing as t

from ...deadline import Deadline
from ...text import clean_text
from ..agent import Agent
from ..errors import GuestChecksumError
from ..execution.running import explained
from ..execution.stream import StreamReader
from ..protocol.call import Call
from ..protocol.wire import CHANNEL_STDIN, encode_channel, encode_event
from .archive import ArchiveError, ArchiveReader
from .packing import Filter, LocalTree
from .unpacking import NAMED_LIMIT, Skipped, Unpacking

#: The most that a download takes, unless the caller asks for another limit.
DEFAULT_MAX_ENTRIES = 100_000
DEFAULT_MAX_SIZE = 16 * 1024 * 1024 * 1024

_FEATURE = "trees"


@dataclasses.dataclass(frozen=True)
class TreeReport:
    """What was copied.

    Attributes:
        path: the folder in the sandbox, absolute.
        count: files, folders and links that were copied.
        size: bytes of the files among them.
        deleted: files, folders and links that were deleted in the sandbox.
        skipped: at most 1000 of the entries that were left out: pipes, sockets, devices, what the agent may not read,
            and links that lead out of a folder that is downloaded.
        skipped_count: how many were left out.
    """

    path: str
    count: int
    size: int
    deleted: int = 0
    skipped: tuple[Skipped, ...] = ()
    skipped_count: int = 0


class Trees:
    """The folders of one sandbox, as trees. A path is absolute, or relative to the workspace.

    Links are copied as links. Permission bits and times of files go with them, set-uid, set-gid and sticky bits do not.
    A connection that is lost is not made again: each file is complete or as it was, and the copy can be repeated.

    Every method raises GuestRefusedError ``no-parent``, ``denied``, ``not-a-directory``, ``outside``, ``no-space``,
    ``changed`` or ``too-large``; GuestUnsupportedError for an agent without the feature ``trees``; OSError for what
    this machine does not allow; and the errors of ``Agent``.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def upload(
        self,
        source: str | os.PathLike[str],
        path: str,
        *,
        deadline: Deadline,
        wanted: Filter | None = None,
        enter: Filter | None = None,
        delete: t.Collection[str] = (),
        replace: bool = False,
    ) -> TreeReport:
        """Copy what is in a folder of this machine into a folder of the sandbox, which is created with its parents.

        Args:
            source: the folder here.
            wanted: takes a path below the folder; what it does not accept is not copied.
            enter: takes the path of a folder below it; one that it does not accept is not read.
            delete: paths below the folder in the sandbox that are removed first, with everything in them.
            replace: whether existing files are replaced that the agent's user may not write; ``denied`` otherwise.
        """
        tree = LocalTree(source, wanted, enter)
        body = {"path": path, "parents": True, "replace": replace, "delete": sorted(delete)}
        with self._call("write-tree", body, deadline) as call:
            ready = call.part("ready", path=str, deleted=int)
            call.connection.send(b"", _frames(tree))
            reader = StreamReader()
            with explained(call):
                while not reader.ended:
                    reader.take(call.connection.receive())
                call.checked("end", reader.end, size=int)
            skipped = tuple(Skipped(skipped, "not-a-file") for skipped in tree.skipped[:NAMED_LIMIT])
            return TreeReport(ready["path"], tree.count, tree.content, ready["deleted"], skipped, len(tree.skipped))

    def download(
        self,
        path: str,
        target: str | os.PathLike[str],
        *,
        deadline: Deadline,
        only: t.Collection[str] | None = None,
        max_entries: int = DEFAULT_MAX_ENTRIES,
        max_size: int = DEFAULT_MAX_SIZE,
    ) -> TreeReport:
        """Copy what is in a folder of the sandbox into a folder of this machine, which is created with its parents.

        Nothing outside of the target is written, whatever the guest sends. A link that leads out of it is left out.

        Args:
            target: the folder here. What is in it is replaced by entries of the same path, and is kept otherwise.
            only: paths below the folder of the entries that are copied; everything when None.
            max_entries: how many entries (1 to 1,000,000) there may be.
            max_size: bytes of all files together.

        Raises GuestProtocolError for what no agent sends, and above ``max_size``.
        """
        body: dict[str, t.Any] = {"path": path, "limit": max_entries}
        body |= {} if only is None else {"only": sorted(only)}
        with self._call("read-tree", body, deadline) as call:
            where = str(call.part("folder", path=str)["path"])
            with Unpacking(target, max_entries=max_entries, max_size=max_size) as unpacking:
                self._receive(call, unpacking)
                unpacking.finish()
                return TreeReport(
                    where,
                    unpacking.count,
                    unpacking.content,
                    skipped=tuple(unpacking.skipped),
                    skipped_count=unpacking.skipped_count,
                )

    def _receive(self, call: Call, unpacking: Unpacking) -> None:
        archive, reader, checksum = ArchiveReader(unpacking), StreamReader(), hashlib.sha256()
        with explained(call):
            while not reader.ended:
                piece = reader.take(call.connection.receive())
                if piece is None:
                    continue
                checksum.update(piece[1])
                try:
                    archive.feed(piece[1])
                except ArchiveError as error:
                    raise call.protocol_error(f"the archive is not valid: {error}") from None
            end = call.checked("end", reader.end, sha256=str, skipped=list, skipped_count=int)
        if end["sha256"] != checksum.hexdigest() or not archive.complete:
            peer = call.caller.peer
            raise GuestChecksumError(
                f"{call.operation} at {peer.name}: what arrived is not what was sent.",
                object=peer.name,
                next_step="Copy it again.",
            )
        _add_skipped(call, unpacking, end)

    def _call(self, operation: str, body: dict[str, t.Any], deadline: Deadline) -> Call:
        agent = self._agent
        return agent.caller.call(operation, body, deadline, feature=_FEATURE, heartbeat=agent.heartbeat)


def _add_skipped(call: Call, unpacking: Unpacking, end: dict[str, t.Any]) -> None:
    """What the agent left out."""
    for value in end["skipped"][:NAMED_LIMIT]:
        if not (isinstance(value, list) and len(value) == 2 and all(isinstance(text, str) for text in value)):
            raise call.protocol_error("what it left out is not valid")
        unpacking.skip(value[0][:4096], clean_text(value[1], 40))
    unpacking.skipped_count += max(0, end["skipped_count"] - len(end["skipped"]))


def _frames(tree: LocalTree) -> t.Iterator[bytes]:
    """The frames of an upload, and the event that ends it."""
    checksum, size = hashlib.sha256(), 0
    for piece in tree.pieces():
        checksum.update(piece)
        size += len(piece)
        for start in range(0, len(piece), 4 * 1024 * 1024):
            yield encode_channel(CHANNEL_STDIN, piece[start : start + 4 * 1024 * 1024])
    yield encode_event({"finish": {"size": size, "sha256": checksum.hexdigest()}})
