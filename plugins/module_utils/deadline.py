# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Time, in one place: a clock that tests can replace, and the one deadline of an operation."""

from __future__ import annotations

import contextlib
import datetime
import threading
import time
import typing as t

#: Seconds for removing what a failed operation created; the deadline of the operation has often passed by then.
CLEANUP_SECONDS = 10.0


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


class Cancellation:
    """Whether an operation was called off, and what ends then. Safe to share between threads."""

    def __init__(self) -> None:
        self.called_off = threading.Event()
        self._lock = threading.Lock()
        self._cuts: dict[object, t.Callable[[], None]] = {}

    def call_off(self) -> None:
        """Call it off, and end all that is under way."""
        with self._lock:
            self.called_off.set()
            cuts = list(self._cuts.values())
        for cut in cuts:
            cut()

    @contextlib.contextmanager
    def cutting(self, cut: t.Callable[[], None]) -> t.Iterator[None]:
        """Call ``cut`` when it is called off inside the block, or was before; any thread may do that."""
        key = object()
        with self._lock:
            self._cuts[key] = cut
            over = self.called_off.is_set()
        try:
            if over:
                cut()
            yield
        finally:
            with self._lock:
                del self._cuts[key]


class Deadline:
    """A point in time that every step of one operation shares.

    A step never extends it: it asks what is left and bounds itself by that.
    """

    def __init__(
        self, seconds: float, clock: Clock = SYSTEM_CLOCK, *, cancellation: Cancellation | None = None
    ) -> None:
        """``cancellation`` is another deadline's, for a step with a clock of its own that is called off with it."""
        self.seconds = seconds
        self.clock = clock
        self.cancellation = cancellation or Cancellation()
        self._started = clock.monotonic()

    def elapsed(self) -> float:
        """Seconds since the deadline was set."""
        return self.clock.monotonic() - self._started

    def remaining(self) -> float:
        """Seconds left; 0.0 when it has passed or was cancelled."""
        return 0.0 if self.cancelled else max(0.0, self.seconds - self.elapsed())

    @property
    def cancelled(self) -> bool:
        """Whether somebody called it off."""
        return self.cancellation.called_off.is_set()

    def cancel(self) -> None:
        """Let it pass now, and cut the requests that are under way; any thread may call this."""
        self.cancellation.call_off()

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
            self.cancellation.called_off.wait(length)
        else:
            self.clock.sleep(length)
