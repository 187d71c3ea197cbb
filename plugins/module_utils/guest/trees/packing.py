# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A folder of this machine as an archive."""

from __future__ import annotations

import os
import stat
import typing as t

from .archive import END, ArchiveEntry, header, padding

#: Bytes of one piece.
PIECE = 256 * 1024

#: Decides by the path below the folder whether an entry is taken.
Filter = t.Callable[[str], bool]


class LocalTree:
    """Packs what is below a folder. Links are packed as links; pipes, sockets and devices are left out.

    Attributes:
        count: entries that were packed.
        content: bytes of the files among them.
        skipped: paths that were left out.
    """

    def __init__(
        self, folder: str | os.PathLike[str], wanted: Filter | None = None, enter: Filter | None = None
    ) -> None:
        """Nothing is read yet.

        Args:
            wanted: takes the path of an entry below the folder; folders above an entry are created as needed.
            enter: takes the path of a folder below it; one that is not accepted is not read.
        """
        self._folder = os.fspath(folder)
        self._wanted = wanted
        self._enter = enter
        self.count = 0
        self.content = 0
        self.skipped: list[str] = []

    def pieces(self) -> t.Iterator[bytes]:
        """The bytes of the archive. Raises OSError for what cannot be read, and for a file that becomes shorter."""
        buffer = bytearray()
        for path, entry in walk(self._folder, self._enter):
            if self._wanted is not None and not self._wanted(path):
                continue
            for data in self._packed(path, entry):
                buffer += data
                if len(buffer) >= PIECE:
                    yield bytes(buffer)
                    buffer.clear()
        yield bytes(buffer + END)

    def _packed(self, path: str, entry: os.DirEntry[str]) -> t.Iterator[bytes]:
        if entry.is_symlink():
            found = entry.stat(follow_symlinks=False)
            yield self._begin(ArchiveEntry(path, "link", 0o777, found.st_mtime, target=os.readlink(entry.path)))
        elif entry.is_dir(follow_symlinks=False):
            found = entry.stat(follow_symlinks=False)
            yield self._begin(ArchiveEntry(path, "directory", found.st_mode, found.st_mtime))
        elif entry.is_file(follow_symlinks=False):
            yield from self._file(path, entry.path)
        else:
            self.skipped.append(path)

    def _file(self, path: str, local: str) -> t.Iterator[bytes]:
        with open(os.open(local, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK), "rb") as file:
            found = os.fstat(file.fileno())
            if not stat.S_ISREG(found.st_mode):
                raise OSError(None, "changed while it was read", local)
            yield self._begin(ArchiveEntry(path, "file", found.st_mode, found.st_mtime, found.st_size))
            left = found.st_size
            while left:
                data = file.read(min(PIECE, left))
                if not data:
                    raise OSError(None, "became shorter while it was read", local)
                left -= len(data)
                yield data
            yield padding(found.st_size)
            self.content += found.st_size

    def _begin(self, entry: ArchiveEntry) -> bytes:
        self.count += 1
        return header(entry)


def walk(folder: str, enter: Filter | None = None) -> t.Iterator[tuple[str, os.DirEntry[str]]]:
    """The entries below a folder with their paths there; a folder before what is in it.

    Args:
        enter: takes the path of a folder below it; one that is not accepted is not read.
    """
    waiting = [("", folder)]
    while waiting:
        prefix, local = waiting.pop()
        with os.scandir(local) as listing:
            entries = sorted(listing, key=lambda entry: entry.name)
        for entry in entries:
            yield prefix + entry.name, entry
        for entry in reversed(entries):
            path = prefix + entry.name
            if entry.is_dir(follow_symlinks=False) and (enter is None or enter(path)):
                waiting.append((f"{path}/", entry.path))
