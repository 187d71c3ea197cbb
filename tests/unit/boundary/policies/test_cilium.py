# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Egress requests as CiliumNetworkPolicies: what they grant, and that they grant nothing more."""

from __future__ import annotations

import copy
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import QuestionError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import differences, translate
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import (
    DNS,
    FOREIGN,
    HOST,
    PEER,
    WORLD,
    Body,
    ccnp,
    cnp,
    egress,
    netpol,
    ports,
    reach,
)

HOSTS: Body = {"kind": "hosts", "hosts": ["pypi.org", {"host": "*.pypi.org", "ports": [443, "80/TCP"]}]}
REQUESTS: list[t.Any] = [
    "no_network",
    "dns_only",
    "public_internet",
    {"kind": "public_internet", "except_cidrs": ["203.0.113.0/24", "2001:db8::/32"]},
    {"kind": "public_internet", "except_cidrs": ["::/0"]},
    HOSTS,
    {
        "kind": "hosts",
        "hosts": ["pypi.org"],
        "dns": {"namespace": "dns", "labels": {"a": "b"}, "addresses": ["192.0.2.53"]},
    },
    {"kind": "dns_only", "dns": {"addresses": ["169.254.20.10"]}},
    {"kind": "dns_only", "dns": {"names": ["pypi.org", "*.pypi.org"], "addresses": ["169.254.20.10"]}},
    {"kind": "public_internet", "ports": [443, "443/UDP"]},
    {"kind": "public_internet", "ports": [443], "dns": {"names": ["*.example.com"]}},
    "allow_all",
]
PRIVATE = ("10.1.2.3", "172.16.0.1", "192.168.7.7", "100.64.0.1", "169.254.169.254", "127.0.0.1", "168.63.129.16")
PRIVATE_6 = ("fd00::1", "fe80::1", "::1")


def translated(request: t.Any) -> Body:
    return translate(request, namespace="agents", name="boundary", labels={"app": "sandbox"}, engine="cilium")


def test_the_policy_of_a_hosts_request() -> None:
    assert translated(HOSTS) == {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": {"name": "boundary", "namespace": "agents"},
        "spec": {
            "endpointSelector": {"matchLabels": {"app": "sandbox"}},
            "egress": [
                {
                    "toEndpoints": [
                        {"matchLabels": {"k8s:io.kubernetes.pod.namespace": "kube-system", "k8s:k8s-app": "kube-dns"}}
                    ],
                    "toPorts": [
                        {
                            "ports": [{"port": "53", "protocol": "UDP"}, {"port": "53", "protocol": "TCP"}],
                            "rules": {"dns": [{"matchName": "pypi.org"}, {"matchPattern": "*.pypi.org"}]},
                        }
                    ],
                },
                {
                    "toFQDNs": [{"matchName": "pypi.org"}],
                    "toPorts": [{"ports": [{"port": "443", "protocol": "TCP"}]}],
                },
                {
                    "toFQDNs": [{"matchPattern": "*.pypi.org"}],
                    "toPorts": [{"ports": [{"port": "443", "protocol": "TCP"}, {"port": "80", "protocol": "TCP"}]}],
                },
            ],
        },
    }


def test_no_network_closes_by_an_empty_item_because_an_empty_list_would_not() -> None:
    assert translated("no_network")["spec"]["egress"] == [{}]
    allowed = egress(translated("no_network"))
    assert not any(allowed(peer) for peer in (WORLD, PEER, HOST))
    assert not allowed(DNS, 53, "UDP")


def test_dns_only_is_dns_to_the_clusters_servers_alone() -> None:
    allowed = egress(translated("dns_only"))
    assert allowed(DNS, 53, "UDP")
    assert allowed(DNS, 53, "TCP")
    assert not allowed(DNS, 443)
    assert not allowed(WORLD, 53, "UDP")
    assert not allowed(FOREIGN, 53, "UDP")


def test_the_public_internet_holds_nothing_private_no_pod_and_no_node() -> None:
    allowed = egress(translated("public_internet"))
    assert allowed(WORLD)
    assert allowed({"ip": "2600::1"})
    assert not any(allowed({"ip": address}) for address in (*PRIVATE, *PRIVATE_6))
    assert not any(allowed(peer) for peer in (PEER, HOST, {"entity": "kube-apiserver"}))
    assert not egress(translated(REQUESTS[3]))(WORLD)


def test_hosts_reach_their_names_and_ask_for_no_others() -> None:
    allowed = egress(translated(HOSTS))
    assert allowed({"fqdn": "pypi.org"})
    assert not allowed({"fqdn": "pypi.org"}, 80)
    assert allowed({"fqdn": "files.pypi.org"}, 80)
    assert not allowed({"fqdn": "a.files.pypi.org"})
    assert not allowed(WORLD)
    assert allowed(DNS, 53, "UDP", {"dns": "pypi.org"})
    assert allowed(DNS, 53, "TCP", {"dns": "files.pypi.org"})
    assert not allowed(DNS, 53, "UDP", {"dns": "exfiltrated.evil.example"})
    assert not allowed(WORLD, 53, "UDP")


def test_more_ports_than_one_item_takes_go_into_several() -> None:
    request = {"kind": "hosts", "hosts": [{"host": "pypi.org", "ports": list(range(1000, 1090))}]}
    items = translated(request)["spec"]["egress"][1]["toPorts"]
    assert [len(item["ports"]) for item in items] == [40, 40, 10]
    assert reach(translated(request)).within(request).holds


def test_a_label_that_cilium_does_not_see_is_refused() -> None:
    with pytest.raises(QuestionError, match="pod-template-hash"):
        translate("no_network", namespace="a", name="b", labels={"pod-template-hash": "c"}, engine="cilium")


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_every_translation_is_within_itself_and_equal_to_itself(request_: t.Any) -> None:
    policy = translated(request_)
    verdict = reach(policy).within(request_)
    assert verdict.holds, str(verdict)
    assert not verdict.undecided
    assert differences(copy.deepcopy(policy), policy) == []
    assert reach(policy, cnp("close", egress=[{}])).within(request_).holds


def changed(policy: Body, change: t.Callable[[Body], t.Any]) -> list[Body]:
    """A copy of a policy with its spec changed."""
    other = copy.deepcopy(policy)
    change(other["spec"])
    return [other]


ADDED: list[tuple[str, Body]] = [
    ("everyone", {"toEntities": ["all"]}),
    ("the world on a port", {"toEntities": ["world"], "toPorts": ports("8443/TCP")}),
    ("a private address", {"toCIDR": ["10.9.9.9/32"]}),
    ("the metadata service", {"toCIDRSet": [{"cidr": "169.254.169.254/32"}], "toPorts": ports("80/TCP")}),
    ("the own namespace", {"toEndpoints": [{}]}),
    ("the host", {"toEntities": ["host"], "toPorts": ports("10250/TCP")}),
    ("the API server", {"toEntities": ["kube-apiserver"]}),
    ("any name", {"toFQDNs": [{"matchPattern": "*"}], "toPorts": ports("443/TCP")}),
    ("a deeper name", {"toFQDNs": [{"matchPattern": "**.pypi.org"}], "toPorts": ports("443/TCP")}),
    ("a port alone", {"toPorts": ports("443/TCP")}),
    ("ping", {"icmps": [{"fields": [{"type": 8}]}], "toEntities": ["cluster"]}),
    ("another namespace", {"toEndpoints": [{"matchLabels": {"k8s:io.kubernetes.pod.namespace": "other"}}]}),
    ("a cloud's group", {"toGroups": [{"aws": {"securityGroupsIds": ["sg-1"]}}]}),
]


def widened(policy: Body) -> t.Iterator[tuple[str, list[Body]]]:
    """Single changes of a translation, each of which opens something."""
    yield "no rules at all", changed(policy, lambda spec: spec.update(egress=[]))
    yield "other pods", changed(policy, lambda spec: spec.update(endpointSelector={"matchLabels": {"app": "other"}}))
    yield "no default deny", changed(policy, lambda spec: spec.update(enableDefaultDeny={"egress": False}))
    yield "an unknown field", changed(policy, lambda spec: spec.update(tier="Baseline"))
    for what, rule in ADDED:
        yield what, changed(policy, lambda spec, rule=rule: spec["egress"].append(rule))
    yield "a second policy", [policy, cnp("second", egress=[{"toEntities": ["cluster"]}])]
    yield "a clusterwide one", [policy, ccnp("second", egress=[{"toEntities": ["remote-node"]}])]
    yield "a NetworkPolicy", [policy, netpol("second", policyTypes=["Egress"], egress=[{"to": [{"podSelector": {}}]}])]
    for number, rule in enumerate(policy["spec"]["egress"]):
        yield from wider_rules(policy, number, rule)


def wider_rules(policy: Body, number: int, rule: Body) -> t.Iterator[tuple[str, list[Body]]]:
    """Single changes of one rule."""
    if "toPorts" in rule:
        yield f"every port {number}", changed(policy, lambda spec: spec["egress"][number].pop("toPorts"))
    for index, item in enumerate(rule.get("toPorts", ())):
        for at in range(len(item["ports"])):

            def put(spec: Body, index: int = index, at: int = at, **value: t.Any) -> None:
                spec["egress"][number]["toPorts"][index]["ports"][at].update(value)

            yield f"another port {number}.{index}.{at}", changed(policy, lambda spec, put=put: put(spec, port="22"))
            if "rules" not in item:
                yield f"a range {number}.{index}.{at}", changed(policy, lambda spec, put=put: put(spec, endPort=65535))
    for index, block in enumerate(rule.get("toCIDRSet", ())):
        for at in range(len(block["except"])):

            def less(spec: Body, index: int = index, at: int = at) -> None:
                del spec["egress"][number]["toCIDRSet"][index]["except"][at]

            yield f"without an exception {number}.{index}.{at}", changed(policy, less)


@pytest.mark.parametrize("request_", [request for request in REQUESTS if request != "allow_all"], ids=str)
def test_no_single_widening_is_within(request_: t.Any) -> None:
    policy = translated(request_)
    count = 0
    for what, policies in widened(policy):
        verdict = reach(*policies).within(request_)
        assert not verdict.holds, what
        assert verdict.findings or verdict.undecided, what
        count += 1
    assert count >= 20


NAMES = st.from_regex(r"[a-z]{1,3}(\.[a-z]{1,3}){1,2}", fullmatch=True)
PATTERNS = st.one_of(NAMES, NAMES.map(lambda name: "*." + name))
HOST_RULES = st.builds(
    lambda pattern, numbers: {"host": pattern, "ports": numbers},
    PATTERNS,
    st.lists(st.sampled_from([80, 443, "53/UDP", 8443]), min_size=1, max_size=3, unique=True),
)


@settings(max_examples=50, deadline=None)
@given(hosts=st.lists(HOST_RULES, min_size=1, max_size=4), more=HOST_RULES)
def test_hosts_are_within_themselves_and_one_more_host_is_not(hosts: list[Body], more: Body) -> None:
    request = {"kind": "hosts", "hosts": hosts}
    wider = {"kind": "hosts", "hosts": [*hosts, more]}
    assert reach(translated(request)).within(request).holds
    assert reach(translated(request)).within(wider).holds
    name = more["host"].replace("*", "zzzz")
    port, _unused, protocol = str(more["ports"][0]).partition("/")
    there = ({"fqdn": name}, int(port), protocol or "TCP")
    assert egress(translated(wider))(*there)
    if not egress(translated(request))(*there):
        assert not reach(translated(wider)).within(request).holds


NAMED: Body = {"kind": "public_internet", "ports": [443], "dns": {"names": ["pypi.org", "*.pypi.org"]}}
DNS_PORTS = ports("53/UDP", "53/TCP")
TO_DNS = {"toEndpoints": [{"matchLabels": {"k8s:io.kubernetes.pod.namespace": "kube-system", "k8s-app": "kube-dns"}}]}


def test_names_and_ports_of_the_public_internet_are_narrowed() -> None:
    allowed = egress(translated(NAMED))
    assert allowed(WORLD, 443)
    assert not allowed(WORLD, 80)
    assert not allowed(WORLD, 443, "UDP")
    assert allowed(DNS, 53, "UDP", {"dns": "files.pypi.org"})
    for name in ("tunnel.evil.example", "a.b.pypi.org"):
        assert not allowed(DNS, 53, "UDP", {"dns": name})


@pytest.mark.parametrize(
    ("rule", "holds"),
    [
        ({**TO_DNS, "toPorts": [{**DNS_PORTS[0], "rules": {"dns": [{"matchName": "pypi.org"}]}}]}, True),
        ({**TO_DNS, "toPorts": [{**DNS_PORTS[0], "rules": {"dns": [{"matchPattern": "f*.pypi.org"}]}}]}, True),
        ({**TO_DNS, "toPorts": [{**DNS_PORTS[0], "rules": {"dns": [{"matchPattern": "*"}]}}]}, False),
        ({**TO_DNS, "toPorts": [{**DNS_PORTS[0], "rules": {"dns": [{"matchPattern": "**.pypi.org"}]}}]}, False),
        ({**TO_DNS, "toPorts": [{**DNS_PORTS[0], "rules": {"dns": [{"matchName": "evil.example"}]}}]}, False),
        ({**TO_DNS, "toPorts": DNS_PORTS}, False),
        ({**TO_DNS, "toPorts": ports("80/TCP", rules={"http": [{"method": "GET"}]})}, False),
        ({"toEndpoints": [{}], "toPorts": [{**DNS_PORTS[0], "rules": {"dns": [{"matchName": "pypi.org"}]}}]}, False),
    ],
)
@pytest.mark.parametrize("request_", [NAMED, {"kind": "dns_only", "dns": NAMED["dns"]}], ids=["internet", "dns"])
def test_another_policy_that_opens_other_names_is_excess(request_: Body, rule: Body, *, holds: bool) -> None:
    """A plain allow on the port voids the names, and so do other names (boundary semantics of Cilium)."""
    assert reach(translated(request_)).within(request_).holds
    assert reach(translated(request_), cnp("more", egress=[rule])).within(request_).holds is holds


def test_a_network_policy_that_opens_dns_voids_the_names() -> None:
    rule = {"to": [{"namespaceSelector": {}}], "ports": [{"port": 53, "protocol": "UDP"}]}
    beside = netpol(policyTypes=["Egress"], egress=[rule])
    assert reach(translated("dns_only"), beside).within("dns_only").holds is False
    one = {**rule, "to": [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
                           "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}}}]}  # fmt: skip
    plain = netpol(policyTypes=["Egress"], egress=[one])
    assert reach(translated("dns_only"), plain).within("dns_only").holds
    assert not reach(translated(NAMED), plain).within(NAMED).holds
