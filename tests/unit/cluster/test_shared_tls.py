# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A TLS connection of a port-forward: one thread reads, another writes, and OpenSSL is called by one at a time."""

from __future__ import annotations

import socket
import ssl
import threading
import time
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.portforward import _SharedTls


class Tls:
    """Looks like an SSLSocket over a socket pair; records how many calls were in it at the same time."""

    def __init__(self) -> None:
        self.near, self.far = socket.socketpair()
        self.inside = 0
        self.most = 0
        self._counting = threading.Lock()

    def setblocking(self, blocking: bool) -> None:
        self.near.setblocking(blocking)

    def fileno(self) -> int:
        return self.near.fileno()

    def recv(self, size: int) -> bytes:
        return self._call(lambda: self.near.recv(size), ssl.SSLWantReadError)

    def send(self, data: bytes) -> int:
        return self._call(lambda: self.near.send(data), ssl.SSLWantWriteError)

    def _call(self, call: t.Callable[[], t.Any], unready: type[Exception]) -> t.Any:
        with self._counting:
            self.inside += 1
            self.most = max(self.most, self.inside)
        try:
            time.sleep(0.001)
            return call()
        except BlockingIOError:
            raise unready from None
        finally:
            with self._counting:
                self.inside -= 1


def test_one_call_at_a_time_and_both_directions_go_on() -> None:
    tls: t.Any = Tls()
    shared = _SharedTls(tls)
    received = bytearray()

    def read() -> None:
        while len(received) < 200:
            received.extend(shared.recv(1))

    def answer() -> None:
        for _unused in range(200):
            tls.far.sendall(tls.far.recv(1))

    threads = [threading.Thread(target=work, daemon=True) for work in (read, answer)]
    with tls.near, tls.far:
        for thread in threads:
            thread.start()
        for number in range(200):
            assert shared.send(bytes([number])) == 1
        for thread in threads:
            thread.join(60)
    assert received == bytes(range(200))
    assert tls.most == 1


def test_a_read_that_waits_does_not_keep_a_write_from_going() -> None:
    tls: t.Any = Tls()
    shared = _SharedTls(tls)
    received: list[bytes] = []
    with tls.near, tls.far:
        reading = threading.Thread(target=lambda: received.append(shared.recv(10)), daemon=True)
        reading.start()
        time.sleep(0.05)
        assert shared.send(b"out") == 3
        assert tls.far.recv(10) == b"out"
        tls.far.sendall(b"in")
        reading.join(60)
    assert received == [b"in"]


def test_a_full_connection_is_waited_for() -> None:
    tls: t.Any = Tls()
    shared = _SharedTls(tls)
    with tls.near, tls.far:
        tls.near.setblocking(False)
        full = b"x" * 65536
        while True:
            try:
                tls.near.send(full)
            except BlockingIOError:
                break
        sent: list[int] = []
        writing = threading.Thread(target=lambda: sent.append(shared.send(b"more")), daemon=True)
        writing.start()
        time.sleep(0.05)
        assert sent == []
        # Until the text itself arrives: the thread may record its result later than that.
        received = b""
        while received != b"more":
            received = (received + tls.far.recv(1 << 20))[-4:]
        writing.join(60)
    assert sent == [4]
