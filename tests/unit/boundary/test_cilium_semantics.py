# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What implementers of Cilium's semantics get wrong, each point with values."""

from __future__ import annotations

import copy
import typing as t

import pytest

from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import (
    DNS,
    FOREIGN,
    HOST,
    OTHER_NODE,
    PEER,
    SANDBOX,
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
DENY_ALL = cnp("close", egress=[{}], ingress=[{}])


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
        allowed = ingress(DENY_ALL)
        assert allowed(HOST)
        assert allowed({"entity": "host"})
        assert not allowed(OTHER_NODE)
        assert not allowed({"entity": "remote-node"})
        assert not egress(DENY_ALL)(HOST)

    def test_a_deny_keeps_the_local_host_out_as_well(self) -> None:
        allowed = ingress(cnp(ingressDeny=[{"fromEntities": ["host"], "toPorts": ports("8080/TCP")}]))
        assert not allowed(HOST)
        assert allowed(HOST, 8081)

    def test_a_pod_that_is_not_placed_yet_may_be_local_to_any_node(self) -> None:
        unplaced = pod("agents/new", labels={"app": "sandbox"}, node=None)
        assert reach(DENY_ALL, unplaced, of="agents/new").allows("ingress", OTHER_NODE, 8080)

    def test_nodes_by_label_are_other_nodes(self) -> None:
        allowed = ingress(cnp(ingress=[{"fromNodes": [{"matchLabels": {"role": "edge"}}]}]))
        assert allowed(OTHER_NODE)
        assert not allowed({"entity": "remote-node"})
        assert not egress(cnp(egress=[{"toNodes": [{}]}]))(HOST)

    def test_a_control_plane_node_may_be_the_api_server(self) -> None:
        control = node("control", "192.168.0.3", **{"node-role.kubernetes.io/control-plane": ""})
        assert egress(cnp(egress=[{"toEntities": ["kube-apiserver"]}]), control)({"node": "control"})
        denied = cnp(egress=ANYWHERE, egressDeny=[{"toEntities": ["kube-apiserver"]}])
        assert egress(denied, control)({"node": "control"})


class TestPorts:
    """Line 25."""

    @pytest.mark.parametrize("protocol", ["TCP", "UDP", "SCTP"])
    @pytest.mark.parametrize("given", ["0", "0/ANY"])
    def test_port_zero_is_every_port_and_no_protocol_is_any(self, given: str, protocol: str) -> None:
        allowed = egress(cnp(egress=[{"toPorts": ports(given)}]))
        assert allowed(WORLD, 1, protocol)
        assert allowed(WORLD, 65535, protocol)

    @pytest.mark.parametrize("given", ["0", "443/TCP", "53/UDP"])
    def test_any_ports_block_icmp(self, given: str) -> None:
        assert not egress(cnp(egress=[{"toEntities": ["all"], "toPorts": ports(given)}]))(WORLD, 8, "ICMP")
        assert egress(cnp(egress=ANYWHERE))(WORLD, 8, "ICMP")

    def test_a_range_is_inclusive_and_one_that_runs_backwards_is_its_port(self) -> None:
        item = [{"ports": [{"port": "100", "endPort": 200, "protocol": "TCP"}]}]
        allowed = egress(cnp(egress=[{"toPorts": item}]))
        assert [allowed(WORLD, port) for port in (99, 100, 200, 201)] == [False, True, True, False]
        item = [{"ports": [{"port": "100", "endPort": 50, "protocol": "TCP"}]}]
        allowed = egress(cnp(egress=[{"toPorts": item}]))
        assert [allowed(WORLD, port) for port in (50, 99, 100, 101)] == [False, False, True, False]

    def test_a_leading_zero_is_octal(self) -> None:
        allowed = egress(cnp(egress=[{"toPorts": ports("010/TCP")}]))
        assert allowed(WORLD, 8)
        assert not allowed(WORLD, 10)

    def test_a_named_port_is_the_one_of_the_pod_that_is_reached(self) -> None:
        allowed = egress(ccnp(egress=[{"toPorts": ports("Agent/TCP")}]))
        assert allowed(PEER, 8081)
        assert allowed(FOREIGN, 8082)
        assert not allowed(PEER, 8082)
        assert not allowed(PEER, 8081, "UDP")
        assert not allowed(WORLD, 8081)
        inward = ingress(cnp(ingress=[{"toPorts": ports("agent")}]))
        assert inward(WORLD, 8080)
        assert not inward(PEER, 8081)

    def test_icmp_by_type_and_family(self) -> None:
        rule = {"icmps": [{"fields": [{"type": "EchoRequest"}, {"type": "EchoRequest", "family": "IPv6"}]}]}
        allowed = egress(cnp(egress=[rule]))
        assert allowed(WORLD, 8, "ICMP")
        assert not allowed(WORLD, 0, "ICMP")
        assert allowed({"ip": "2001:db8::1"}, 128, "ICMPv6")
        assert not allowed(WORLD)
        denied = egress(cnp(egress=ANYWHERE, egressDeny=[{"icmps": [{"fields": [{"type": 8}]}]}]))
        assert not denied(WORLD, 8, "ICMP")
        assert denied(WORLD)

    def test_protocols_without_ports_open_no_ports(self) -> None:
        item = [{"ports": [{"protocol": "GRE"}]}]
        assert not egress(cnp(egress=[{"toPorts": item}]))(WORLD)


class TestAboveThePort:
    """Line 26."""

    ONE_NAME: t.ClassVar[list[Body]] = ports("53/UDP", rules={"dns": [{"matchName": "pypi.org"}]})

    def test_a_limit_leaves_the_port_open(self) -> None:
        allowed = egress(cnp(egress=[{"toEntities": ["all"], "toPorts": self.ONE_NAME}]))
        assert allowed(DNS, 53, "UDP")
        assert allowed(DNS, 53, "UDP", {"dns": "PyPI.org."})
        assert not allowed(DNS, 53, "UDP", {"dns": "evil.example"})

    @pytest.mark.parametrize(
        "plain",
        [
            cnp("plain", egress=[{"toPorts": ports("53/UDP")}]),
            cnp("plain", egress=[{"toPorts": ports("53")}]),
            ccnp("plain", egress=[{"toEndpoints": [{}], "toPorts": ports("53/UDP")}]),
            netpol("plain", policyTypes=["Egress"], egress=[{"ports": [{"port": 53, "protocol": "UDP"}]}]),
            netpol("plain", policyTypes=["Egress"], egress=[{}]),
        ],
        ids=["same", "any-protocol", "clusterwide", "networkpolicy", "networkpolicy-all"],
    )
    def test_a_plain_allow_on_the_port_voids_it(self, plain: Body) -> None:
        limited = cnp(egress=[{"toEntities": ["all"], "toPorts": self.ONE_NAME}])
        for policies in ((limited, plain), (plain, limited)):
            assert egress(*policies)(DNS, 53, "UDP", {"dns": "evil.example"})

    def test_it_stays_where_the_plain_allow_is_about_others(self) -> None:
        limited = cnp(egress=[{"toEntities": ["cluster"], "toPorts": self.ONE_NAME}])
        other = cnp("plain", egress=[{"toEntities": ["world"]}, {"toPorts": ports("53/TCP")}])
        assert not egress(limited, other)(DNS, 53, "UDP", {"dns": "evil.example"})

    def test_without_default_deny_a_limit_holds_nothing_back(self) -> None:
        limited = cnp(egress=[{"toPorts": self.ONE_NAME}], enableDefaultDeny={"egress": False})
        assert egress(limited)(DNS, 53, "UDP", {"dns": "evil.example"})

    def test_server_names_limit_tls_and_not_the_address(self) -> None:
        allowed = egress(cnp(egress=[{"toPorts": ports("443/TCP", serverNames=["*.pypi.org", "pypi.org"])}]))
        assert allowed(WORLD)
        assert allowed(WORLD, l7={"sni": "files.pypi.org"})
        assert not allowed(WORLD, l7={"sni": "a.b.pypi.org"})
        assert not allowed(WORLD, l7={"sni": "evil.example"})

    @pytest.mark.parametrize(
        ("request_", "passes"),
        [
            ({"method": "GET", "path": "/public"}, True),
            ({"method": "GET", "path": "/public/x"}, False),
            ({"method": "GET", "path": "/x/public"}, False),
            ({"method": "GETS", "path": "/public"}, False),
            ({"method": "POST", "path": "/"}, False),
            ({"method": "POST", "path": "/", "headers": {"x-token": "42"}}, True),
            ({"method": "POST", "path": "/", "headers": {"X-Token": "43"}}, False),
            ({"method": "PUT", "path": "/", "headers": {"X-Any": ""}}, True),
        ],
    )
    def test_http_rules_match_whole_values(self, request_: Body, *, passes: bool) -> None:
        http = [
            {"method": "GET", "path": "/public$"},
            {"method": "POST", "headers": ["X-Token: 42"]},
            {"method": "PUT", "headers": ["X-Any"]},
        ]
        allowed = ingress(cnp(ingress=[{"toPorts": ports("8080/TCP", rules={"http": http})}]))
        assert allowed(PEER, l7={"http": request_}) is passes
        assert allowed(PEER)

    @pytest.mark.parametrize(
        "undecided",
        [
            {"rules": {"kafka": [{"topic": "a"}]}},
            {"rules": {"http": [{"path": "(a+)+$"}]}},
            {"rules": {"http": [{"headerMatches": [{"name": "X", "secret": {"name": "s"}}]}]}},
            {"listener": {"name": "l", "envoyConfig": {"name": "e"}}},
            {"invented": True},
            {"invented": True, "rules": {"http": [{"path": "/only"}]}},
        ],
    )
    def test_what_cannot_be_decided_passes(self, undecided: Body) -> None:
        allowed = egress(cnp(egress=[{"toPorts": ports("80/TCP", **undecided)}]))
        assert allowed(WORLD, 80, l7={"http": {"method": "GET", "path": "/" + "a" * 5000}})


class TestNames:
    """Line 27 and 28."""

    def test_a_name_is_reached_and_an_address_is_not(self) -> None:
        allowed = egress(cnp(egress=[{"toFQDNs": [{"matchName": "PyPI.org."}], "toPorts": ports("443/TCP")}]))
        assert allowed({"fqdn": "pypi.org"})
        assert not allowed({"fqdn": "pypi.org"}, 80)
        assert not allowed({"fqdn": "files.pypi.org"})
        assert not allowed(WORLD)
        assert not allowed(PEER)

    def test_learned_names_count_even_where_no_dns_rule_learns_them_here(self) -> None:
        allowed = egress(cnp(egress=[{"toFQDNs": [{"matchPattern": "*.pypi.org"}]}]))
        assert allowed({"fqdn": "files.pypi.org"})
        assert not allowed(DNS, 53, "UDP")

    def test_port_53_to_the_world_is_a_tunnel(self) -> None:
        rule = {"toEntities": ["world"], "toPorts": ports("53/UDP", rules={"dns": [{"matchName": "pypi.org"}]})}
        found = reach(cnp(egress=[rule]))
        assert found.allows("egress", WORLD, 53, "UDP")
        assert not found.within("deny_all").holds

    @pytest.mark.parametrize(
        ("pattern", "matching", "other"),
        [
            ("*.x.org", ["a.x.org", "a-b.x.org"], ["x.org", "a.b.x.org", "ax.org"]),
            ("**.x.org", ["a.x.org", "a.b.x.org"], ["x.org", "ax.org"]),
            ("*x.org", ["x.org", "ax.org"], ["a.x.org"]),
            ("sub*.x.org", ["sub.x.org", "subway.x.org"], ["x.org", "a.sub.x.org"]),
            ("a.*.org", ["a.b.org"], ["a.b.c.org"]),
            ("a.**.org", ["a.b.org"], ["a.b.c.org"]),
            ("*", ["x.org", "a.b.c.d"], []),
            ("**", ["x.org", "a.b.c.d"], []),
        ],
    )
    def test_patterns(self, pattern: str, matching: list[str], other: list[str]) -> None:
        allowed = egress(cnp(egress=[{"toFQDNs": [{"matchPattern": pattern}]}]))
        assert all(allowed({"fqdn": name}) for name in matching)
        assert not any(allowed({"fqdn": name}) for name in other)


class TestSpecsNodesServices:
    """Line 29."""

    def test_spec_and_specs_both_apply(self) -> None:
        policy = cnp(egress=[{"toEntities": ["world"], "toPorts": ports("443/TCP")}])
        policy["specs"] = [
            {"endpointSelector": {"matchLabels": {"app": "sandbox"}}, "egress": [{"toEndpoints": [{}]}]},
            {"endpointSelector": {"matchLabels": {"app": "nobody"}}, "egress": [{"toEntities": ["all"]}]},
        ]
        allowed = egress(policy)
        assert allowed(WORLD)
        assert allowed(PEER, 80)
        assert not allowed(WORLD, 80)

    def test_policies_of_nodes_never_isolate_pods(self) -> None:
        policy = ccnp(ingress=[{}], egress=[{}])
        policy["spec"]["nodeSelector"] = policy["spec"].pop("endpointSelector")
        policy["spec"]["nodeSelector"] = {}
        assert egress(policy)(WORLD)
        assert ingress(policy)(WORLD)

    SERVICE: t.ClassVar[Body] = {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": "other", "labels": {"tier": "front"}},
        "spec": {"selector": {"app": "peer"}, "ports": [{"port": 80}]},
    }

    @pytest.mark.parametrize(
        "item",
        [
            {"k8sService": {"serviceName": "web", "namespace": "other"}},
            {"k8sService": {"serviceName": "web"}},
            {"k8sServiceSelector": {"selector": {"matchLabels": {"tier": "front"}}}},
            {"k8sServiceSelector": {"selector": {"matchLabels": {"k8s:tier": "front"}}, "namespace": "other"}},
        ],
    )
    def test_a_service_is_its_pods_on_every_port(self, item: Body) -> None:
        allowed = egress(cnp(egress=[{"toServices": [item]}]), self.SERVICE)
        assert allowed(FOREIGN, 80)
        assert allowed(FOREIGN, 9999, "UDP")
        assert not allowed(PEER, 80)
        assert not allowed(WORLD)

    def test_one_without_a_selector_may_be_anywhere_outside(self) -> None:
        service = copy.deepcopy(self.SERVICE)
        del service["spec"]["selector"]
        found = reach(cnp(egress=[{"toServices": [{"k8sService": {"serviceName": "web"}}]}]), service)
        assert not found.allows("egress", FOREIGN, 80)
        assert "backends" in str(found.within("no_network").undecided[0].reason)

    def test_where_no_service_matches_ports_are_open_to_everyone(self) -> None:
        rule = {"toServices": [{"k8sService": {"serviceName": "gone"}}]}
        assert not egress(cnp(egress=[rule]))(WORLD)
        assert egress(cnp(egress=[{**rule, "toPorts": ports("443/TCP")}]))(WORLD)


class TestUndecided:
    def test_groups_of_a_cloud_and_unknown_fields_count_as_open(self) -> None:
        for rule in ({"toGroups": [{"aws": {"securityGroupsIds": ["sg-1"]}}]}, {"toInvented": [{"a": "b"}]}):
            found = reach(cnp(egress=[rule]))
            assert found.allows("egress", WORLD, 443)
            assert found.within("no_network").undecided

    def test_what_is_not_judged_above_the_port_is_said(self) -> None:
        found = reach(cnp(egress=[{"toPorts": ports("9092/TCP", rules={"kafka": [{"topic": "a"}]})}]))
        assert any("kafka rules are not judged" in note for note in found.within("no_network").notes)

    def test_authentication_counts_as_open_and_says_so(self) -> None:
        found = reach(cnp(egress=[{"toEntities": ["world"], "authentication": {"mode": "required"}}]))
        assert found.allows("egress", WORLD, 443)
        assert any("authentication" in note for note in found.within("no_network").notes)

    def test_an_unknown_field_takes_the_trust_out_of_what_a_policy_closes(self) -> None:
        assert egress(cnp(egress=[{}], tier="Baseline"))(WORLD)
        odd = cnp(egressDeny=[{"toEntities": ["world"], "toInvented": []}], egress=ANYWHERE)
        assert egress(odd)(WORLD)

    def test_an_invalid_policy_closes_nothing_and_a_verdict_counts_it_as_open(self) -> None:
        invalid = cnp(egress=[{"toCIDR": ["1.1.1.1/32"], "toEntities": ["world"]}])
        assert egress(invalid)(PEER)
        both = reach(invalid, cnp("close", egress=[{}]))
        assert not both.allows("egress", WORLD, 443)
        assert "combines" in str(both.within("no_network").undecided[0].reason)

    def test_so_does_one_that_cilium_itself_calls_invalid(self) -> None:
        refused = cnp(egress=[{}])
        refused["status"] = {"conditions": [{"type": "Valid", "status": "False", "message": "no node labels"}]}
        assert egress(refused)(WORLD)
        refused["status"]["conditions"][0]["status"] = "True"
        assert not egress(refused)(WORLD)

    def test_an_administrators_accept_may_be_read_and_counts_as_open(self) -> None:
        accept = {
            "apiVersion": "policy.networking.k8s.io/v1alpha2",
            "kind": "ClusterNetworkPolicy",
            "metadata": {"name": "accept"},
            "spec": {
                "tier": "Admin",
                "priority": 1,
                "subject": {"namespaces": {}},
                "egress": [{"action": "Accept", "to": [{"networks": ["0.0.0.0/0"]}]}],
            },
        }
        found = reach(accept, cnp(egress=[{}]))
        assert not found.allows("egress", WORLD, 443)
        assert "enable-k8s-cluster-network-policy" in str(found.within("no_network").undecided[0].reason)

    def test_a_pod_on_its_nodes_network_is_open(self) -> None:
        hosted = reach(ccnp(selector={}, egress=[{}], ingress=[{}]), of="kube-system/hosted")
        assert hosted.allows("egress", WORLD, 443)
        assert hosted.allows("ingress", WORLD, 443)
        assert not hosted.within("no_network").holds

    def test_the_labels_of_a_namespace_that_is_not_known_do_not_close_anything(self) -> None:
        chosen = {"matchLabels": {"io.cilium.k8s.namespace.labels.team": "ai"}}
        stray = pod("nowhere/stray", labels={})
        assert reach(ccnp(selector=chosen, egress=[{}]), stray, of="nowhere/stray").allows("egress", WORLD, 443)
        assert not reach(ccnp(selector=chosen, egress=[{}]), of=SANDBOX).allows("egress", WORLD, 443)


class TestNetworkPolicies:
    """Line 9, and what Cilium makes of the rest."""

    def test_an_empty_namespace_selector_is_pods_and_never_the_outside(self) -> None:
        allowed = egress(netpol(policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": {}}]}]))
        assert [allowed(peer) for peer in (PEER, FOREIGN, HOST, WORLD)] == [True, True, False, False]

    def test_rules_of_a_direction_that_is_not_named_close_nothing(self) -> None:
        policy = netpol(policyTypes=["Ingress"], egress=[{"to": [{"podSelector": {}}]}])
        assert egress(policy)(WORLD)
        assert egress(policy, cnp(egress=[{}]))(PEER)

    def test_it_isolates_and_adds_up_with_ciliums_own(self) -> None:
        closed = netpol(policyTypes=["Egress", "Ingress"])
        assert not egress(closed)(WORLD)
        assert egress(closed, cnp(egress=[{"toEntities": ["world"]}]))(WORLD)
        assert ingress(closed)(HOST)
        assert not ingress(closed)(OTHER_NODE)


class TestNodesByLabel:
    """Nodes by label exist only where Cilium is told so; a policy that asks for them is refused elsewhere."""

    POLICY = cnp(ingress=[{"fromNodes": [{"matchLabels": {"role": "edge"}}]}])

    def test_a_verdict_counts_it_as_open_until_cilium_says_that_it_is_valid(self) -> None:
        verdict = reach(self.POLICY).ingress_verdict(8080)
        assert not verdict.holds
        assert "enable-node-selector-labels" in str(verdict.undecided[0].reason)
        valid = copy.deepcopy(self.POLICY)
        valid["status"] = {"conditions": [{"type": "Valid", "status": "True"}]}
        assert not reach(valid).ingress_verdict(8080).undecided

    def test_another_policy_that_isolates_settles_it(self) -> None:
        assert not reach(self.POLICY, cnp("close", ingress=[{}])).ingress_verdict(8080).undecided

    def test_a_deny_of_nodes_is_not_relied_on_in_a_verdict(self) -> None:
        policy = cnp(egress=ANYWHERE, egressDeny=[{"toNodes": [{}]}])
        assert not egress(policy)(OTHER_NODE)
        assert not reach(policy).within("no_network").holds


class TestIngressVerdict:
    def test_a_named_peer_is_fine_and_everyone_is_not(self) -> None:
        assert reach(cnp(ingress=[{"fromEndpoints": [{"matchLabels": {"app": "peer"}}]}])).ingress_verdict(8080).holds
        for rule in ({"fromEntities": ["all"]}, {"fromEntities": ["world"]}, {"toPorts": ports("8080/TCP")}):
            assert not reach(cnp(ingress=[rule])).ingress_verdict(8080).holds
        assert not reach(ccnp(ingress=[{"fromEndpoints": [{}]}])).ingress_verdict(8080).holds
        assert reach(ccnp(ingress=[{}])).ingress_verdict(8080).holds
        assert not reach().ingress_verdict(8080).holds


class TestEvidence:
    def test_a_verdict_names_the_policies_that_apply_and_those_that_isolate(self) -> None:
        deny = ccnp("deny", egressDeny=[{"toEntities": ["host"]}], enableDefaultDeny={"egress": False})
        alone = reach(deny).within("public_internet")
        assert alone.policies == ("CiliumClusterwideNetworkPolicy deny",)
        assert alone.isolated_by == ()
        assert alone.findings[0].policy is None
        both = reach(deny, cnp("p", egress=[{"toEntities": ["cluster"]}])).within("public_internet")
        assert both.isolated_by == ("CiliumNetworkPolicy agents/p",)
        assert {(finding.policy, finding.rule) for finding in both.findings} == {("CiliumNetworkPolicy agents/p", 0)}

    def test_the_description_tells_deny_before_allow(self) -> None:
        text = reach(cnp(egress=[{"toEntities": ["world"]}], egressDeny=[{"toCIDR": ["203.0.113.0/24"]}])).describe()
        deny, allow = (text.index(f"CiliumNetworkPolicy agents/p rule 0 {verb}") for verb in ("denies", "allows"))
        assert deny < allow
        assert "203.0.113.0/24" in text


class TestDenyOfServices:
    def test_it_is_not_relied_on(self) -> None:
        rule = {"toServices": [{"k8sService": {"serviceName": "web"}}]}
        assert egress(cnp(egress=ANYWHERE, egressDeny=[rule]), TestSpecsNodesServices.SERVICE)(FOREIGN)
