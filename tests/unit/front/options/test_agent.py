# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The option ``agent.heartbeat``."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.agent import heartbeat_of


@pytest.mark.parametrize(
    ("agent", "seconds"),
    [(None, 15.0), ({}, 15.0), ({"heartbeat": None}, 15.0), ({"heartbeat": "2m"}, 120.0), ({"heartbeat": 0.1}, 0.1),
     ({"heartbeat": "0"}, 0.0), ({"heartbeat": "1h"}, 3600.0)],
)  # fmt: skip
def test_heartbeat_is_a_duration(agent: dict[str, t.Any] | None, seconds: float) -> None:
    assert heartbeat_of(agent) == seconds


@pytest.mark.parametrize("value", ["0.05s", "61m", "-1", "often", "", [1]])
def test_value_that_is_not_a_heartbeat_is_refused(value: t.Any) -> None:
    with pytest.raises(InputError, match=r"agent\.heartbeat"):
        heartbeat_of({"heartbeat": value})
