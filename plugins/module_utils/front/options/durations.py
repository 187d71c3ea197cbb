# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Lengths of time as people write them."""

from __future__ import annotations

import re

from ...errors import InputError

_UNITS = {"": 1.0, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}

#: Ten years in seconds: more than any lease or wait, and less than what timestamps and sockets can hold.
LONGEST = 3650 * 86400.0

_DURATION = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([smhd]?)\s*")


def length(option: str, value: str | float) -> float:
    """Read a duration that must be above 0: what has no time cannot be done.

    Raises:
        InputError: it is 0, or no duration at all.
    """
    given = seconds(option, value)
    if given <= 0:
        raise InputError(f"{option} is 0, which leaves no time.", next_step="Give a longer time, or leave it out.")
    return given


def seconds(option: str, value: str | float) -> float:
    """Read a duration: a number of seconds, or a number with ``s``, ``m``, ``h`` or ``d``.

    Raises:
        InputError: it is neither, or longer than ten years.
    """
    match = _DURATION.fullmatch(str(value))
    if match is None:
        raise InputError(
            f"{option} is {value!r}, which is no length of time.",
            next_step="Give seconds, or a number with a unit: 90s, 15m, 2h, 1d.",
        )
    length = float(match[1]) * _UNITS[match[2]]
    if length > LONGEST:
        raise InputError(f"{option} is longer than ten years.", next_step="Give a shorter time.")
    return length
