# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Exact sets of integers as sorted, disjoint, inclusive ranges: the ground under addresses and ports.

Every function takes and returns ranges in this normal form: sorted, disjoint, and never touching (``(1, 2), (3, 4)`` is
``(1, 4)``). All run in time linear in the number of ranges, so a block with 10,000 exceptions costs 10,000 steps.
"""

from __future__ import annotations

import bisect
import collections.abc as c

#: Sorted, disjoint, non-touching inclusive ranges.
Ranges = tuple[tuple[int, int], ...]


def normal(pairs: c.Iterable[tuple[int, int]]) -> Ranges:
    """Any inclusive pairs, in any order and overlapping, in normal form."""
    merged: list[tuple[int, int]] = []
    ordered = sorted(pairs)
    if len(ordered) < 2:
        return tuple(ordered)
    for low, high in ordered:
        if merged and low <= merged[-1][1] + 1:
            if high > merged[-1][1]:
                merged[-1] = (merged[-1][0], high)
        else:
            merged.append((low, high))
    return tuple(merged)


def union(one: Ranges, other: Ranges) -> Ranges:
    """What is in one or the other."""
    if not one or one == other:
        return other
    return normal((*one, *other)) if other else one


def meet(one: Ranges, other: Ranges) -> Ranges:
    """What is in both."""
    if one == other:
        return one
    if len(one) == len(other) == 1:
        low, high = max(one[0][0], other[0][0]), min(one[0][1], other[0][1])
        return ((low, high),) if low <= high else ()
    out: list[tuple[int, int]] = []
    left, right, lefts, rights = 0, 0, len(one), len(other)
    while left < lefts and right < rights:
        (low, high), (start, end) = one[left], other[right]
        low = max(low, start)
        if high < end:
            left += 1
        else:
            right += 1
            high = end
        if low <= high:
            out.append((low, high))
    return tuple(out)


def minus(one: Ranges, other: Ranges) -> Ranges:
    """What is in the first and not in the second."""
    if not one or not other:
        return one
    out: list[tuple[int, int]] = []
    index = 0
    for low, high in one:
        start = low
        while index < len(other) and other[index][1] < start:
            index += 1
        scan = index
        while scan < len(other) and other[scan][0] <= high:
            if other[scan][0] > start:
                out.append((start, other[scan][0] - 1))
            start = other[scan][1] + 1
            scan += 1
        index = max(index, scan - 1)
        if start <= high:
            out.append((start, high))
    return tuple(out)


def contains(ranges: Ranges, value: int) -> bool:
    """Whether the value is in one of the ranges."""
    if len(ranges) == 1:
        return ranges[0][0] <= value <= ranges[0][1]
    index = bisect.bisect_right(ranges, value, key=lambda pair: pair[0]) - 1
    return index >= 0 and value <= ranges[index][1]


def size(ranges: Ranges) -> int:
    """How many values the ranges hold."""
    return sum(high - low + 1 for low, high in ranges)
