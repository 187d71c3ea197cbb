# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A clock on which nobody waits for long: it runs as the machine's does, and a sleep puts it forward."""

from __future__ import annotations

import datetime
import threading
import time

#: Real seconds of a sleep: whoever is waited for is a thread beside us, and needs a turn.
TURN = 0.005


class SkippingClock:
    """A Clock.

    Attributes:
        slept: every sleep that was asked for, in seconds.
    """

    def __init__(self) -> None:
        self.slept: list[float] = []
        self._lock = threading.Lock()
        self._skipped = 0.0

    def monotonic(self) -> float:
        return time.monotonic() + self._skipped

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=self._skipped)

    def sleep(self, seconds: float) -> None:
        with self._lock:
            self.slept.append(seconds)
            self._skipped += seconds
        time.sleep(min(seconds, TURN))
