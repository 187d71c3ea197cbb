# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A file of this machine that appears under its name when it is complete."""

from __future__ import annotations

import contextlib
import errno
import os
import tempfile
import typing as t

#: Permission bits of a new file, before the umask; a file that is replaced keeps its own.
_NEW_MODE = 0o666


@contextlib.contextmanager
def complete_file(target: str | os.PathLike[str]) -> t.Iterator[t.BinaryIO]:
    """A file that is open for writing; when the block ends without an error, it replaces ``target`` in one step.

    Until then it has a unique name beside the target, so no file of the user has that name, and a failure leaves the
    old target as it was. A link is written through. A target that is not a regular file (``/dev/stdout``, a pipe) is
    written to directly.

    Raises:
        OSError: this machine cannot write it.
    """
    path = os.path.realpath(target)
    try:
        found = os.stat(path)
    except FileNotFoundError:
        mode = _NEW_MODE & ~_umask()
    else:
        if os.path.isdir(path):
            raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), path)
        if not os.path.isfile(path):
            with open(path, "wb") as special:
                yield special
            return
        mode = found.st_mode & 0o777
    fd, part = tempfile.mkstemp(prefix=".namzu-", suffix=".part", dir=os.path.dirname(path))
    try:
        with os.fdopen(fd, "wb") as file:
            yield file
            os.fchmod(file.fileno(), mode)
        os.replace(part, path)
    except BaseException:
        with contextlib.suppress(OSError):
            os.unlink(part)
        raise


def _umask() -> int:
    """The umask of this process. It cannot be read without a change of it, except where the kernel shows it."""
    with (
        contextlib.suppress(OSError, ValueError),
        open("/proc/self/status", encoding="ascii", errors="replace") as file,
    ):
        for line in file:
            if line.startswith("Umask:"):
                return int(line.split()[1], 8)
    return 0o022
