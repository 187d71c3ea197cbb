# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Giving a verb the chance to clean up when the play is interrupted."""

from __future__ import annotations

import contextlib
import os
import signal
import threading
import typing as t

SIGNALS = (signal.SIGINT, signal.SIGTERM)


class Interrupted(BaseException):
    """SIGINT or SIGTERM came while a verb ran."""


@contextlib.contextmanager
def interruptible() -> t.Iterator[None]:
    """Turn the first SIGINT or SIGTERM into Interrupted inside the block, then let it take its usual course.

    The verb's own cleanup runs on the way out; signals that come during it are not lost but wait for it, and its time
    is bounded. Handlers can be set in the main thread only; elsewhere the block runs as it is.
    """
    if threading.current_thread() is not threading.main_thread():
        yield
        return
    received: list[int] = []
    running = True

    def handler(signum: int, _frame: object) -> None:
        received.append(signum)
        if running and len(received) == 1:
            raise Interrupted

    # A signal that is ignored here, as in a job that a shell has put into the background, stays ignored.
    known = {signum: signal.getsignal(signum) for signum in SIGNALS}
    previous = {signum: action for signum, action in known.items() if action is not signal.SIG_IGN}
    try:
        for signum in previous:
            signal.signal(signum, handler)
        yield
    finally:
        running = False
        for signum, action in previous.items():
            signal.signal(signum, signal.SIG_DFL if action is None else action)
        if received:
            os.kill(os.getpid(), received[0])
