# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""flush: have the kernel write to the disk what was written to a file system."""

from __future__ import annotations

import os
import time

from fields import check_fields
from paths import refusal
from wire import encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer

_FIELDS: frozenset[str] = frozenset()


def flush(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """Write back the workspace's file system. An error of the disk since the last time is an answer, ``io-error``."""
    check_fields(body, _FIELDS, "flush")
    started = time.monotonic()
    folder = context.settings.workspace
    try:
        fd = os.open(folder, os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        try:
            scope = sync_file_system(fd)
        finally:
            os.close(fd)
    except OSError as error:
        raise refusal(error, folder) from None
    took = int((time.monotonic() - started) * 1000)
    peer.send(encode_json({"flushed": {"path": folder, "scope": scope, "duration_ms": took}}))


def sync_file_system(fd: int) -> str:
    """Only the file system of ``fd`` where the C library can be reached, otherwise all of the node's."""
    try:
        import ctypes

        syncfs = ctypes.CDLL(None, use_errno=True).syncfs
    except (ImportError, OSError, AttributeError):
        os.sync()
        return "machine"
    if syncfs(fd) != 0:
        error = ctypes.get_errno()
        raise OSError(error, os.strerror(error))
    return "file-system"
