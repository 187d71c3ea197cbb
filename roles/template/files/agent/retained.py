# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Output that is retained for clients that ask later.

Each byte has a number, its offset, counted over all channels in the order in which it was read, so that one number says
where a client stopped reading.
"""

from __future__ import annotations

import threading
from array import array
from bisect import bisect_right

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

#: Bytes that all kept output of the agent may take.
BUDGET = 64 * 1024 * 1024

_CHANNEL_BITS = 3
_CHANNEL_MASK = (1 << _CHANNEL_BITS) - 1
#: What a mark takes of the budget.
_MARK = 8
#: How much more than its limit a log may hold before its beginning is cut off: cutting moves all that stays.
_SLACK = 256 * 1024


class Budget:
    """Bytes that may still be kept, shared by all logs. ``relieve`` frees some, and says whether it could."""

    def __init__(self, relieve: Callable[[], bool], limit: int = BUDGET) -> None:
        self._lock = threading.Lock()
        self._relieve = relieve
        self._left = limit

    def take(self, size: int) -> bool:
        while True:
            with self._lock:
                if size <= self._left:
                    self._left -= size
                    return True
            if not self._relieve():
                return False

    def give(self, size: int) -> None:
        with self._lock:
            self._left += size


class Log:
    """The output of one program. The caller excludes its threads from each other.

    ``limit`` is how many bytes of the end are kept; None keeps all, because something else bounds what is appended.
    """

    def __init__(self, budget: Budget, limit: int | None) -> None:
        self._budget = budget
        self._limit = limit
        self._data = bytearray()
        #: Where the output changes its channel: the offset, and in the lowest bits the channel.
        self._marks = array("Q")
        self._taken = 0
        #: Offset of the first byte that is still here.
        self.first = 0

    @property
    def next(self) -> int:
        """Offset of the byte that will come."""
        return self.first + len(self._data)

    def append(self, channel: int, data: bytes) -> bool:
        """Keep ``data``; False when there is no room, and nothing was kept."""
        if not data:
            return True
        changes = not self._marks or self._marks[-1] & _CHANNEL_MASK != channel
        cost = len(data) + (_MARK if changes else 0)
        if not self._budget.take(cost):
            return False
        self._taken += cost
        if changes:
            self._marks.append(self.next << _CHANNEL_BITS | channel)
        self._data += data
        if self._limit is not None and len(self._data) > self._limit + _SLACK:
            self._cut(len(self._data) - self._limit)
        return True

    def read(self, offset: int, size: int) -> tuple[int, bytes]:
        """At most ``size`` bytes of one channel from ``offset`` on (not before ``first``); and their channel."""
        index = bisect_right(self._marks, offset << _CHANNEL_BITS | _CHANNEL_MASK) - 1
        if index < 0:
            return 0, b""
        following = self._marks[index + 1] >> _CHANNEL_BITS if index + 1 < len(self._marks) else self.next
        start = offset - self.first
        end = min(start + size, following - self.first)
        return self._marks[index] & _CHANNEL_MASK, bytes(memoryview(self._data)[start:end])

    def close(self) -> None:
        """Give everything back."""
        self._cut(len(self._data))
        self._budget.give(self._taken)
        self._taken = 0

    def _cut(self, size: int) -> None:
        del self._data[:size]
        self.first += size
        # The mark before the new beginning still says what its channel is.
        gone = max(bisect_right(self._marks, self.first << _CHANNEL_BITS | _CHANNEL_MASK) - 1, 0)
        del self._marks[:gone]
        given = size + gone * _MARK
        self._taken -= given
        self._budget.give(given)
