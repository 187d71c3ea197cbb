# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What implementers of the administrators' policies get wrong, one test a line, with values."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    admin_policy,
    baseline_policy,
    block,
    cluster_policy,
    labelled,
    namespace,
    node,
    pod,
    policy,
)

WORLD = [
    namespace("agents", team="ai", zone="one"),
    namespace("web", team="web", zone="one"),
    pod("agents/sandbox", {"app": "sandbox"}, ips=["10.1.0.10"]),
    pod("web/client", {"app": "client"}, ips=["10.1.1.10"], ports=[("http", 8080, "TCP")]),
    node("node-1", "172.18.0.2", pool="edge"),
]
CLIENT, OUTSIDE = {"pod": "web/client"}, {"ip": "203.0.113.9"}
WEB = {"namespaces": labelled(team="web")}
ALL = {"networks": ["0.0.0.0/0", "::/0"]}


def reach(*policies: Body) -> Reach:
    return Reach.from_objects([*WORLD, *policies], pod="agents/sandbox")


def rule(action: str, *peers: Body, **more: t.Any) -> Body:
    return {"action": action, "to": list(peers or [WEB]), **more}


def test_15_the_lower_priority_number_wins() -> None:
    accept = cluster_policy("accept", priority=5, egress=[rule("Accept")])
    deny = cluster_policy("deny", priority=6, egress=[rule("Deny")])
    assert reach(deny, accept).allows("egress", CLIENT, 80)
    accept["spec"]["priority"], deny["spec"]["priority"] = 6, 5
    assert not reach(deny, accept).allows("egress", CLIENT, 80)


def test_15_the_order_of_rules_decides_inside_a_policy() -> None:
    assert reach(cluster_policy("p", egress=[rule("Accept"), rule("Deny")])).allows("egress", CLIENT, 80)
    assert not reach(cluster_policy("p", egress=[rule("Deny"), rule("Accept")])).allows("egress", CLIENT, 80)


def test_15_pass_skips_the_rest_of_its_tier_in_other_policies_too() -> None:
    first = cluster_policy("first", priority=1, egress=[rule("Pass"), rule("Deny")])
    second = cluster_policy("second", priority=2, egress=[rule("Deny")])
    assert reach(first, second).allows("egress", CLIENT, 80)
    baseline = cluster_policy("base", tier="Baseline", egress=[rule("Deny")])
    assert not reach(first, second, baseline).allows("egress", CLIENT, 80)


def test_15_what_is_passed_on_counts_in_a_verdict_as_the_next_tier_has_it() -> None:
    first = cluster_policy("first", egress=[rule("Pass"), rule("Deny", {"namespaces": {}})])
    allowed = policy("agents/open", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": {}}]}])
    verdict = reach(first, allowed).within("no_network")
    assert [(finding.policy, finding.example) for finding in verdict.findings] == [
        ("NetworkPolicy agents/open", "pod web/client (10.1.1.10)")
    ]
    assert reach(first, policy("agents/closed", policyTypes=["Egress"])).within("no_network").holds
    unisolated = reach(first).within("no_network")
    assert [finding.policy for finding in unisolated.findings] == [None]
    later = cluster_policy("later", tier="Baseline", egress=[rule("Deny", {"namespaces": {}}), rule("Deny", ALL)])
    assert not reach(first, later).allows("egress", CLIENT, 80)
    assert reach(first, later).within("no_network").holds


def test_15_of_two_policies_with_one_priority_the_worse_order_counts_and_is_noted() -> None:
    accept = cluster_policy("z-accept", egress=[rule("Accept")])
    deny = cluster_policy("a-deny", egress=[rule("Deny")])
    both = reach(accept, deny)
    assert both.allows("egress", CLIENT, 80)
    verdict = both.within("no_network")
    assert not verdict.holds
    assert any("share priority 10" in note for note in verdict.notes)


def test_16_an_admin_accept_overrides_the_isolation_of_a_network_policy() -> None:
    isolated = policy("agents/closed", policyTypes=["Egress"])
    accept = cluster_policy("accept", egress=[rule("Accept")])
    assert reach(isolated, accept).allows("egress", CLIENT, 80)
    verdict = reach(isolated, accept).within("no_network")
    assert [finding.policy for finding in verdict.findings] == ["ClusterNetworkPolicy accept"]


def test_16_the_isolation_of_a_network_policy_hides_the_baseline_tier() -> None:
    baseline = baseline_policy(egress=[rule("Allow")])
    isolated = policy("agents/closed", policyTypes=["Egress"])
    assert not reach(isolated, baseline).allows("egress", CLIENT, 80)
    allowed = policy("agents/open", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": {}}]}])
    deny = baseline_policy(egress=[rule("Deny")])
    assert reach(allowed, deny).allows("egress", CLIENT, 80)
    assert not reach(deny).allows("egress", CLIENT, 80)


def test_16_an_admin_deny_beats_a_network_policy() -> None:
    allowed = policy("agents/open", policyTypes=["Egress"], egress=[{}])
    deny = admin_policy("deny", egress=[rule("Deny")])
    assert not reach(allowed, deny).allows("egress", CLIENT, 80)
    assert reach(allowed, deny).allows("egress", OUTSIDE, 80)


def test_17_networks_match_the_addresses_of_pods() -> None:
    deny = cluster_policy("deny", egress=[rule("Deny", {"networks": ["0.0.0.0/0"]})])
    assert not reach(deny).allows("egress", CLIENT, 80)
    assert not reach(deny).allows("egress", OUTSIDE, 80)
    assert reach(deny).allows("egress", {"ip": "2001:db8::1"}, 80)


@pytest.mark.parametrize(
    ("name", "allowed"),
    [("example.com", False), ("www.example.com", True), ("a.b.example.com", True), ("wwwexample.com", False)],
)
def test_17_a_star_in_domain_names_is_one_or_more_labels(name: str, allowed: bool) -> None:
    accept = cluster_policy("accept", egress=[rule("Accept", {"domainNames": ["*.example.com"]})])
    isolated = policy("agents/closed", policyTypes=["Egress"])
    assert reach(isolated, accept).allows("egress", {"fqdn": name}, 443) is allowed


def test_17_an_unknown_peer_field_fails_closed_and_the_verdict_does_not_hold() -> None:
    isolated = policy("agents/closed", policyTypes=["Egress"])
    accept = cluster_policy("accept", egress=[rule("Accept", {"serviceAccounts": {}})])
    assert not reach(isolated, accept).allows("egress", CLIENT, 80)
    verdict = reach(isolated, accept).within("no_network")
    assert not verdict.holds
    assert verdict.findings == ()
    assert [finding.reason for finding in verdict.undecided] == [
        "unknown peer field spec.egress[0].to[0].serviceAccounts"
    ]
    deny = cluster_policy("deny", egress=[rule("Deny", {"serviceAccounts": {}})])
    assert not reach(deny).allows("egress", CLIENT, 80)
    assert not reach(deny).within("no_network").holds, "a deny that is not understood is not relied on"


def test_nodes_are_selected_by_their_labels() -> None:
    deny = cluster_policy("deny", egress=[rule("Deny", {"nodes": labelled(pool="edge")})])
    assert not reach(deny).allows("egress", {"node": "node-1"}, 22)
    assert reach(cluster_policy("deny", egress=[rule("Deny", {"nodes": labelled(pool="x")})])).allows(
        "egress", {"ip": "172.18.0.2"}, 22
    )


@pytest.mark.parametrize(
    ("protocols", "allowed"),
    [
        ([{"tcp": {"destinationPort": {"number": 80}}}], {("TCP", 80)}),
        ([{"udp": {"destinationPort": {"range": {"start": 80, "end": 81}}}}], {("UDP", 80), ("UDP", 81)}),
        ([{"sctp": {}}], {("SCTP", 80), ("SCTP", 81), ("SCTP", 8080)}),
        ([{"destinationNamedPort": "http"}], {("TCP", 8080)}),
    ],
)
def test_protocols_of_a_cluster_network_policy(protocols: list[Body], allowed: set[tuple[str, int]]) -> None:
    isolated = policy("agents/closed", policyTypes=["Egress"])
    accept = cluster_policy("accept", egress=[rule("Accept", protocols=protocols)])
    asked = [(protocol, port) for protocol in ("TCP", "UDP", "SCTP") for port in (80, 81, 8080)]
    mine = reach(isolated, accept)
    assert {(protocol, port) for protocol, port in asked if mine.allows("egress", CLIENT, port, protocol)} == allowed


def test_an_older_port_number_without_a_protocol_is_tcps() -> None:
    deny = admin_policy("deny", egress=[rule("Deny", ports=[{"portNumber": {"port": 80}}])])
    assert not reach(deny).allows("egress", CLIENT, 80, "TCP")
    assert reach(deny).allows("egress", CLIENT, 80, "UDP")


@pytest.mark.parametrize(
    ("form", "keys", "denied"),
    [
        ("sameLabels", ["zone"], True),
        ("sameLabels", ["team"], False),
        ("sameLabels", ["zone", "team"], False),
        ("sameLabels", [], False),
        ("notSameLabels", ["team"], True),
        ("notSameLabels", ["zone"], False),
        ("notSameLabels", ["zone", "team"], True),
        ("notSameLabels", ["absent"], False),
    ],
)
def test_peers_relative_to_the_labels_of_the_own_namespace(form: str, keys: list[str], denied: bool) -> None:
    deny = admin_policy("deny", egress=[rule("Deny", {"namespaces": {form: keys}})])
    assert reach(deny).allows("egress", CLIENT, 80) is not denied


def test_a_subject_in_a_namespace_of_unknown_labels_counts_for_what_is_worse() -> None:
    unknown = [pod("elsewhere/sandbox", {}, ips=["10.1.9.9"]), *WORLD]
    subject = {"namespaces": labelled(team="ai")}
    isolated = policy("elsewhere/closed", policyTypes=["Egress"])
    accept = Reach.from_objects(
        [*unknown, isolated, cluster_policy("p", subject=subject, egress=[rule("Accept")])], "elsewhere/sandbox"
    )
    assert accept.allows("egress", CLIENT, 80)
    assert accept.within("no_network").undecided[0].reason == "the labels of the pod's namespace are not known"
    deny = Reach.from_objects(
        [*unknown, cluster_policy("p", subject=subject, egress=[rule("Deny")])], "elsewhere/sandbox"
    )
    assert deny.allows("egress", CLIENT, 80)


def test_denies_of_a_higher_tier_are_taken_out_of_what_a_network_policy_allows_exactly() -> None:
    private = ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12"]
    deny = cluster_policy("deny", egress=[rule("Deny", {"networks": private})])
    world = policy("agents/world", policyTypes=["Egress"], egress=[{"to": [block("0.0.0.0/0")]}])
    verdict = reach(deny, world).within("public_internet")
    assert [finding.address for finding in verdict.findings] == ["192.168.0.1"]
    deny["spec"]["egress"][0]["to"][0]["networks"].append("192.168.0.0/16")
    assert reach(deny, world).within("public_internet").holds


def test_a_namespace_that_may_be_made_later_is_not_covered_by_a_deny_of_those_that_are_known() -> None:
    known = {"matchExpressions": [{"key": "team", "operator": "In", "values": ["ai", "web"]}]}
    deny = cluster_policy("deny", egress=[rule("Deny", {"namespaces": known})])
    pods = policy("agents/pods", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": {}}]}])
    verdict = reach(deny, pods).within("no_network")
    assert not verdict.holds
    assert "namespace-0" in verdict.findings[0].example
    deny["spec"]["egress"][0]["to"] = [{"namespaces": {}}]
    assert reach(deny, pods).within("no_network").holds
