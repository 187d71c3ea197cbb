# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""When a lease is renewed: numbers alone, no clock and no request."""

from __future__ import annotations

import dataclasses

#: Of the interval, either way: so that sandboxes that were acquired together are not renewed together for ever.
JITTER = 0.1

#: The part of the wait after a failure that jitter may take away: a server that comes back is not asked for all leases
#: in the same moment.
RETRY_JITTER = 0.5

#: Seconds that one renewal may take at most; a quarter of a long interval would be minutes of silence.
LONGEST_REQUEST = 30.0

#: Seconds after a first failure, doubled with each further one.
FIRST_WAIT = 1.0

#: The most seconds between two attempts, and the part of the ttl that it may be.
LONGEST_WAIT = 30.0
LONGEST_WAIT_OF_TTL = 1 / 20


@dataclasses.dataclass(frozen=True)
class LeaseTiming:
    """The times of one lease.

    Attributes:
        ttl: seconds for which every renewal extends it.
    """

    ttl: float

    @property
    def interval(self) -> float:
        """Seconds between two renewals: one that fails leaves half of the lease for further attempts."""
        return self.ttl / 2

    @property
    def bound(self) -> float:
        """Seconds that one renewal may take, so that a server that hangs does not hold up the next attempt."""
        return min(LONGEST_REQUEST, self.interval / 4)

    def next_renewal(self, left: float | None, random: float) -> float:
        """Seconds until the next renewal: half of the ttl, or of what is left when that is less, and jitter.

        Args:
            left: seconds until the lease ends, when that is known.
            random: at least 0 and below 1.
        """
        rest = self.ttl if left is None else min(self.ttl, max(0.0, left))
        return rest / 2 * (1 - JITTER + 2 * JITTER * random)

    def next_attempt(self, failures: int, random: float) -> float:
        """Seconds to wait after a failure, with jitter that only shortens it.

        Args:
            failures: how many failed in a row (1 or more).
            random: at least 0 and below 1.
        """
        doubled: float = FIRST_WAIT * 2.0 ** min(failures - 1, 16)
        longest = min(doubled, LONGEST_WAIT, self.ttl * LONGEST_WAIT_OF_TTL)
        return longest * (1 - RETRY_JITTER * random)
