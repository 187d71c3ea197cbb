# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of DNS names against a reading name by name, and how long many patterns take."""

from __future__ import annotations

import functools
import itertools
import random
import time
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets import names
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets.names import DEEP, NameSet, Pattern

#: Every name of up to three labels of up to two of the three characters that patterns and names here have.
LABELS = ["".join(letters) for size in (1, 2) for letters in itertools.product("abx", repeat=size)]
NAMES = [".".join(labels) for size in (1, 2, 3) for labels in itertools.product(LABELS, repeat=size)]

LABEL_PATTERNS = st.text("ab*", min_size=1, max_size=2).filter(lambda text: "**" not in text)
PATTERNS = st.builds(
    lambda labels, deep: Pattern.glob(".".join([*(["*"] if deep else []), *labels]), leading=DEEP),
    st.lists(LABEL_PATTERNS, min_size=1, max_size=2),
    st.booleans(),
)
SETS = st.lists(PATTERNS, min_size=1, max_size=3).map(lambda found: NameSet.of(*found))
#: Processor seconds that one decision may take; most take a thousandth.
IN_TIME = 3.0


@settings(max_examples=60, deadline=None)
@given(st.lists(st.tuples(SETS, st.sampled_from(["meet", "minus"])), min_size=1, max_size=3), SETS)
def test_a_set_is_empty_exactly_when_no_name_is_in_it(steps: list[tuple[NameSet, str]], start: NameSet) -> None:
    held = functools.reduce(lambda one, step: getattr(one, step[1])(step[0]), steps, start)
    found = held.name()
    inside = [name for name in NAMES if held.contains(name)]
    if found is None:
        assert held.empty
        assert inside == []
    else:
        assert held.contains(found)


@pytest.fixture
def forgotten() -> t.Iterator[None]:
    """What earlier questions found out is not used, and what this test found out goes."""
    kept = (names._some_name, names._walk)
    for each in kept:
        each.cache_clear()
    yield
    for each in kept:
        each.cache_clear()


def hosts(count: int, form: str) -> list[Pattern]:
    return [Pattern.glob(form.format(number=number)) for number in range(count)]


@pytest.mark.usefixtures("forgotten")
@pytest.mark.parametrize(
    ("ours", "theirs", "empty"),
    [
        ("*.host{number}.example.com", "*.host{number}.example.com", True),
        ("a*.host{number}.example.com", "*.host{number}.example.com", True),
        ("*.host{number}.example.com", "a*.host{number}.example.com", False),
        ("*a{number}*.example.com", "*a{number}*.example.com", True),
        ("*{number}*.example.com", "{number}*.example.com", False),
        ("*{number}*.*.example.com", "*.*{number}*.example.com", False),
    ],
)
def test_twenty_patterns_without_twenty_others_are_decided_at_once(ours: str, theirs: str, empty: bool) -> None:
    began = time.process_time()
    left = NameSet.of(*hosts(20, ours)).minus(NameSet.of(*hosts(20, theirs)))
    assert left.empty is empty
    assert time.process_time() - began < IN_TIME


def test_sets_that_are_met_again_and_again_stay_small() -> None:
    held = NameSet.of(*hosts(20, "*.host{number}.example.com"))
    began = time.process_time()
    for form in ("*.host{number}.example.com", "a*.host{number}.example.com", "*b.host{number}.example.com"):
        held = held.meet(NameSet.of(*hosts(20, form)))
        assert not held.empty
    assert held.minus(NameSet.of(Pattern.glob("*.*.example.com"))).empty
    assert time.process_time() - began < IN_TIME


@pytest.mark.parametrize("seed", range(3))
def test_patterns_that_are_made_to_be_slow_take_bounded_time_and_count_as_open(seed: int) -> None:
    choice = random.Random(seed)  # noqa: S311 - no secret

    def entangled() -> Pattern:
        return Pattern.glob("*" + "*".join(choice.choices("abcdefghij", k=6)) + "*")

    ours = NameSet.of(*(entangled() for _unused in range(20))).meet(NameSet.of(*(entangled() for _unused in range(20))))
    began = time.process_time()
    assert not ours.minus(NameSet.of(*(entangled() for _unused in range(20)))).empty
    assert time.process_time() - began < 5 * IN_TIME


@pytest.mark.usefixtures("forgotten")
def test_an_undecided_set_counts_as_holding_a_name(monkeypatch: pytest.MonkeyPatch) -> None:
    begins, ends = NameSet.of(Pattern.glob("a*.com")), NameSet.of(Pattern.glob("*b.com"))
    neither = begins.meet(ends).minus(NameSet.of(Pattern.glob("a*b.com")))
    assert neither.empty
    names._some_name.cache_clear()
    names._walk.cache_clear()
    monkeypatch.setattr(names, "MOST_STATES", 3)
    assert not neither.empty


def test_patterns_of_one_meaning_do_not_cancel_each_other() -> None:
    one, other = Pattern(("*", ".", "b")), Pattern(("*", "*", ".", "b"))
    assert not NameSet.of(one).meet(NameSet.of(other)).empty
    assert NameSet.of(one).minus(NameSet.of(other)).empty
