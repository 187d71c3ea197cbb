# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Failures of name resolution: which of them are final."""

from __future__ import annotations

import socket

#: The resolver's answer that a name, or an address of it, does not exist. EAI_AGAIN (no answer) may pass.
_FINAL = frozenset(
    getattr(socket, name) for name in ("EAI_NONAME", "EAI_NODATA", "EAI_ADDRFAMILY") if hasattr(socket, name)
)


def unknown_host(error: object) -> bool:
    """Whether a connection failed because its host name does not exist, so that a retry fails as well.

    Args:
        error: the failure of a library; the errors that it was raised from are looked at as well.
    """
    seen: set[int] = set()
    while isinstance(error, BaseException) and id(error) not in seen:
        if isinstance(error, socket.gaierror):
            return error.errno in _FINAL
        seen.add(id(error))
        error = getattr(error, "reason", None) or error.__cause__
    return False
