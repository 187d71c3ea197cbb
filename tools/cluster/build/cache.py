# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders that are made once, named by a hash of their sources, and never visible half made."""

from __future__ import annotations

import fcntl
import hashlib
import os
import shutil
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from ..progress import Progress


def key(parts: Iterable[bytes | str]) -> str:
    """A short hash of the parts that decide about a folder's content; their order counts."""
    digest = hashlib.sha256()
    for part in parts:
        content = part.encode() if isinstance(part, str) else part
        digest.update(len(content).to_bytes(8, "big") + content)
    return digest.hexdigest()[:16]


def folder(parent: Path, name: str, make: Callable[[Path], None], progress: Progress) -> Path:
    """The folder `parent/name`, made with `make` when it is not there yet.

    `make` fills a temporary folder that is renamed when it is complete. One process makes, others wait for it.
    """
    ready = parent / name
    if ready.is_dir():
        return ready
    parent.mkdir(parents=True, exist_ok=True)
    with lock(parent / ".lock", progress, f"waiting: another process is making {name}"):
        if ready.is_dir():
            return ready
        _remove_unfinished(parent)
        unfinished = Path(tempfile.mkdtemp(prefix=".unfinished-", dir=parent))
        try:
            make(unfinished)
            unfinished.chmod(0o755)
            os.rename(unfinished, ready)
        except BaseException:
            shutil.rmtree(unfinished, ignore_errors=True)
            raise
    return ready


@contextmanager
def lock(path: Path, progress: Progress, waiting: str) -> Iterator[None]:
    """Hold a lock file; the kernel releases it when the process ends, also after a crash."""
    path.parent.mkdir(parents=True, exist_ok=True)
    descriptor = os.open(path, os.O_RDWR | os.O_CREAT | os.O_CLOEXEC, 0o644)
    try:
        while not _try_lock(descriptor):
            progress.update(waiting)
            time.sleep(0.2)
        yield
    finally:
        # A child that was forked in the meantime holds the lock, too, when the file is only closed.
        fcntl.flock(descriptor, fcntl.LOCK_UN)
        os.close(descriptor)


def _try_lock(descriptor: int) -> bool:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return False
    return True


def _remove_unfinished(parent: Path) -> None:
    for leftover in parent.glob(".unfinished-*"):
        shutil.rmtree(leftover, ignore_errors=True)
