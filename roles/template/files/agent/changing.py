# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""make-folder, move-file and remove-file."""

from __future__ import annotations

import errno
import itertools
import os
import stat

from fields import check_fields, parse_flag, parse_number
from listing import DEPTH, REPLACED
from paths import Place, parse_path, refusal
from wire import Refused, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from settings import Settings
    from wire import Peer

#: What one removal may take away, and how many names are read at a time for it.
REMOVAL_LIMIT = 1_000_000
NAMES = 500

_BELOW = os.O_RDONLY | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC


def make_folder(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "parents", "mode")), "make-folder")
    parents = parse_flag(body, "parents")
    mode = parse_number(body, "mode", 0, 0o777, 0o777) if body.get("mode") is not None else None
    path = parse_path(body, context.settings, folder=True)
    with Place(path, make=parents) if path != "/" else Place("/.") as place:
        made = make(place, parents, mode)
    peer.send(encode_json({"made": {"path": path, "new": made}}))


def make(place: Place, parents: bool, mode: int | None) -> bool:
    """Whether it was not there. ``parents``: a folder that is there is fine, as with ``mkdir -p``."""
    try:
        os.mkdir(place.name, 0o777, dir_fd=place.fd)
        if mode is not None:
            fd = place.open(place.name, os.O_RDONLY | os.O_DIRECTORY)
            try:
                os.fchmod(fd, mode)
            finally:
                os.close(fd)
    except FileExistsError as error:
        found = place.stat(place.name)
        if parents and found is not None and stat.S_ISDIR(found.st_mode):
            return False
        raise refusal(error, place.path) from None
    except OSError as error:
        raise refusal(error, place.path) from None
    return True


def move_file(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "target", "parents", "replace")), "move-file")
    parents, replace = parse_flag(body, "parents"), parse_flag(body, "replace")
    path = parse_path(body, context.settings, follow=False)
    target = parse_path(body, context.settings, "target", follow=False)
    raise_if_workspace(context.settings, path)
    with Place(path) as old:
        if old.stat(old.name) is None:
            raise Refused("not-found", f"{path[:300]}: the file does not exist")
        with Place(target, make=parents) as new:
            if not replace and new.stat(new.name) is not None:
                raise Refused("exists", f"{target[:300]}: that exists already")
            try:
                os.rename(old.name, new.name, src_dir_fd=old.fd, dst_dir_fd=new.fd)
            except OSError as error:
                if error.errno == errno.EINVAL:
                    raise Refused("bad-request", f"{target[:300]}: a folder cannot be moved into itself") from None
                if error.errno == errno.ENOTDIR:
                    raise Refused("not-a-directory", f"{target[:300]}: a folder cannot replace a file") from None
                raise refusal(error, target) from None
    peer.send(encode_json({"moved": {"path": path, "target": target}}))


def remove_file(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "recursive")), "remove-file")
    recursive = parse_flag(body, "recursive")
    path = parse_path(body, context.settings, follow=False)
    raise_if_workspace(context.settings, path)
    with Place(path) as place:
        count = remove(place.fd, place.name, path, recursive)
    if not count:
        raise Refused("not-found", f"{path[:300]}: the file does not exist")
    peer.send(encode_json({"removed": {"path": path, "count": count}}))


def raise_if_workspace(settings: Settings, path: str) -> None:
    if os.path.commonpath((os.path.realpath(settings.workspace), path)) == path:
        raise Refused("denied", f"{path[:300]}: the workspace is in it, and stays where it is")


def remove(fd: int, name: str, path: str, recursive: bool) -> int:
    """Remove a file, a link or a folder; how many there were. A link is removed, never what it leads to."""
    try:
        found = os.stat(name, dir_fd=fd, follow_symlinks=False)
        if not stat.S_ISDIR(found.st_mode):
            os.unlink(name, dir_fd=fd)
            return 1
        if recursive:
            return Removal(fd, name, path).run()
        os.rmdir(name, dir_fd=fd)
    except FileNotFoundError:
        return 0
    except OSError as error:
        raise refusal(error, path) from None
    return 1


class Removal:
    """A folder with all that is in it. Each folder is opened from the one above without following links."""

    def __init__(self, fd: int, name: str, path: str) -> None:
        self._path = path
        #: The folder that holds each level, its name there, and its own descriptor.
        self._levels = [(fd, name, os.open(name, _BELOW, dir_fd=fd))]
        self._turns = 0

    def run(self) -> int:
        count = 0
        try:
            while self._levels:
                count += self._turn()
        finally:
            for _above, _name, fd in self._levels:
                os.close(fd)
        return count

    def _turn(self) -> int:
        """Empty the lowest folder, as far as it holds no folder; how much was removed."""
        above, name, fd = self._levels[-1]
        with os.scandir(fd) as listing:
            names = [found.name for found in itertools.islice(listing, NAMES)]
        self._turns += max(1, len(names))
        if self._turns > REMOVAL_LIMIT:
            raise Refused("too-large", f"{self._path[:300]}: it has more than {REMOVAL_LIMIT} entries")
        if not names:
            self._levels.pop()
            os.close(fd)
            os.rmdir(name, dir_fd=above)
            return 1
        count = 0
        for one in names:
            removed = self._unlink(fd, one)
            if removed is None and self._descend(fd, one):
                break
            count += bool(removed)
        return count

    def _unlink(self, fd: int, name: str) -> bool | None:
        """Whether it was there; None for a folder."""
        try:
            os.unlink(name, dir_fd=fd)
        except IsADirectoryError:
            return None
        except FileNotFoundError:
            return False
        return True

    def _descend(self, fd: int, name: str) -> bool:
        if len(self._levels) > DEPTH:
            raise Refused("too-large", f"{self._path[:300]}: it has more than {DEPTH} folders below one another")
        try:
            self._levels.append((fd, name, os.open(name, _BELOW, dir_fd=fd)))
        except OSError as error:
            if error.errno in REPLACED:
                return False
            raise
        return True
