# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What implementers of Cilium's semantics get wrong, each point with values."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import (
    DNS,
    FOREIGN,
    HOST,
    OTHER_NODE,
    PEER,
    WORLD,
    Body,
    ccnp,
    cnp,
    egress,
    ingress,
    labels,
    netpol,
    node,
    pod,
    ports,
    reach,
)

NAMESPACE = "io.kubernetes.pod.namespace"
ANYWHERE = [{"toEntities": ["all"]}]
CLOSED = cnp("close", egress=[{}], ingress=[{}])


def peers_of(*rules: Body, clusterwide: bool = False) -> dict[str, bool]:
    """Whom egress rules reach on TCP 443."""
    allowed = egress((ccnp if clusterwide else cnp)(egress=list(rules)))
    return {
        "peer": allowed(PEER),
        "foreign": allowed(FOREIGN),
        "dns": allowed(DNS),
        "world": allowed(WORLD),
        "host": allowed(HOST),
        "node": allowed(OTHER_NODE),
    }


def who(**true: bool) -> dict[str, bool]:
    return {name: true.get(name, False) for name in ("peer", "foreign", "dns", "world", "host", "node")}


class TestEmptyRulesAndLists:
    """Line 18 and 19."""

    def test_an_empty_item_denies_everything_where_kubernetes_would_allow_it(self) -> None:
        assert peers_of({}) == who()
        assert egress(netpol(policyTypes=["Egress"], egress=[{}]))(WORLD)

    @pytest.mark.parametrize("empty", [[], None])
    def test_an_empty_list_of_rules_does_nothing(self, empty: list[t.Any] | None) -> None:
        assert egress(cnp(egress=empty, ingress=[{}]))(WORLD)

    def test_a_missing_side_of_the_policy_stays_open(self) -> None:
        assert egress(cnp(ingress=[{}]))(WORLD)
        assert not ingress(cnp(ingress=[{}]))(PEER)

    def test_ports_without_peers_are_about_everyone(self) -> None:
        everyone = who(peer=True, foreign=True, dns=True, world=True, host=True, node=True)
        assert peers_of({"toPorts": ports("443/TCP")}) == everyone

    @pytest.mark.parametrize("key", ["toEndpoints", "toCIDR", "toCIDRSet", "toEntities", "toNodes"])
    def test_an_empty_list_of_peers_selects_nobody_with_ports_too(self, key: str) -> None:
        assert peers_of({key: [], "toPorts": ports("443/TCP")}) == who()
        assert peers_of({key: []}) == who()

    def test_an_empty_list_of_names_is_as_if_it_were_not_there(self) -> None:
        assert peers_of({"toFQDNs": [], "toPorts": ports("443/TCP")})["world"]

    def test_an_item_of_ports_without_ports_is_about_nothing(self) -> None:
        assert peers_of({"toEntities": ["all"], "toPorts": [{"ports": []}]}) == who()
        assert peers_of({"toEntities": ["all"], "toPorts": [{}]}) == who()

    def test_an_empty_list_of_ports_is_every_port(self) -> None:
        assert peers_of({"toEntities": ["world"], "toPorts": []}) == who(world=True)


class TestSelectors:
    """Line 20 and 21."""

    def test_the_empty_selector_is_the_own_namespace_in_a_namespaced_policy(self) -> None:
        assert peers_of({"toEndpoints": [{}]}) == who(peer=True)
        assert peers_of({"toEndpoints": [{"matchLabels": {}}]}) == who(peer=True)

    def test_the_empty_selector_is_every_pod_in_a_clusterwide_policy(self) -> None:
        assert peers_of({"toEndpoints": [{}]}, clusterwide=True) == who(peer=True, foreign=True, dns=True)

    @pytest.mark.parametrize("prefix", ["", "k8s:", "any:"])
    def test_a_namespace_label_of_any_prefix_lifts_the_own_namespace(self, prefix: str) -> None:
        chosen = {"matchLabels": {prefix + NAMESPACE: "other"}}
        assert peers_of({"toEndpoints": [chosen]}) == who(foreign=True)

    @pytest.mark.parametrize(("operator", "expected"), [("Exists", ("peer", "foreign", "dns")), ("DoesNotExist", ())])
    def test_any_word_about_the_namespace_lifts_it(self, operator: str, expected: tuple[str, ...]) -> None:
        chosen = {"matchExpressions": [{"key": NAMESPACE, "operator": operator}]}
        assert peers_of({"toEndpoints": [chosen]}) == who(**dict.fromkeys(expected, True))

    def test_not_in_a_namespace_is_every_other_pod_and_neither_world_nor_host(self) -> None:
        chosen = {"matchExpressions": [{"key": NAMESPACE, "operator": "NotIn", "values": ["other"]}]}
        assert peers_of({"toEndpoints": [chosen]}) == who(peer=True, dns=True)

    @pytest.mark.parametrize("prefix", ["", "k8s:", "any:"])
    def test_a_label_of_a_namespace_lifts_it_too(self, prefix: str) -> None:
        chosen = {"matchLabels": {prefix + "io.cilium.k8s.namespace.labels.team": "web"}}
        assert peers_of({"toEndpoints": [chosen]}) == who(foreign=True)

    def test_a_foreign_namespace_of_the_endpoint_selector_is_overwritten(self) -> None:
        policy = cnp(selector={"matchLabels": {"app": "sandbox", "k8s:" + NAMESPACE: "other"}}, egress=[{}])
        assert not egress(policy)(WORLD)
        assert egress(policy, of="other/sandbox")(WORLD)

    def test_without_the_prefix_it_is_a_second_demand_that_nothing_meets(self) -> None:
        policy = cnp(selector={"matchLabels": {"app": "sandbox", NAMESPACE: "other"}}, egress=[{}])
        assert egress(policy)(WORLD)
        assert egress(policy, of="other/sandbox")(WORLD)

    def test_a_clusterwide_policy_selects_in_every_namespace(self) -> None:
        assert not egress(ccnp(egress=[{}]), of="other/sandbox")(WORLD)
        chosen = {"matchLabels": {NAMESPACE: "other"}}
        assert egress(ccnp(selector=chosen, egress=[{}]))(WORLD)
        assert not egress(ccnp(selector=chosen, egress=[{}]), of="other/sandbox")(WORLD)

    def test_a_reserved_key_takes_the_selector_out_of_every_scope(self) -> None:
        assert peers_of({"toEndpoints": [{"matchLabels": {"reserved:host": ""}}]}) == who(host=True)
        assert peers_of({"toEndpoints": [{"matchLabels": {"reserved:world": ""}}]}) == who(world=True)
        absent = {"matchExpressions": [{"key": "reserved:world", "operator": "DoesNotExist"}]}
        assert peers_of({"toEndpoints": [absent]}) == who(peer=True, foreign=True, dns=True, host=True, node=True)

    def test_a_service_account_is_a_label(self) -> None:
        chosen = {"matchLabels": {"io.cilium.k8s.policy.serviceaccount": "worker"}}
        assert peers_of({"toEndpoints": [chosen]}) == who(peer=True)
        assert peers_of({"toEndpoints": [chosen]}, clusterwide=True) == who(peer=True)

    def test_labels_that_are_no_part_of_an_identity_select_nothing(self) -> None:
        generated = {"matchLabels": {"pod-template-hash": "abc"}}
        carrying = pod("agents/hashed", "10.1.0.20", labels={"pod-template-hash": "abc"})
        closed = reach(cnp(selector=generated, egress=[{}]), carrying, of="agents/hashed")
        assert closed.allows("egress", WORLD, 443)
        allowing = reach(cnp(egress=[{"toEndpoints": [generated]}]), carrying)
        assert not allowing.allows("egress", {"pod": "agents/hashed"}, 443)
        assert not allowing.within("no_network").holds

    def test_another_clusters_name_selects_nothing_here_but_a_verdict_counts_it(self) -> None:
        found = reach(cnp(egress=[{"toEndpoints": labels(**{"io.cilium.k8s.policy.cluster": "elsewhere"})}]))
        assert not found.allows("egress", PEER, 443)
        verdict = found.within("no_network")
        assert not verdict.holds
        assert "name is not known" in str(verdict.undecided[0].reason)

    def test_hosts_of_the_node_network_are_nodes_whatever_their_labels(self) -> None:
        hosted = {"pod": "kube-system/hosted"}
        assert not egress(ccnp(egress=[{"toEndpoints": labels(app="peer")}]))(hosted)
        assert egress(cnp(egress=[{"toEntities": ["remote-node"]}]))(hosted)


class TestAddresses:
    """Line 22."""

    EVERYWHERE: t.ClassVar[list[Body]] = [{"toCIDR": ["0.0.0.0/0", "::/0"]}]

    def test_cidrs_select_neither_pods_nor_nodes(self) -> None:
        assert peers_of(*self.EVERYWHERE) == who(world=True)
        assert peers_of({"toCIDRSet": [{"cidr": "10.0.0.0/8"}, {"cidr": "192.168.0.0/16"}]}) == who()

    def test_an_ip_block_of_a_network_policy_selects_neither(self) -> None:
        allowed = egress(netpol(policyTypes=["Egress"], egress=[{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]))
        assert [allowed(peer) for peer in (PEER, HOST, OTHER_NODE, WORLD)] == [False, False, False, True]

    def test_an_ipv4_block_is_no_ipv6(self) -> None:
        allowed = egress(cnp(egress=[{"toCIDR": ["0.0.0.0/0"]}]))
        assert not allowed({"ip": "2001:db8::1"})

    def test_world_excludes_the_cluster_and_holds_an_external_api_server(self) -> None:
        allowed = egress(cnp(egress=[{"toEntities": ["world"]}]))
        assert allowed({"entity": "kube-apiserver-external"})
        assert not allowed({"entity": "kube-apiserver"})
        assert peers_of({"toEntities": ["world"]}) == who(world=True)

    def test_the_api_server_is_reached_by_its_entity_inside_and_outside(self) -> None:
        allowed = egress(cnp(egress=[{"toEntities": ["kube-apiserver"]}]))
        assert allowed({"entity": "kube-apiserver-external"})
        assert allowed({"entity": "kube-apiserver"})
        assert not allowed(WORLD)
        denied = egress(cnp(egress=ANYWHERE, egressDeny=[{"toEntities": ["world"]}]))
        assert not denied({"entity": "kube-apiserver-external"})

    def test_world_by_version(self) -> None:
        four = egress(cnp(egress=[{"toEntities": ["world-ipv4"]}]))
        assert four(WORLD)
        assert not four({"ip": "2001:db8::1"})
        assert not four({"entity": "world-ipv6"})
        assert four({"entity": "world-ipv4"})

    def test_an_except_takes_from_its_own_block_alone(self) -> None:
        allowed = egress(
            cnp(
                egress=[
                    {"toCIDRSet": [{"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24"]}, {"cidr": "203.0.113.9/32"}]}
                ]
            )
        )
        assert allowed(WORLD)
        assert not allowed({"ip": "203.0.113.10"})

    def test_an_address_without_a_prefix_length_is_one_address(self) -> None:
        allowed = egress(cnp(egress=[{"toCIDR": ["203.0.113.9"]}]))
        assert allowed(WORLD)
        assert not allowed({"ip": "203.0.113.10"})


class TestGroupsOfAddresses:
    GROUP: t.ClassVar[Body] = {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumCIDRGroup",
        "metadata": {"name": "lan", "labels": {"zone": "a"}},
        "spec": {"externalCIDRs": ["203.0.113.0/24", "nonsense"]},
    }

    def test_by_name_and_with_an_except(self) -> None:
        allowed = egress(
            cnp(egress=[{"toCIDRSet": [{"cidrGroupRef": "lan", "except": ["203.0.113.9/32"]}]}]), self.GROUP
        )
        assert not allowed(WORLD)
        assert allowed({"ip": "203.0.113.10"})
        assert not allowed({"ip": "198.51.100.1"})

    @pytest.mark.parametrize(
        ("expression", "inside", "outside"),
        [
            ({"key": "zone", "operator": "In", "values": ["a"]}, True, False),
            ({"key": "zone", "operator": "In", "values": ["b"]}, False, False),
            ({"key": "zone", "operator": "NotIn", "values": ["a"]}, False, True),
            ({"key": "zone", "operator": "Exists"}, True, False),
            ({"key": "zone", "operator": "DoesNotExist"}, False, True),
        ],
    )
    def test_by_label(self, expression: Body, *, inside: bool, outside: bool) -> None:
        rule = {"toCIDRSet": [{"cidrGroupSelector": {"matchExpressions": [expression]}}]}
        allowed = egress(cnp(egress=[rule]), self.GROUP)
        assert (allowed(WORLD), allowed({"ip": "198.51.100.1"})) == (inside, outside)

    def test_one_that_is_not_at_hand_counts_as_open_in_a_verdict(self) -> None:
        found = reach(cnp(egress=[{"toCIDRSet": [{"cidrGroupRef": "unread"}]}]))
        assert not found.allows("egress", WORLD, 443)
        assert "unread" in str(found.within("no_network").undecided[0].reason)


class TestDeny:
    """Line 23."""

    def test_it_wins_over_every_allow_wherever_it_stands(self) -> None:
        deny = ccnp(egressDeny=[{"toEntities": ["world"]}], enableDefaultDeny={"egress": False})
        for allow in (cnp(egress=ANYWHERE), netpol(policyTypes=["Egress"], egress=[{}])):
            assert not egress(allow, deny)(WORLD)
            assert egress(allow, deny)(PEER)

    def test_on_every_port_it_wins_over_an_allow_on_one(self) -> None:
        policy = cnp(egress=[{"toPorts": ports("443/TCP")}], egressDeny=[{"toEntities": ["world"]}])
        assert not egress(policy)(WORLD)

    def test_alone_it_default_denies_the_rest(self) -> None:
        allowed = egress(cnp(egressDeny=[{"toCIDR": ["203.0.113.0/24"]}]))
        assert not allowed({"ip": "198.51.100.1"})
        assert not allowed(PEER)

    def test_an_except_of_it_is_no_allow(self) -> None:
        rule = {"toCIDRSet": [{"cidr": "203.0.113.0/24", "except": ["203.0.113.9/32"]}]}
        assert not egress(cnp(egressDeny=[rule]))(WORLD)
        assert egress(cnp(egressDeny=[rule], egress=ANYWHERE))(WORLD)

    def test_without_default_deny_it_takes_away_what_it_names(self) -> None:
        policy = cnp(egressDeny=[{"toEntities": ["world"]}], enableDefaultDeny={"egress": False})
        assert peers_of_policy(policy) == who(peer=True, foreign=True, dns=True, host=True, node=True)

    def test_that_holds_while_no_other_policy_default_denies(self) -> None:
        policy = cnp(egressDeny=[{"toEntities": ["world"]}], enableDefaultDeny={"egress": False})
        assert not egress(policy, cnp("other", egress=[{}]))(PEER)
        assert not egress(policy, netpol(policyTypes=["Egress"]))(PEER)

    def test_default_deny_without_rules_does_nothing(self) -> None:
        assert egress(cnp(ingress=[{}], enableDefaultDeny={"egress": True}))(WORLD)


def peers_of_policy(policy: Body) -> dict[str, bool]:
    allowed = egress(policy)
    peers = {"peer": PEER, "foreign": FOREIGN, "dns": DNS, "world": WORLD, "host": HOST, "node": OTHER_NODE}
    return {name: allowed(peer) for name, peer in peers.items()}


class TestNodes:
    """Line 24."""

    def test_the_local_host_gets_in_and_other_nodes_do_not(self) -> None:
        allowed = ingress(CLOSED)
        assert allowed(HOST)
        assert allowed({"entity": "host"})
        assert not allowed(OTHER_NODE)
        assert not allowed({"entity": "remote-node"})
        assert not egress(CLOSED)(HOST)

    def test_a_deny_keeps_the_local_host_out_as_well(self) -> None:
        allowed = ingress(cnp(ingressDeny=[{"fromEntities": ["host"], "toPorts": ports("8080/TCP")}]))
        assert not allowed(HOST)
        assert allowed(HOST, 8081)

    def test_a_pod_that_is_not_placed_yet_may_be_local_to_any_node(self) -> None:
        unplaced = pod("agents/new", labels={"app": "sandbox"}, node=None)
        assert reach(CLOSED, unplaced, of="agents/new").allows("ingress", OTHER_NODE, 8080)

    def test_nodes_by_label_are_other_nodes(self) -> None:
        valid = {"status": {"conditions": [{"type": "Valid", "status": "True"}]}}
        allowed = ingress({**cnp(ingress=[{"fromNodes": [{"matchLabels": {"role": "edge"}}]}]), **valid})
        assert allowed(OTHER_NODE)
        assert not allowed({"entity": "remote-node"})
        assert not egress({**cnp(egress=[{"toNodes": [{}]}]), **valid})(HOST)

    def test_nodes_by_label_close_nothing_where_nothing_reports_that_cilium_takes_them(self) -> None:
        assert egress(cnp(egress=[{"toNodes": [{}]}]))(HOST)

    def test_a_control_plane_node_may_be_the_api_server(self) -> None:
        control = node("control", "192.168.0.3", **{"node-role.kubernetes.io/control-plane": ""})
        assert egress(cnp(egress=[{"toEntities": ["kube-apiserver"]}]), control)({"node": "control"})
        denied = cnp(egress=ANYWHERE, egressDeny=[{"toEntities": ["kube-apiserver"]}])
        assert egress(denied, control)({"node": "control"})


class TestIngressVerdict:
    def test_a_named_peer_is_fine_and_everyone_is_not(self) -> None:
        assert reach(cnp(ingress=[{"fromEndpoints": [{"matchLabels": {"app": "peer"}}]}])).ingress_verdict(8080).holds
        for rule in ({"fromEntities": ["all"]}, {"fromEntities": ["world"]}, {"toPorts": ports("8080/TCP")}):
            assert not reach(cnp(ingress=[rule])).ingress_verdict(8080).holds
        assert not reach(ccnp(ingress=[{"fromEndpoints": [{}]}])).ingress_verdict(8080).holds
        assert reach(ccnp(ingress=[{}])).ingress_verdict(8080).holds
        assert not reach().ingress_verdict(8080).holds


def test_pods_that_the_same_policies_select_have_their_own_ports_by_name() -> None:
    """What is computed for one pod serves the next only where no rule depends on the pod."""
    world = World.read(
        [
            pod("agents/first", "10.0.9.1", labels={"app": "sandbox"}, ports={"agent": 1024}),
            pod("agents/second", "10.0.9.2", labels={"app": "sandbox"}, ports={"agent": 2048}),
            cnp(ingress=[{"fromEndpoints": labels(app="client"), "toPorts": ports("agent/TCP")}]),
            pod("agents/client", "10.0.9.3", labels={"app": "client"}),
        ]
    )
    for name, number in (("first", 1024), ("second", 2048)):
        reach_of = Reach.from_objects(world, f"agents/{name}", "cilium")
        open_ports = [port for port in (1024, 2048) if reach_of.allows("ingress", {"pod": "agents/client"}, port)]
        assert open_ports == [number]
