# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook ``capacity_gate``: it ends with a sentence, whatever it finds."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE, POOL
from ..lifecycle.observed.test_capacity import member, unpullable
from .running import Ran, run


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    """A cluster with a pool that wants two members, of which one is ready."""
    with FakeCluster() as fake:
        spec = {"replicas": 2, "sandboxTemplateRef": {"name": "python"}}
        pool = {"metadata": {"name": POOL}, "spec": spec, "status": {"readyReplicas": 1}}
        fake.store.create("sandboxwarmpools", NAMESPACE, pool)
        yield fake


def gate(cluster: FakeCluster, folder: pathlib.Path, **variables: t.Any) -> Ran:
    given = {"gate_namespace": NAMESPACE, "gate_warm_pool": POOL, "gate_delay": 0, "gate_retries": 2}
    return run("namzu.sandbox.capacity_gate", folder, cluster, **{**given, **variables})


def test_a_pool_that_can_serve_lets_the_play_go_on(cluster: FakeCluster, tmp_path: pathlib.Path) -> None:
    ran = gate(cluster, tmp_path)
    assert ran.code == 0, ran.output
    assert ran.tasks[-1][1]["msg"] == "Pool python can serve 1 sandbox now."


def test_a_pool_that_cannot_serve_fails_with_the_diagnosis_of_a_member(
    cluster: FakeCluster, tmp_path: pathlib.Path
) -> None:
    cluster.store.create("sandboxes", NAMESPACE, member("python-2", pool=POOL))
    cluster.store.create("pods", NAMESPACE, unpullable("python-2"))
    ran = gate(cluster, tmp_path, gate_sandboxes=2)
    assert ran.code == 2
    assert ran.failure.startswith("SandboxWarmPool team-a/python: it can serve 1 of 2 sandboxes now (1 of 2 members")
    assert "The image python:none cannot be pulled: not found for python-2." in ran.failure


def test_a_pool_that_does_not_exist_fails_with_the_message_of_the_read(
    cluster: FakeCluster, tmp_path: pathlib.Path
) -> None:
    ran = gate(cluster, tmp_path, gate_warm_pool="nowhere")
    assert ran.code == 2
    assert "SandboxWarmPool team-a/nowhere" in ran.failure


@pytest.mark.parametrize("name", ["gate_namespace", "gate_warm_pool"])
def test_a_variable_that_is_missing_is_named(tmp_path: pathlib.Path, name: str) -> None:
    given = {"gate_namespace": "a", "gate_warm_pool": "b"}
    del given[name]
    ran = run("namzu.sandbox.capacity_gate", tmp_path, **given)
    assert (ran.code, name in ran.failure, len(ran.tasks)) == (2, True, 1)
