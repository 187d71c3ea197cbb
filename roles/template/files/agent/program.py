# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A program that needs no client: a detached execution, or a session; what it has written, and who follows it.

Clients come and go: each reads the kept output at its own pace, and none can hold the program up, except the client of
a terminal that lives no longer than its connection.
"""

from __future__ import annotations

import contextlib
import fcntl
import os
import select
import struct
import termios
import threading
import time

from stream import HIGH_WATER
from wire import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from children import Child, Children
    from command import Command
    from retained import Log
    from terminal import Terminal

EXECUTION, BACKGROUND, TERMINAL = "execution", "background", "terminal"
_WAKE = struct.pack("=Q", 1)


class Program:
    """One program, what it has written, and for ``Relay`` the owner of it.

    Attributes:
        end: how it ended, as the fields of the event; None while it runs.
        left: whether nobody will come for it any more.
        gone: whether somebody wants it to end; ``grace`` is how long that may take, None for the command's own.
    """

    def __init__(self, kind: str, key: str, name: str | None, command: Command, log: Log) -> None:
        self.kind = kind
        self.id = key
        self.name = name
        self.command = command
        self.child: Child | None = None
        #: Rows and columns of its terminal.
        self.size: tuple[int, int] | None = None
        self.end: dict[str, Any] | None = None
        self.gone = False
        self.left = False
        self.grace: float | None = None
        self.started_at = time.time()
        self.ended_at: float | None = None
        self._children: Children | None = None
        self._log = log
        self._lock = threading.Lock()
        self._follower_fds: set[int] = set()
        #: Up to where the one client that holds the program back has read.
        self._read_to: int | None = None
        self._input = bytearray()
        self._input_ended = False
        self._reading = True
        self._terminal: int | None = None
        self._waker: int | None = None
        self.fd = -1

    # What its thread says.

    def mark_started(self, child: Child, children: Children, fd: int, waker: int, terminal: Terminal | None) -> None:
        """It runs. ``fd`` becomes readable when ``waker`` is written to."""
        self.child, self._children = child, children
        self.fd, self._waker = fd, waker
        if terminal is not None:
            self._terminal, self.size = terminal.ours, terminal.size

    def close_descriptors(self, close: Callable[[], None]) -> None:
        """Its descriptors go, and nobody may use them after that."""
        with self._lock:
            self._waker = self._terminal = None
            close()

    # What the relay asks of its owner.

    @property
    def full(self) -> bool:
        return self._read_to is not None and not self.gone and self._log.next - self._read_to >= HIGH_WATER

    served = True
    moment = None

    def events(self, reading: bool) -> int:
        if reading and not self._reading and (self._input or self._input_ended):
            self._wake()
        self._reading = reading
        return select.POLLIN

    def keep_time(self, now: float) -> None:
        """It has no clock of its own."""

    def read_input(self, _events: int) -> tuple[bytes, bool]:
        with self._lock:
            with contextlib.suppress(BlockingIOError):
                os.read(self.fd, 4096)
            if not self._reading:
                return b"", False
            data = bytes(self._input)
            self._input.clear()
            last = self._input_ended and not data
            if self._input_ended and data:
                self._wake()
            self._wake_followers()
            return data, last

    def write_output(self, channel: int, data: bytes) -> bool:
        with self._lock:
            kept = self._log.append(channel, data)
            self._wake_followers()
            return kept

    def finish(self, end: dict[str, Any], _still_talking: bool) -> None:
        with self._lock:
            self.end = end
            self.ended_at = time.time()
            self._wake_followers()

    def part(self) -> None:
        """Whoever wants the last word asks for it."""

    # What clients do with it.

    @property
    def input_full(self) -> bool:
        return len(self._input) >= HIGH_WATER

    def follow(self, follower: int, holds: bool) -> None:
        """Have ``follower`` written to when there is something new; ``holds``: do not get far ahead of this client."""
        with self._lock:
            self._follower_fds.add(follower)
            if holds:
                self._read_to = self._log.first

    def unfollow(self, follower: int) -> None:
        with self._lock:
            self._follower_fds.discard(follower)
            self._read_to = None
            self._wake()

    @property
    def followers(self) -> int:
        return len(self._follower_fds)

    def span(self) -> tuple[int, int]:
        """Offsets of the first byte that is kept, and of the one that will come next."""
        with self._lock:
            return self._log.first, self._log.next

    def read(self, offset: int, size: int) -> tuple[int, int, bytes]:
        """Offset, channel and bytes of a piece of the output, from ``offset`` or the first that is kept after it."""
        with self._lock:
            start = max(offset, self._log.first)
            channel, data = self._log.read(start, size)
            if self._read_to is not None:
                self._read_to = start + len(data)
                self._wake()
            return start, channel, data

    def write(self, data: bytes) -> None:
        """Input for it; thrown away when it reads no more."""
        with self._lock:
            if not self._input_ended and self._waker is not None:
                self._input += data
                self._wake()

    def end_input(self) -> None:
        """No more input. A terminal has no end of input: programs there take the character of it."""
        with self._lock:
            self._input_ended = self._terminal is None
            self._wake()

    def resize(self, rows: int, columns: int) -> None:
        with self._lock:
            if self._terminal is None:
                raise Refused("ended", f"{self.id} has no terminal, or runs no more")
            set_size(self._terminal, rows, columns)
            self.size = (rows, columns)

    def send_signal(self, number: int) -> None:
        """To the whole group; in a terminal, to whatever runs in front."""
        child, children = self.child, self._children
        if child is None or children is None or child.status is not None:
            raise Refused("ended", f"{self.id} runs no more")
        with self._lock:
            front = os.tcgetpgrp(self._terminal) if self._terminal is not None else 0
        try:
            if front > 0 and front != child.pid:
                os.killpg(front, number)
            else:
                children.signal_group(child, number)
        except OSError:
            # What was in front has just ended.
            pass

    def stop(self, grace: float | None) -> None:
        """Ask it to end, and kill what is left of it after the grace."""
        with self._lock:
            self.grace = grace
            self.gone = True
            self._wake()

    def forget(self) -> None:
        """Nobody will ask for its output any more."""
        with self._lock:
            self._log.close()

    def _wake_followers(self) -> None:
        for follower in self._follower_fds:
            _write(follower)

    def _wake(self) -> None:
        if self._waker is not None:
            _write(self._waker)


def set_size(terminal: int, rows: int, columns: int) -> None:
    fcntl.ioctl(terminal, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))


def _write(fd: int) -> None:
    # When it cannot be written to, it rings already.
    with contextlib.suppress(BlockingIOError):
        os.write(fd, _WAKE)
