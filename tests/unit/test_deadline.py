# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one deadline of an operation."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import (
    FIRST_WAIT_SECONDS,
    LONGEST_WAIT_SECONDS,
    SYSTEM_CLOCK,
    Backoff,
    Deadline,
    poll,
)

from .cluster.test_retry import StandingClock

SECONDS = st.floats(min_value=0, max_value=1e6, allow_nan=False)


def test_deadline_passes_with_its_clock() -> None:
    clock = StandingClock()
    deadline = Deadline(10.0, clock)
    clock.sleep(4.0)
    assert (deadline.elapsed(), deadline.remaining(), deadline.expired) == (4.0, 6.0, False)
    clock.sleep(6.0)
    assert (deadline.remaining(), deadline.expired) == (0.0, True)


def test_nothing_is_left_after_it_has_passed() -> None:
    clock = StandingClock()
    deadline = Deadline(1.0, clock)
    clock.sleep(100.0)
    assert (deadline.remaining(), deadline.at_most(5.0)) == (0.0, 0.0)


def test_step_is_bounded_by_what_is_left() -> None:
    deadline = Deadline(3.0, StandingClock())
    assert (deadline.at_most(2.0), deadline.at_most(5.0)) == (2.0, 3.0)


@given(SECONDS, SECONDS)
def test_sleep_ends_with_the_deadline_at_the_latest(seconds: float, asked: float) -> None:
    clock = StandingClock()
    Deadline(seconds, clock).sleep(asked)
    assert clock.slept == [min(seconds, asked)]


def test_negative_sleep_is_none() -> None:
    clock = StandingClock()
    Deadline(5.0, clock).sleep(-1.0)
    assert clock.slept == [0.0]


def test_machine_clock_is_in_utc() -> None:
    assert SYSTEM_CLOCK.now().utcoffset() == datetime.timedelta(0)


def test_machine_clock_goes_forward() -> None:
    before = SYSTEM_CLOCK.monotonic()
    SYSTEM_CLOCK.sleep(0.001)
    assert SYSTEM_CLOCK.monotonic() > before


@given(SECONDS, SECONDS)
def test_child_never_outlasts_its_parent(seconds: float, asked: float) -> None:
    clock = StandingClock()
    deadline = Deadline(seconds, clock)
    assert deadline.child(asked).seconds == min(seconds, asked)
    clock.sleep(seconds / 2)
    assert deadline.child(asked).remaining() <= deadline.remaining()


def test_child_is_cancelled_with_its_parent() -> None:
    deadline = Deadline(9.0, StandingClock())
    child = deadline.child(5.0)
    deadline.cancel()
    assert (child.cancelled, child.remaining()) == (True, 0.0)


def test_waits_double_up_to_the_longest_and_begin_again_after_a_reset() -> None:
    clock, backoff = StandingClock(), Backoff()
    deadline = Deadline(60.0, clock)
    assert all(backoff.wait(deadline) for _unused in range(8))
    backoff.reset()
    backoff.wait(deadline)
    assert clock.slept == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0, 0.05]


@given(st.integers(min_value=0, max_value=10**9))
def test_wait_stays_between_its_bounds(attempts: int) -> None:
    backoff = Backoff()
    backoff.attempts = attempts
    assert FIRST_WAIT_SECONDS <= backoff.seconds <= LONGEST_WAIT_SECONDS


def test_wait_that_the_other_side_asked_for_may_only_lengthen() -> None:
    clock, backoff = StandingClock(), Backoff()
    deadline = Deadline(60.0, clock)
    assert backoff.wait(deadline, at_least=5.0)
    assert backoff.wait(deadline, at_least=0.01)
    assert clock.slept == [5.0, 0.1]


def test_wait_that_would_reach_the_deadline_is_not_begun() -> None:
    clock, backoff = StandingClock(), Backoff()
    assert not backoff.wait(Deadline(FIRST_WAIT_SECONDS, clock))
    assert (clock.slept, backoff.attempts) == ([], 0)


def test_wait_of_a_cancelled_operation_allows_no_attempt() -> None:
    class CancellingClock(StandingClock):
        def sleep(self, seconds: float) -> None:
            super().sleep(seconds)
            deadline.cancel()

    deadline = Deadline(9.0, CancellingClock())
    assert not Backoff().wait(deadline)
    assert not Backoff().wait(deadline)


def test_poll_returns_the_first_thing_that_is_found() -> None:
    looks = iter([None, None, "there", "too late"])
    clock = StandingClock()
    assert poll(Deadline(9.0, clock), lambda: next(looks), Backoff(0.5, 0.5)) == "there"
    assert clock.slept == [0.5, 0.5]


def test_poll_looks_once_without_time_and_ends_before_the_deadline() -> None:
    looks: list[None] = []
    assert poll(Deadline(0.0, StandingClock()), lambda: looks.append(None)) is None
    assert len(looks) == 1
    clock = StandingClock()
    assert poll(Deadline(1.0, clock), lambda: looks.append(None), Backoff(0.3, 0.3)) is None
    assert (len(looks), clock.slept) == (5, [0.3, 0.3, 0.3])
