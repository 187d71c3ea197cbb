# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""When a lease is renewed, by numbers and by a simulated clock."""

from __future__ import annotations

import random

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.timing import LeaseTiming

ttls = st.floats(10.0, 3650 * 86400.0)
chances = st.floats(0.0, 1.0, exclude_max=True)


@given(ttls, chances)
def test_renewal_comes_after_half_of_the_ttl_more_or_less_a_tenth(ttl: float, chance: float) -> None:
    wait = LeaseTiming(ttl).next_renewal(left=ttl, random=chance)
    assert 0.45 * ttl * (1 - 1e-9) <= wait <= 0.55 * ttl * (1 + 1e-9)


@given(ttls, chances, st.floats(0.0, 3600.0))
def test_renewal_of_a_short_rest_comes_after_half_of_it_more_or_less(ttl: float, chance: float, left: float) -> None:
    assert LeaseTiming(ttl).next_renewal(left, chance) <= left / 2 * 1.1


def test_renewal_that_is_overdue_comes_at_once() -> None:
    assert LeaseTiming(3600.0).next_renewal(-5.0, 0.5) == 0.0


@pytest.mark.parametrize(("ttl", "bound"), [(10.0, 1.25), (60.0, 7.5), (240.0, 30.0), (3600.0, 30.0)])
def test_one_renewal_may_take_a_quarter_of_the_interval_and_at_most_half_a_minute(ttl: float, bound: float) -> None:
    assert LeaseTiming(ttl).bound == bound


@pytest.mark.parametrize(
    ("ttl", "waits"),
    [
        (3600.0, [1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]),
        (200.0, [1.0, 2.0, 4.0, 8.0, 10.0, 10.0, 10.0]),
        (10.0, [0.5, 0.5, 0.5, 0.5, 0.5, 0.5, 0.5]),
    ],
)
def test_attempts_after_failures_back_off_up_to_a_twentieth_of_the_ttl(ttl: float, waits: list[float]) -> None:
    assert [LeaseTiming(ttl).next_attempt(failures, 0.0) for failures in range(1, 8)] == waits


@given(ttls, st.integers(1, 10_000), chances)
def test_no_number_of_failures_is_too_large(ttl: float, failures: int, chance: float) -> None:
    assert 0 < LeaseTiming(ttl).next_attempt(failures, chance) <= 30.0


@given(ttls, st.integers(1, 20), chances)
def test_jitter_takes_at_most_half_of_a_wait(ttl: float, failures: int, chance: float) -> None:
    longest = LeaseTiming(ttl).next_attempt(failures, 0.0)
    assert longest / 2 <= LeaseTiming(ttl).next_attempt(failures, chance) <= longest


def test_leases_whose_renewal_failed_together_are_not_tried_again_together() -> None:
    chance = random.Random(20261201).random  # noqa: S311 - no secret
    waits = {round(LeaseTiming(3600.0).next_attempt(6, chance()), 1) for _lease in range(100)}
    assert len(waits) > 50


def test_hundred_leases_of_one_moment_are_not_renewed_in_bursts() -> None:
    chance = random.Random(20261129).random  # noqa: S311 - no secret
    timing = LeaseTiming(3600.0)
    seconds: dict[int, int] = {}
    for _lease in range(100):
        now = 0.0
        while now < 10 * 3600.0:
            now += timing.next_renewal(3600.0, chance())
            seconds[int(now)] = seconds.get(int(now), 0) + 1
    # Some two thousand renewals in ten hours: one in eighteen seconds. The first ones lie within six minutes.
    assert 1800 <= sum(seconds.values()) <= 2100
    assert max(seconds.values()) <= 6
