# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""list-files and stat-file: what there is, without following a link on the way down."""

from __future__ import annotations

import errno
import os
import stat

from fields import check_fields, is_text, parse_flag, parse_number, require
from paths import Place, open_folder, parse_path, refusal
from reading import new_sha256
from sending import send_frames
from wire import END_OF_STREAM, Refused, encode_event, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from operations import Context
    from wire import Peer

#: Entries of one answer, unless the client asks for another limit, and the most that it may ask for.
DEFAULT_LIMIT = 100_000
LARGEST_LIMIT = 1_000_000
#: Entries of one event.
BATCH = 200
#: Folders below one another; each holds a descriptor during a walk.
DEPTH = 200
#: Bytes that are read for a checksum before the client is looked at.
PIECE = 1024 * 1024

#: What may be where a folder was a moment ago: nothing, or something that is not a folder any more.
REPLACED = (errno.ENOENT, errno.ENOTDIR, errno.ELOOP)


def stat_file(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "follow")), "stat-file")
    follow = parse_flag(body, "follow")
    path = parse_path(body, context.settings, follow=follow, folder=follow)
    with Place(path) if path != "/" else Place("/.") as place:
        found = place.stat(place.name)
        if found is None:
            raise Refused("not-found", f"{path[:300]}: the file does not exist")
        peer.send(encode_json({"entry": entry(place.fd, place.name, path, found)}))


def list_files(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "recursive", "checksum", "limit", "only")), "list-files")
    recursive, checksum = parse_flag(body, "recursive"), parse_flag(body, "checksum")
    limit = parse_number(body, "limit", 1, LARGEST_LIMIT, DEFAULT_LIMIT)
    path = parse_path(body, context.settings, folder=True)
    only = parse_paths(body, "only")
    walk = Walk(path, limit, recursive, None if only is None else folders_of(only))
    try:
        peer.begin({"folder": {"path": path}})
        send_frames(peer, frames(walk, checksum, only))
    finally:
        walk.close()


def parse_paths(body: dict[str, Any], name: str) -> frozenset[str] | None:
    value = body.get(name)
    if value is None:
        return None
    require(isinstance(value, list) and all(map(is_text, value)), f"{name} is a list of paths below the folder")
    return frozenset(value)


def folders_of(paths: frozenset[str]) -> frozenset[str]:
    """The folders above paths."""
    found = set()
    for path in paths:
        above = os.path.dirname(path)
        while above and above not in found:
            found.add(above)
            above = os.path.dirname(above)
    return frozenset(found)


def frames(walk: Walk, checksum: bool, only: frozenset[str] | None) -> Iterator[bytes | None]:
    """The events of a list."""
    batch: list[dict[str, Any]] = []
    for fd, name, path, found in walk:
        if walk.count % BATCH == 0:
            yield None
        if only is not None and path not in only:
            continue
        about = entry(fd, name, path, found)
        if checksum and about["kind"] == "file":
            for about["sha256"] in checksums(fd, name, found.st_size):
                yield None
        batch.append(about)
        if len(batch) >= BATCH:
            yield encode_event({"entries": batch})
            batch = []
    if batch:
        yield encode_event({"entries": batch})
    yield encode_event({"end": {"count": walk.count}}) + END_OF_STREAM


def entry(fd: int, name: str, path: str, found: os.stat_result) -> dict[str, Any]:
    about = {
        "path": path,
        "kind": kind_of(found.st_mode),
        "size": found.st_size,
        "mode": stat.S_IMODE(found.st_mode),
        "mtime": found.st_mtime,
    }
    if about["kind"] == "link":
        try:
            about["target"] = os.readlink(name, dir_fd=fd)
        except OSError:
            about["target"] = ""  # it was replaced meanwhile
    return about


def kind_of(mode: int) -> str:
    if stat.S_ISREG(mode):
        return "file"
    if stat.S_ISDIR(mode):
        return "directory"
    return "link" if stat.S_ISLNK(mode) else "other"


def checksums(fd: int, name: str, size: int) -> Iterator[str | None]:
    """None while a file is read, and its checksum at the end; only None when it cannot be read."""
    try:
        file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
    except OSError:
        yield None
        return
    try:
        if not stat.S_ISREG(os.fstat(file).st_mode):
            yield None
            return
        checksum = new_sha256()
        while size > 0:
            piece = os.read(file, min(PIECE, size))
            if not piece:
                break
            checksum.update(piece)
            size -= len(piece)
            yield None
        yield checksum.hexdigest()
    except OSError:
        yield None
    finally:
        os.close(file)


class Walk:
    """Every entry of a folder, or of all below it: its folder's descriptor, its name, its path, and its status.

    Each folder is opened from the one above without following links. Refused ``too-large`` beyond a limit.
    """

    def __init__(self, path: str, limit: int, recursive: bool, into: frozenset[str] | None = None) -> None:
        """``into``: the only folders that are entered, by their paths below the first."""
        self._path = path
        self._limit = limit
        self._recursive = recursive
        self._into = into
        self._levels: list[tuple[int, str, Any]] = []
        self.count = 0
        #: Folders that could not be read, by their paths below the first.
        self.unreadable: list[str] = []
        self._enter(open_folder(path), "")

    def _enter(self, fd: int, prefix: str) -> None:
        try:
            self._levels.append((fd, prefix, os.scandir(fd)))
        except OSError as error:
            os.close(fd)
            raise refusal(error, self._path) from None

    def __iter__(self) -> Iterator[tuple[int, str, str, os.stat_result]]:
        while self._levels:
            fd, prefix, listing = self._levels[-1]
            name = ""
            try:
                name = next(listing).name
                found = os.stat(name, dir_fd=fd, follow_symlinks=False)
            except StopIteration:
                self._leave()
                continue
            except FileNotFoundError:
                continue
            except PermissionError:
                self.unreadable.append(prefix + name)
                continue
            except OSError as error:
                raise refusal(error, os.path.join(self._path, prefix)) from None
            self.count += 1
            if self.count > self._limit:
                raise Refused("too-large", f"{self._path[:300]}: it has more than {self._limit} entries")
            yield fd, name, prefix + name, found
            if self._recursive and stat.S_ISDIR(found.st_mode) and (self._into is None or prefix + name in self._into):
                self._descend(fd, name, prefix + name)

    def _descend(self, fd: int, name: str, path: str) -> None:
        if len(self._levels) > DEPTH:
            raise Refused("too-large", f"{self._path[:300]}: it has more than {DEPTH} folders below one another")
        try:
            below = os.open(name, os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC, dir_fd=fd)
        except PermissionError:
            self.unreadable.append(path)
            return
        except OSError as error:
            if error.errno in REPLACED:
                return
            raise refusal(error, os.path.join(self._path, path)) from None
        self._enter(below, path + "/")

    def _leave(self) -> None:
        fd, _prefix, listing = self._levels.pop()
        listing.close()
        os.close(fd)

    def close(self) -> None:
        """Close what a walk that did not end still holds."""
        while self._levels:
            self._leave()
