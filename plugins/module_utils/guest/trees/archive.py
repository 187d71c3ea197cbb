# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Trees as tar: the headers of entries on their way out, and a strict reader of what a guest sends.

The format is POSIX ustar with pax headers for long paths, other characters and large files. Only regular files,
folders and symbolic links are in it. ``tarfile`` packs and unpacks single headers; its readers of whole archives hold
headers of any size in memory, which a hostile guest could use.
"""

from __future__ import annotations

import dataclasses
import tarfile
import typing as t

BLOCK = 512
#: The end of an archive.
END = bytes(2 * BLOCK)
#: Bytes of a pax header: two paths of 4096 bytes each fit.
_PAX_LIMIT = 16 * 1024
#: The longest path, in characters, and the parts of it.
_PATH_LIMIT = 4096
_PARTS_LIMIT = 200
#: Seconds from 1970 that a file's time may be away from it.
_LATEST_MTIME = 1e11
#: Blocks of zeros after the end of an archive; tar fills its last record of 20.
_ZEROS_LIMIT = 100

_KINDS = {tarfile.REGTYPE: "file", tarfile.DIRTYPE: "directory", tarfile.SYMTYPE: "link"}
_TYPES = {kind: number for number, kind in _KINDS.items()}


class ArchiveError(Exception):
    """What arrived is not such an archive."""


@dataclasses.dataclass(frozen=True)
class ArchiveEntry:
    """A file, a folder or a link in an archive.

    Attributes:
        path: relative, without ``.``, ``..`` and empty parts.
        kind: ``file``, ``directory`` or ``link``.
        mode: permission bits, without set-uid, set-gid and sticky.
        mtime: seconds since 1970.
        size: bytes of a file; 0 for the other kinds.
        target: where a link leads; empty for the other kinds.
    """

    path: str
    kind: str
    mode: int
    mtime: float
    size: int = 0
    target: str = ""


class ArchiveSink(t.Protocol):
    """Gets the entries of an archive, and their contents."""

    def begin(self, entry: ArchiveEntry) -> None:
        """An entry, before its content."""

    def write(self, data: memoryview) -> None:
        """A part of the content of the entry."""

    def end(self) -> None:
        """The end of the entry."""


def header(entry: ArchiveEntry) -> bytes:
    """The header of an entry, with a pax header when it needs one."""
    info = tarfile.TarInfo(entry.path)
    info.type, info.mode, info.mtime = _TYPES[entry.kind], entry.mode & 0o777, int(entry.mtime)
    info.size, info.linkname = entry.size, entry.target
    return info.tobuf(tarfile.PAX_FORMAT, "utf-8", "surrogateescape")


def padding(size: int) -> bytes:
    """The zeros that fill the last block of ``size`` bytes."""
    return bytes(-size % BLOCK)


class ArchiveReader:
    """Takes the bytes of an archive however they were cut. Nothing but one header is held."""

    def __init__(self, sink: ArchiveSink) -> None:
        self._sink = sink
        self._buffer = bytearray()
        self._wanted = BLOCK
        self._state = "header"
        self._left = 0
        self._pax: dict[str, str] = {}
        self._zeros = 0

    @property
    def complete(self) -> bool:
        """Whether the end of the archive was received."""
        return self._zeros >= 2 and not self._buffer

    def feed(self, data: bytes) -> None:
        """Take the next bytes; ArchiveError for what is not valid."""
        view = memoryview(data)
        while view:
            if self._state == "content":
                piece = view[: self._left]
                self._sink.write(piece)
                self._left -= len(piece)
                if not self._left:
                    self._end()
            else:
                piece = view[: self._wanted - len(self._buffer)]
                self._buffer += piece
                if len(self._buffer) == self._wanted:
                    block = bytes(self._buffer)
                    self._buffer.clear()
                    self._take(block)
            view = view[len(piece) :]

    def _take(self, block: bytes) -> None:
        if self._state == "header":
            self._take_header(block)
            return
        if self._state == "pax":
            self._pax = _parse_pax(block[: self._left])
        self._expect("header", BLOCK)

    def _take_header(self, block: bytes) -> None:
        if not any(block):
            self._zeros += 1
            if self._zeros > _ZEROS_LIMIT:
                raise ArchiveError("it does not end")
        elif self._zeros:
            raise ArchiveError("it goes on after its end")
        else:
            self._header(block)

    def _expect(self, state: str, wanted: int) -> None:
        self._state, self._wanted = state, wanted

    def _header(self, block: bytes) -> None:
        try:
            info = tarfile.TarInfo.frombuf(block, "utf-8", "surrogateescape")
        except (tarfile.TarError, ValueError) as error:
            raise ArchiveError(f"a header is not valid ({error})") from None
        if info.type == tarfile.XHDTYPE:
            if self._pax or not 0 < info.size <= _PAX_LIMIT:
                raise ArchiveError("a pax header is too large, or not followed by its entry")
            self._left = info.size
            self._expect("pax", info.size + len(padding(info.size)))
            return
        entry = self._entry(info)
        self._pax = {}
        self._left = self._size = entry.size
        self._sink.begin(entry)
        self._state = "content"
        if not entry.size:
            self._end()

    def _end(self) -> None:
        self._sink.end()
        pad = len(padding(self._size))
        self._expect("padding" if pad else "header", pad or BLOCK)

    def _entry(self, info: tarfile.TarInfo) -> ArchiveEntry:
        kind = _KINDS.get(info.type)
        if kind is None:
            raise ArchiveError("it has an entry that is not a file, a folder or a symbolic link")
        try:
            size, mtime = int(self._pax.get("size", info.size)), float(self._pax.get("mtime", info.mtime))
        except ValueError:
            raise ArchiveError("a number in a pax header is not valid") from None
        if size < 0 or (size and kind != "file") or not abs(mtime) < _LATEST_MTIME:
            raise ArchiveError("a size or a time is not valid")
        path = self._pax.get("path", info.name)
        if kind == "directory":
            path = path.removesuffix("/")
        check_path(path)
        target = self._pax.get("linkpath", info.linkname) if kind == "link" else ""
        if kind == "link" and ("\0" in target or not 0 < len(target) <= _PATH_LIMIT):
            raise ArchiveError("the target of a link is not valid")
        return ArchiveEntry(path, kind, info.mode & 0o777, mtime, size, target)


def check_path(path: str) -> None:
    """Raise ArchiveError for a path that is too long, or that leads out of its folder."""
    parts = path.split("/")
    if len(path) > _PATH_LIMIT or len(parts) > _PARTS_LIMIT:
        raise ArchiveError("a path is too long")
    if "\0" in path or not {"", ".", ".."}.isdisjoint(parts):
        raise ArchiveError("a path leads out of the folder")


def _parse_pax(data: bytes) -> dict[str, str]:
    """The records of a pax header: ``length key=value`` and a newline each."""
    found: dict[str, str] = {}
    while data:
        digits, _blank, _rest = data[:20].partition(b" ")
        length = int(digits) if digits.isdigit() else 0
        key, equals, value = data[len(digits) + 1 : length].partition(b"=")
        if not (equals and value.endswith(b"\n") and length <= len(data)):
            raise ArchiveError("a pax header is not valid")
        found[key.decode("utf-8", "replace")] = value[:-1].decode("utf-8", "surrogateescape")
        data = data[length:]
    return found
