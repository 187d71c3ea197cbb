# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A component that is not healthy is checked again for a while."""

from __future__ import annotations

import pytest

from tools.cluster import status
from tools.cluster.layout import Layout
from tools.cluster.status import State

HEALTHY = State("kube-router", 7, None)
BUSY = State("kube-router", 7, "its rules are not in place")
DEAD = State("kube-router", None, "no process")


@pytest.fixture
def answers(monkeypatch: pytest.MonkeyPatch) -> list[list[State]]:
    """What is found, look by look; the last answer stays. No look waits."""
    looks: list[list[State]] = []
    monkeypatch.setattr(status, "states", lambda _layout: looks.pop(0) if len(looks) > 1 else looks[0])
    monkeypatch.setattr(status, "INTERVAL", 0.0)
    monkeypatch.setattr(status, "SETTLE_SECONDS", 0.05)
    return looks


def test_a_component_that_becomes_healthy_in_time_is_healthy(answers: list[list[State]]) -> None:
    answers += [[BUSY], [BUSY], [HEALTHY]]
    assert status.settled_states(Layout(1)) == [HEALTHY]


@pytest.mark.parametrize("found", [[DEAD], [BUSY, DEAD], []], ids=["dead", "busy and dead", "nothing"])
def test_a_component_without_a_process_is_reported_at_once(answers: list[list[State]], found: list[State]) -> None:
    answers += [found, [HEALTHY]]
    assert status.settled_states(Layout(1)) == found


def test_a_component_that_stays_unhealthy_is_reported(answers: list[list[State]]) -> None:
    answers += [[BUSY]]
    assert status.settled_states(Layout(1)) == [BUSY]
