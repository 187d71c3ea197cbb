# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""More of what implementers of Cilium's semantics get wrong: ports, what is above them, names, what is undecided."""

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
    netpol,
    pod,
    ports,
    reach,
)

ANYWHERE = [{"toEntities": ["all"]}]


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
        assert not allowed(WORLD, 8079)
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

    def test_without_default_deny_a_limit_holds_back_what_no_rule_permits(self) -> None:
        """enableDefaultDeny does not apply to layer 7 (Cilium documentation, policy enforcement modes)."""
        limited = cnp(egress=[{"toPorts": self.ONE_NAME}], enableDefaultDeny={"egress": False})
        for peer in (DNS, WORLD, {"fqdn": "example.com"}):
            assert not egress(limited)(peer, 53, "UDP", {"dns": "evil.example"})
            assert egress(limited)(peer, 53, "UDP")
            assert egress(limited)(peer, 54, "UDP", {"dns": "evil.example"})
        beside = cnp("more", egress=[{"toPorts": ports("53/UDP")}], enableDefaultDeny={"egress": False})
        assert egress(limited, beside)(WORLD, 53, "UDP", {"dns": "evil.example"})

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
        assert not found.within("dns_only").holds

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
        policy = cnp(egress=ANYWHERE, egressDeny=[{"toNodes": [{}]}, {"toPorts": ports("agent")}])
        assert egress(policy)(OTHER_NODE)
        assert egress(policy)(PEER, 8081)
        assert egress(policy)(PEER, 8082)
        assert not reach(policy).within("no_network").holds


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
