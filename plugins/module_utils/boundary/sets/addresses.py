# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Exact sets of IPv4 and IPv6 addresses.

An address is ``(version, number)``; a set is normal-form ranges for each version. ``0.0.0.0/0`` holds no IPv6 address.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import ipaddress

from . import ranges
from .ranges import Ranges

#: An address as the IP version and its number.
Address = tuple[int, int]

_LAST = {4: (1 << 32) - 1, 6: (1 << 128) - 1}


@dataclasses.dataclass(frozen=True, slots=True)
class AddressSet:
    """A set of addresses of both versions.

    Attributes:
        v4, v6: inclusive ranges in normal form (``ranges.normal``).
    """

    v4: Ranges = ()
    v6: Ranges = ()

    @classmethod
    def of(cls, *cidrs: str) -> AddressSet:
        """The union of CIDR blocks and single addresses; raises ValueError for text that is neither."""
        return union_of(parse_cidr(cidr) for cidr in cidrs)

    @property
    def empty(self) -> bool:
        """Whether no address is in it."""
        return not self.v4 and not self.v6

    def union(self, other: AddressSet) -> AddressSet:
        """What is in one or the other."""
        return AddressSet(ranges.union(self.v4, other.v4), ranges.union(self.v6, other.v6))

    def meet(self, other: AddressSet) -> AddressSet:
        """What is in both."""
        if self is other or other is ALL_ADDRESSES:
            return self
        four = ranges.meet(self.v4, other.v4) if self.v4 and other.v4 else ()
        return AddressSet(four, ranges.meet(self.v6, other.v6) if self.v6 and other.v6 else ())

    def minus(self, other: AddressSet) -> AddressSet:
        """What is in this one and not in the other."""
        return AddressSet(ranges.minus(self.v4, other.v4), ranges.minus(self.v6, other.v6))

    def within(self, other: AddressSet) -> bool:
        """Whether every address is in the other set too."""
        return self.minus(other).empty

    def contains(self, value: object) -> bool:
        """Whether an ``Address`` is in it; anything else, also None, is not."""
        if not isinstance(value, tuple):
            return False
        version, number = value
        return ranges.contains(self.v4 if version == 4 else self.v6, number)

    def example(self) -> Address | None:
        """One address of the set that a person would recognise as a host, or None when it is empty."""
        for version, held in ((4, self.v4), (6, self.v6)):
            for low, high in held:
                # The first address of a block is often the network's own.
                return (version, low + 1 if high > low else low)
        return None


def union_of(sets: c.Iterable[AddressSet]) -> AddressSet:
    """The union of many sets in one pass."""
    four: list[tuple[int, int]] = []
    six: list[tuple[int, int]] = []
    for held in sets:
        four.extend(held.v4)
        six.extend(held.v6)
    return AddressSet(ranges.normal(four), ranges.normal(six))


@functools.lru_cache(maxsize=65536)
def parse_cidr(text: str) -> AddressSet:
    """A CIDR block or an address as a set; host bits are dropped, as the API server does.

    Raises:
        ValueError: for text that is no block. IPv4-mapped IPv6 (``::ffff:10.0.0.0/104``) and numbers with leading
            zeros are refused, because implementations read them differently.
    """
    if "%" in text:
        raise ValueError(f"{text!r} is not an address block")
    network = ipaddress.ip_network(text, strict=False)
    if "/" in text and not text.rpartition("/")[2].isdecimal():
        raise ValueError(f"{text!r} has a netmask where a prefix length belongs")
    if isinstance(network, ipaddress.IPv6Network) and network.network_address.ipv4_mapped is not None:
        raise ValueError(f"{text!r} is IPv4 written as IPv6, which implementations read differently")
    pair = (int(network.network_address), int(network.broadcast_address))
    return AddressSet(v4=(pair,)) if network.version == 4 else AddressSet(v6=(pair,))


def parse_address(text: object) -> Address:
    """One address; IPv4 written as IPv6 is the IPv4 address that goes over the wire. Raises ValueError."""
    if not isinstance(text, str) or "%" in text:
        raise ValueError(f"{text!r} is not an address")
    found = ipaddress.ip_address(text)
    if isinstance(found, ipaddress.IPv6Address) and found.ipv4_mapped is not None:
        found = found.ipv4_mapped
    return (found.version, int(found))


def show_address(address: Address) -> str:
    """An address as people write it."""
    version, number = address
    return str(ipaddress.IPv4Address(number) if version == 4 else ipaddress.IPv6Address(number))


@functools.lru_cache(maxsize=4096)
def show_addresses(held: AddressSet, most: int = 8) -> str:
    """A set in words: blocks, or one block with exceptions where that is shorter; the first few of each."""
    parts = [*_show_version(held.v4, 4, most), *_show_version(held.v6, 6, most)]
    return ", ".join(parts) or "no address"


def _show_version(held: Ranges, version: int, most: int) -> list[str]:
    if not held:
        return []
    around = _around(held[0][0], held[-1][1], version)
    holes = ranges.minus((around,), held)
    if holes and len(holes) <= len(held):
        return [f"{_blocks((around,), version, most)} except {_blocks(holes, version, most)}"]
    return [_blocks(held, version, most)]


def _around(low: int, high: int, version: int) -> tuple[int, int]:
    """The smallest block that holds both."""
    free = (low ^ high).bit_length()
    start = (low >> free) << free
    return start, min(start + (1 << free) - 1, _LAST[version])


def _blocks(held: Ranges, version: int, most: int) -> str:
    kind = ipaddress.IPv4Address if version == 4 else ipaddress.IPv6Address
    shown: list[str] = []
    for low, high in held[:most]:
        shown.extend(str(block) for block in ipaddress.summarize_address_range(kind(low), kind(high)))
    more = len(held) > most or len(shown) > most
    return ", ".join(shown[:most]) + (" and more" if more else "")


#: Every address of both versions.
ALL_ADDRESSES = AddressSet(((0, _LAST[4]),), ((0, _LAST[6]),))
