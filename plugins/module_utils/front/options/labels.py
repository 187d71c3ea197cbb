# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Labels as a task gives them."""

from __future__ import annotations

import typing as t

from ...errors import InputError


def labels_of(option: str, params: t.Mapping[str, t.Any]) -> dict[str, str]:
    """The labels of an option; a number is what YAML makes of an unquoted one, and is taken as its text.

    Raises:
        InputError: a value is neither.
    """
    labels = params.get(option) or {}
    for key, value in labels.items():
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise InputError(f"{option} has {key!r}: {value!r}; a label's value is a string.", next_step="Quote it.")
    return {str(key): str(value) for key, value in labels.items()}
