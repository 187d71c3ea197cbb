# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Requests, their translation, and that a translation is exactly as wide as its request."""

from __future__ import annotations

import collections.abc as c
import copy
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import QuestionError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import differences, translate
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.requests import NOT_PUBLIC, Request
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import Body, policy

LABELS = {"sandbox.namzu.ai/template": "python"}
REQUESTS: list[t.Any] = [
    "no_network",
    "dns_only",
    "public_internet",
    {"kind": "public_internet", "except_cidrs": ["203.0.113.0/24", "2001:db8::/32", "10.1.0.0/16"]},
    {"kind": "public_internet", "ports": [443, "53/UDP"], "except_cidrs": ["203.0.113.0/24"]},
    {"kind": "dns_only", "dns": {"namespace": "dns", "labels": {"app": "dns"}, "addresses": ["169.254.20.10/32"]}},
    "allow_all",
]


def translated(request: object) -> Body:
    return translate(request, namespace="agents", name="egress", labels=LABELS)


def verdict_of(request: object, *objects: Body) -> t.Any:
    return Reach.for_labels(objects, "agents", LABELS).within(request)


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_translation_stays_within_its_request(request_: object) -> None:
    verdict = verdict_of(request_, translated(request_))
    assert verdict.holds, str(verdict)
    assert verdict.isolated_by == ("NetworkPolicy agents/egress",)


@pytest.mark.parametrize("request_", REQUESTS, ids=str)
def test_a_translation_grants_all_of_its_request(request_: object) -> None:
    """Whatever a request allows, its translation lets through: what it closes lies outside."""
    reach = Reach.for_labels([translated(request_)], "agents", LABELS)
    wanted = Request.of(request_)
    for address in ("1.1.1.1", "203.0.112.255", "192.169.0.1", "2606:4700::1", "168.63.129.17", "169.254.20.10"):
        for protocol, port in (("TCP", 443), ("UDP", 53), ("ICMP", 8)):
            inside = any(
                box.contains("outside", {("address", ""): _address(address)}.get, protocol, port)
                for box in wanted.region()
            )
            assert reach.allows("egress", {"ip": address}, port, protocol) is inside


def _address(text: str) -> tuple[int, int]:
    import ipaddress

    parsed = ipaddress.ip_address(text)
    return parsed.version, int(parsed)


Change = tuple[str, c.Callable[[t.Any], None]]


def without(*path: t.Any) -> c.Callable[[t.Any], None]:
    def change(spec: t.Any) -> None:
        for step in path[:-1]:
            spec = spec[step]
        del spec[path[-1]]

    return change


def put(value: t.Any, *path: t.Any) -> c.Callable[[t.Any], None]:
    def change(spec: t.Any) -> None:
        for step in path[:-1]:
            spec = spec[step]
        spec[path[-1]] = value

    return change


def one_more(rule: Body) -> Change:
    return f"one more rule {rule}", lambda spec: spec.setdefault("egress", []).append(rule)


def of_policy(spec: Body) -> c.Iterator[Change]:
    yield one_more({})
    yield one_more({"to": [{"ipBlock": {"cidr": "10.9.9.9/32"}}], "ports": [{"port": 443}]})
    yield one_more({"to": [{"podSelector": {}}], "ports": [{"port": 1, "protocol": "SCTP"}]})
    anywhere = {"namespaceSelector": {}, "podSelector": {"matchLabels": {"a": "b"}}}
    yield one_more({"to": [anywhere], "ports": [{"port": "web"}]})
    yield one_more({"ports": [{"port": 53, "protocol": "UDP"}]})
    yield "egress not isolated", put(["Ingress"], "policyTypes")
    yield "another pod", put({"matchLabels": {"x": "y"}}, "podSelector")
    for number, rule in enumerate(spec.get("egress", [])):
        yield from of_rule(rule, ("egress", number))


def of_rule(rule: Body, place: tuple[t.Any, ...]) -> c.Iterator[Change]:
    yield f"{place} without peers", without(*place, "to")
    yield f"{place} with no peers", put([], *place, "to")
    if "ports" in rule:
        yield f"{place} without ports", without(*place, "ports")
    for number, port in enumerate(rule.get("ports", ())):
        at = (*place, "ports", number)
        yield f"{at} as a range", put(port["port"] + 1, *at, "endPort")
        yield f"{at} without a number", without(*at, "port")
        yield f"{at} as another protocol", put("SCTP", *at, "protocol")
        yield f"{at} as another number", put(54, *at, "port")
    for number, peer in enumerate(rule["to"]):
        yield from of_peer(peer, (*place, "to", number))


def of_peer(peer: Body, place: tuple[t.Any, ...]) -> c.Iterator[Change]:
    for key in ("podSelector", "namespaceSelector"):
        if key in peer:
            yield f"{place} without {key}", without(*place, key)
            yield f"{place} with any {key}", put({}, *place, key)
    block = peer.get("ipBlock")
    if block is not None and "except" not in block:
        yield f"{place} wider", put("169.254.20.0/24", *place, "ipBlock", "cidr")
    for number in range(len((block or {}).get("except", ()))):
        yield f"{place} exception {number} left out", without(*place, "ipBlock", "except", number)


def widenings(body: Body) -> c.Iterator[tuple[str, Body]]:
    """The policy with one thing widened, in every place where something can be."""
    for what, change in of_policy(body["spec"]):
        other = copy.deepcopy(body)
        change(other["spec"])
        yield what, other


@pytest.mark.parametrize("request_", [request for request in REQUESTS if request != "allow_all"], ids=str)
def test_every_single_widening_of_a_translation_is_refused(request_: object) -> None:
    held = [what for what, body in widenings(translated(request_)) if verdict_of(request_, body).holds]
    assert held == []
    assert len(list(widenings(translated(request_)))) >= 7


def test_each_exception_of_the_public_internet_is_what_its_source_says() -> None:
    egress = translated("public_internet")["spec"]["egress"]
    blocks = [peer["ipBlock"] for peer in egress[1]["to"]]
    assert [block["cidr"] for block in blocks] == ["0.0.0.0/0", "::/0"]
    assert sorted(cidr for block in blocks for cidr in block["except"]) == sorted(NOT_PUBLIC)


def test_excepting_everything_leaves_dns_alone() -> None:
    wanted = {"kind": "public_internet", "except_cidrs": ["0.0.0.0/0", "::/0"]}
    assert translated(wanted)["spec"]["egress"] == translated("dns_only")["spec"]["egress"]
    assert verdict_of(wanted, translated(wanted)).holds


def test_core_has_no_names_and_says_what_to_do() -> None:
    with pytest.raises(QuestionError, match="Use engine cilium"):
        translated({"kind": "hosts", "hosts": ["example.com"]})


def test_a_policy_of_a_sandbox_needs_labels() -> None:
    with pytest.raises(QuestionError, match="at least one label"):
        translate("no_network", namespace="agents", name="egress", labels={})


@pytest.mark.parametrize(
    "value",
    [
        None,
        "everything",
        5,
        {"kind": "dns_only", "hosts": ["x.com"]},
        {"kind": "hosts"},
        {"kind": "hosts", "hosts": ["no spaces"]},
        {"kind": "hosts", "hosts": ["a.*.com"]},
        {"kind": "hosts", "hosts": ["x.com"], "ports": ["443/ICMP"]},
        {"kind": "hosts", "hosts": ["x.com"], "ports": [0]},
        {"kind": "hosts", "hosts": [{"host": "x.com", "port": 1}]},
        {"kind": "public_internet", "except_cidrs": ["10.0.0.0/99"]},
        {"kind": "public_internet", "except_cidrs": "10.0.0.0/8"},
        {"kind": "public_internet", "except_cidrs": [5]},
        {"kind": "dns_only", "dns": {"pods": {}}},
    ],
    ids=str,
)
def test_what_is_no_request_is_refused(value: object) -> None:
    with pytest.raises(QuestionError):
        Request.of(value)


def test_a_request_reads_hosts_and_ports() -> None:
    wanted = Request.of({"kind": "hosts", "hosts": ["A.com.", {"host": "*.b.org", "ports": ["53/udp", 8443]}]})
    assert [(host.pattern, host.ports) for host in wanted.hosts] == [
        ("a.com", (("TCP", 443),)),
        ("*.b.org", (("UDP", 53), ("TCP", 8443))),
    ]


def test_a_live_policy_equals_its_translation_as_the_api_server_gives_it_back() -> None:
    wanted = translated("no_network")
    live = copy.deepcopy(wanted)
    assert "egress" not in live["spec"], "an empty list is not stored"
    live["metadata"].update(uid="1", labels={"by": "an operator"})
    live["status"] = {}
    assert differences(live, wanted) == []
    live["spec"]["egress"] = [{}]
    assert differences(live, wanted) == ["spec.egress: must not be there"]


def test_texts_of_another_class_are_texts() -> None:
    class Tagged(str):
        """As Ansible hands over what a task says."""

        __slots__ = ()

    wanted = translated("dns_only")
    live = copy.deepcopy(wanted)
    live["spec"]["policyTypes"] = [Tagged("Egress")]
    assert differences(live, wanted) == []
    live["spec"]["policyTypes"] = [True]
    assert differences(live, wanted) == ["spec.policyTypes[0]: True instead of 'Egress'"]


def test_a_live_policy_that_differs_is_told_by_path() -> None:
    wanted = translated("dns_only")
    live = copy.deepcopy(wanted)
    live["spec"]["egress"][0]["ports"][0]["port"] = 5353
    live["spec"]["podSelector"]["matchLabels"] = {}
    assert differences(live, wanted) == [
        "spec.egress[0].ports[0].port: 5353 instead of 53",
        "spec.podSelector.matchLabels.sandbox.namzu.ai/template: missing",
    ]


def test_the_union_is_judged_and_not_the_named_policy() -> None:
    other = policy(
        "agents/template-default", policyTypes=["Egress"], egress=[{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]}]
    )
    verdict = verdict_of("dns_only", translated("dns_only"), other)
    assert [finding.policy for finding in verdict.findings] == ["NetworkPolicy agents/template-default"]
