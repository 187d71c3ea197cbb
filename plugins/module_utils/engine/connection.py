# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""One connection to an engine: a socket of ours, on which each read and write is bounded by one deadline."""

from __future__ import annotations

import contextlib
import functools
import io
import socket
import ssl
import typing as t

from ..deadline import Deadline
from .access import EngineAccess

#: Seconds of one wait in the kernel, which ends after 24 days.
_LONGEST_WAIT = 3600.0


def dial(access: EngineAccess, deadline: Deadline) -> socket.socket:
    """Connect to the engine.

    Raises OSError (TimeoutError when the deadline passes) and AccessError.
    """
    path = access.socket_path
    if path is not None:
        return connect_unix(path, deadline)
    host, port = access.address
    sock = socket.create_connection((host, port), timeout=seconds_left(deadline))
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if not access.encrypted:
        return sock
    try:
        with deadline.cancellation.cutting(functools.partial(shut, sock)):
            sock.settimeout(seconds_left(deadline))
            return access.ssl_context().wrap_socket(sock, server_hostname=access.tls_hostname or host)
    except BaseException:
        sock.close()
        raise


def connect_unix(path: str, deadline: Deadline) -> socket.socket:
    """Connect to a Unix socket within the deadline."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.settimeout(seconds_left(deadline))
        sock.connect(path)
    except BaseException:
        sock.close()
        raise
    return sock


def seconds_left(deadline: Deadline) -> float:
    """What is left of the deadline for one call of the kernel; TimeoutError when nothing is."""
    remaining = deadline.remaining()
    if remaining <= 0:
        raise TimeoutError
    return min(remaining, _LONGEST_WAIT)


def shut(sock: socket.socket) -> None:
    """End both directions, so that whoever waits on the socket in another thread returns."""
    with contextlib.suppress(OSError):
        # Of the descriptor: TLS would try to say goodbye first.
        socket.socket.shutdown(sock, socket.SHUT_RDWR)


class BoundedReader(io.RawIOBase):
    """Reads a socket; each read has what is left of the deadline."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._sock = sock
        self._deadline = deadline
        #: Whether the other side has ended it.
        self.ended = False

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: t.Any) -> int:
        self._sock.settimeout(seconds_left(self._deadline))
        try:
            size = self._sock.recv_into(buffer)
        except ssl.SSLEOFError:
            size = 0
        self.ended = size == 0
        return size


class ResponseSource:
    """What ``http.client`` reads a response from."""

    def __init__(self, sock: socket.socket, deadline: Deadline) -> None:
        self._raw = BoundedReader(sock, deadline)
        self._reader = io.BufferedReader(self._raw, 64 * 1024)

    @property
    def ended(self) -> bool:
        """Whether the other side has ended it, as far as it was read."""
        return self._raw.ended

    def makefile(self, *_arguments: t.Any, **_options: t.Any) -> io.BufferedReader[BoundedReader]:
        return self._reader
