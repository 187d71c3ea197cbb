# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Exact sets of protocol and port.

TCP, UDP and SCTP have ports 1 to 65535; ICMP and ICMPv6 have message types 0 to 255 in the same place. No protocol ever
covers another: SCTP is never TCP, and a set of ports holds no ICMP.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools

from . import ranges
from .ranges import Ranges

#: The protocols of the algebra, in the order of a set's ranges.
PROTOCOLS = ("TCP", "UDP", "SCTP", "ICMP", "ICMPv6")

#: The protocols that have ports.
TRANSPORTS = ("TCP", "UDP", "SCTP")

#: What each protocol numbers: ports for the transports, message types for ICMP.
SPACE: dict[str, tuple[int, int]] = {
    "TCP": (1, 65535),
    "UDP": (1, 65535),
    "SCTP": (1, 65535),
    "ICMP": (0, 255),
    "ICMPv6": (0, 255),
}

#: The type of an echo request, which people call ping.
ECHO = {"ICMP": 8, "ICMPv6": 128}


@dataclasses.dataclass(frozen=True, slots=True)
class PortSet:
    """A set of (protocol, number).

    Attributes:
        held: ranges for each of ``PROTOCOLS``, in that order.
    """

    held: tuple[Ranges, ...]

    @classmethod
    def of(cls, protocol: str, low: int | None = None, high: int | None = None) -> PortSet:
        """One protocol: all of it, one number, or the inclusive range ``low`` to ``high``."""
        first, last = SPACE[protocol]
        if low is not None:
            first, last = low, (low if high is None else high)
        return _span(protocol, first, last)

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not any(self.held)

    def union(self, other: PortSet) -> PortSet:
        """What is in one or the other."""
        return PortSet(tuple(map(ranges.union, self.held, other.held)))

    def meet(self, other: PortSet) -> PortSet:
        """What is in both."""
        if self is other or other is ALL_PORTS:
            return self
        if self is ALL_PORTS:
            return other
        pairs = zip(self.held, other.held, strict=True)
        return PortSet(tuple([ranges.meet(mine, its) if mine and its else () for mine, its in pairs]))

    def minus(self, other: PortSet) -> PortSet:
        """What is in this one and not in the other."""
        if other is ALL_PORTS:
            return NO_PORTS
        return PortSet(tuple(map(ranges.minus, self.held, other.held)))

    def within(self, other: PortSet) -> bool:
        """Whether everything in it is in the other set too."""
        return self.minus(other).empty

    def contains(self, protocol: str, number: int) -> bool:
        """Whether that port (or ICMP type) of that protocol is in it."""
        return self is ALL_PORTS or ranges.contains(self.held[PROTOCOLS.index(protocol)], number)

    def example(self) -> tuple[str, int] | None:
        """One protocol and number of the set, or None when it is empty."""
        for protocol, held in zip(PROTOCOLS, self.held, strict=True):
            if held:
                return protocol, held[0][0]
        return None

    def __str__(self) -> str:
        if self.held == ALL_PORTS.held:
            return "every port and protocol"
        return (
            ", ".join(_show(protocol, held) for protocol, held in zip(PROTOCOLS, self.held, strict=True) if held)
            or "no port"
        )


@functools.lru_cache(maxsize=8192)
def _span(protocol: str, first: int, last: int) -> PortSet:
    return PortSet(tuple(((first, last),) if name == protocol else () for name in PROTOCOLS))


def union_of(sets: c.Iterable[PortSet]) -> PortSet:
    """The union of many sets in one pass."""
    parts = list(sets)
    if len(parts) == 1:
        return parts[0]
    return PortSet(
        tuple(ranges.normal([pair for part in parts for pair in part.held[place]]) for place in range(len(PROTOCOLS)))
    )


def _show(protocol: str, held: Ranges) -> str:
    if held == (SPACE[protocol],):
        return protocol
    return protocol + " " + "/".join(str(low) if low == high else f"{low}-{high}" for low, high in held)


NO_PORTS = PortSet(tuple(() for _unused in PROTOCOLS))
ALL_PORTS = PortSet(tuple((SPACE[protocol],) for protocol in PROTOCOLS))
