# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The fields of a request, each checked before anything is done. A field that is not valid is ``bad-request``."""

from __future__ import annotations

import os

from wire import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

#: An id or a name that a client chooses: it becomes part of file names and of messages.
NAME_LIMIT = 64
_NAME = frozenset("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789._-")


def require(condition: bool, message: str) -> None:
    if not condition:
        raise Refused("bad-request", message)


def check_fields(body: dict[str, Any], known: frozenset[str], who: str) -> None:
    unknown = sorted(set(body) - known)
    require(not unknown, f"{who} has no field {', '.join(map(repr, unknown))[:200]}")


def is_text(value: Any) -> bool:
    """Whether the kernel can be given this: text without NUL that has bytes (a lone surrogate has none)."""
    if not isinstance(value, str) or "\0" in value:
        return False
    try:
        os.fsencode(value)
    except UnicodeEncodeError:
        return False
    return True


def is_whole(value: Any) -> bool:
    return isinstance(value, int) and not isinstance(value, bool)


def parse_number(body: dict[str, Any], name: str, low: int, high: int, default: int) -> int:
    value = body.get(name, default)
    require(is_whole(value) and low <= value <= high, f"{name} is a whole number from {low} to {high}")
    return int(value)


def parse_seconds(body: dict[str, Any], name: str, limit: float) -> float | None:
    value = body.get(name)
    if value is None:
        return None
    number = isinstance(value, (int, float)) and not isinstance(value, bool)
    # NaN fails every comparison.
    require(number and 0 <= value <= limit, f"{name} is a number of seconds from 0 to {limit:g}")
    return float(value)


def parse_flag(body: dict[str, Any], name: str) -> bool:
    value = body.get(name, False)
    require(isinstance(value, bool), f"{name} is true or false")
    return bool(value)


def parse_name(body: dict[str, Any], name: str) -> str | None:
    """An id: letters, digits, dot, dash and underscore; it begins with a letter or a digit."""
    value = body.get(name)
    if value is None:
        return None
    fits = isinstance(value, str) and 0 < len(value) <= NAME_LIMIT and _NAME.issuperset(value) and value[0].isalnum()
    require(fits, f"{name} has 1 to {NAME_LIMIT} letters, digits, dots, dashes and underscores")
    return str(value)
