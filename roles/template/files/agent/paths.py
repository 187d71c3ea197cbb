# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""From the path in a request to an open folder and a name in it.

Links are followed once, here, and the result must lie within the allowed roots. After that every folder is opened from
the one above it without following anything, so a link that somebody puts there meanwhile leads nowhere.
"""

from __future__ import annotations

import contextlib
import errno
import os
import stat

from fields import is_text, require
from wire import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from settings import Settings

_FOLDER = os.O_PATH | os.O_DIRECTORY | os.O_NOFOLLOW | os.O_CLOEXEC

_KINDS = {
    errno.ENOENT: ("not-found", "the file does not exist"),
    errno.ENOTDIR: ("no-parent", "a part of the path is not a folder"),
    errno.EACCES: ("denied", "the agent's user may not do that"),
    errno.EPERM: ("denied", "that is not permitted"),
    errno.EROFS: ("denied", "the file system is read-only"),
    errno.ELOOP: ("changed", "a part of the path became a link meanwhile"),
    errno.EISDIR: ("is-a-directory", "that is a folder"),
    errno.EEXIST: ("exists", "that exists already"),
    errno.ENOTEMPTY: ("not-empty", "the folder is not empty"),
    errno.EBUSY: ("denied", "it is in use, for example as a mount point"),
    errno.EXDEV: ("cross-device", "source and target are on different file systems"),
    errno.ENXIO: ("not-a-file", "that is a pipe or a socket"),
    errno.ENAMETOOLONG: ("bad-request", "the path is too long"),
    errno.ENOSPC: ("no-space", "the disk is full"),
    errno.EDQUOT: ("no-space", "the quota is used up"),
    errno.EFBIG: ("no-space", "the file would be larger than is allowed"),
    errno.ESTALE: ("changed", "the file or the disk has gone"),
    errno.EMFILE: ("exhausted", "the agent has no file descriptor left"),
    errno.ENFILE: ("exhausted", "the machine has no file descriptor left"),
    errno.ENOMEM: ("exhausted", "there is no memory left"),
}


def refusal(error: OSError, path: str) -> Refused:
    """What happened to a file, in words."""
    kind, words = _KINDS.get(error.errno or 0, ("io-error", os.strerror(error.errno or 0)))
    return Refused(kind, f"{path[:300]}: {words}")


def parse_path(
    body: dict[str, Any], settings: Settings, field: str = "path", follow: bool = True, folder: bool = False
) -> str:
    """The absolute path that ``field`` means, with no links in it; Refused ``outside`` when it leaves the roots.

    ``follow``: whether the last part may be a link that is followed; otherwise the link itself is meant.
    ``folder``: whether the path may end in a slash, ``.`` or ``..``.
    """
    path = body.get(field)
    require(is_text(path) and bool(path), f"{field} is a text without NUL that is not empty")
    given = os.path.join(settings.workspace, str(path))
    given = given if follow else given.rstrip("/")
    name = os.path.basename(given)
    require(folder or name not in ("", ".", ".."), f"{field} ends with the name of a file")
    try:
        found = os.path.realpath(given if follow else os.path.dirname(given))
    except OSError as error:
        if error.errno == errno.EINVAL:  # realpath asked where a link leads, and a folder had replaced the link
            raise Refused("changed", f"{given[:300]}: a part of the path was replaced meanwhile") from None
        raise refusal(error, given) from None
    if settings.roots and not any(os.path.commonpath((root, found)) == root for root in settings.roots):
        raise Refused("outside", f"{given[:300]}: it leads out of the folders that may be used")
    return found if follow else os.path.join(found, name)


def open_folder(path: str) -> int:
    """A descriptor by which a folder can be listed. Refused when there is none, or something else."""
    with Place(path) if path != "/" else Place("/.") as place:
        try:
            return place.open(place.name, os.O_RDONLY | os.O_DIRECTORY)
        except FileNotFoundError:
            raise Refused("not-found", f"{path[:300]}: the folder does not exist") from None
        except NotADirectoryError:
            raise Refused("not-a-directory", f"{path[:300]}: that is not a folder") from None
        except OSError as error:
            raise refusal(error, path) from None


class Place:
    """An open folder, and a name in it. A context manager that closes the folder."""

    def __init__(self, path: str, make: bool = False) -> None:
        """``make``: folders that are missing are made, as far as the umask lets everybody use them."""
        self.path = path
        *folders, self.name = path.split("/")[1:]
        self.fd = os.open("/", _FOLDER)
        try:
            for folder in folders:
                below = self._enter(folder, make)
                os.close(self.fd)
                self.fd = below
        except FileNotFoundError:
            os.close(self.fd)
            raise Refused("no-parent", f"{path[:300]}: its folder does not exist") from None
        except OSError as error:
            os.close(self.fd)
            raise refusal(error, path) from None

    def _enter(self, folder: str, make: bool) -> int:
        try:
            return os.open(folder, _FOLDER, dir_fd=self.fd)
        except FileNotFoundError:
            if not make:
                raise
        with contextlib.suppress(FileExistsError):
            os.mkdir(folder, 0o777, dir_fd=self.fd)
        return os.open(folder, _FOLDER, dir_fd=self.fd)

    def __enter__(self) -> Place:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self.fd)

    def stat(self, name: str) -> os.stat_result | None:
        """Of a name in the folder, not of what a link leads to; None when there is none."""
        try:
            return os.stat(name, dir_fd=self.fd, follow_symlinks=False)
        except FileNotFoundError:
            return None

    def check_file(self, found: os.stat_result) -> None:
        """Refuse what is not a regular file."""
        if stat.S_ISDIR(found.st_mode):
            raise Refused("is-a-directory", f"{self.path[:300]}: that is a folder")
        if not stat.S_ISREG(found.st_mode):
            raise Refused("not-a-file", f"{self.path[:300]}: that is not a regular file")

    def open(self, name: str, flags: int, mode: int = 0) -> int:
        # Without O_NONBLOCK, a pipe would be waited on.
        return os.open(name, flags | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, mode, dir_fd=self.fd)
