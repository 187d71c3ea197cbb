# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Durations as a task or a program gives them: seconds, or a number with a unit."""

from __future__ import annotations

import re

from ..errors import InputError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Ten years in seconds: more than any lease or wait, and less than what timestamps and sockets can hold.
LONGEST = 3650 * 86400.0

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*")


def length(option: str, value: object) -> float:
    """Read a duration that must be above 0.

    Raises:
        InputError: the value is 0, or is not a duration.
    """
    given = seconds(option, value)
    if given <= 0:
        raise InputError(f"{option} is 0, which leaves no time.", next_step="Use a longer time, or omit the option.")
    return given


def seconds(option: str, value: object, minimum: float = 0.0) -> float:
    """Read a duration: a number of seconds, or a string of a number and ``s``, ``m``, ``h`` or ``d``.

    Args:
        option: the name of the option, for the error.
        value: what was given.
        minimum: the least number of seconds that is accepted.

    Raises:
        InputError: the value is not a duration, is below the minimum, or is longer than ten years.
    """
    match = _DURATION.fullmatch(str(value)) if isinstance(value, (str, int, float)) else None
    if match is None:
        raise InputError(
            f"{option} is {value!r}, which is not a duration.",
            next_step="Use a number of seconds, or a number with a unit: 90s, 15m, 2h, 1d.",
        )
    given = float(match[1]) * _UNITS[match[2]]
    if not minimum <= given <= LONGEST:
        raise InputError(
            f"{option} is {given:g} s; it must be at least {minimum:g} s and at most ten years ({LONGEST:g} s)."
        )
    return given
