# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""PID 1 of a sandbox that is a container: ``python3 -E -s -S -B lease.py LEASE SOCKET OFFER``.

The container ends with this process, and this process ends when its lease has ended, whatever becomes of the program
that acquired the sandbox. LEASE is a file with the end in seconds since 1970; who renews the lease writes a later one,
through the engine. SOCKET is where the agent is reached; it is made here and passed at OFFER to the agent, which asks
first, before any code runs in the sandbox.

It runs as a user of its own. Commands in the sandbox, which run as the agent's user, may not signal it, change its
limits, read its memory or write its file (kill(2), prlimit(2), ptrace(2)).
"""

from __future__ import annotations

import os
import select
import signal
import socket
import sys
import time

from handover import listen_at, send_listener

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Optional

BACKLOG = 256
#: Seconds after which the file and the clock are read again, for the machine may have been suspended.
TICK = 10.0
#: Seconds in which a file that is being replaced is there again.
REPLACE_SECONDS = 2.0
#: What the engine sends to stop a container.
STOPPING = frozenset((signal.SIGTERM, signal.SIGINT))


class Lease:
    """The end that the file names, or the last one that it named while it is being replaced."""

    def __init__(self, path: str) -> None:
        self._path = path
        self._until = 0.0

    def left(self) -> float:
        """Seconds until the end; 0 when it has passed and nobody renews the lease."""
        until = time.monotonic() + REPLACE_SECONDS
        while True:
            found = self._read()
            if found is not None:
                self._until = found
            left = self._until - time.time()
            if left > 0 or found is not None or time.monotonic() >= until:
                return max(left, 0.0)
            time.sleep(0.05)

    def _read(self) -> Optional[float]:
        try:
            with open(self._path, encoding="ascii") as file:
                return float(file.read(64))
        except (OSError, ValueError):
            return None


def main() -> None:
    path, where, offer = sys.argv[1:4]
    lease = Lease(path)
    waking, wakeup = os.pipe()
    os.set_blocking(waking, False)
    os.set_blocking(wakeup, False)
    signal.set_wakeup_fd(wakeup, warn_on_full_buffer=False)
    for number in (*STOPPING, signal.SIGCHLD):
        signal.signal(number, lambda _number, _frame: None)
    os.umask(0)
    listener: Optional[socket.socket] = listen_at(where, BACKLOG)
    offering = listen_at(offer, 1)
    poll = select.poll()
    poll.register(waking, select.POLLIN)
    poll.register(offering, select.POLLIN)
    while True:
        left = lease.left()
        if left <= 0:
            sys.exit("namzu lease: ended")
        for fd, _event in poll.poll(min(left, TICK) * 1000):
            if fd == waking and STOPPING.intersection(os.read(waking, 4096)):
                sys.exit("namzu lease: the container is being stopped")
            if fd == offering.fileno() and listener is not None:
                pass_on(offering, listener)
                poll.unregister(offering)
                offering.close()
                listener.close()
                listener = None
                break
        reap()


def pass_on(offering: socket.socket, listener: socket.socket) -> None:
    connection, _peer = offering.accept()
    with connection:
        send_listener(connection, listener)


def reap() -> None:
    """Collect what has ended below nobody else."""
    try:
        while os.waitpid(-1, os.WNOHANG)[0]:
            pass
    except ChildProcessError:
        pass


main()
