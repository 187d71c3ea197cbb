# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The duties of PID 1: collect orphans, end within a second of SIGTERM, and stay closed to one's own children.

The main thread does this and nothing else. It also works below another PID 1 (a pod that shares its process
namespace): then orphans come to the agent because it is made their subreaper.
"""

from __future__ import annotations

import os
import select
import signal
import time

from children import Children
from processes import send_signal, stoppable

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from server import Server

#: Seconds between SIGTERM and SIGKILL for what still runs, and for the last answers to be sent: 0.7 in all.
TERM_GRACE = 0.5
FINAL_ANSWERS_SECONDS = 0.2
#: How often, in seconds, a stop looks whether everything has ended, and a reaper whether a start has got on.
TICK = 0.02

_PR_SET_DUMPABLE = 4
_PR_SET_CHILD_SUBREAPER = 36
_STOPPING = frozenset((signal.SIGTERM, signal.SIGINT))


class Init:
    """Signals and orphans. Make it before anything that may receive a signal, in the main thread."""

    def __init__(self) -> None:
        self.children = Children()
        self._wake, writing = os.pipe()
        os.set_blocking(self._wake, False)
        os.set_blocking(writing, False)
        signal.set_wakeup_fd(writing, warn_on_full_buffer=False)
        self._poll = select.poll()
        self._poll.register(self._wake, select.POLLIN)
        install_handlers()
        protect()

    def run(self, server: Server) -> None:
        """Collect children until SIGTERM or SIGINT, then end everything and this process."""
        reaped = True
        while True:
            received = self._wait(None if reaped else TICK)
            reaped = self.children.reap(TICK)
            if received & _STOPPING:
                break
        server.stop()
        self.children.stop()
        self._end_others()
        until = time.monotonic() + FINAL_ANSWERS_SECONDS
        while server.busy and time.monotonic() < until:
            self._wait(TICK)
            self.children.reap(TICK)
        # Threads that still serve somebody must not hold up the end.
        os._exit(0)

    def _wait(self, seconds: float | None) -> set[int]:
        """Sleep until a signal arrives, or for ``seconds``; which signals arrived."""
        if not self._poll.poll(None if seconds is None else seconds * 1000):
            return set()
        return set(os.read(self._wake, 4096))

    def _end_others(self) -> None:
        signal_stoppable(signal.SIGTERM)
        until = time.monotonic() + TERM_GRACE
        while time.monotonic() < until and signal_stoppable(0):
            self._wait(TICK)
            self.children.reap(TICK)
        signal_stoppable(signal.SIGKILL)


def install_handlers() -> None:
    """Handlers for what we act on, defaults for all else: what is ignored or blocked here, commands would inherit."""
    for number in range(1, signal.NSIG):
        if signal.getsignal(number) == signal.SIG_IGN and number not in (signal.SIGPIPE, signal.SIGXFSZ):
            signal.signal(number, signal.SIG_DFL)
    for number in (signal.SIGTERM, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, _wake_only)
    signal.pthread_sigmask(signal.SIG_SETMASK, ())


def _wake_only(_number: int, _frame: Any) -> None:
    """The wakeup descriptor carries the signal; a handler must exist for it to be written."""


def protect() -> None:
    """Become the reaper of orphans, and unreadable to processes of the same uid: memory, environment, descriptors.

    The standard library reaches prctl(2) through ctypes alone. In an image without it the agent still works, and its
    memory is protected by the kernel's ptrace_scope only.
    """
    try:
        import ctypes

        prctl = ctypes.CDLL(None).prctl
    except (ImportError, OSError, AttributeError):
        return
    for option, value in ((_PR_SET_CHILD_SUBREAPER, 1), (_PR_SET_DUMPABLE, 0)):
        prctl(option, *(ctypes.c_ulong(argument) for argument in (value, 0, 0, 0)))


def signal_stoppable(number: int) -> bool:
    """Signal every process that is ours to end; whether there is one."""
    # For PID 1, -1 is every process in its namespace but itself: also what moved to a session of its own.
    targets = [-1] if os.getpid() == 1 else sorted(stoppable())
    return sum(send_signal(target, number) for target in targets) > 0
