# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""An archive that a guest sends, unpacked below a folder of this machine and nowhere else.

The guest may be hostile. Every folder is opened from the one above without following links; a file is created under a
unique name and renamed when it is complete; a link that leads out of the folder is left out; set-uid, set-gid and
sticky bits are dropped; entries and bytes are bounded.
"""

from __future__ import annotations

import contextlib
import os
import stat
import typing as t

from ..filesystem import CHARACTERS_PER_ENTRY, LONGEST_PATH
from .archive import ArchiveEntry, ArchiveError

_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

#: Paths that were left out and are named.
NAMED_LIMIT = 1000


class Skipped(t.NamedTuple):
    """An entry that was left out.

    Attributes:
        path: below the folder.
        cause: ``outside`` (a link that leads out of the folder), or the kind of the agent's refusal.
    """

    path: str
    cause: str


class Unpacking:
    """Creates the entries of an archive below a folder. A context manager that removes what is not complete.

    Attributes:
        count: entries that were created.
        content: bytes of the files among them.
        skipped: the first of what was left out.
        skipped_count: how much was left out.
    """

    def __init__(self, folder: str | os.PathLike[str], *, max_entries: int, max_size: int) -> None:
        """Create the folder, with its parents, where there is none; raises OSError."""
        os.makedirs(folder, exist_ok=True)
        # The caller chose this path, so links in it are followed.
        self._root = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        self._max_entries = max_entries
        self._max_size = max_size
        self._above = ""
        self._fd = os.dup(self._root)
        self._file: t.BinaryIO | None = None
        self._part = ""
        self._entry: ArchiveEntry | None = None
        self._modes: dict[str, int] = {}
        self._characters = CHARACTERS_PER_ENTRY * max_entries + LONGEST_PATH
        self.count = 0
        self.content = 0
        self.skipped: list[Skipped] = []
        self.skipped_count = 0

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        if self._file is not None:
            self._file.close()
        if self._part:
            with contextlib.suppress(OSError):
                os.unlink(self._part, dir_fd=self._fd)
        os.close(self._fd)
        os.close(self._root)

    def skip(self, path: str, cause: str) -> None:
        """Note that an entry is left out."""
        self.skipped_count += 1
        if len(self.skipped) < NAMED_LIMIT:
            self.skipped.append(Skipped(path, cause))

    def begin(self, entry: ArchiveEntry) -> None:
        """Create an entry; ArchiveError above a limit, OSError for what this machine does not allow."""
        self.count += 1
        self.content += entry.size
        if self.count > self._max_entries:
            raise ArchiveError(f"it has more than {self._max_entries} entries")
        if self.content > self._max_size:
            raise ArchiveError(f"its files have more than {self._max_size} bytes")
        self._characters -= len(entry.path)
        if self._characters < 0:
            raise ArchiveError(f"its paths are longer than {CHARACTERS_PER_ENTRY} characters each")
        above, name = os.path.split(entry.path)
        self._enter(above)
        self._entry = None
        if entry.kind == "directory":
            self._make_folder(name, entry)
        elif entry.kind == "link" and not leads_inside(entry.path, entry.target):
            self.count -= 1
            self.skip(entry.path, "outside")
        else:
            self._make(name, entry)

    def _make(self, name: str, entry: ArchiveEntry) -> None:
        with contextlib.suppress(FileNotFoundError):
            if stat.S_ISDIR(os.stat(name, dir_fd=self._fd, follow_symlinks=False).st_mode):
                raise IsADirectoryError(None, "a directory exists there", entry.path)
        part = f".namzu-{os.urandom(8).hex()}.part"
        if entry.kind == "link":
            os.symlink(entry.target, part, dir_fd=self._fd)
            self._part = part
        else:
            fd = os.open(part, os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_CLOEXEC, 0o600, dir_fd=self._fd)
            self._part, self._file = part, os.fdopen(fd, "wb")
        self._entry = entry

    def _make_folder(self, name: str, entry: ArchiveEntry) -> None:
        with contextlib.suppress(FileExistsError):
            os.mkdir(name, 0o777, dir_fd=self._fd)
        # To enter it shows that it is a directory, and not a link to one.
        os.close(os.open(name, _FOLDER, dir_fd=self._fd))
        # The owner can always remove what was received.
        self._modes[entry.path] = entry.mode | 0o700

    def write(self, data: memoryview) -> None:
        """A part of the content of a file."""
        if self._file is not None:
            self._file.write(data)

    def end(self) -> None:
        """Give the entry its name."""
        entry = self._entry
        if entry is None:
            return
        if self._file is not None:
            self._file.flush()
            # The owner can always read what was received.
            os.fchmod(self._file.fileno(), entry.mode | 0o400)
            os.utime(self._file.fileno(), (entry.mtime, entry.mtime))
            self._file.close()
            self._file = None
        os.rename(self._part, os.path.basename(entry.path), src_dir_fd=self._fd, dst_dir_fd=self._fd)
        self._part = ""

    def finish(self) -> None:
        """Give the folders their modes, the lower ones first."""
        for path, mode in sorted(self._modes.items(), reverse=True):
            self._enter(os.path.dirname(path))
            fd = os.open(os.path.basename(path), _FOLDER, dir_fd=self._fd)
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)

    def _enter(self, path: str) -> None:
        """Open the folder that the next entry is in; missing folders are created."""
        if path == self._above:
            return
        fd = os.dup(self._root)
        try:
            for name in path.split("/") if path else []:
                with contextlib.suppress(FileExistsError):
                    os.mkdir(name, 0o777, dir_fd=fd)
                below = os.open(name, _FOLDER, dir_fd=fd)
                os.close(fd)
                fd = below
        except OSError:
            os.close(fd)
            raise
        os.close(self._fd)
        self._fd, self._above = fd, path


def leads_inside(path: str, target: str) -> bool:
    """Whether a link at ``path`` leads to a place below the folder, wherever the other links that do so lead.

    ``..`` counts only at the beginning of the target, where it means the folders of the path; behind the name of
    another link it would mean a folder that is not known here.
    """
    if target.startswith("/"):
        return False
    parts = [part for part in target.split("/") if part not in ("", ".")]
    below = [part for part in parts if part != ".."]
    ups = len(parts) - len(below)
    return parts[:ups] == [".."] * ups and ups <= path.count("/")
