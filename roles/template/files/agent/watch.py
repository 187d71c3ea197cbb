# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Waiting for whatever comes first: the poll of a loop, whose interests change from turn to turn."""

from __future__ import annotations

import select
import time

#: Seconds of one wait: poll takes milliseconds in a C int, which ends after 24 days. A loop waits again.
LONGEST_WAIT = 3600.0

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterable


class Watch:
    """Asks the kernel only about what can be acted on: a pipe that may not be read now would wake us for ever."""

    def __init__(self) -> None:
        self._poll = select.poll()
        self._watched: dict[int, int] = {}

    def wait(self, wanted: dict[int, int], moments: Iterable[float | None]) -> list[tuple[int, int]]:
        """What happened to descriptors, each wanted with its events; nothing at the first moment, or before."""
        for fd in self._watched.keys() - wanted.keys():
            self._poll.unregister(fd)
        for fd, events in wanted.items():
            if self._watched.get(fd) != events:
                self._poll.register(fd, events)
        self._watched = wanted
        moment = min((moment for moment in moments if moment is not None), default=None)
        seconds = None if moment is None else min(max(0.0, moment - time.monotonic()), LONGEST_WAIT)
        return self._poll.poll(None if seconds is None else seconds * 1000)

    def forget(self, fd: int) -> None:
        """Before it is closed, because its number may soon be another's."""
        if self._watched.pop(fd, None) is not None:
            self._poll.unregister(fd)
