# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The waits of a call to an agent: they block the thread, unless an event loop has taken them over."""

from __future__ import annotations

import contextvars
import select
import selectors
import socket
import typing as t

from ...deadline import Deadline


class Waiter(t.Protocol):
    """Waits without blocking the thread."""

    def readable(self, fd: int, seconds: float) -> bool:
        """Wait until a descriptor can be read; False after ``seconds``."""

    def writable(self, fd: int, seconds: float) -> bool:
        """Wait until a descriptor can be written; False after ``seconds``."""

    def sleep(self, seconds: float) -> None:
        """Wait for a time."""

    def connected(self, call: t.Callable[[], socket.socket], deadline: Deadline) -> socket.socket:
        """The socket of a call that blocks, made in another thread."""


#: The waiter of the calls that are made in this context; None where they block the thread.
WAITER: contextvars.ContextVar[t.Optional[Waiter]] = contextvars.ContextVar("namzu_waiter", default=None)


def wait_for_events(selector: selectors.BaseSelector, seconds: float) -> bool:
    """Wait for an event of a selector; False after ``seconds``."""
    waiter = WAITER.get()
    if waiter is None:
        return bool(selector.select(seconds))
    # The descriptor of an epoll or kqueue can be read while it has an event.
    return waiter.readable(t.cast("selectors.EpollSelector", selector).fileno(), seconds)


def wait_until_writable(sock: socket.socket, seconds: float) -> None:
    """Wait until a socket takes bytes, for ``seconds`` at most."""
    waiter = WAITER.get()
    if waiter is not None:
        waiter.writable(sock.fileno(), seconds)
        return
    ready = select.poll()
    ready.register(sock, select.POLLOUT)
    ready.poll(seconds * 1000)


def pause(deadline: Deadline, seconds: float) -> None:
    """Wait ``seconds``, but not past the deadline."""
    waiter = WAITER.get()
    if waiter is None:
        deadline.sleep(seconds)
    else:
        waiter.sleep(deadline.at_most(max(0.0, seconds)))


def connected(call: t.Callable[[], socket.socket], deadline: Deadline) -> socket.socket:
    """The socket of a call that blocks its thread until the deadline at most."""
    waiter = WAITER.get()
    return call() if waiter is None else waiter.connected(call, deadline)
