# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An acquired sandbox has a proven boundary: what does not hold is not handed out, with the evidence in the error."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import PolicyError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import translate
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire, would_acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import (
    EgressBoundary,
    IngressBoundary,
)

from ..bounded import (
    ANYONE,
    GET_POOL,
    LIST_POLICIES,
    NOBODY,
    TEMPLATE_LABEL,
    add,
    direct,
    failure_of,
    refusal_of,
    wanted,
)
from ..fake.agent import PRIVILEGED
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client


def test_boundary_that_holds_is_told_with_its_policies(bounded: FakeCluster, client: Client) -> None:
    boundary = acquire(client, wanted(bounded)).verdict.boundary
    assert boundary.policy == f"NetworkPolicy {NAMESPACE}/namzu-python-egress"
    assert boundary.egress is not None
    assert (boundary.egress.holds, boundary.egress.isolated_by) == (True, (boundary.policy,))
    assert boundary.ingress is not None
    assert boundary.ingress.isolated_by == (f"NetworkPolicy {NAMESPACE}/namzu-python-ingress",)


def test_policy_that_widens_the_egress_is_named_with_a_witness(bounded: FakeCluster, client: Client) -> None:
    block = {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": 443}]}
    add(bounded, "forgotten", {"podSelector": {}, "policyTypes": ["Egress"], "egress": [block]})
    error = refusal_of(client, bounded, wanted(bounded))
    finding = error.fields()["findings"][0]
    assert (error.direction, finding["policy"]) == ("egress", f"NetworkPolicy {NAMESPACE}/forgotten")
    assert (finding["rule"], finding["address"], finding["port"]) == (0, "198.51.100.77", 443)
    assert "forgotten" in str(error)


def test_named_policy_alone_is_looked_at_when_that_is_asked_for(bounded: FakeCluster, client: Client) -> None:
    add(bounded, "forgotten", {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]})
    alone = EgressBoundary.of({"kind": "dns_only", "verify": "named_object"})
    boundary = acquire(client, wanted(bounded, egress=alone)).verdict.boundary
    assert (boundary.policy, boundary.egress) == (f"NetworkPolicy {NAMESPACE}/namzu-python-egress", None)


def test_agent_port_that_is_open_to_everyone_is_refused(bounded: FakeCluster, client: Client) -> None:
    add(bounded, "open", ANYONE)
    error = refusal_of(client, bounded, wanted(bounded, egress=None))
    assert (error.direction, error.object) == ("ingress", f"NetworkPolicy {NAMESPACE}/open")


def test_agent_port_that_no_policy_closes_is_refused(cluster: FakeCluster, client: Client) -> None:
    cluster.store.delete(cluster.key("networkpolicies", "closed"))
    error = refusal_of(client, cluster, cluster.request(ingress=IngressBoundary()))
    assert (error.direction, error.object) == ("ingress", f"Pod {NAMESPACE}/python-00001")
    assert "no policy closes it" in str(error)


def test_agent_port_is_open_to_whom_it_was_asked_to_be_alone(bounded: FakeCluster, client: Client) -> None:
    peer = {"podSelector": {"matchLabels": {"role": "runner"}}}
    add(bounded, "runners", {**NOBODY, "ingress": [{"from": [peer], "ports": [{"port": bounded.agent.port}]}]})
    assert acquire(client, wanted(bounded, ingress=IngressBoundary((peer,)))).created
    other = {"podSelector": {"matchLabels": {"role": "other"}}}
    error = failure_of(client, wanted(bounded, ingress=IngressBoundary((other,))))
    assert error.object == f"NetworkPolicy {NAMESPACE}/runners"


def test_named_policy_that_is_not_there_is_refused(bounded: FakeCluster, client: Client) -> None:
    egress = EgressBoundary.of({"kind": "dns_only", "name": "missing"})
    error = refusal_of(client, bounded, wanted(bounded, egress=egress))
    assert error.object == f"NetworkPolicy {NAMESPACE}/missing"
    assert "does not exist" in str(error)


def test_named_policy_that_is_not_the_translation_is_refused_with_the_difference(
    bounded: FakeCluster, client: Client
) -> None:
    error = refusal_of(client, bounded, wanted(bounded, egress=EgressBoundary.of("no_network")))
    assert "does not grant no_network: spec.egress" in str(error)


def test_pod_that_lost_the_label_by_which_the_policy_selects_is_refused_with_both(
    bounded: FakeCluster, client: Client
) -> None:
    # Then the pool says which template it is.
    error = refusal_of(client, bounded, wanted(bounded, pod_labels={}, ingress="unverified"))
    assert f"namzu-python-egress does not select Pod {NAMESPACE}/python-00001" in str(error)
    assert f"lacks the label {TEMPLATE_LABEL}=python" in str(error)
    assert bounded.plan.received().count(GET_POOL) == 1


def test_policy_that_selects_by_a_label_that_only_members_of_a_pool_have_is_not_relied_on(
    bounded: FakeCluster, client: Client
) -> None:
    in_pool = {"agents.x-k8s.io/warm-pool-sandbox": "0fceff97"}
    bounded.store.delete(bounded.key("networkpolicies", "namzu-python-ingress"))
    add(bounded, "of-the-pool", {**NOBODY, "podSelector": {"matchLabels": in_pool}})
    labels = {TEMPLATE_LABEL: "python", **in_pool}
    error = refusal_of(client, bounded, wanted(bounded, egress=None, pod_labels=labels))
    assert error.direction == "ingress"


def test_labels_are_judged_when_the_controller_has_given_the_pod_those_of_its_new_owner(
    bounded: FakeCluster, client: Client
) -> None:
    pod = bounded.key("pods", "python-00001")
    in_pool = {"agents.x-k8s.io/warm-pool-sandbox": "0fceff97"}
    adopted = {"metadata": {"labels": {**dict.fromkeys(in_pool), TEMPLATE_LABEL: None}}}
    bounded.store.after_read(pod, lambda: bounded.store.patch(pod, adopted))
    labels = {TEMPLATE_LABEL: "python", **in_pool}
    error = refusal_of(client, bounded, wanted(bounded, ingress="unverified", pod_labels=labels))
    assert f"lacks the label {TEMPLATE_LABEL}=python" in str(error)


def test_profile_puts_its_label_on_the_pod_and_names_the_policy(bounded: FakeCluster, client: Client) -> None:
    egress = EgressBoundary.of({"kind": "no_network", "profile": "strict"})
    labels = {TEMPLATE_LABEL: "python", "sandbox.users.io/egress-profile": "strict"}
    body = translate("no_network", namespace=NAMESPACE, name="namzu-python-strict-egress", labels=labels)
    add(bounded, "namzu-python-strict-egress", body["spec"])
    bounded.store.delete(bounded.key("networkpolicies", "namzu-python-egress"))
    acquired = acquire(client, wanted(bounded, egress=egress))
    assert acquired.labels["sandbox.users.io/egress-profile"] == "strict"
    assert acquired.verdict.boundary.policy == f"NetworkPolicy {NAMESPACE}/namzu-python-strict-egress"


def test_direct_sandbox_is_refused_before_it_is_made(bounded: FakeCluster, client: Client) -> None:
    add(bounded, "open", ANYONE)
    refusal_of(client, bounded, direct(bounded))


def test_check_mode_says_that_a_direct_sandbox_would_be_refused(bounded: FakeCluster, client: Client) -> None:
    assert would_acquire(client, direct(bounded))[1] is None
    add(bounded, "open", ANYONE)
    with pytest.raises(BoundaryError):
        would_acquire(client, direct(bounded))


def test_direct_sandbox_is_proven_before_and_after_it_is_made(bounded: FakeCluster, client: Client) -> None:
    acquired = acquire(client, direct(bounded))
    assert acquired.verdict.boundary.policy == f"NetworkPolicy {NAMESPACE}/namzu-python-egress"
    assert bounded.plan.received().count(LIST_POLICIES) == 1


def test_policy_that_cannot_be_read_as_one_refuses_the_sandbox(bounded: FakeCluster, client: Client) -> None:
    add(bounded, "strange", {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": "everywhere"}]})
    error = failure_of(client, wanted(bounded))
    assert isinstance(error, PolicyError)
    assert error.object == f"NetworkPolicy {NAMESPACE}/strange"
    assert bounded.claims() == []


def test_privileges_are_not_forgiven_for_a_good_boundary(bounded: FakeCluster, client: Client) -> None:
    bounded.agent.status = PRIVILEGED
    assert failure_of(client, wanted(bounded)).reason == "privileged"
    assert bounded.claims() == []
