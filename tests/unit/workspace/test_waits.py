# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Waiting for the end of a workspace's objects: the last request is cut by the deadline."""

from __future__ import annotations

import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import SANDBOX, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ApiTimeoutError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import ReleaseTimeoutError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace import delete, suspend
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


Wait = t.Callable[[t.Any, Deadline], None]


def stopped(client: t.Any, deadline: Deadline) -> None:
    suspend.wait_until_stopped(client, REF, deadline)


def gone(client: t.Any, deadline: Deadline) -> None:
    delete._wait_until_gone(client, REF, {"metadata": {"uid": "u", "name": REF.name}, "spec": {}}, deadline)


def wait(monkeypatch: pytest.MonkeyPatch, call: Wait, *bodies: Body) -> None:
    """Wait for 10 s while reads return these bodies; the read after them is cut by the deadline."""
    clock, rest = Clock(), [*bodies]

    def read(_client: t.Any, _ref: t.Any, deadline: Deadline) -> Body:
        if rest:
            return rest.pop(0)
        clock.seconds += deadline.remaining()
        raise ApiTimeoutError("GET Pod team-a/workspace-one: the API server did not answer in time.")

    for module in (suspend, delete):
        monkeypatch.setattr(module, "read", read)
    call(None, Deadline(10.0, clock))


def test_a_pod_that_ran_at_the_last_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(WorkspaceSuspendTimeoutError, match="Running"):
        wait(monkeypatch, stopped, {"status": {"phase": "Running"}})


def test_a_pod_that_had_ended_at_the_last_read_counts(monkeypatch: pytest.MonkeyPatch) -> None:
    wait(monkeypatch, stopped, {"status": {"phase": "Succeeded"}})


def test_an_object_that_existed_at_the_last_read_is_reported(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(ReleaseTimeoutError):
        wait(monkeypatch, gone, {"metadata": {"uid": "u"}})


@pytest.mark.parametrize("call", [stopped, gone])
def test_an_api_server_that_never_answered_is_reported(monkeypatch: pytest.MonkeyPatch, call: Wait) -> None:
    with pytest.raises(ApiTimeoutError):
        wait(monkeypatch, call)
