# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Text from outside becomes one printable line of bounded length."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.text import (
    MAXIMUM_MESSAGE,
    MAXIMUM_TEXT,
    clean_text,
    clean_value,
)


@given(st.text() | st.binary(), st.integers(min_value=1, max_value=50))
def test_result_is_one_printable_line_within_its_limit(value: str | bytes, limit: int) -> None:
    cleaned = clean_text(value, limit)
    assert cleaned.isprintable()
    assert len(cleaned) <= limit
    assert cleaned == cleaned.strip()
    assert clean_text(cleaned, limit) == cleaned


@given(st.from_regex(r"[!-~]+( [!-~]+)*", fullmatch=True).filter(lambda text: len(text) <= MAXIMUM_TEXT))
def test_printable_line_is_not_changed(text: str) -> None:
    assert clean_text(text) == text


@pytest.mark.parametrize(
    ("value", "cleaned"),
    [
        ("\x1b[2J\x1b[1;1Hfatal", "�[2J�[1;1Hfatal"),
        ("a\r\nTASK [forged]\x85ok\u2028x", "a TASK [forged] ok x"),
        ("a\x9b31mb", "a�31mb"),
        ("\u202eexe.txt\u2066\u200b", "�exe.txt��"),
        ("a\udcff", "a�"),
        (b"\xff\xfea", "��a"),
        ("\ue000\U000e0041", "��"),
        ("must not contain '..'", "must not contain '..'"),
        ("größer 日本", "größer 日本"),
        (None, "None"),
        (3, "3"),
        ("  \n ", ""),
    ],
)
def test_what_is_not_printable_is_replaced(value: object, cleaned: str) -> None:
    assert clean_text(value) == cleaned


@pytest.mark.parametrize("value", ["x" * 10**7, "\n" * 10**7 + "x" * 10**7, b"\xff" * 10**7, "\x1b\n" * 10**7], ids=len)
def test_megabytes_are_cut(value: str | bytes) -> None:
    cleaned = clean_text(value)
    assert 0 < len(cleaned) <= MAXIMUM_TEXT
    assert cleaned.endswith("…")


def test_result_is_clean_except_for_the_data_of_the_user() -> None:
    hostile = "a\x1b\nb"
    result = {
        "msg": hostile,
        "labels": {hostile: hostile},
        "list": [hostile, ("x", 1, None, True)],
        "stdout": hostile,
        "stdout_lines": [hostile],
        "cmd": [hostile],
        "text": hostile,
        "long": "x" * 10**6,
    }
    cleaned = clean_value(result)
    assert cleaned["msg"] == "a� b"
    assert cleaned["labels"] == {"a� b": "a� b"}
    assert cleaned["list"] == ["a� b", ["x", 1, None, True]]
    assert [cleaned[key] for key in ("stdout", "stdout_lines", "cmd")] == [hostile, [hostile], [hostile]]
    assert cleaned["text"] == "a�\nb"
    assert len(cleaned["long"]) <= MAXIMUM_MESSAGE


def test_error_is_clean_however_it_was_made() -> None:
    error = SandboxError("a\x1b\nb", object="Pod \u202ea", next_step="c\r\nd")
    changed = error.replace(message="x\x1b", leftover="y\n\n")
    for text in (str(error), repr(error), str(error.object), str(changed), *map(str, changed.fields().values())):
        assert text.isprintable()
