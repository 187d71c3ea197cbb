# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who may reach the agent's port."""

from __future__ import annotations

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import PolicyError, QuestionError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.verdict import Verdict
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    block,
    cluster_policy,
    labelled,
    named,
    namespace,
    pod,
    policy,
)

LABELS = {"app": "sandbox"}
WORLD = [namespace("agents"), namespace("control", team="platform"), namespace("other")]


def verdict_of(*rules: Body, allow_from: list[Body] | None = None, extra: tuple[Body, ...] = ()) -> Verdict:
    closing = policy("agents/ingress", policyTypes=["Ingress"], ingress=list(rules))
    return Reach.for_labels([*WORLD, closing, *extra], "agents", LABELS, ()).ingress_verdict(1024, allow_from)


def test_a_pod_that_no_policy_isolates_is_refused() -> None:
    verdict = Reach.for_labels(WORLD, "agents", LABELS).ingress_verdict(1024)
    assert not verdict.holds
    assert verdict.findings[0].policy is None
    assert "no policy closes it" in str(verdict)


def test_a_policy_that_no_longer_selects_the_pod_closes_nothing() -> None:
    closing = policy("agents/p", podSelector=labelled(app="sandbox"), policyTypes=["Ingress"])
    assert Reach.for_labels([closing], "agents", LABELS).ingress_verdict(1024).holds
    assert not Reach.for_labels([closing], "agents", {"app": "other"}).ingress_verdict(1024).holds


@pytest.mark.parametrize(
    "rule",
    [
        {},
        {"ports": [{"port": 1024}]},
        {"from": [block("0.0.0.0/0")]},
        {"from": [block("::/0", "fd00::/8")]},
        {"from": [block("0.0.0.0/1"), block("128.0.0.0/2")]},
        {"from": [block("10.0.0.0/8")]},
        {"from": [{"namespaceSelector": {}}]},
        {"from": [{"namespaceSelector": {}, "podSelector": labelled(app="x")}]},
        {"from": [{"namespaceSelector": {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]}}]},
        {"from": [{"namespaceSelector": {"matchExpressions": [
            {"key": "kubernetes.io/metadata.name", "operator": "NotIn", "values": ["other"]}]}}]},
        {"ports": [{"port": 1000, "endPort": 1100}]},
        {"ports": [{"protocol": "TCP"}]},
    ],
    ids=str,
)  # fmt: skip
def test_a_port_that_is_open_to_everyone_or_to_every_namespace_is_refused(rule: Body) -> None:
    verdict = verdict_of(rule)
    assert not verdict.holds
    assert {(finding.policy, finding.rule) for finding in verdict.findings} == {("NetworkPolicy agents/ingress", 0)}
    assert verdict.findings[0].port == 1024


@pytest.mark.parametrize(
    "rule",
    [
        {"from": [{"podSelector": {}}]},
        {"from": [{"namespaceSelector": labelled(team="platform")}]},
        {"from": [{"namespaceSelector": named("control"), "podSelector": labelled(app="host")}]},
        {"from": [block("192.0.2.7/32"), block("10.1.0.0/16")]},
        {"ports": [{"port": 8080}, {"port": 1024, "protocol": "UDP"}]},
    ],
    ids=str,
)
def test_a_port_that_is_open_to_somebody_in_particular_holds(rule: Body) -> None:
    assert verdict_of(rule).holds


def test_everyone_may_be_put_together_from_several_policies() -> None:
    halves = [
        policy(f"agents/half-{number}", policyTypes=["Ingress"], ingress=[{"from": [block(f"{number}.0.0.0/9")]}])
        for number in (20, 30)
    ]
    verdict = verdict_of(extra=tuple(halves))
    assert {finding.policy for finding in verdict.findings} == {
        "NetworkPolicy agents/half-20",
        "NetworkPolicy agents/half-30",
    }


def test_a_block_that_holds_every_pod_of_several_namespaces_is_every_namespace() -> None:
    pods = (pod("agents/a", ips=["10.1.0.1"]), pod("other/b", ips=["10.1.0.2"]))
    assert not verdict_of({"from": [block("10.1.0.0/16")]}, extra=pods).holds
    assert verdict_of({"from": [block("10.1.0.0/16")]}, extra=(*pods, pod("other/c", ips=["10.2.0.1"]))).holds
    assert verdict_of({"from": [block("10.1.0.0/16")]}, extra=pods[:1]).holds


def test_allow_from_is_exact() -> None:
    asked = [{"namespaceSelector": labelled(team="platform")}, block("192.0.2.0/28")]
    inside = {"from": [{"namespaceSelector": named("control"), "podSelector": labelled(app="host")}]}
    assert verdict_of(inside, allow_from=asked).holds, "the namespace is known to carry the label"
    assert verdict_of({"from": [block("192.0.2.0/29")]}, allow_from=asked).holds
    assert not verdict_of({"from": [block("192.0.2.0/27")]}, allow_from=asked).holds
    assert not verdict_of({"from": [{"podSelector": {}}]}, allow_from=asked).holds
    assert verdict_of({"from": [{"podSelector": {}}]}, allow_from=[{"podSelector": {}}]).holds
    assert not verdict_of({"from": [block("192.0.2.1/32")]}, allow_from=[]).holds
    assert verdict_of(allow_from=[]).holds


def test_an_admin_deny_may_close_what_a_network_policy_opens() -> None:
    deny = cluster_policy(
        "deny",
        ingress=[
            {"action": "Deny", "from": [{"namespaces": {"matchExpressions": [
                {"key": "team", "operator": "NotIn", "values": ["platform"]}]}}]},
        ],
    )  # fmt: skip
    assert verdict_of({"from": [{"namespaceSelector": {}}]}, extra=(deny,)).holds
    assert not verdict_of({"from": [{"namespaceSelector": {}}]}).holds


def test_what_is_no_peer_is_refused() -> None:
    with pytest.raises(QuestionError, match="unknown peer field"):
        verdict_of(allow_from=[{"serviceAccount": "x"}])
    with pytest.raises(PolicyError, match=r"the ingress request: allow_from\[0\]\.ipBlock\.cidr"):
        verdict_of(allow_from=[{"ipBlock": {"cidr": "nowhere"}}])
