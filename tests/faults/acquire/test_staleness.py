# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A member that is older than its template is reported or refused, as asked (agent-sandbox issue 764)."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import CredentialError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.staleness import StaleError, drift
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

Body = dict[str, t.Any]

GET_TEMPLATE = Request("get", "sandboxtemplates")
BY_IP: Body = {"agent_address": "pod_ip"}


def container(**changes: t.Any) -> Body:
    return {"name": "agent", "image": "python:3", **changes}


def spec(*containers: Body, **pod: t.Any) -> Body:
    return {"podTemplate": {"spec": {"containers": list(containers or [container()]), **pod}}}


@pytest.fixture
def pooled(cluster: FakeCluster) -> FakeCluster:
    """A pool whose members are as their template says, and carry what the controller adds."""
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": spec()})
    dns = {"dnsPolicy": "None", "dnsConfig": {"nameservers": ["8.8.8.8", "1.1.1.1"]}}
    made = spec(automountServiceAccountToken=False, **dns)
    made["podTemplate"]["metadata"] = {"labels": {"agents.x-k8s.io/warm-pool-sandbox": "626ebeb9"}}
    cluster.controller.member = {
        "metadata": {"annotations": {"agents.x-k8s.io/sandbox-template-ref": "python"}},
        "spec": {"operatingMode": "Running", **made},
    }
    return cluster


def edit(cluster: FakeCluster, **changes: t.Any) -> None:
    """Change the template after the pool's members were made."""
    cluster.store.patch(cluster.key("sandboxtemplates", "python"), {"spec": spec(container(**changes))})


@pytest.mark.parametrize("on_stale", ["report", "refuse"])
def test_member_that_is_as_its_template_says_is_not_stale(pooled: FakeCluster, client: Client, on_stale: t.Any) -> None:
    assert acquire(client, pooled.request(on_stale=on_stale)).stale is False


def test_stale_member_is_reported(pooled: FakeCluster, client: Client) -> None:
    edit(pooled, image="python:4")
    acquired = acquire(client, pooled.request(on_stale="report"))
    assert (acquired.stale, pooled.claims()) == (True, [acquired.name])


def test_stale_member_is_refused_and_given_back(pooled: FakeCluster, client: Client) -> None:
    edit(pooled, image="python:4")
    with pytest.raises(StaleError) as caught:
        acquire(client, pooled.request(name="build-1", on_stale="refuse"))
    assert (caught.value.reason, caught.value.retryable) == ("stale", True)
    assert caught.value.object == "SandboxClaim team-a/build-1"
    assert "podTemplate.spec.containers" in caught.value.message
    assert pooled.claims() == []


def test_nobody_looks_unless_asked_to(pooled: FakeCluster, client: Client) -> None:
    edit(pooled, image="python:4")
    assert acquire(client, pooled.request()).stale is None
    assert GET_TEMPLATE not in pooled.plan.received()
    assert len(pooled.plan.received()) <= 5


def test_look_keeps_a_warm_acquire_at_five_requests_by_address(pooled: FakeCluster, client: Client) -> None:
    acquire(client, pooled.request(on_stale="report", **BY_IP))
    assert len(pooled.plan.received()) <= 5


@pytest.mark.parametrize("change", ["gone", "not named"])
def test_member_whose_template_is_gone_or_not_named_is_stale(pooled: FakeCluster, client: Client, change: str) -> None:
    if change == "gone":
        pooled.store.delete(pooled.key("sandboxtemplates", "python"))
    else:
        pooled.controller.member["metadata"]["annotations"] = {}
    with pytest.raises(StaleError, match="the template itself"):
        acquire(client, pooled.request(on_stale="refuse"))
    assert pooled.claims() == []


@pytest.mark.parametrize("fault", [status(503), status(429, "0"), Fault(How.HANG), Fault(How.NO_JSON)], ids=str)
def test_fault_of_the_look_that_passes_is_outlived(pooled: FakeCluster, client: Client, fault: Fault) -> None:
    pooled.plan.add(fault, GET_TEMPLATE)
    assert acquire(client, pooled.request(on_stale="refuse")).stale is False


@pytest.mark.parametrize("code", [401, 403])
def test_template_that_may_not_be_read_is_no_fresh_one(pooled: FakeCluster, client: Client, code: int) -> None:
    pooled.plan.add(status(code), GET_TEMPLATE)
    with pytest.raises(AcquireError) as caught:
        acquire(client, pooled.request(on_stale="report"))
    assert caught.value.reason == "forbidden"
    assert isinstance(caught.value.__cause__, CredentialError)
    assert pooled.claims() == []


def test_direct_sandbox_that_stands_there_is_compared_too(pooled: FakeCluster, client: Client) -> None:
    wanted: Body = {"warm_pool": None, "template": "python", "name": "build-1", "on_stale": "report"}
    assert acquire(client, pooled.request(**wanted)).stale is False
    edit(pooled, image="python:4")
    again = acquire(client, pooled.request(**wanted))
    assert (again.created, again.stale) == (False, True)


SAME = [
    (container(env=[]), container()),
    (container(env=None), container()),
    (container(command=[""]), container(command=[""])),
    (container(resources={"limits": {"cpu": "1000m"}}), container(resources={"limits": {"cpu": 1}})),
    (container(resources={"limits": {"memory": "1Gi"}}), container(resources={"limits": {"memory": "1024Mi"}})),
    (container(resources={"requests": {"cpu": "0.5"}}), container(resources={"requests": {"cpu": "500m"}})),
    (container(volumeMounts=[{"name": "a", "readOnly": False}]), container(volumeMounts=[{"name": "a"}])),
]
DIFFERENT = [
    (container(image="python:4"), container()),
    (container(env=[{"name": "A", "value": "1"}]), container()),
    (container(resources={"limits": {"cpu": "2"}}), container(resources={"limits": {"cpu": "1"}})),
    (container(resources={"limits": {"cpu": "odd"}}), container(resources={"limits": {"cpu": "1"}})),
    (container(volumeMounts=[{"name": "a", "readOnly": True}]), container(volumeMounts=[{"name": "a"}])),
    (container(securityContext={"runAsNonRoot": False}), container(securityContext={})),
    (container(args=["a", "b"]), container(args=["b", "a"])),
]


@pytest.mark.parametrize(("have", "want"), SAME)
def test_two_ways_to_write_the_same_are_no_drift(have: Body, want: Body) -> None:
    assert drift(spec(have), spec(want)) == drift(spec(want), spec(have)) == []


@pytest.mark.parametrize(("have", "want"), DIFFERENT)
def test_difference_that_counts_is_drift(have: Body, want: Body) -> None:
    assert drift(spec(have), spec(want)) == drift(spec(want), spec(have)) == ["podTemplate.spec.containers"]


def test_disks_service_and_every_field_of_the_pod_are_named() -> None:
    disk = {"metadata": {"name": "work"}, "spec": {"resources": {"requests": {"storage": "1Gi"}}}}
    more = {"metadata": {"name": "work"}, "spec": {"resources": {"requests": {"storage": "2Gi"}}}}
    have = {**spec(hostNetwork=True), "volumeClaimTemplates": [disk], "service": True}
    want = {**spec(runtimeClassName="kata"), "volumeClaimTemplates": [more]}
    fields = ["podTemplate.spec.hostNetwork", "podTemplate.spec.runtimeClassName", "volumeClaimTemplates", "service"]
    assert drift(have, want) == fields
    labelled = {**disk, "metadata": {"name": "work", "labels": {"a": "b"}}}
    assert drift({**have, "volumeClaimTemplates": [labelled]}, have) == []
