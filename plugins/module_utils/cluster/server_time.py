# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What time it is where the API server runs, from the ``Date`` header of its answers (RFC 9110, 6.6.1)."""

from __future__ import annotations

import datetime
import email.utils
import typing as t

from ..deadline import Clock

_SECOND = datetime.timedelta(seconds=1)


class Span(t.NamedTuple):
    """Between which two moments it is now, in UTC."""

    earliest: datetime.datetime
    latest: datetime.datetime


class ServerTime:
    """Keeps the last ``Date``; leases end by the cluster's clock, which need not agree with ours.

    The header has whole seconds, cut off, and was written at some moment between our sending and our receiving.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._last: tuple[str, float, float] | None = None

    def heard(self, date: str | None, sent: float) -> None:
        """An answer came, to a request that was sent at ``sent`` on the monotonic clock."""
        if date:
            self._last = (date, sent, self._clock.monotonic())

    def now(self) -> Span:
        """The span that the server's clock is in; a moment of our own clock when the server never told."""
        last, now = self._last, self._clock.monotonic()
        try:
            said = None if last is None else email.utils.parsedate_to_datetime(last[0]).astimezone(datetime.UTC)
        except ValueError:
            said = None
        if last is None or said is None:
            ours = self._clock.now()
            return Span(ours, ours)
        _date, sent, received = last
        return Span(_later(said, now - received), _later(said, now - sent) + _SECOND)


def _later(moment: datetime.datetime, seconds: float) -> datetime.datetime:
    return moment + datetime.timedelta(seconds=seconds)
