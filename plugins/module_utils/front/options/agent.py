# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Options about the agent that are more than a value: the heartbeat."""

from __future__ import annotations

import typing as t

from ...guest.protocol.heartbeat import DEFAULT_HEARTBEAT, check_heartbeat
from ...lifecycle.durations import seconds


def heartbeat_of(agent: t.Mapping[str, t.Any] | None) -> float:
    """Seconds between heartbeats that option ``agent`` asks for; 0 is off.

    Raises:
        InputError: it is not a duration, or outside of 0.1 s to an hour.
    """
    value = (agent or {}).get("heartbeat")
    return DEFAULT_HEARTBEAT if value is None else check_heartbeat("agent.heartbeat", seconds("agent.heartbeat", value))
