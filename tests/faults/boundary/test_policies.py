# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reading a namespace's policies: what is needed refuses, what is optional is named, what is not served is none."""

from __future__ import annotations

import math
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import QuestionError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import World
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import CredentialError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.policies import (
    LiveObjects,
    read_live,
)

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..fake.store import Key
from ..traffic import PASSING, TOO_LATE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

LIST_POLICIES = Request("list", "networkpolicies")
GROUP = Request("list", "/apis/policy.networking.k8s.io")
LIST_ADMIN = Request("list", "clusternetworkpolicies")
LIST_NAMESPACES = Request("list", "namespaces")
LIST_CILIUM = Request("list", "ciliumnetworkpolicies")
LIST_CLUSTERWIDE = Request("list", "ciliumclusterwidenetworkpolicies")


@pytest.fixture
def policed(cluster: FakeCluster) -> FakeCluster:
    """A cluster with a policy of each of the usual kinds."""
    cluster.server.groups["policy.networking.k8s.io"] = ["v1beta1", "v1alpha2"]
    cluster.store.delete(cluster.key("networkpolicies", "closed"))
    cluster.store.create("networkpolicies", NAMESPACE, {"metadata": {"name": "ours"}, "spec": {"podSelector": {}}})
    cluster.store.create("networkpolicies", "team-b", {"metadata": {"name": "theirs"}, "spec": {"podSelector": {}}})
    spec = {"tier": "Admin", "priority": 1, "subject": {"namespaces": {}}}
    cluster.store.create("clusternetworkpolicies", "", {"metadata": {"name": "all"}, "spec": spec})
    return cluster


def read(client: Client, seconds: float = 10.0, **options: t.Any) -> LiveObjects:
    return read_live(client, NAMESPACE, Deadline(seconds, client.clock), **options)


def names(read: LiveObjects) -> dict[str, list[str]]:
    found: dict[str, list[str]] = {}
    for body in read.objects:
        found.setdefault(body["kind"], []).append(body["metadata"]["name"])
    return found


def test_policies_of_the_namespace_and_of_the_cluster_are_read(policed: FakeCluster, client: Client) -> None:
    live = read(client)
    assert names(live) == {"NetworkPolicy": ["ours"], "ClusterNetworkPolicy": ["all"], "Namespace": [NAMESPACE]}
    assert live.unread == ()
    assert {body["apiVersion"] for body in live.objects} == {
        "networking.k8s.io/v1",
        "policy.networking.k8s.io/v1beta1",
        "v1",
    }
    assert World.read(live.objects).namespaces


@pytest.mark.parametrize("threads", [1, 4])
def test_order_is_the_same_however_many_are_read_at_once(policed: FakeCluster, client: Client, threads: int) -> None:
    assert [*names(read(client, threads=threads))] == ["NetworkPolicy", "ClusterNetworkPolicy", "Namespace"]


def test_kind_that_is_not_served_has_no_objects(cluster: FakeCluster, client: Client) -> None:
    live = read(client, evidence=False, threads=1)
    assert (names(live), live.unread) == ({"NetworkPolicy": ["closed"]}, ())
    assert cluster.plan.received() == [LIST_POLICIES, GROUP]


def test_first_admin_policies_are_asked_for_where_their_version_is_served(cluster: FakeCluster, client: Client) -> None:
    cluster.server.groups["policy.networking.k8s.io"] = ["v1alpha1"]
    read(client, evidence=False, threads=1)
    asked = [request.plural for request in cluster.plan.received()]
    assert asked[2:] == ["adminnetworkpolicies", "baselineadminnetworkpolicies"]


def test_namespaces_are_read_when_a_policy_is_about_the_cluster(policed: FakeCluster, client: Client) -> None:
    assert "Namespace" in names(read(client, evidence=False))
    policed.store.delete(Key("clusternetworkpolicies", "", "all"))
    policed.plan.clear()
    read(client, evidence=False)
    assert LIST_NAMESPACES not in policed.plan.received()


def test_cilium_has_its_own_policies(policed: FakeCluster, client: Client) -> None:
    policed.store.create("ciliumnetworkpolicies", NAMESPACE, {"metadata": {"name": "c"}, "spec": {}})
    policed.store.create("ciliumclusterwidenetworkpolicies", "", {"metadata": {"name": "cc"}, "spec": {}})
    found = names(read(client, engine="cilium"))
    assert (found["CiliumNetworkPolicy"], found["CiliumClusterwideNetworkPolicy"]) == (["c"], ["cc"])


def test_what_cilium_policies_name_is_read_when_they_name_it(policed: FakeCluster, client: Client) -> None:
    spec = {"egress": [{"toServices": [{}]}, {"toCIDRSet": [{"cidrGroupRef": "g"}]}]}
    policed.store.create("ciliumnetworkpolicies", NAMESPACE, {"metadata": {"name": "c"}, "spec": spec})
    read(client, engine="cilium")
    asked = [request.plural for request in policed.plan.received()]
    assert {"services", "ciliumcidrgroups"} <= set(asked)


def test_engine_that_is_none_is_refused(client: Client) -> None:
    with pytest.raises(QuestionError, match="core, cilium"):
        read(client, engine="calico")


@pytest.mark.parametrize(
    ("request_kind", "engine", "rule"),
    [
        (LIST_POLICIES, "core", "list on networkpolicies.networking.k8s.io"),
        (LIST_POLICIES, "cilium", "list on networkpolicies.networking.k8s.io"),
        (LIST_CILIUM, "cilium", "list on ciliumnetworkpolicies.cilium.io"),
    ],
    ids=str,
)
def test_needed_policies_that_may_not_be_read_refuse_with_the_rule(
    policed: FakeCluster, client: Client, request_kind: Request, engine: str, rule: str
) -> None:
    policed.plan.add(status(403), request_kind, times=math.inf)
    with pytest.raises(CredentialError) as caught:
        read(client, engine=engine)
    assert (caught.value.reason, caught.value.retryable) == ("forbidden", False)
    assert rule in str(caught.value)
    assert "claimant" in str(caught.value)


def test_engine_that_the_cluster_does_not_have_is_said(policed: FakeCluster, client: Client) -> None:
    policed.plan.add(Fault(How.STATUS, 404, name=None), LIST_CILIUM)
    with pytest.raises(SandboxError, match="check engine"):
        read(client, engine="cilium")


@pytest.mark.parametrize(
    ("request_kind", "engine", "unread"),
    [
        (GROUP, "core", ["AdminNetworkPolicy", "BaselineAdminNetworkPolicy", "ClusterNetworkPolicy"]),
        (LIST_ADMIN, "core", ["ClusterNetworkPolicy"]),
        (LIST_CLUSTERWIDE, "cilium", ["CiliumClusterwideNetworkPolicy"]),
    ],
    ids=str,
)
@pytest.mark.parametrize("fault", [status(403), status(503), Fault(How.CUT_BEFORE)], ids=str)
def test_optional_policies_that_cannot_be_read_are_named(
    policed: FakeCluster, client: Client, fault: Fault, request_kind: Request, engine: str, unread: list[str]
) -> None:
    policed.plan.add(fault, request_kind, times=math.inf)
    live = read(client, engine=engine)
    assert [text.partition(" ")[0] for text in live.unread] == unread
    assert ("not allowed: list" in live.unread[0]) is (fault.status == 403)


def test_optional_policies_can_be_demanded(policed: FakeCluster, client: Client) -> None:
    policed.plan.add(status(403), LIST_ADMIN, times=math.inf)
    with pytest.raises(CredentialError, match="clusternetworkpolicies"):
        read(client, required=["ClusterNetworkPolicy"])


@pytest.mark.parametrize("request_kind", [LIST_POLICIES, GROUP, LIST_ADMIN, LIST_NAMESPACES], ids=str)
def test_credential_that_nobody_knows_is_no_matter_of_one_source(
    policed: FakeCluster, client: Client, request_kind: Request
) -> None:
    policed.plan.add(status(401), request_kind, times=math.inf)
    with pytest.raises(CredentialError):
        read(client)


@pytest.mark.parametrize("request_kind", [LIST_POLICIES, GROUP, LIST_ADMIN, LIST_NAMESPACES], ids=str)
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_is_outlived(
    policed: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    policed.plan.add(fault, request_kind)
    live = read(client)
    assert (live.unread, len(live.objects)) == ((), 3)


@pytest.mark.parametrize("fault", [*TOO_LATE, Fault(How.HANG), Fault(How.NO_JSON)], ids=lambda fault: str(fault)[:40])
def test_needed_policies_that_never_come_are_given_up_in_time(
    policed: FakeCluster, client: Client, fault: Fault
) -> None:
    policed.plan.add(fault, LIST_POLICIES, times=math.inf)
    with pytest.raises(SandboxError, match="NetworkPolicy objects cannot be read") as caught:
        read(client, seconds=1.0)
    assert caught.value.retryable


def test_reading_changes_with_every_change_of_a_policy(policed: FakeCluster, client: Client) -> None:
    key = policed.key("networkpolicies", "ours")
    seen = {read(client).fingerprint, read(client).fingerprint}
    assert len(seen) == 1
    policed.store.patch(key, {"spec": {"policyTypes": ["Egress"]}})
    seen.add(read(client).fingerprint)
    body = policed.store.get(key)
    policed.store.replace(key, {"spec": body["spec"]})
    seen.add(read(client).fingerprint)
    policed.store.delete(key)
    seen.add(read(client).fingerprint)
    policed.plan.add(status(403), LIST_ADMIN)
    seen.add(read(client).fingerprint)
    assert len(seen) == 5
