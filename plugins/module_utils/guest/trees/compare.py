# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Two trees, and what has to be copied and deleted to make one like the other."""

from __future__ import annotations

import dataclasses
import hashlib
import os
import posixpath
import stat
import typing as t

from ..filesystem import DIRECTORY, FILE, LINK, OTHER, Entry
from .packing import Filter, walk


@dataclasses.dataclass(frozen=True)
class Difference:
    """What makes a target like a source.

    Attributes:
        copy: paths of entries that the target lacks, or has otherwise.
        delete: paths of entries that only the target has, or has as another kind, each with everything in it.
        conflicts: paths that are a folder on one side and not on the other, and that must not be deleted.
    """

    copy: tuple[str, ...]
    delete: tuple[str, ...]
    conflicts: tuple[str, ...]

    @property
    def empty(self) -> bool:
        """Whether the target is like the source."""
        return not (self.copy or self.delete)


def compare(
    source: t.Mapping[str, Entry], target: t.Mapping[str, Entry], *, delete: bool, takes: Filter = lambda _path: True
) -> Difference:
    """What makes ``target`` like ``source``; both are entries by their paths.

    Args:
        delete: whether what only the target has is deleted.
        takes: whether the target's entry may be deleted.
    """
    copy = sorted(path for path, entry in source.items() if path not in target or differs(entry, target[path]))
    needed = set(source) | _above(source)
    wrong = {
        path
        for path in needed & set(target)
        if (path not in source or source[path].is_directory) != target[path].is_directory
    }
    if not delete:
        return Difference(tuple(copy), (), tuple(sorted(wrong)))
    protected = {path for path in target if not takes(path)}
    kept = (needed - wrong) | protected | _above(protected)
    surplus = set(target) - kept
    top = sorted(path for path in surplus if posixpath.dirname(path) not in surplus)
    return Difference(tuple(copy), tuple(top), tuple(sorted(wrong & kept)))


def differs(one: Entry, other: Entry) -> bool:
    """Whether an entry has another kind, content, target or mode. A link has no mode of its own."""
    if one.kind != other.kind:
        return True
    if one.kind == LINK:
        return one.target != other.target
    if (one.mode ^ other.mode) & 0o777:
        return True
    return one.kind == FILE and (one.sha256 is None or one.sha256 != other.sha256)


def _above(paths: t.Iterable[str]) -> set[str]:
    """The folders above paths."""
    found: set[str] = set()
    for path in paths:
        above = posixpath.dirname(path)
        while above and above not in found:
            found.add(above)
            above = posixpath.dirname(above)
    return found


def local_entries(
    folder: str | os.PathLike[str], *, takes: Filter | None = None, enters: Filter | None = None, checksum: Filter
) -> dict[str, Entry]:
    """The entries below a folder of this machine, by their paths; empty when there is no folder.

    Args:
        takes: which entries are wanted.
        enters: which folders are read.
        checksum: which files are read for their checksums.

    Raises OSError for what cannot be read.
    """
    found: dict[str, Entry] = {}
    if not os.path.lexists(folder):
        return found
    for path, entry in walk(os.fspath(folder), enters):
        if takes is None or takes(path):
            found[path] = _local(path, entry, checksum)
    return found


def _local(path: str, entry: os.DirEntry[str], checksum: Filter) -> Entry:
    about = entry.stat(follow_symlinks=False)
    kind = OTHER
    if entry.is_symlink():
        kind = LINK
    elif stat.S_ISDIR(about.st_mode):
        kind = DIRECTORY
    elif stat.S_ISREG(about.st_mode):
        kind = FILE
    target = os.readlink(entry.path) if kind == LINK else None
    sha256 = _checksum(entry.path) if kind == FILE and checksum(path) else None
    return Entry(path, kind, about.st_size, stat.S_IMODE(about.st_mode), about.st_mtime, target, sha256)


def _checksum(path: str) -> str:
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()
