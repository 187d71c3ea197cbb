# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Sizes of memory as a task gives them."""

from __future__ import annotations

import re

from ...errors import InputError

_UNITS = {"": 1, "k": 1024, "m": 1024**2, "g": 1024**3, "t": 1024**4}
_SIZE = re.compile(r"\s*(\d+(?:\.\d+)?)\s*([kmgt]?)(?:i?b)?\s*", re.IGNORECASE)


def size(option: str, value: object) -> int:
    """Bytes of a size: a number of bytes, or a number with a unit (``512m``, ``512MiB``, ``1.5g``; of 1024 each).

    Raises:
        InputError: it is not a size.
    """
    match = _SIZE.fullmatch(str(value))
    if match is None:
        raise InputError(
            f"{option} is {value!r}, which is not a size.",
            next_step="Use a number of bytes, or a number with a unit: 512m, 2g.",
        )
    return int(float(match[1]) * _UNITS[match[2].lower()])
