# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The sets under the algebra: against Python's own sets over small spaces, and names against their patterns."""

from __future__ import annotations

import itertools

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets import ranges
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets.addresses import (
    ALL_ADDRESSES,
    AddressSet,
    parse_address,
    show_address,
    show_addresses,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets.boxes import (
    ADDRESS,
    EVERYTHING,
    KINDS,
    NODE,
    OUTSIDE,
    POD,
    Box,
    minus_all,
    pod_label,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets.names import DEEP, NameSet, Pattern
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets.ports import ALL_PORTS, NO_PORTS, PortSet
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets.selectors import ValueSet, selector

quick = settings(max_examples=150, deadline=None, database=None)
PAIRS = st.lists(st.tuples(st.integers(0, 20), st.integers(0, 20)).map(lambda pair: (min(pair), max(pair))), max_size=6)


def members(held: ranges.Ranges) -> set[int]:
    return {value for low, high in held for value in range(low, high + 1)}


@quick
@given(one=PAIRS, other=PAIRS)
def test_ranges_are_sets(one: list[tuple[int, int]], other: list[tuple[int, int]]) -> None:
    left, right = ranges.normal(one), ranges.normal(other)
    assert members(ranges.union(left, right)) == members(left) | members(right)
    assert members(ranges.meet(left, right)) == members(left) & members(right)
    assert members(ranges.minus(left, right)) == members(left) - members(right)
    assert ranges.size(left) == len(members(left))
    assert all(ranges.contains(left, value) == (value in members(left)) for value in range(-1, 22))
    for held in (left, ranges.union(left, right), ranges.meet(left, right), ranges.minus(left, right)):
        assert ranges.normal(held) == held, "the results are in normal form"


def test_addresses_of_both_versions_do_not_mix() -> None:
    four = AddressSet.of("0.0.0.0/0")
    assert not four.contains(parse_address("::1"))
    assert four.union(AddressSet.of("::/0")) == ALL_ADDRESSES
    assert AddressSet.of("10.0.0.0/8").minus(AddressSet.of("10.0.0.0/9")) == AddressSet.of("10.128.0.0/9")
    assert parse_address("::ffff:10.0.0.1") == parse_address("10.0.0.1")
    assert show_address(parse_address("2001:DB8::0:1")) == "2001:db8::1"
    assert show_addresses(AddressSet.of("10.0.0.0/8", "192.0.2.0/25", "192.0.2.128/32")) == (
        "10.0.0.0/8, 192.0.2.0/25, 192.0.2.128/32"
    )


def test_ports_of_protocols_do_not_mix() -> None:
    web = PortSet.of("TCP", 80, 90)
    assert web.contains("TCP", 90)
    assert not web.contains("UDP", 80)
    assert ALL_PORTS.minus(PortSet.of("TCP")).example() == ("UDP", 1)
    assert web.minus(PortSet.of("TCP", 80)).example() == ("TCP", 81)
    assert web.minus(ALL_PORTS) == NO_PORTS
    assert str(web.union(PortSet.of("ICMP", 8))) == "TCP 80-90, ICMP 8"
    assert str(ALL_PORTS) == "every port and protocol"


VALUES = st.builds(ValueSet, st.frozensets(st.sampled_from([None, "a", "b", "c"]), max_size=3), st.booleans())


@quick
@given(one=VALUES, other=VALUES)
def test_label_values_are_sets(one: ValueSet, other: ValueSet) -> None:
    for value in (None, "a", "b", "c", "unheard-of"):
        assert one.meet(other).contains(value) == (one.contains(value) and other.contains(value))
        assert one.minus(other).contains(value) == (one.contains(value) and not other.contains(value))
    if not one.empty:
        assert one.contains(one.example())


def test_a_selector_that_contradicts_itself_needs_an_empty_set() -> None:
    never = selector({"a": "x"}, [("a", "In", ["y"])])
    assert never.needs()["a"].empty
    assert not never.matches({"a": "x"})


PATTERNS = [
    Pattern.exact("a.b"),
    Pattern.glob("*.b"),
    Pattern.glob("*.b", leading=DEEP),
    Pattern.glob("a*.b"),
    Pattern.glob("*.*.b"),
    Pattern.glob("**.b"),
]
NAMES = [".".join(labels) for size in (1, 2, 3) for labels in itertools.product(["a", "b", "ab", "c"], repeat=size)]


@pytest.mark.parametrize(("one", "other"), list(itertools.product(PATTERNS, repeat=2)), ids=str)
def test_name_sets_are_sets_and_their_example_is_in_them(one: Pattern, other: Pattern) -> None:
    left, right = NameSet.of(one), NameSet.of(other)
    for held, expected in (
        (left.meet(right), lambda name: one.matches(name) and other.matches(name)),
        (left.minus(right), lambda name: one.matches(name) and not other.matches(name)),
    ):
        covered = {name for name in NAMES if held.contains(name)}
        assert covered == {name for name in NAMES if expected(name)}
        assert held.empty is (held.name() is None)
        if held.name() is None:
            assert covered == set()
        else:
            assert held.contains(held.name())


def test_a_star_is_one_label_and_a_deep_star_is_one_or_more() -> None:
    star, deep = NameSet.of(PATTERNS[1]), NameSet.of(PATTERNS[2])
    assert star.minus(deep).empty
    beyond = deep.minus(star).name()
    assert beyond is not None
    assert beyond.count(".") == 2
    assert star.minus(NameSet.of(PATTERNS[0])).contains("b.b")
    everything = NameSet(absent=True, which=None)
    assert everything.minus(star).contains(None)
    assert everything.minus(star).meet(star).empty


def test_boxes_fall_into_disjoint_pieces() -> None:
    pods = Box(frozenset({POD}), {pod_label("a"): ValueSet(frozenset({"x"}))}, PortSet.of("TCP", 80))
    block = Box(KINDS, {ADDRESS: AddressSet.of("10.0.0.0/8")})
    pieces = minus_all([EVERYTHING], [pods, block])
    for one, other in itertools.combinations(pieces, 2):
        assert one.meet(other) is None
    for piece in pieces:
        assert piece.meet(pods) is None
        assert piece.meet(block) is None
    assert minus_all(pieces, pieces) == []
    assert EVERYTHING.minus(EVERYTHING) == []


@quick
@given(data=st.data())
def test_boxes_are_sets(data: st.DataObject) -> None:
    def draw_box() -> Box:
        kinds = data.draw(st.frozensets(st.sampled_from([POD, NODE, OUTSIDE]), min_size=1))
        where = data.draw(st.dictionaries(st.sampled_from([pod_label("k"), pod_label("l")]), VALUES, max_size=2))
        ports = data.draw(st.sampled_from([ALL_PORTS, PortSet.of("TCP", 1, 5), PortSet.of("UDP", 3)]))
        return Box(kinds, where, ports)

    one, other = draw_box(), draw_box()
    for kind, k, label, (protocol, port) in itertools.product(
        (POD, NODE), (None, "a", "z"), (None, "b"), (("TCP", 4), ("UDP", 3), ("UDP", 4))
    ):
        value = {pod_label("k"): k, pod_label("l"): label}.get
        inside = one.contains(kind, value, protocol, port)
        beyond = other.contains(kind, value, protocol, port)
        both = one.meet(other)
        assert (both is not None and both.contains(kind, value, protocol, port)) == (inside and beyond)
        pieces = [piece for piece in one.minus(other) if piece.contains(kind, value, protocol, port)]
        assert len(pieces) == (inside and not beyond)
