# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the pod of a suspended workspace: the last request is cut by the deadline."""

from __future__ import annotations

import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import SANDBOX, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ApiTimeoutError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace import suspend
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import WorkspaceSuspendTimeoutError

REF = SANDBOX.ref("team-a", "workspace-one")


class Clock:
    """Its time passes by its waits, and by requests that are cut."""

    def __init__(self) -> None:
        self.seconds = 0.0

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def sleep(self, seconds: float) -> None:
        self.seconds += seconds


def wait(monkeypatch: pytest.MonkeyPatch, *bodies: Body) -> None:
    """Wait for 10 s while reads return these bodies; the read after them is cut by the deadline."""
    clock, rest = Clock(), [*bodies]

    def read(_client: t.Any, _ref: t.Any, deadline: Deadline) -> Body:
        if rest:
            return rest.pop(0)
        clock.seconds += deadline.remaining()
        raise ApiTimeoutError("GET Pod team-a/workspace-one: the API server did not answer in time.")

    monkeypatch.setattr(suspend, "read", read)
    suspend.wait_until_stopped(t.cast("t.Any", None), REF, Deadline(10.0, clock))


def test_a_pod_that_ran_at_the_last_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkspaceSuspendTimeoutError, match="Running"):
        wait(monkeypatch, {"status": {"phase": "Running"}})


def test_a_pod_that_had_ended_at_the_last_read_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    wait(monkeypatch, {"status": {"phase": "Succeeded"}})


def test_an_api_server_that_never_answered_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ApiTimeoutError):
        wait(monkeypatch)
