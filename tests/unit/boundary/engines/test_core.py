# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What implementers of NetworkPolicy get wrong, one test a line, with values."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, connects
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    block,
    labelled,
    named,
    namespace,
    node,
    pod,
    policy,
)

WORLD = [
    namespace("agents", team="ai"),
    namespace("web", team="web"),
    pod("agents/sandbox", {"app": "sandbox"}, ips=["10.1.0.10"], ports=[("agent", 1024, "TCP")], node="node-1"),
    pod("agents/peer", {"app": "peer"}, ips=["10.1.0.11", "fd00::11"], ports=[("http", 8081, "TCP")], node="node-2"),
    pod("web/client", {"app": "peer"}, ips=["10.1.1.10"], ports=[("http", 8082, "TCP"), ("dns", 53, "UDP")]),
    pod("web/plain", {}, ips=["10.1.1.11"]),
    node("node-1", "172.18.0.2"),
    node("node-2", "172.18.0.3"),
]
OUTSIDE = {"ip": "203.0.113.9"}
PEER, CLIENT, PLAIN = {"pod": "agents/peer"}, {"pod": "web/client"}, {"pod": "web/plain"}


def reach(*policies: Body, pod_name: str = "agents/sandbox") -> Reach:
    return Reach.from_objects([*WORLD, *policies], pod=pod_name)


def egress(*rules: t.Any, **spec: t.Any) -> Body:
    return policy("agents/egress", policyTypes=["Egress"], egress=list(rules), **spec)


def ingress(*rules: t.Any, **spec: t.Any) -> Body:
    return policy("agents/ingress", policyTypes=["Ingress"], ingress=list(rules), **spec)


def test_1_policy_types_left_out_with_egress_rules_isolate_both_directions() -> None:
    both = reach(policy("agents/p", egress=[{"to": [block("203.0.113.0/24")]}]))
    assert both.allows("egress", OUTSIDE, 443)
    assert not both.allows("egress", PEER, 443)
    assert not both.allows("ingress", PEER, 443)


@pytest.mark.parametrize("types", [None, []])
def test_1_policy_types_left_out_or_empty_with_an_empty_egress_leave_egress_open(types: list[str] | None) -> None:
    open_ = reach(policy("agents/p", policyTypes=types, egress=[]))
    assert open_.allows("egress", OUTSIDE, 443)
    assert not open_.allows("ingress", OUTSIDE, 443)


def test_2_a_direction_that_policy_types_do_not_name_is_open_and_its_rules_mean_nothing() -> None:
    only_ingress = reach(policy("agents/p", policyTypes=["Ingress"], egress=[{"to": [block("192.0.2.0/24")]}]))
    assert only_ingress.allows("egress", OUTSIDE, 443)
    only_egress = reach(policy("agents/p", policyTypes=["Egress"], ingress=[{"from": [{"podSelector": {}}]}]))
    assert only_egress.allows("ingress", OUTSIDE, 443)
    assert not only_egress.allows("egress", OUTSIDE, 443)


def test_3_an_empty_list_of_rules_denies_all_and_an_empty_rule_allows_all() -> None:
    assert not reach(ingress()).allows("ingress", PEER, 1024)
    assert reach(ingress({})).allows("ingress", OUTSIDE, 1024, "SCTP")


@pytest.mark.parametrize("rule", [{"from": [], "ports": []}, {"from": None}, {"ports": None}, {"from": []}])
def test_3_empty_peers_and_ports_are_unrestricted(rule: Body) -> None:
    assert reach(ingress(rule)).allows("ingress", OUTSIDE, 1024, "UDP")


def test_4_one_forgotten_allow_all_voids_the_boundary_and_is_named() -> None:
    closed = policy("agents/closed", policyTypes=["Egress"], egress=[])
    forgotten = policy("agents/forgotten", policyTypes=["Egress"], egress=[{}])
    both = reach(closed, forgotten)
    assert both.allows("egress", OUTSIDE, 443)
    verdict = both.within("no_network")
    assert not verdict.holds
    assert [(finding.policy, finding.rule) for finding in verdict.findings] == [("NetworkPolicy agents/forgotten", 0)]
    assert reach(closed).within("no_network").holds


def test_5_a_pod_selector_alone_means_the_namespace_of_the_policy() -> None:
    own = reach(ingress({"from": [{"podSelector": labelled(app="peer")}]}))
    assert own.allows("ingress", PEER, 1024)
    assert not own.allows("ingress", CLIENT, 1024)


def test_5_selectors_in_one_item_are_anded_and_items_are_ored() -> None:
    one = {"namespaceSelector": labelled(team="web"), "podSelector": labelled(app="peer")}
    together = reach(ingress({"from": [one]}))
    assert together.allows("ingress", CLIENT, 1024)
    assert not together.allows("ingress", PLAIN, 1024)
    assert not together.allows("ingress", PEER, 1024)
    apart = reach(
        ingress({"from": [{"namespaceSelector": labelled(team="web")}, {"podSelector": labelled(app="peer")}]})
    )
    assert apart.allows("ingress", PLAIN, 1024)
    assert apart.allows("ingress", PEER, 1024)


def test_6_an_empty_namespace_selector_is_every_pod_and_no_outside_address() -> None:
    everywhere = reach(ingress({"from": [{"namespaceSelector": {}}]}))
    assert everywhere.allows("ingress", CLIENT, 1024)
    assert not everywhere.allows("ingress", OUTSIDE, 1024)
    assert not everywhere.allows("ingress", {"node": "node-2"}, 1024)


@pytest.mark.parametrize(
    ("expression", "matched", "missed"),
    [
        ({"key": "app", "operator": "NotIn", "values": ["peer"]}, PLAIN, CLIENT),
        ({"key": "app", "operator": "DoesNotExist"}, PLAIN, CLIENT),
        ({"key": "app", "operator": "Exists"}, CLIENT, PLAIN),
        ({"key": "app", "operator": "In", "values": ["peer", "x"]}, CLIENT, PLAIN),
    ],
)
def test_7_not_in_and_does_not_exist_match_where_the_key_is_absent(
    expression: Body, matched: Body, missed: Body
) -> None:
    peer = {"namespaceSelector": {}, "podSelector": {"matchExpressions": [expression]}}
    some = reach(ingress({"from": [peer]}))
    assert some.allows("ingress", matched, 1024)
    assert not some.allows("ingress", missed, 1024)


def test_8_an_exception_is_local_to_its_block_and_no_deny() -> None:
    two = reach(egress({"to": [block("203.0.113.0/24", "203.0.113.9/32"), block("203.0.113.8/31")]}))
    assert two.allows("egress", OUTSIDE, 443)
    one = reach(egress({"to": [block("203.0.113.0/24", "203.0.113.9/32")]}))
    assert not one.allows("egress", OUTSIDE, 443)
    assert one.allows("egress", {"ip": "203.0.113.10"}, 443)


def test_9_a_block_matches_pods_by_their_address_under_engine_core() -> None:
    pods_too = reach(egress({"to": [block("10.1.0.0/16", "10.1.1.11/32")]}))
    assert pods_too.allows("egress", CLIENT, 443)
    assert not pods_too.allows("egress", PLAIN, 443)


def test_10_ipv4_everything_holds_no_ipv6_and_a_pod_may_have_both() -> None:
    four = reach(egress({"to": [block("0.0.0.0/0")]}))
    assert not four.allows("egress", {"ip": "2001:db8::1"}, 443)
    assert not four.allows("egress", {"ip": "fd00::11"}, 443), "the second address of agents/peer"
    assert four.allows("egress", PEER, 443), "over the first address"
    six = reach(egress({"to": [block("fd00::/8")]}))
    assert six.allows("egress", PEER, 443), "over the second address"
    assert not six.allows("egress", {"ip": "10.1.0.11"}, 443)


def test_11_the_protocol_is_tcp_when_left_out_and_sctp_is_never_tcp() -> None:
    dns = reach(egress({"ports": [{"port": 53}]}))
    assert dns.allows("egress", OUTSIDE, 53, "TCP")
    assert not dns.allows("egress", OUTSIDE, 53, "UDP")
    sctp = reach(egress({"ports": [{"protocol": "SCTP", "port": 53}]}))
    assert sctp.allows("egress", OUTSIDE, 53, "SCTP")
    assert not sctp.allows("egress", OUTSIDE, 53, "TCP")


def test_11_an_end_port_is_inclusive() -> None:
    span = reach(egress({"ports": [{"port": 8000, "endPort": 8002}]}))
    assert [port for port in range(7998, 8006) if span.allows("egress", OUTSIDE, port)] == [8000, 8001, 8002]


def test_12_a_port_name_means_the_destination_pod_and_nothing_outside() -> None:
    by_name = reach(egress({"ports": [{"port": "http"}]}))
    assert by_name.allows("egress", PEER, 8081)
    assert not by_name.allows("egress", PEER, 8082)
    assert by_name.allows("egress", CLIENT, 8082)
    assert not by_name.allows("egress", OUTSIDE, 8081)
    assert not by_name.allows("egress", PLAIN, 8081)
    assert not reach(egress({"ports": [{"port": "dns"}]})).allows("egress", CLIENT, 53, "UDP"), "the name is UDP's"
    own = reach(ingress({"ports": [{"port": "agent"}]}))
    assert own.allows("ingress", OUTSIDE, 1024)
    assert not own.allows("ingress", OUTSIDE, 1025)


def test_12_an_ingress_port_name_of_a_pod_to_be_created_counts_as_open() -> None:
    by_name = ingress({"from": [{"podSelector": labelled(app="x")}], "ports": [{"port": "agent"}]})
    later = Reach.for_labels([*WORLD, by_name], "agents", {"app": "sandbox"})
    verdict = later.ingress_verdict(1024, allow_from=[])
    assert not verdict.holds
    assert [finding.reason for finding in verdict.undecided] == [
        "the pod's ports are not known, so port 'agent' may be any"
    ]
    assert Reach.for_labels([*WORLD, by_name], "agents", {}, ports=()).ingress_verdict(1024, allow_from=[]).holds


def test_13_a_port_without_peers_is_that_port_all_over_the_world() -> None:
    dns = reach(egress({"ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]}))
    assert dns.allows("egress", {"external": True}, 53, "UDP")
    verdict = dns.within("dns_only")
    assert not verdict.holds
    assert verdict.findings[0].address == "198.51.100.77"
    assert (verdict.findings[0].protocol, verdict.findings[0].port) == ("TCP", 53)


def test_14_the_local_node_reaches_its_pods_and_another_node_does_not() -> None:
    closed = reach(ingress())
    assert closed.allows("ingress", {"node": "node-1"}, 1024)
    assert closed.allows("ingress", {"ip": "172.18.0.2"}, 1024)
    assert not closed.allows("ingress", {"node": "node-2"}, 1024)
    assert closed.ingress_verdict(1024, allow_from=[]).holds, "what no policy can close is no finding"


def test_14_a_pod_on_the_host_network_is_not_isolated_and_the_verdict_says_so() -> None:
    on_host = pod("agents/on-host", {}, ips=["172.18.0.2"], host_network=True, node="node-1")
    open_ = Reach.from_objects([*WORLD, on_host, egress()], pod="agents/on-host")
    verdict = open_.within("no_network")
    assert not verdict.holds
    assert verdict.findings[0].policy is None
    assert "node's network" in verdict.notes[0]


def test_a_connection_needs_both_ends() -> None:
    out = egress({"to": [{"podSelector": labelled(app="peer")}]}, podSelector=labelled(app="sandbox"))
    closed = ingress(podSelector=labelled(app="peer"))
    sandbox = {"pod": "agents/sandbox"}
    assert connects([*WORLD, out], sandbox, PEER, 80)
    assert not connects([*WORLD, out, closed], sandbox, PEER, 80)
    assert not connects([*WORLD, out], sandbox, CLIENT, 80)
    assert connects([*WORLD, closed], OUTSIDE, sandbox, 80)


def test_a_pod_reaches_itself() -> None:
    assert reach(egress(), ingress()).allows("egress", {"pod": "agents/sandbox"}, 1024)


def test_a_pod_without_an_address_counts_as_reached_by_a_block() -> None:
    world = [*WORLD, pod("web/starting", {"app": "new"}), egress({"to": [block("10.9.0.0/16")]})]
    assert Reach.from_objects(world, "agents/sandbox").allows("egress", {"pod": "web/starting"}, 80)


def test_a_null_selector_is_an_empty_one() -> None:
    assert not reach(policy("agents/p", podSelector=None, policyTypes=["Egress"])).allows("egress", PEER, 1)


def test_a_policy_of_another_namespace_selects_nothing_here() -> None:
    other = policy("web/p", policyTypes=["Egress", "Ingress"])
    assert reach(other).allows("egress", PEER, 1)
    assert not reach(other, pod_name="web/plain").allows("egress", PEER, 1)


def test_the_name_label_of_a_namespace_is_always_there() -> None:
    by_name = reach(ingress({"from": [{"namespaceSelector": named("web")}]}))
    assert by_name.allows("ingress", PLAIN, 1024)
    assert not by_name.allows("ingress", PEER, 1024)
