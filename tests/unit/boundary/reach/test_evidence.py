# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verdict and a description tell a person, and pods that do not exist yet."""

from __future__ import annotations

import json

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import NamedPort
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    block,
    cluster_policy,
    labelled,
    named,
    namespace,
    node,
    pod,
    policy,
)

DNS = pod("kube-system/coredns-1", {"k8s-app": "kube-dns"}, ips=["10.1.9.53"])
WORLD = [namespace("agents"), namespace("kube-system"), DNS, node("node-1", "172.18.0.2")]


def test_a_finding_names_policy_rule_peer_port_and_address() -> None:
    wide = policy(
        "agents/default",
        policyTypes=["Egress"],
        egress=[
            {"to": [{"namespaceSelector": named("kube-system")}], "ports": [{"port": 53, "protocol": "UDP"}]},
            {"to": [block("0.0.0.0/0", "10.0.0.0/8")], "ports": [{"port": 8000, "endPort": 8010}]},
        ],
    )
    verdict = Reach.for_labels([*WORLD, wide], "agents", {"app": "x"}).within("dns_only")
    assert not verdict.holds
    first, second = verdict.findings
    assert (second.policy, second.rule, second.direction) == ("NetworkPolicy agents/default", 1, "egress")
    assert (second.address, second.protocol, second.port, second.reason) == ("198.51.100.77", "TCP", 8000, None)
    assert second.ports == "TCP 8000-8010"
    assert first.rule == 0
    assert first.peers == "pods in namespace kube-system labelled k8s-app=not kube-dns"
    assert first.example == "a pod in namespace kube-system"
    assert (
        "NetworkPolicy agents/default, egress rule 1: to addresses outside and nodes and other entities at 0.0.0.0/0 "
        "except 10.0.0.0/8 on TCP 8000-8010, for example 198.51.100.77 on TCP 8000"
    ) in str(verdict)
    assert json.loads(json.dumps(verdict.as_dict()))["findings"][1]["rule"] == 1


def test_a_pod_that_exists_is_the_example_of_a_finding() -> None:
    wide = policy("agents/p", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": named("kube-system")}]}])
    finding = Reach.for_labels([*WORLD, wide], "agents", {}).within("no_network").findings[0]
    assert finding.example == "pod kube-system/coredns-1 (10.1.9.53)"
    assert finding.address == "10.1.9.53"


def test_a_selector_that_nothing_carries_yet_is_excess_all_the_same() -> None:
    later = policy(
        "agents/p", policyTypes=["Egress"],
        egress=[{"to": [{"namespaceSelector": labelled(team="later"), "podSelector": labelled(app="db")}]}],
    )  # fmt: skip
    finding = Reach.for_labels([*WORLD, later], "agents", {}).within("dns_only").findings[0]
    assert finding.example == "a pod in namespace namespace-0 labelled app=db"


def test_a_selector_that_no_namespace_can_carry_is_none() -> None:
    never = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system", "team": "x"}}
    nobody = policy("agents/p", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": never}]}])
    assert Reach.for_labels([*WORLD, nobody], "agents", {}).within("no_network").holds
    unknown = [body for body in WORLD if body["metadata"]["name"] != "kube-system"]
    assert not Reach.for_labels([*unknown, nobody], "agents", {}).within("no_network").holds


def test_a_pod_to_be_created_is_judged_by_its_labels_and_named_ports() -> None:
    closing = policy(
        "agents/p", podSelector=labelled(app="x"), policyTypes=["Ingress", "Egress"],
        ingress=[{"from": [{"podSelector": {}}], "ports": [{"port": "agent"}]}],
    )  # fmt: skip
    peer = pod("agents/peer", {}, ips=["10.1.0.2"])
    reach = Reach.for_labels([*WORLD, peer, closing], "agents", {"app": "x"}, [NamedPort("agent", "TCP", 1024)])
    assert reach.allows("ingress", {"pod": "agents/peer"}, 1024)
    assert not reach.allows("ingress", {"pod": "agents/peer"}, 1025)
    assert not reach.allows("ingress", {"pod": "kube-system/coredns-1"}, 1024)
    assert reach.within("no_network").holds
    assert reach.within("no_network").subject == "agents/(to be created)"
    assert not Reach.for_labels([closing], "agents", {"app": "y"}).within("no_network").holds


def test_a_port_by_name_is_undecided_because_later_pods_may_call_anything_so() -> None:
    dns = {"to": [{"namespaceSelector": named("kube-system")}], "ports": [{"port": "dns"}]}
    by_name = policy("agents/p", policyTypes=["Egress"], egress=[dns])
    verdict = Reach.for_labels([*WORLD, by_name], "agents", {}).within("no_network")
    assert not verdict.holds
    assert verdict.findings == ()
    assert verdict.undecided[0].reason == "named port 'dns' is whatever the peer calls so"
    assert "undecided: named port" in str(verdict)


def test_a_description_reads_rule_by_rule() -> None:
    objects = [
        *WORLD,
        policy(
            "agents/p", policyTypes=["Egress"],
            egress=[{"to": [block("192.0.2.0/24", "192.0.2.7/32")], "ports": [{"port": 443}, {"port": "web"}]}],
        ),
        cluster_policy("c", egress=[{"action": "Deny", "to": [{"networks": ["169.254.0.0/16"]}]}]),
    ]  # fmt: skip
    text = Reach.for_labels(objects, "agents", {}).describe()
    block_ = "192.0.2.0/24 except 192.0.2.7/32"
    name = "named port 'web' is whatever the peer calls so"
    assert text.splitlines() == [
        "egress of agents/(to be created): closed but for what is allowed",
        "  the admin tier (the first that matches decides): ClusterNetworkPolicy c",
        "    ClusterNetworkPolicy c rule 0 denies traffic to anything at 169.254.0.0/16 on every port and protocol",
        "  NetworkPolicy (they add up, the rest is closed): NetworkPolicy agents/p",
        f"    NetworkPolicy agents/p rule 0 allows traffic to anything at {block_} on TCP 443",
        f"    NetworkPolicy agents/p rule 0 allows traffic to pods at {block_} on TCP perhaps: {name}",
        "ingress of agents/(to be created): open but for what is denied",
    ]


def test_one_world_serves_many_pods_and_engine_questions() -> None:
    world = World.read(WORLD)
    assert Reach.from_objects(world, "kube-system/coredns-1").world is world
    assert Reach.from_objects(world, "kube-system/coredns-1").within("allow_all").holds
