# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a sandbox is not ready: the pod's message comes before a failure of the API, and Ready may flap."""

from __future__ import annotations

import math
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import Body
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.agent_address import locate

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import status
from ..traffic import GET_CLAIM, WATCH

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

NOT_READY: Body = {"type": "Ready", "status": "False", "reason": "DependenciesNotReady", "message": "pod is not ready"}
READY: Body = {"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": "ok"}
PULL: Body = {"reason": "ImagePullBackOff", "message": "no such image"}


def member(cluster: FakeCluster, status_of_pod: Body) -> None:
    """Let every claim name one member of the pool, whose pod has that status and is not ready."""
    cluster.store.create("pods", NAMESPACE, {"metadata": {"name": "member"}, "status": status_of_pod})
    cluster.controller.ready = None

    def claim_named() -> None:
        for name in cluster.claims():
            status_of_claim = {"sandbox": {"name": "member"}, "conditions": [NOT_READY]}
            cluster.store.patch(cluster.key("sandboxclaims", name), {"status": status_of_claim})

    cluster.store.before_read(cluster.key("sandboxclaims", "build-1"), claim_named)


def test_pod_is_asked_before_the_failure_of_the_api_is_reported(cluster: FakeCluster, client: Client) -> None:
    member(cluster, {"containerStatuses": [{"name": "a", "image": "i:1", "state": {"waiting": PULL}}]})
    cluster.plan.add(status(503), WATCH, times=math.inf)
    with pytest.raises(AcquireError) as caught:
        acquire(client, cluster.request(name="build-1"))
    assert (caught.value.reason, caught.value.retryable) == ("image-pull", False)
    assert "no such image" in caught.value.message
    assert cluster.claims() == []


def test_failure_of_the_api_is_reported_when_the_pod_explains_nothing(cluster: FakeCluster, client: Client) -> None:
    member(cluster, {"phase": "Running"})
    cluster.plan.add(status(503), WATCH, times=math.inf)
    cluster.plan.add(status(503), GET_CLAIM, nth=3, times=math.inf)
    with pytest.raises(AcquireError) as caught:
        acquire(client, cluster.request(name="build-1"))
    assert (caught.value.reason, caught.value.retryable) == ("api-unreachable", True)


def test_sandbox_that_is_not_ready_for_a_moment_is_read_again(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name="build-1"))
    key = cluster.key("sandboxclaims", "build-1")
    cluster.store.patch(key, {"status": {"conditions": [NOT_READY]}})
    cluster.store.after_read(key, lambda: cluster.store.patch(key, {"status": {"conditions": [READY]}}))
    found = locate(client, NAMESPACE, "build-1", port=1, mode="pod_ip", deadline=Deadline(9.0, client.clock))
    assert found.pod == "python-00001"


def test_sandbox_that_stays_not_ready_fails_with_a_step_for_its_kind(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name="build-1"))
    cluster.store.patch(cluster.key("sandboxclaims", "build-1"), {"status": {"conditions": [NOT_READY]}})
    with pytest.raises(AcquireError) as caught:
        locate(client, NAMESPACE, "build-1", port=1, mode="pod_ip", deadline=Deadline(9.0, client.clock))
    assert (caught.value.reason, caught.value.retryable) == ("not-ready", True)
    assert "namzu.sandbox.sandbox " in str(caught.value.next_step)
    workspace = {
        "metadata": {
            "name": "w-1",
            "labels": {"sandbox.namzu.ai/workspace": "true"},
            "annotations": {"sandbox.namzu.ai/workspace-id": "w"},
        },
        "status": {"conditions": [NOT_READY], "podIPs": ["127.0.0.1"]},
    }
    cluster.store.create("sandboxes", NAMESPACE, workspace)
    with pytest.raises(AcquireError) as caught:
        locate(client, NAMESPACE, "w-1", port=1, mode="pod_ip", deadline=Deadline(9.0, client.clock))
    assert "namzu.sandbox.workspace " in str(caught.value.next_step)
