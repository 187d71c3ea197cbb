# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A line to an agent that a test can cut, hush or chop, as networks do."""

from __future__ import annotations

import contextlib
import socket
import threading
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import TOKEN


class Tap:
    """Passes connections on to a port. A context manager.

    Attributes:
        connections: how many there were.
        sent: all that clients sent.
        received: all that was passed on to clients.
    """

    def __init__(self, port: int, *, piece: int = 65536, lose_answers: int = 0) -> None:
        """``piece``: bytes that are passed on at a time; ``lose_answers``: so many connections get no answer."""
        self._port = port
        self._piece = piece
        self._lose_answers = lose_answers
        self._lock = threading.Lock()
        self._lines: list[tuple[socket.socket, socket.socket]] = []
        self._threads: list[threading.Thread] = []
        self._hushed = threading.Event()
        self._refusing = False
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listener.getsockname()[1])
        self.connections = 0
        self.sent = b""
        self.received = bytearray()

    def __enter__(self) -> t.Self:
        self._thread(self._accept)
        return self

    def __exit__(self, *_: object) -> None:
        self.refuse()
        self.cut()
        for thread in self._threads:
            thread.join()
        self._listener.close()
        for line in self._lines:
            for end in line:
                end.close()

    def client(self, heartbeat: float = 15.0) -> Agent:
        """A client whose calls come through here."""
        return Agent(AgentAddress("127.0.0.1", self.port, TOKEN), subject="sandbox test/one", heartbeat=heartbeat)

    def cut(self) -> None:
        """End every connection that is open."""
        with self._lock:
            lines = list(self._lines)
        for line in lines:
            for end in line:
                with contextlib.suppress(OSError):
                    end.shutdown(socket.SHUT_RDWR)

    def refuse(self) -> None:
        """Take no more connections."""
        self._refusing = True
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)

    def lose(self, answers: int) -> None:
        """So many connections from now on get no answer."""
        self._lose_answers = answers

    def hush(self) -> None:
        """Pass nothing on any more, and say nothing about it: a cable that was pulled."""
        self._hushed.set()

    def _thread(self, target: t.Callable[..., None], *arguments: t.Any) -> None:
        thread = threading.Thread(target=target, args=arguments)
        self._threads.append(thread)
        thread.start()

    def _accept(self) -> None:
        while not self._refusing:
            try:
                near, _address = self._listener.accept()
            except OSError:
                return
            far = socket.create_connection(("127.0.0.1", self._port))
            for end in (near, far):
                end.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self.connections += 1
            with self._lock:
                self._lines.append((near, far))
            self._thread(self._pass_on, near, far, True)
            self._thread(self._pass_on, far, near, False)

    def _pass_on(self, source: socket.socket, target: socket.socket, outward: bool) -> None:
        with contextlib.suppress(OSError):
            while data := source.recv(65536):
                if self._hushed.is_set():
                    continue
                if outward:
                    self.sent += data
                elif self._lose_answers:
                    self._lose_answers -= 1
                    break
                for start in range(0, len(data), self._piece):
                    target.sendall(data[start : start + self._piece])
                if not outward:
                    self.received += data
        if self._hushed.is_set():
            return
        for end in (source, target):
            with contextlib.suppress(OSError):
                end.shutdown(socket.SHUT_RDWR)
