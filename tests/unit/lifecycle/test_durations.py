# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lengths of time as people write them."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.durations import LONGEST, length, seconds


@pytest.mark.parametrize(
    ("text", "length"),
    [
        ("90", 90),
        (90, 90),
        (1.5, 1.5),
        ("90s", 90),
        ("15m", 900),
        ("2h", 7200),
        ("1d", 86400),
        ("1.5h", 5400),
        (" 2 h ", 7200),
        ("0", 0),
        ("0s", 0),
        ("3650d", LONGEST),
    ],
)
def test_duration_is_read(text: str | float, length: float) -> None:
    assert seconds("ttl", text) == length


@pytest.mark.parametrize(
    "text",
    ["", " ", "s", "-1", "-1s", "1w", "1h30m", "1 h 30", "1e3", "nan", "inf", "0x10", "1,5h", ".5h", "1.h", "1H", True],
)
def test_what_is_no_duration_is_refused_with_the_option(text: str | float) -> None:
    with pytest.raises(InputError, match=r"^ttl is ") as caught:
        seconds("ttl", text)
    assert "90s, 15m, 2h, 1d" in str(caught.value)


@pytest.mark.parametrize("text", ["3651d", "99999999999", "9" * 400, "9" * 5000 + "h"])
def test_duration_beyond_ten_years_is_refused(text: str) -> None:
    with pytest.raises(InputError, match="at most ten years"):
        seconds("ttl", text)


@given(st.text(max_size=12))
def test_no_text_breaks_the_reader(text: str) -> None:
    try:
        length = seconds("ttl", text)
    except InputError:
        return
    assert 0 <= length <= LONGEST


@given(st.integers(min_value=0, max_value=10**6), st.sampled_from([("s", 1), ("m", 60), ("h", 3600)]))
def test_unit_multiplies(number: int, unit: tuple[str, int]) -> None:
    letter, factor = unit
    expected = number * factor
    if expected <= LONGEST:
        assert seconds("ttl", f"{number}{letter}") == expected


@pytest.mark.parametrize("text", [0, "0", "0s", "0.0h"])
def test_no_time_at_all_is_refused_where_something_must_be_done(text: str | int) -> None:
    with pytest.raises(InputError, match=r"^wait_timeout is 0, which leaves no time") as caught:
        length("wait_timeout", text)
    assert caught.value.next_step is not None
    assert length("wait_timeout", "1s") == 1


@pytest.mark.parametrize("value", [None, [], {}, b"90s"], ids=repr)
def test_value_of_another_type_is_refused(value: object) -> None:
    with pytest.raises(InputError, match=r"^ttl is "):
        seconds("ttl", value)


def test_duration_below_its_minimum_is_refused() -> None:
    assert seconds("ttl", "10s", minimum=10.0) == 10
    with pytest.raises(InputError, match="at least 10 s"):
        seconds("ttl", "9s", minimum=10.0)
