# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A busy moment of a component is not the end of a cluster."""

from __future__ import annotations

import pytest

from tools.cluster import status
from tools.cluster.layout import Layout
from tools.cluster.status import State

HEALTHY = State("kube-router", 7, None)
BUSY = State("kube-router", 7, "its rules are not in place")
DEAD = State("kube-router", None, "no process")


@pytest.fixture
def said(monkeypatch: pytest.MonkeyPatch) -> list[list[State]]:
    """What is found, look by look; the last answer stays. No look waits."""
    looks: list[list[State]] = []
    monkeypatch.setattr(status, "states", lambda _layout: looks.pop(0) if len(looks) > 1 else looks[0])
    monkeypatch.setattr(status, "INTERVAL", 0.0)
    monkeypatch.setattr(status, "PATIENCE", 0.05)
    return looks


def test_a_component_that_is_busy_for_a_moment_is_healthy(said: list[list[State]]) -> None:
    said += [[BUSY], [BUSY], [HEALTHY]]
    assert status.settled_states(Layout(1)) == [HEALTHY]


@pytest.mark.parametrize("found", [[DEAD], [BUSY, DEAD], []], ids=["dead", "busy and dead", "nothing"])
def test_what_cannot_get_better_is_said_at_once(said: list[list[State]], found: list[State]) -> None:
    said += [found, [HEALTHY]]
    assert status.settled_states(Layout(1)) == found


def test_trouble_that_stays_is_said(said: list[list[State]]) -> None:
    said += [[BUSY]]
    assert status.settled_states(Layout(1)) == [BUSY]
