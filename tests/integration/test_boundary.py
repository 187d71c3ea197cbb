# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The boundary of a sandbox on a real cluster: who widens it is named, and what does not hold is not handed out."""

from __future__ import annotations

import contextlib
import dataclasses
import os
import typing as t
import uuid

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import translate
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import Acquired, AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.network_probe import (
    places_near,
    probe_network,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import (
    EgressBoundary,
    IngressBoundary,
)

POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"
CILIUM_POLICIES = "/apis/cilium.io/v2/namespaces/{}/ciliumnetworkpolicies"
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"
LABEL = "sandbox.namzu.ai/template"
NO_NETWORK = EgressBoundary.of("no_network")

#: Tries one connection, beside everything that is under test.
CONNECT = "import socket, sys; socket.create_connection((sys.argv[1], int(sys.argv[2])), 3).close()"


@dataclasses.dataclass(frozen=True)
class Fenced:
    """A pool behind a boundary; template and pool have one name."""

    namespace: str
    pool: str
    client: Client
    kube: t.Any

    def acquire(self, **changes: t.Any) -> Acquired:
        address = os.environ.get("NAMZU_TEST_AGENT_ADDRESS") or "pod_ip"
        usual = {"namespace": self.namespace, "warm_pool": self.pool, "agent_address": address, "ready_timeout": 120.0}
        return acquire(self.client, AcquireRequest(**{**usual, **changes}))

    @contextlib.contextmanager
    def held(self, **changes: t.Any) -> t.Iterator[Acquired]:
        acquired = self.acquire(**changes)
        try:
            yield acquired
        finally:
            release(self.client, self.namespace, acquired.name, Deadline(30.0))

    def refused(self, **changes: t.Any) -> BoundaryError:
        """The refusal, after which nothing of ours is there."""
        name = f"refused-{uuid.uuid4().hex[:8]}"
        with pytest.raises(BoundaryError) as caught:
            self.acquire(name=name, **changes)
        for path in (CLAIMS, SANDBOXES):
            left = self.kube.get(f"{path.format(self.namespace)}/{name}")
            assert left is None or left["metadata"].get("deletionTimestamp"), left
        assert (caught.value.reason, caught.value.leftover) == ("boundary", None)
        return caught.value

    @contextlib.contextmanager
    def policy(self, name: str, spec: dict[str, t.Any]) -> t.Iterator[None]:
        """A further NetworkPolicy for a while."""
        head = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy", "metadata": {"name": name}}
        body = {**head, "spec": spec}
        self.kube.request("POST", POLICIES.format(self.namespace), body)
        try:
            yield
        finally:
            self.kube.delete(f"{POLICIES.format(self.namespace)}/{name}")


@pytest.fixture(scope="module")
def fenced(pool, kube, kubeconfig) -> t.Iterator[Fenced]:
    """The pool of all tests."""
    with Client(resolve_access({"kubeconfig": kubeconfig}, {})) as client:
        yield Fenced(pool.namespace, pool.name, client, kube)


def test_boundary_of_the_role_is_proven_and_told(fenced) -> None:
    with fenced.held(egress=NO_NETWORK, ingress=IngressBoundary(allow_from=())) as acquired:
        boundary = acquired.verdict.boundary
    assert boundary.policy == f"NetworkPolicy {fenced.namespace}/namzu-{fenced.pool}-egress"
    assert boundary.egress.isolated_by == (boundary.policy,)
    assert boundary.ingress.isolated_by == (f"NetworkPolicy {fenced.namespace}/namzu-{fenced.pool}-ingress",)
    assert (boundary.egress.unread, boundary.ingress.unread) == ((), ())


def test_controllers_own_policy_opens_what_ours_closes_and_is_named(fenced, kube) -> None:
    group = f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{fenced.namespace}"
    template = kube.get(f"{group}/sandboxtemplates/{fenced.pool}")
    made: list[tuple[str, str, dict[str, t.Any]]] = [
        ("sandboxtemplates", "SandboxTemplate", {**template["spec"], "networkPolicyManagement": "Managed"}),
        ("sandboxwarmpools", "SandboxWarmPool", {"replicas": 1, "sandboxTemplateRef": {"name": "managed"}}),
    ]
    widening = f"{POLICIES.format(fenced.namespace)}/managed-network-policy"
    try:
        for plural, kind, spec in made:
            body = {"apiVersion": template["apiVersion"], "kind": kind, "metadata": {"name": "managed"}, "spec": spec}
            kube.request("POST", f"{group}/{plural}", body)
        kube.until(widening, bool)
        # Our own policy is there and selects the pod, as its template's label is the other one's.
        named = EgressBoundary.of({"kind": "no_network", "name": f"namzu-{fenced.pool}-egress"})
        error = fenced.refused(warm_pool="managed", egress=named)
        assert error.object == f"NetworkPolicy {fenced.namespace}/managed-network-policy"
        assert (error.direction, error.fields()["findings"][0]["policy"]) == ("egress", error.object)
    finally:
        for plural, _kind, _spec in reversed(made):
            kube.delete(f"{group}/{plural}/managed")
        kube.delete(widening)


def test_pod_that_lost_its_label_is_refused_with_policy_and_label(fenced, kube) -> None:
    # The controller gives a claimed pod the labels that its template has by then.
    path = f"/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{fenced.namespace}/sandboxtemplates/{fenced.pool}"

    def give(label: str | None) -> None:
        kube.request("PATCH", path, {"spec": {"podTemplate": {"metadata": {"labels": {LABEL: label}}}}})

    give(None)
    try:
        error = fenced.refused(egress=NO_NETWORK, ingress="unverified")
    finally:
        give(fenced.pool)
    assert error.object == f"NetworkPolicy {fenced.namespace}/namzu-{fenced.pool}-egress"
    assert f"lacks the label {LABEL}={fenced.pool}" in str(error)


def test_agent_port_that_is_open_to_everyone_is_refused(fenced) -> None:
    with fenced.policy("open", {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}):
        error = fenced.refused()
    assert (error.direction, error.object) == ("ingress", f"NetworkPolicy {fenced.namespace}/open")


def test_sandbox_of_a_template_is_refused_before_it_is_made(fenced, kube) -> None:
    with fenced.policy("open", {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}):
        error = fenced.refused(warm_pool=None, template=fenced.pool)
    assert error.direction == "ingress"
    assert "Pod " in str(error)


def test_cilium_policy_grants_names_where_cilium_is_said_to_enforce(fenced, kube) -> None:
    asked = {"kind": "hosts", "hosts": ["example.com"], "engine": "cilium", "name": "names"}
    body = translate(
        {"kind": "hosts", "hosts": ["example.com"]},
        namespace=fenced.namespace,
        name="names",
        labels={LABEL: fenced.pool},
        engine="cilium",
    )
    closed = f"{POLICIES.format(fenced.namespace)}/namzu-{fenced.pool}-egress"
    path = CILIUM_POLICIES.format(fenced.namespace)
    kube.request("POST", path, body)
    try:
        with fenced.held(egress=EgressBoundary.of(asked)) as acquired:
            assert acquired.verdict.boundary.policy == f"CiliumNetworkPolicy {fenced.namespace}/names"
    finally:
        kube.delete(f"{path}/names")
    assert kube.get(closed) is not None


def test_what_the_network_probe_says_is_what_connections_do(fenced, kube) -> None:
    pods = f"/api/v1/namespaces/{fenced.namespace}/pods?labelSelector={LABEL}={fenced.pool}"
    with fenced.held() as judge:

        def ready_others(listed: t.Any) -> list[t.Any]:
            return [pod for pod in listed["items"] if pod["metadata"]["name"] != judge.pod and is_ready(pod)]

        others = kube.until(pods, ready_others)
        argv = ["python3", "-c", CONNECT, others[0]["status"]["podIP"], str(judge.agent.port)]
        tried = Agent(judge.agent).execute(argv, deadline=Deadline(20.0), timeout=10.0)
        own = kube.get(f"/api/v1/namespaces/{fenced.namespace}/pods/{judge.pod}")
        places = places_near(fenced.client, own, judge.agent.port, Deadline(30.0))
        given = (Agent(judge.agent), NO_NETWORK.request, Deadline(3.0), judge.pod, places)
        if tried.rc == 0:
            with pytest.raises(BoundaryError, match="the network enforces nothing") as caught:
                probe_network(*given)
            assert caught.value.fields()["network_probe"]["holds"] is False
        else:
            closed = [attempt.place.name for attempt in probe_network(*given).attempts if attempt.says == "closed"]
            assert "pod" in closed


def is_ready(pod: dict[str, t.Any]) -> bool:
    return any(one["type"] == "Ready" and one["status"] == "True" for one in pod["status"].get("conditions") or [])


def test_claimant_that_may_read_the_clusters_policies_leaves_none_unread(fenced, play, kube) -> None:
    given = {"claimant_namespace": fenced.namespace, "claimant_name": "reader"}
    role = f"/apis/rbac.authorization.k8s.io/v1/clusterroles/namzu-{fenced.namespace}-reader"
    play.role("claimant", **given, claimant_cluster_policies=True)
    try:
        path = f"/api/v1/namespaces/{fenced.namespace}/serviceaccounts/reader/token"
        token = kube.request("POST", path, {"spec": {"expirationSeconds": 600}})["status"]["token"]
        access = resolve_access({"host": kube.server, "api_key": token, "ca_cert": kube.ca_cert}, {})
        with Client(access) as client, dataclasses.replace(fenced, client=client).held(egress=NO_NETWORK) as acquired:
            assert acquired.verdict.boundary.egress.unread == ()
    finally:
        play.role("claimant", **given, claimant_state="absent")
    assert kube.get(role) is None


def test_a_task_says_what_it_wants_and_gets_the_verdict(play, pool, claimant) -> None:
    task = {
        "name": "acquire",
        "namzu.sandbox.sandbox": {
            **pool.access,
            **claimant,
            "warm_pool": pool.name,
            "egress": {"kind": "no_network"},
            "ingress": {"allow_from": []},
        },
        "register": "held",
    }
    release_task = {
        "namzu.sandbox.sandbox": {"namespace": pool.namespace, "name": "{{ held.sandbox.name }}", "state": "absent"}
    }
    verdict = play([task, release_task])["acquire"]["sandbox"]["verdict"]
    assert verdict["egress"]["policy"] == f"NetworkPolicy {pool.namespace}/namzu-{pool.template}-egress"
    assert verdict["egress"]["holds"]
    # Whoever has the rules of one namespace may not read what is about the cluster, and the verdicts say so.
    for direction in ("egress", "ingress"):
        assert any(source.startswith("ClusterNetworkPolicy ") for source in verdict[direction]["unread"])
        assert "not allowed" in verdict[direction]["unread"][0]


def test_a_task_that_asks_for_what_cannot_be_is_refused_before_anything_is_made(play, pool, kube) -> None:
    asked = {"egress": {"kind": "hosts", "hosts": ["example.com"]}}
    task = {"namzu.sandbox.sandbox": {**pool.access, "warm_pool": pool.name, "name": "impossible", **asked}}
    refused = play([{"name": "acquire", **task}], may_fail=True)["acquire"]
    assert refused["reason"] == "invalid-input"
    assert "core" in refused["msg"]
    assert kube.get(f"{CLAIMS.format(pool.namespace)}/impossible") is None
