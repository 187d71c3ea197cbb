# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The one deadline of an operation."""

from __future__ import annotations

import datetime

from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Deadline

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
