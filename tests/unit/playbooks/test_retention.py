# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook ``retention``: which workspaces it suspends and deletes, and what it does when an agent does not answer."""

from __future__ import annotations

import datetime
import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import MODE_CHANGED_ANNOTATION

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE
from ...faults.workspace.ground import key, mode, prepare, run, sandbox, suspend
from .running import Ran
from .running import run as play

ACT, PLAN = "namzu.sandbox.retention", "Show what is to be done"
DAY = datetime.timedelta(days=1)


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    """A cluster with one workspace that runs, in which nothing is busy."""
    with FakeCluster() as fake, fake.client() as client:
        prepare(fake)
        run(fake, client)
        fake.store.patch(key(), {"metadata": {"creationTimestamp": ago(100)}})
        fake.agent.prints = lambda _argv: "0"
        yield fake


def retention(cluster: FakeCluster, folder: pathlib.Path, **variables: t.Any) -> Ran:
    given = {
        "retention_namespace": NAMESPACE,
        "retention_agent_address": "pod_ip",
        "retention_agent_port": cluster.agent.port,
        "retention_suspend_after": "0s",
    }
    return play(ACT, folder, cluster, **{**given, **variables})


def ago(days: float) -> str:
    return (datetime.datetime.now(datetime.UTC) - days * DAY).strftime("%Y-%m-%dT%H:%M:%SZ")


def stop(cluster: FakeCluster, phase: str, days: float) -> None:
    """Let the workspace have been started long ago, and stopped some days ago, in one of the ways that there are."""
    changed = {"metadata": {"annotations": {MODE_CHANGED_ANNOTATION: ago(100)}}}
    cluster.controller.workspaces.away = True
    if phase == "suspended":
        with cluster.client() as client:
            cluster.controller.workspaces.away = False
            suspend(cluster, client)
            cluster.controller.settle()
        changed["metadata"]["annotations"][MODE_CHANGED_ANNOTATION] = ago(days)
    elif phase == "expired":
        changed["spec"] = {"shutdownTime": ago(days), "shutdownPolicy": "Retain"}  # type: ignore[assignment]
    else:
        reason = {"finished": "PodSucceeded", "failed": "PodFailed"}[phase]
        ready = {"type": "Ready", "status": "False", "reason": reason, "message": "ended"}
        cluster.store.patch(key(), {"status": {"conditions": [{**ready, "lastTransitionTime": ago(days)}]}})
    cluster.store.patch(key(), changed)


PHASES = ["suspended", "expired", "finished", "failed"]


@pytest.mark.parametrize("phase", PHASES)
def test_what_has_been_stopped_for_long_is_deleted_however_it_was_stopped(
    cluster: FakeCluster, tmp_path: pathlib.Path, phase: str
) -> None:
    stop(cluster, phase, days=31)
    ran = retention(cluster, tmp_path, retention_delete_after="30d", retention_apply=True)
    assert ran.code == 0, ran.output
    assert ran[PLAN]["msg"]["delete"] == ["build-1"]
    assert cluster.store.names("sandboxes") == []


@pytest.mark.parametrize("phase", PHASES)
def test_what_was_stopped_a_moment_ago_stays_however_long_it_ran_before(
    cluster: FakeCluster, tmp_path: pathlib.Path, phase: str
) -> None:
    stop(cluster, phase, days=1)
    ran = retention(cluster, tmp_path, retention_delete_after="30d", retention_apply=True)
    assert ran.code == 0, ran.output
    assert ran[PLAN]["msg"]["delete"] == []
    assert cluster.store.names("sandboxes") == [sandbox(cluster)["metadata"]["name"]]


def test_an_idle_workspace_is_suspended_only_with_apply(cluster: FakeCluster, tmp_path: pathlib.Path) -> None:
    ran = retention(cluster, tmp_path)
    assert (ran.code, ran[PLAN]["msg"]["suspend"], mode(cluster)) == (0, ["build-1"], "Running")
    ran = retention(cluster, tmp_path, retention_apply=True)
    assert (ran.code, mode(cluster)) == (0, "Suspended")


def test_a_busy_workspace_runs_on(cluster: FakeCluster, tmp_path: pathlib.Path) -> None:
    cluster.agent.prints = lambda _argv: "2"
    ran = retention(cluster, tmp_path, retention_apply=True)
    assert (ran.code, ran[PLAN]["msg"]["suspend"], mode(cluster)) == (0, [], "Running")


@pytest.mark.parametrize("apply", [False, True])
def test_a_workspace_whose_agent_does_not_answer_is_listed_and_fails_the_play(
    cluster: FakeCluster, tmp_path: pathlib.Path, apply: bool
) -> None:
    ran = retention(cluster, tmp_path, retention_agent_port=1, retention_apply=apply)
    assert ran.code == 2
    assert ran[PLAN]["msg"]["unknown"] == ["build-1"]
    assert "build-1: " in ran.failure
    assert mode(cluster) == "Running"


def test_a_workspace_whose_agent_does_not_answer_is_suspended_without_a_flush_when_that_is_asked(
    cluster: FakeCluster, tmp_path: pathlib.Path
) -> None:
    given = {"retention_agent_port": 1, "retention_unreachable": "suspend", "retention_apply": True}
    ran = retention(cluster, tmp_path, **given)
    assert ran.code == 0, ran.output
    assert (ran[PLAN]["msg"]["suspend_without_flush"], mode(cluster)) == (["build-1"], "Suspended")


@pytest.mark.parametrize(
    "given",
    [{"retention_suspend_after": "soon"}, {"retention_delete_after": "0d"}, {"retention_unreachable": "delete"}],
)
def test_what_cannot_be_meant_is_refused_before_anything_is_read(
    cluster: FakeCluster, tmp_path: pathlib.Path, given: dict[str, str]
) -> None:
    ran = retention(cluster, tmp_path, **given)
    assert (ran.code, len(ran.tasks)) == (2, 1)
