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

#: The usual waits between attempts, in seconds.
FIRST_WAIT_SECONDS = 0.05
LONGEST_WAIT_SECONDS = 2.0

#: The longest wait between two looks at an object that is being deleted or stopped.
LONGEST_LOOK_SECONDS = 0.5

Found = t.TypeVar("Found")


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
    """Whether an operation was cancelled, and what ends then. Safe to share between threads."""

    def __init__(self) -> None:
        self._event = threading.Event()
        self._lock = threading.Lock()
        self._cuts: dict[object, t.Callable[[], None]] = {}

    @property
    def cancelled(self) -> bool:
        """Whether ``cancel`` was called."""
        return self._event.is_set()

    def cancel(self) -> None:
        """Cancel the operation, and end what is under way; any thread may call this, and more than once."""
        with self._lock:
            self._event.set()
            cuts = list(self._cuts.values())
        for cut in cuts:
            cut()

    def wait(self, seconds: float) -> bool:
        """Wait ``seconds`` (0 or more), or less when it is cancelled meanwhile; returns whether it is cancelled."""
        return self._event.wait(seconds)

    @contextlib.contextmanager
    def cutting(self, cut: t.Callable[[], None]) -> t.Iterator[None]:
        """Call ``cut`` when ``cancel`` is called inside the block, or was called before; any thread may call it."""
        key = object()
        with self._lock:
            self._cuts[key] = cut
            over = self.cancelled
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
        """Let ``seconds`` (0 or more) begin now; ``cancellation`` is shared with what is cancelled together with it."""
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
        """Whether the operation was cancelled."""
        return self.cancellation.cancelled

    def cancel(self) -> None:
        """Cancel the operation: nothing is left, and requests under way are cut; any thread may call this."""
        self.cancellation.cancel()

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
            self.cancellation.wait(length)
        else:
            self.clock.sleep(length)

    def child(self, seconds: float) -> Deadline:
        """A deadline of ``seconds`` (0 or more) from now; it never outlasts this one, and is cancelled with it."""
        return Deadline(self.at_most(seconds), self.clock, cancellation=self.cancellation)


class Backoff:
    """The waits between the attempts of one operation: short first, as most failures are, then doubling up to a cap.

    Attributes:
        attempts: how many waits there were since the start or the last ``reset``.
    """

    def __init__(self, first: float = FIRST_WAIT_SECONDS, longest: float = LONGEST_WAIT_SECONDS) -> None:
        """``first`` and ``longest`` in seconds, above 0; equal ones make every wait the same."""
        self._first = first
        self._longest = longest
        self.attempts = 0

    @property
    def seconds(self) -> float:
        """How long the next wait is."""
        return min(self._longest, self._first * 2.0 ** min(self.attempts, 32))

    def reset(self) -> None:
        """Begin again with the first wait."""
        self.attempts = 0

    def wait(self, deadline: Deadline, *, at_least: float = 0.0) -> bool:
        """Wait before another attempt.

        Args:
            deadline: the operation's.
            at_least: seconds that the other side asked for; they may only lengthen the wait.

        Returns:
            False when no other attempt may follow: at once when the deadline would pass during the wait, and as soon
            as the operation is cancelled.
        """
        seconds = max(self.seconds, at_least)
        if seconds >= deadline.remaining():
            return False
        deadline.sleep(seconds)
        self.attempts += 1
        return not deadline.cancelled


def poll(deadline: Deadline, look: t.Callable[[], Found | None], backoff: Backoff | None = None) -> Found | None:
    """Look again and again, at least once, until there is something.

    Args:
        deadline: when to stop; it bounds the waits, and ``look`` bounds itself by it.
        look: returns None while there is nothing yet; what it raises ends the polling.
        backoff: the waits between two looks; the usual ones without it.

    Returns:
        What ``look`` found, or None when the deadline leaves no time for another look.
    """
    waits = backoff or Backoff()
    while (found := look()) is None:
        if not waits.wait(deadline):
            return None
    return found
