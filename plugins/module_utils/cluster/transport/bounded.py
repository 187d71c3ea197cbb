# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A bound on a whole answer, head and body.

A socket's timeout starts anew with every byte, so a server that sends one now and then would hold a request for ever.
"""

from __future__ import annotations

import http.client
import io
import time
import typing as t


class BoundedResponse(http.client.HTTPResponse):
    """An answer that is read completely within the timeout that its socket has when it begins."""

    def __init__(self, sock: t.Any, *arguments: t.Any, **keywords: t.Any) -> None:
        super().__init__(t.cast("t.Any", _Bounded(sock)), *arguments, **keywords)


class _Bounded:
    """What http.client asks of a socket: a file to read from."""

    def __init__(self, sock: t.Any) -> None:
        self._sock = sock

    def makefile(self, _mode: str) -> io.BufferedReader:
        return io.BufferedReader(_BoundedStream(self._sock))


class _BoundedStream(io.RawIOBase):
    def __init__(self, sock: t.Any) -> None:
        self._sock = sock
        # The raw file keeps the socket open after the connection has been closed, until the body is read.
        self._raw = sock.makefile("rb", buffering=0)
        timeout = sock.gettimeout()
        self._until = None if timeout is None else time.monotonic() + timeout

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: t.Any) -> int | None:
        if self._until is not None:
            remaining = self._until - time.monotonic()
            if remaining <= 0:
                raise TimeoutError("the whole answer has taken too long")
            self._sock.settimeout(remaining)
        read: int | None = self._raw.readinto(buffer)
        return read

    def close(self) -> None:
        if not self.closed:
            self._raw.close()
        super().close()
