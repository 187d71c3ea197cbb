# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""write-tree: files, folders and links below a folder, from one stream.

Each file appears under its name when all of it is there. Every folder is opened from the one above without following
links, so a link that somebody puts there meanwhile leads nowhere.
"""

from __future__ import annotations

import contextlib
import os

from archive import PARTS_LIMIT, ArchiveError, Entry, Reader, check_path
from changing import remove
from fields import check_fields, parse_flag, require
from listing import LARGEST_LIMIT, parse_paths
from paths import Place, parse_path, refusal
from reading import new_sha256
from receiving import Receiving
from wire import Refused
from writing import check_target

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def write_tree(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "parents", "replace", "delete")), "write-tree")
    parents, replace = parse_flag(body, "parents"), parse_flag(body, "replace")
    delete = sorted(parse_paths(body, "delete") or ())
    for path in delete:
        check_deleted(path)
    path = parse_path(body, context.settings, folder=True)
    with Place(os.path.join(path, "."), make=parents) as place:
        unpacking = Unpacking(place, replace)
        try:
            peer.begin({"ready": {"path": path, "deleted": unpacking.delete(delete)}})
            Receiving(peer, path, unpacking.write_archive, unpacking.finish).run()
        finally:
            unpacking.close()


def check_deleted(path: str) -> None:
    try:
        check_path(path)
    except ArchiveError as error:
        require(False, f"delete: {error}")


class Unpacking:
    """Creates the entries of an archive below a folder."""

    def __init__(self, root: Place, replace: bool) -> None:
        self._root = root
        self._replace = replace
        self._reader = Reader(self)
        self._hash = new_sha256()
        self._size = 0
        self._count = 0
        self._content = 0
        #: The folder that the last entry was in: its path, and itself open.
        self._above = ""
        self._place: Inside | None = None
        self._file = -1
        self._part = ""
        self._entry: Entry | None = None
        #: Folders get their modes at the end, for one that may not be written to could not be filled.
        self._modes: dict[str, int] = {}

    def delete(self, paths: list[str]) -> int:
        count = 0
        for path in paths:
            with contextlib.suppress(FileNotFoundError), Inside(self._root, os.path.dirname(path), False) as place:
                count += remove(place.fd, os.path.basename(path), path, recursive=True)
        return count

    def write_archive(self, data: memoryview) -> None:
        self._hash.update(data)
        self._size += len(data)
        try:
            self._reader.feed(data)
        except ArchiveError as error:
            raise Refused("bad-request", f"the archive cannot be unpacked: {error}") from None

    def finish(self, size: int, checksum: str) -> dict[str, Any]:
        if (size, checksum) != (self._size, self._hash.hexdigest()):
            raise Refused(
                "checksum", f"{self._root.path[:300]}: {self._size} bytes arrived that are not the {size} sent"
            )
        require(self._reader.complete, "the archive is not complete")
        for path, mode in sorted(self._modes.items(), reverse=True):
            self._set_mode(path, mode)
        return {"size": self._size, "sha256": checksum, "count": self._count, "content": self._content}

    def _set_mode(self, path: str, mode: int) -> None:
        with Inside(self._root, os.path.dirname(path), False) as place:
            fd = place.open(os.path.basename(path), os.O_RDONLY | os.O_DIRECTORY)
            try:
                # A folder of another user, whose mode cannot be changed, may have the right one.
                if (os.fstat(fd).st_mode & 0o777) != mode:
                    os.fchmod(fd, mode)
            finally:
                os.close(fd)

    def begin(self, entry: Entry) -> None:
        self._count += 1
        require(self._count <= LARGEST_LIMIT, f"an archive has at most {LARGEST_LIMIT} entries")
        above, name = os.path.split(entry.path)
        place = self._folder(above)
        place.name, place.path = name, os.path.join(self._root.path, entry.path)
        self._entry = entry
        try:
            if entry.kind == "directory":
                self._make_folder(place, entry)
                return
            check_existing(place, self._replace)
            self._part = f".namzu-{os.urandom(8).hex()}.part"
            if entry.kind == "link":
                os.symlink(entry.target, self._part, dir_fd=place.fd)
            else:
                self._file = place.open(self._part, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except OSError as error:
            raise refusal(error, place.path) from None

    def _make_folder(self, place: Inside, entry: Entry) -> None:
        try:
            os.mkdir(place.name, 0o777, dir_fd=place.fd)
        except FileExistsError:
            # To enter it shows that it is a folder, and not a link to one.
            os.close(os.open(place.name, _FOLDER, dir_fd=place.fd))
        self._modes[entry.path] = entry.mode

    def write(self, data: memoryview) -> None:
        self._content += len(data)
        while len(data):
            data = data[os.write(self._file, data) :]

    def end(self) -> None:
        entry, place = self._entry, self._place
        if entry is None or place is None or entry.kind == "directory":
            return
        if entry.kind == "file":
            os.fchmod(self._file, entry.mode)
            os.utime(self._file, (entry.mtime, entry.mtime))
            os.close(self._file)
            self._file = -1
        os.rename(self._part, place.name, src_dir_fd=place.fd, dst_dir_fd=place.fd)
        self._part = ""

    def _folder(self, path: str) -> Inside:
        if self._place is None or path != self._above:
            self._leave()
            self._place, self._above = Inside(self._root, path, True), path
        return self._place

    def _leave(self) -> None:
        if self._place is not None:
            self._place.close()
            self._place = None

    def close(self) -> None:
        """Delete what is not whole."""
        if self._file >= 0:
            os.close(self._file)
            self._file = -1
        if self._part and self._place is not None:
            with contextlib.suppress(OSError):
                os.unlink(self._part, dir_fd=self._place.fd)
        self._leave()


def check_existing(place: Inside, replace: bool) -> None:
    """Refuse what a file or a link may not replace. A link there is replaced itself."""
    found = place.stat(place.name)
    if found is not None and (found.st_mode & 0o170000) != 0o120000:
        check_target(place, replace)


class Inside(Place):
    """A folder below an open one, entered without following links, and a name in it."""

    def __init__(self, root: Place, path: str, make: bool) -> None:  # pylint: disable=super-init-not-called
        self.path = os.path.join(root.path, path)
        self.name = "."
        folders = path.split("/") if path else []
        require(len(folders) <= PARTS_LIMIT, f"a path has at most {PARTS_LIMIT} folders")
        self.fd = os.dup(root.fd)
        try:
            for folder in folders:
                below = self._enter(folder, make)
                os.close(self.fd)
                self.fd = below
        except FileNotFoundError:
            os.close(self.fd)
            raise
        except OSError as error:
            os.close(self.fd)
            raise refusal(error, self.path) from None

    def close(self) -> None:
        os.close(self.fd)
