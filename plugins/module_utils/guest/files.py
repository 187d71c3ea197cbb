# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Files of a sandbox: read and written in constant memory, whole or not at all, and proven by a checksum."""

from __future__ import annotations

import dataclasses
import hashlib
import io
import typing as t
import uuid

from ..deadline import Deadline
from .agent import Agent
from .errors import GuestChecksumError, GuestRefusedError, GuestUnreachableError
from .execution.running import explained
from .execution.stream import StreamReader
from .protocol.call import Call
from .protocol.waiting import pause
from .protocol.wire import CHANNEL_STDIN, encode_channel, encode_event

#: Bytes of one frame.
_PART = 256 * 1024
#: Bytes of one answer to ``read``.
LARGEST_RANGE = 4 * 1024 * 1024
#: How often a lost connection is made again before a transfer is given up, and the seconds between.
_RESUMES = 5
_RESUME_WAIT = 0.5


class Source(t.Protocol):
    """What ``put`` reads: a file that is open for reading in binary mode."""

    def read(self, size: int, /) -> bytes:
        """At most ``size`` bytes; none at the end."""


class Sink(t.Protocol):
    """What ``fetch`` writes to: a file that is open for writing in binary mode."""

    def write(self, data: bytes, /) -> t.Any:
        """Take all of ``data``."""


@dataclasses.dataclass(frozen=True)
class FileInfo:
    """A file of the sandbox, as it was when it was opened.

    Attributes:
        path: absolute, and without links.
        size: in bytes; 0 for files of the kernel, which have content all the same.
        mode: permission bits.
        mtime: seconds since 1970 of the last change.
    """

    path: str
    size: int
    mode: int
    mtime: float


@dataclasses.dataclass(frozen=True)
class FileRange:
    """A part of a file.

    Attributes:
        file: which.
        offset: of the first byte.
        data: the bytes.
        end: whether the file ends with them.
    """

    file: FileInfo
    offset: int
    data: bytes
    end: bool


class Files:
    """The files of one sandbox. A path is absolute, or relative to the workspace.

    Every method raises GuestRefusedError ``not-found``, ``no-parent`` (a folder of the path is missing), ``denied``,
    ``is-a-directory``, ``not-a-file`` (a pipe, a device), ``outside`` (of the folders that the template allows),
    ``io-error`` or ``changed``; GuestUnsupportedError for an agent that is too old; and the errors of ``Agent``.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def read(self, path: str, *, deadline: Deadline, offset: int = 0, length: int = LARGEST_RANGE) -> FileRange:
        """Read a part of a file in one answer.

        Args:
            offset: in bytes from the beginning.
            length: bytes, 0 to 4 MiB; there are fewer when the file ends before.
        """
        body = {"path": path, "offset": offset, "length": length}
        with self._agent.caller.call("read-file", body, deadline, feature="read-file") as call:
            fields = call.part("file", length=int, end=bool)
            data = call.connection.receive()
            if len(data) != fields["length"]:
                raise call.protocol_error(f"it sent {len(data)} bytes instead of {fields['length']}")
            return FileRange(_info(call), offset, data, fields["end"])

    def fetch(self, path: str, sink: Sink, *, deadline: Deadline, offset: int = 0) -> FileInfo:
        """Read a file to its end, as it was in size when it was opened.

        A lost connection is made again up to five times, and goes on where it ended; if the file has another size or
        time of change by then, that is GuestRefusedError ``changed``.

        Args:
            sink: gets the bytes. What it raises ends the transfer.
            offset: in bytes from the beginning.

        Raises GuestChecksumError when what arrived is not what the agent sent.
        """
        first: FileInfo | None = None
        resumes = 0
        while True:
            body = {"path": path, "offset": offset, "checksum": True}
            try:
                with self._stream("read-file-stream", body, deadline) as call:
                    info = _info(call)
                    if first is not None and info != first:
                        raise _changed(call, path)
                    first = info
                    for data in _contents(call):
                        sink.write(data)
                        offset += len(data)
                    return info
            except GuestUnreachableError as error:
                resumes += 1
                if not error.sent or resumes > _RESUMES:
                    raise
            pause(deadline, _RESUME_WAIT)

    def put(
        self,
        source: Source | bytes,
        path: str,
        *,
        deadline: Deadline,
        mode: int | None = None,
        parents: bool = False,
        replace: bool = False,
        sync: bool = False,
    ) -> int:
        """Write a file, which appears under its name when all of it is there, and right, and not before.

        A source that can seek is sent on from where it was when the connection was lost, up to five times.

        Args:
            source: the content: bytes, or a binary file, which is read from its position to its end.
            mode: permission bits; None keeps those of the file that is replaced, and makes 0644 of a new one.
            parents: whether missing folders are made.
            replace: whether an existing file is replaced that the agent's user may not write; ``denied`` otherwise.
            sync: whether the disk must have it before this returns.

        Returns the number of bytes. Raises GuestRefusedError ``no-space``, in which case nothing is left of it, and
        ``checksum`` when something else arrived than was sent.
        """
        file = io.BytesIO(source) if isinstance(source, bytes) else source
        upload = _Upload(file)
        body: dict[str, t.Any] = {"path": path, "parents": parents, "sync": sync}
        # An agent of an older version refuses a field that it does not know, and replaces every file.
        body |= {"replace": True} if replace else {}
        body |= {"id": uuid.uuid4().hex} if upload.can_resume else {}
        body |= {} if mode is None else {"mode": mode}
        resumes = 0
        while True:
            try:
                return self._send(body, upload, deadline)
            except GuestUnreachableError as error:
                resumes += 1
                if not error.sent or not upload.can_resume or resumes > _RESUMES:
                    raise
            pause(deadline, _RESUME_WAIT)

    def _send(self, body: dict[str, t.Any], upload: _Upload, deadline: Deadline) -> int:
        with self._stream("write-file", body, deadline) as call:
            have = int(call.part("ready", offset=int)["offset"])
            call.connection.send(b"", upload.frames(have))
            reader = StreamReader()
            with explained(call):
                while not reader.ended:
                    reader.take(call.connection.receive())
                return int(call.checked("end", reader.end, size=int)["size"])

    def _stream(self, operation: str, body: dict[str, t.Any], deadline: Deadline) -> Call:
        agent = self._agent
        return agent.caller.call(operation, body, deadline, feature=operation, heartbeat=agent.heartbeat)


class _Upload:
    """A source, read once for each connection."""

    def __init__(self, file: Source) -> None:
        self._file = file
        self._begin: int | None = None
        if isinstance(file, io.IOBase) and file.seekable():
            self._begin = file.tell()

    @property
    def can_resume(self) -> bool:
        return self._begin is not None

    def frames(self, have: int) -> t.Iterator[bytes]:
        """All of it but the first ``have`` bytes, which the agent has; then its size and checksum."""
        if self._begin is not None and isinstance(self._file, io.IOBase):
            self._file.seek(self._begin)
        checksum, size = hashlib.sha256(), 0
        while piece := self._file.read(_PART):
            checksum.update(piece)
            size += len(piece)
            fresh = piece[max(len(piece) - (size - have), 0) :] if size > have else b""
            if fresh:
                yield encode_channel(CHANNEL_STDIN, fresh)
        yield encode_event({"finish": {"size": size, "sha256": checksum.hexdigest()}})


def _contents(call: Call) -> t.Iterator[bytes]:
    """The bytes of a file as they come; GuestChecksumError when they were not those that were sent."""
    reader = StreamReader()
    checksum = hashlib.sha256()
    with explained(call):
        while not reader.ended:
            piece = reader.take(call.connection.receive())
            if piece is not None:
                checksum.update(piece[1])
                yield piece[1]
        if call.checked("end", reader.end, sha256=str)["sha256"] != checksum.hexdigest():
            peer = call.caller.peer
            raise GuestChecksumError(
                f"{call.operation} at {peer.name}: what arrived is not what was sent.",
                object=peer.name,
                next_step="Read it again.",
            )


def _info(call: Call) -> FileInfo:
    fields = call.part("file", path=str, size=int, mode=int, mtime=(int, float))
    return FileInfo(fields["path"], fields["size"], fields["mode"], float(fields["mtime"]))


def _changed(call: Call, path: str) -> GuestRefusedError:
    peer = call.caller.peer
    return GuestRefusedError(
        f"{call.operation} at {peer.name}: {path} changed while it was read.",
        kind="changed",
        object=peer.name,
        next_step="Read it again from its beginning.",
    )
