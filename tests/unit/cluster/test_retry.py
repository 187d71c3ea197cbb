# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is tried again, after how long, and when not any more."""

from __future__ import annotations

import datetime
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.responses import retry_after_seconds
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.retry import retry
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import FIRST_WAIT_SECONDS, Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ApiAnswerError,
    ApiTimeoutError,
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    GoneError,
    InvalidError,
    UnavailableError,
)

from ...faults.fake.clock import SkippingClock

NOW = datetime.datetime(2026, 1, 31, 12, 0, 0, tzinfo=datetime.UTC)


class StandingClock(SkippingClock):
    """Time passes only while somebody sleeps."""

    def monotonic(self) -> float:
        return self._skipped


def unavailable(retry_after: float | None = None) -> UnavailableError:
    return UnavailableError("busy", status=503, retry_after=retry_after)


def failing(*errors: Exception) -> t.Callable[[], str]:
    """A call that raises each of these, then succeeds."""
    left = list(errors)

    def call() -> str:
        if left:
            raise left.pop(0)
        return "done"

    return call


def test_success_is_returned_at_once() -> None:
    clock = StandingClock()
    assert retry(Deadline(1.0, clock), failing()) == "done"
    assert clock.slept == []


def test_waits_double_up_to_the_longest() -> None:
    clock = StandingClock()
    retry(Deadline(60.0, clock), failing(*[unavailable()] * 8))
    assert clock.slept == [0.05, 0.1, 0.2, 0.4, 0.8, 1.6, 2.0, 2.0]


def test_who_gave_up_says_how_often_and_how_long_it_tried() -> None:
    errors = [ApiUnreachableError("nobody there.") for _unused in range(20)]
    with pytest.raises(ApiUnreachableError, match=r"^nobody there\. It was tried 7 times in 3\.15 s\.$"):
        retry(Deadline(4.0, StandingClock()), failing(*errors))
    with pytest.raises(ApiUnreachableError, match=r"^nobody there\.$"):
        retry(Deadline(0.01, StandingClock()), failing(errors[-1]))


@pytest.mark.parametrize("error", [ApiUnreachableError("x"), ApiTimeoutError("x"), ApiAnswerError("x"), unavailable()])
def test_what_passes_is_tried_again(error: Exception) -> None:
    assert retry(Deadline(9.0, StandingClock()), failing(error)) == "done"


@pytest.mark.parametrize(
    "error",
    [
        CredentialError("x", status=403),
        ConflictError("x", status=409),
        GoneError("x", status=404),
        InvalidError("x", status=422),
        ApiUnreachableError("distrusted", retryable=False),
    ],
)
def test_decision_is_not_tried_again(error: Exception) -> None:
    clock = StandingClock()
    with pytest.raises(type(error)):
        retry(Deadline(9.0, clock), failing(error))
    assert clock.slept == []


def test_last_failure_is_raised_when_the_deadline_would_pass() -> None:
    clock, last = StandingClock(), unavailable()
    with pytest.raises(UnavailableError) as caught:
        retry(Deadline(0.2, clock), failing(unavailable(), unavailable(), last, unavailable()))
    assert caught.value.message == f"{last.message} It was tried 3 times in 0.15 s."
    assert sum(clock.slept) <= 0.2


def test_retry_after_slows_down() -> None:
    clock = StandingClock()
    retry(Deadline(60.0, clock), failing(unavailable(5.0)))
    assert clock.slept == [5.0]


def test_retry_after_does_not_hurry() -> None:
    clock = StandingClock()
    retry(Deadline(60.0, clock), failing(unavailable(0.0)))
    assert clock.slept == [FIRST_WAIT_SECONDS]


@pytest.mark.parametrize("seconds", [60.0, 1e12, float("inf")])
def test_retry_after_never_reaches_beyond_the_deadline(seconds: float) -> None:
    clock = StandingClock()
    with pytest.raises(UnavailableError):
        retry(Deadline(60.0, clock), failing(unavailable(seconds)))
    assert clock.slept == []


@pytest.mark.parametrize(
    ("header", "seconds"),
    [
        (None, None),
        ("", None),
        ("0", 0.0),
        ("5", 5.0),
        (" 5 ", 5.0),
        ("-5", None),
        ("1.5", None),
        ("soon", None),
        ("٣", None),
        ("1000000000000", 1e12),
        ("9" * 400, float("inf")),
        ("Sat, 31 Jan 2026 12:00:30 GMT", 30.0),
        ("Sat, 31 Jan 2026 11:00:00 GMT", 0.0),
        ("Sat, 31 Jan 2026 12:00:30 -0000", 30.0),
        ("Fri, 31 Dec 9999 23:59:59 GMT", 251632439999.0),
        ("Fri, 99 Foo 99999 99:99:99 GMT", None),
    ],
)
def test_retry_after_header_is_read(header: str | None, seconds: float | None) -> None:
    assert retry_after_seconds(header, NOW) == seconds


@given(st.text(max_size=60))
def test_no_retry_after_header_breaks_the_reader(header: str) -> None:
    seconds = retry_after_seconds(header, NOW)
    assert seconds is None or seconds >= 0.0
