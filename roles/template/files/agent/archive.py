# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Trees as tar: the headers of entries on their way out, and a strict reader of what comes in.

The format is POSIX ustar with pax headers for long paths, other characters and large files. Only regular files,
folders and symbolic links are in it.
"""

from __future__ import annotations

import tarfile

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

BLOCK = 512
END = bytes(2 * BLOCK)
#: Bytes of a pax header: two paths of 4096 bytes each fit.
PAX_LIMIT = 16 * 1024
#: The longest path, in bytes, and the folders in it.
PATH_LIMIT = 4096
PARTS_LIMIT = 200

_KINDS = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "link"}
_TYPES = {kind: number for number, kind in _KINDS.items()}


class ArchiveError(Exception):
    """What arrived is not such an archive."""


class Entry:
    """A file, a folder or a link in an archive; its path is relative and has no ``.``, ``..`` or empty part."""

    def __init__(self, path: str, kind: str, mode: int, mtime: float, size: int = 0, target: str = "") -> None:
        self.path = path
        self.kind = kind
        self.mode = mode
        self.mtime = mtime
        self.size = size
        self.target = target


def header(entry: Entry) -> bytes:
    info = tarfile.TarInfo(entry.path)
    info.type, info.mode, info.mtime = _TYPES[entry.kind], entry.mode & 0o777, int(entry.mtime)
    info.size, info.linkname = entry.size, entry.target
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def padding(size: int) -> bytes:
    return bytes(-size % BLOCK)


class Reader:
    """Takes the bytes of an archive however they were cut, and gives entries and contents to a ``sink``.

    The sink has ``begin(entry)``, ``write(data)`` and ``end()``. Nothing but one header is held.
    """

    def __init__(self, sink: Any) -> None:
        self._sink = sink
        self._buffer = bytearray()
        self._wanted = BLOCK
        self._what = "header"
        self._left = 0
        self._pax: dict[str, str] = {}
        self._zeros = 0

    @property
    def complete(self) -> bool:
        """Whether the end of the archive was there."""
        return self._zeros >= 2 and not self._buffer

    def feed(self, data: memoryview) -> None:
        while len(data):
            if self._what == "content":
                piece = data[: self._left]
                self._sink.write(piece)
                self._left -= len(piece)
                if not self._left:
                    self._end()
            else:
                piece = data[: self._wanted - len(self._buffer)]
                self._buffer += piece
                if len(self._buffer) == self._wanted:
                    block = bytes(self._buffer)
                    self._buffer.clear()
                    self._take(block)
            data = data[len(piece) :]

    def _take(self, block: bytes) -> None:
        if self._what == "pax":
            self._pax = parse_pax(block[: self._left])
        elif self._what == "header":
            if not any(block):
                self._zeros += 1
                return
            if self._zeros:
                raise ArchiveError("it goes on after its end")
            self._header(block)
            return
        self._next("header", BLOCK)

    def _next(self, what: str, wanted: int) -> None:
        self._what, self._wanted = what, wanted

    def _header(self, block: bytes) -> None:
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.TarError, ValueError) as error:
            raise ArchiveError(f"a header is not valid ({error})") from None
        if info.type == tarfile.XHDTYPE:
            if self._pax or not 0 < info.size <= PAX_LIMIT:
                raise ArchiveError("a pax header is too large, or not followed by its entry")
            self._left = info.size
            self._next("pax", info.size + len(padding(info.size)))
            return
        entry = self._entry(info)
        self._pax = {}
        self._left = self._size = entry.size
        self._sink.begin(entry)
        self._next("content", 0)
        if not entry.size:
            self._end()

    def _end(self) -> None:
        self._sink.end()
        pad = len(padding(self._size))
        self._next("padding" if pad else "header", pad or BLOCK)

    def _entry(self, info: tarfile.TarInfo) -> Entry:
        kind = _KINDS.get(info.type)
        if kind is None:
            raise ArchiveError("it has an entry that is neither a file nor a folder nor a symbolic link")
        try:
            size = int(self._pax.get("size", info.size))
            mtime = float(self._pax.get("mtime", info.mtime))
        except ValueError:
            raise ArchiveError("a number in a pax header is not valid") from None
        if size < 0 or (size and kind != "file") or not abs(mtime) < 1e11:
            raise ArchiveError("a size or a time is not valid")
        path = self._pax.get("path", info.name)
        path = path[:-1] if kind == "directory" and path.endswith("/") else path
        target = self._pax.get("linkpath", info.linkname)
        check_path(path)
        if kind == "link" and ("\0" in target or not 0 < len(target) <= PATH_LIMIT):
            raise ArchiveError("a link leads nowhere")
        return Entry(path, kind, info.mode & 0o777, mtime, size, target)


def check_path(path: str) -> None:
    parts = path.split("/")
    if len(path) > PATH_LIMIT or len(parts) > PARTS_LIMIT or "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise ArchiveError("a path is too long, or leads out of the folder")


def parse_pax(data: bytes) -> dict[str, str]:
    """The records of a pax header: ``length key=value`` and a newline each."""
    found: dict[str, str] = {}
    while data:
        digits, _blank, _rest = data[:20].partition(b" ")
        length = int(digits) if digits.isdigit() else 0
        record = data[len(digits) + 1 : length]
        key, equals, value = record.partition(b"=")
        if not (equals and record.endswith(b"\n") and length <= len(data)):
            raise ArchiveError("a pax header is not valid")
        found[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
        data = data[length:]
    return found
