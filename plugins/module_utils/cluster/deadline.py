# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Time, in one place: a clock that tests can replace, and the one deadline of an operation."""

from __future__ import annotations

import datetime
import threading
import time
import typing as t


class Clock(t.Protocol):
    """Where the core reads the time and waits."""

    def monotonic(self) -> float:
        """Seconds that only go forward; the zero point means nothing."""

    def now(self) -> datetime.datetime:
        """The wall clock in UTC, for the API's timestamps only."""

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds`` (0 or more)."""


class SystemClock:
    """The machine's own clock."""

    def monotonic(self) -> float:
        return time.monotonic()

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def sleep(self, seconds: float) -> None:
        time.sleep(seconds)


SYSTEM_CLOCK: Clock = SystemClock()


class Deadline:
    """A point in time that every step of one operation shares.

    A step never extends it: it asks what is left and bounds itself by that.
    """

    def __init__(self, seconds: float, clock: Clock = SYSTEM_CLOCK) -> None:
        self.seconds = seconds
        self.clock = clock
        self._started = clock.monotonic()
        self._called_off = threading.Event()

    def elapsed(self) -> float:
        """Seconds since the deadline was set."""
        return self.clock.monotonic() - self._started

    def remaining(self) -> float:
        """Seconds left; 0.0 when it has passed or was cancelled."""
        return 0.0 if self.cancelled else max(0.0, self.seconds - self.elapsed())

    @property
    def cancelled(self) -> bool:
        """Whether somebody called it off."""
        return self._called_off.is_set()

    def cancel(self) -> None:
        """Let it pass now; any thread may call this."""
        self._called_off.set()

    @property
    def expired(self) -> bool:
        """Whether nothing is left."""
        return self.remaining() <= 0.0

    def at_most(self, seconds: float) -> float:
        """``seconds``, or what is left when that is less."""
        return min(seconds, self.remaining())

    def sleep(self, seconds: float) -> None:
        """Wait ``seconds``, but not past the deadline; on the machine's clock ``cancel`` ends it."""
        length = self.at_most(max(0.0, seconds))
        if self.clock is SYSTEM_CLOCK:
            self._called_off.wait(length)
        else:
            self.clock.sleep(length)
