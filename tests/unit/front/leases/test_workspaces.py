# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workspaces in a play with the lease keeper: suspended at its end by who started them, never deleted."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ....faults.fake.cluster import FakeCluster
from ....faults.workspace.ground import TEMPLATE, key, prepare, run, sandbox
from ..kept_plays import ran, started, until, waits
from ..playing import Task, access


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    """A cluster in which a workspace runs already."""
    with FakeCluster() as made:
        prepare(made)
        with made.client() as client:
            run(made, client, workspace_id="older")
        yield made


def workspace(cluster: FakeCluster, workspace_id: str, **options: t.Any) -> Task:
    agent = {"port": cluster.agent.port, "address": "pod_ip"}
    base = {**access(cluster), "workspace_id": workspace_id, "agent": agent, "ingress": "unverified"}
    return {"namzu.sandbox.workspace": {**base, **options}}


def mode(cluster: FakeCluster, workspace_id: str) -> str:
    return str(sandbox(cluster, workspace_id)["spec"]["operatingMode"])


def test_killed_play_suspends_within_two_seconds_what_it_started_and_deletes_nothing(
    tmp_path: pathlib.Path, cluster: FakeCluster
) -> None:
    flushed: list[str] = []
    answer = cluster.agent.answer

    def records(asked: dict[str, t.Any]) -> bytes:
        flushed.extend([asked["op"]] if asked["op"] == "flush" else [])
        return answer(asked)

    cluster.agent.answer = records  # type: ignore[method-assign]
    marked = {"template": TEMPLATE, "ttl": "10m", "release_on_end": True}
    tasks = [
        workspace(cluster, "marked", **marked, holder_epoch=7),
        workspace(cluster, "endless", template=TEMPLATE, release_on_end=True),
        workspace(cluster, "kept", template=TEMPLATE, ttl="10m"),
        workspace(cluster, "older", **marked),
    ]
    with started(tmp_path, tasks) as running:
        until(lambda: waits(running))
        assert running.process.stderr is not None
        said = ""
        while "older ran before this play: it is not suspended at the end." not in " ".join(said.split()):
            line = running.process.stderr.readline()
            assert line, said
            said += line
        running.process.kill()
        running.process.wait()
        modes = {name: mode(cluster, name) for name in ("marked", "endless")}
        assert modes == {"marked": "Running", "endless": "Running"}
        both = [lambda name=name: mode(cluster, name) == "Suspended" for name in modes]
        assert until(lambda: all(sleeps() for sleeps in both)) < 2.0
        assert len(flushed) == 2
    assert (mode(cluster, "kept"), mode(cluster, "older")) == ("Running", "Running")
    claims = [key("persistentvolumeclaims", name).name for name in ("endless", "kept", "marked", "older")]
    assert cluster.store.names("persistentvolumeclaims") == sorted(claims)


def test_end_of_a_play_says_what_became_of_its_workspaces(tmp_path: pathlib.Path, cluster: FakeCluster) -> None:
    marked = {"template": TEMPLATE, "ttl": "10m", "release_on_end": True}
    tasks = [
        workspace(cluster, "asleep", **marked),
        workspace(cluster, "asleep", state="suspended"),
        workspace(cluster, "deleted", **marked),
        workspace(cluster, "deleted", state="absent", delete_disk=True),
        workspace(cluster, "a/marked", **marked),
        workspace(cluster, "a/kept", template=TEMPLATE, ttl="10m"),
    ]
    over = ran(tmp_path, cluster, tasks, {})
    lines = [line for line in over.errors.splitlines() if line.startswith("lease_keeper:")]
    assert over.code == 0, over.output
    assert (
        lines[0]
        == "lease_keeper: 4 workspaces held, 0 renewals, 2 suspended or deleted by the play and 1 suspended at the end"
    )
    (stays,) = lines[1:]
    assert "not released, as release_on_end is off: Workspace team-a/a/kept (its pod stops at 20" in stays
    assert mode(cluster, "a/marked") == "Suspended"
    assert mode(cluster, "a/kept") == "Running"
