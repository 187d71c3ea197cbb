# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``cp``: files and folders into a sandbox and out of it, with progress on a terminal."""

from __future__ import annotations

import contextlib
import os
import pathlib
import sys
import typing as t

import rich.markup
import rich.progress

from ..api import Sandbox
from ..deadline import Deadline
from ..errors import InputError
from ..guest.files import Files
from ..guest.local_file import complete_file
from .access import Access
from .output import console

#: Seconds for one copy: a day, so that even that is bounded.
COPY_SECONDS = 86400.0


def copy(source: str, target: str, access: Access) -> None:
    """Copy between this machine and a sandbox; exactly one of the two is ``NAME:PATH``.

    Raises:
        InputError: both are, or none is.
        SandboxError: the sandbox or its agent refuses.
        OSError: this machine does not allow it.
    """
    inside, outside = _place(source), _place(target)
    if (inside is None) == (outside is None):
        raise InputError(
            f"cp {source} {target}: exactly one of the two must be in a sandbox.",
            next_step="Write NAME:PATH for the one in the sandbox, and ./a:b for a local name with a colon.",
        )
    if inside is not None:
        _download(*inside, pathlib.Path(target), access)
    elif outside is not None:
        _upload(pathlib.Path(source), *outside, access)


def _place(text: str) -> tuple[str, str] | None:
    """The sandbox and the path in it; None for a path of this machine."""
    name, colon, path = text.partition(":")
    return (name, path or ".") if colon and name and "/" not in name else None


def _upload(source: pathlib.Path, name: str, path: str, access: Access) -> None:
    with Sandbox.connect(name, **access) as sandbox:
        if source.is_dir():
            sandbox.files.upload_tree(source, path)
            return
        with source.open("rb") as file, _progress(source.name, source.stat().st_size) as advance:
            status = os.fstat(file.fileno())
            where = f"{path.rstrip('/')}/{source.name}" if _is_folder(sandbox, path) else path
            Files(sandbox.agent).put(
                _Reader(file, advance),
                where,
                mode=status.st_mode & 0o777,
                parents=True,
                deadline=Deadline(COPY_SECONDS),
            )


def _download(name: str, path: str, target: pathlib.Path, access: Access) -> None:
    with Sandbox.connect(name, **access) as sandbox:
        entry = sandbox.files.stat(path)
        if entry.is_directory:
            sandbox.files.download_tree(path, target)
            return
        where = target / pathlib.PurePosixPath(path).name if target.is_dir() else target
        with complete_file(where) as file, _progress(where.name, entry.size) as advance:
            Files(sandbox.agent).fetch(path, _Writer(file, advance), deadline=Deadline(COPY_SECONDS))


def _is_folder(sandbox: Sandbox, path: str) -> bool:
    return path.endswith("/") or (sandbox.files.exists(path) and sandbox.files.stat(path).is_directory)


@contextlib.contextmanager
def _progress(name: str, size: int) -> t.Iterator[t.Callable[[int], object]]:
    """Show the progress of a copy where standard error is a terminal; yields what counts bytes."""
    if not sys.stderr.isatty():
        yield lambda _count: None
        return
    columns = (
        rich.progress.TextColumn("{task.description}"),
        rich.progress.BarColumn(),
        rich.progress.DownloadColumn(),
        rich.progress.TransferSpeedColumn(),
    )
    with rich.progress.Progress(*columns, console=console(stderr=True), transient=True) as progress:
        task = progress.add_task(rich.markup.escape(name), total=size)
        yield lambda count: progress.advance(task, count)


class _Reader:
    """A file whose bytes are counted while they are read."""

    def __init__(self, file: t.BinaryIO, advance: t.Callable[[int], object]) -> None:
        self._file = file
        self._advance = advance

    def read(self, size: int = -1) -> bytes:
        """The next bytes of the file."""
        data = self._file.read(size)
        self._advance(len(data))
        return data

    def seek(self, offset: int, whence: int = os.SEEK_SET) -> int:
        """Move, as a file does."""
        return self._file.seek(offset, whence)

    def tell(self) -> int:
        """The offset, as of a file."""
        return self._file.tell()


class _Writer:
    """A file whose bytes are counted while they are written."""

    def __init__(self, file: t.BinaryIO, advance: t.Callable[[int], object]) -> None:
        self._file = file
        self._advance = advance

    def write(self, data: bytes) -> int:
        """Append bytes to the file."""
        self._advance(len(data))
        return self._file.write(data)
