# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cilium policies that nobody should have written: an answer or a typed error, never a crash, never a long wait."""

from __future__ import annotations

import copy
import time
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import PolicyError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium import oracle
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import (
    CLUSTER,
    DNS,
    SANDBOX,
    WORLD,
    Body,
    cnp,
    egress,
    ports,
    reach,
)

JUNK = st.recursive(
    st.one_of(st.none(), st.booleans(), st.integers(-5, 70000), st.floats(allow_nan=False), st.text(max_size=6)),
    lambda inner: st.one_of(st.lists(inner, max_size=3), st.dictionaries(st.text(max_size=6), inner, max_size=3)),
    max_leaves=6,
)
FIELDS = st.sampled_from(
    [
        "endpointSelector", "nodeSelector", "ingress", "egress", "egressDeny", "enableDefaultDeny", "toEndpoints",
        "toCIDR", "toCIDRSet", "toEntities", "toFQDNs", "toServices", "toNodes", "toGroups", "toPorts", "icmps",
        "ports", "port", "endPort", "protocol", "rules", "http", "dns", "serverNames", "matchLabels",
        "matchExpressions", "cidr", "except", "cidrGroupRef", "cidrGroupSelector", "matchName", "matchPattern",
        "fields", "type", "family", "specs", "status", "key", "operator", "values", "path", "headers",
        "headerMatches", "k8sService", "k8sServiceSelector", "selector", "method", "host", "name", "value", "secret",
        "fromEndpoints", "fromCIDR", "listener", "terminatingTLS",
    ]
)  # fmt: skip
NESTED = st.recursive(
    JUNK, lambda inner: st.one_of(st.lists(inner, max_size=2), st.dictionaries(FIELDS, inner, max_size=3))
)


def paths(value: t.Any, path: tuple[t.Any, ...] = ()) -> list[tuple[t.Any, ...]]:
    found = [path] if path else []
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, inner in items:
        found += paths(inner, (*path, key))
    return found


def answered(policy: Body) -> None:
    """Ask everything; a typed error is an answer too."""
    try:
        found = Reach.from_objects([*CLUSTER, policy], SANDBOX, engine="cilium")
        for peer in (WORLD, DNS, {"fqdn": "pypi.org"}):
            for l7 in (None, {"dns": "pypi.org"}, {"http": {"method": "GET", "path": "/"}}, {"sni": "pypi.org"}):
                found.allows("egress", peer, 53, "UDP", l7)
                found.allows("ingress", DNS, 8080, "TCP", l7)
        found.within("public_internet")
        found.describe()
    except SandboxError:
        return


@settings(max_examples=150, deadline=None)
@given(spec=st.dictionaries(FIELDS, NESTED, max_size=4))
def test_invented_specs(spec: Body) -> None:
    policy = cnp(egress=[{}])
    policy["spec"].update(spec)
    answered(policy)


@settings(max_examples=150, deadline=None)
@given(data=st.data(), policies=oracle.POLICIES, value=NESTED)
def test_one_field_of_a_good_policy_replaced(data: st.DataObject, policies: list[Body], value: t.Any) -> None:
    policy = copy.deepcopy(policies[0])
    path = data.draw(st.sampled_from(paths(policy["spec"])))
    inner = policy["spec"]
    for key in path[:-1]:
        inner = inner[key]
    inner[path[-1]] = value
    answered(policy)


@settings(max_examples=60, deadline=None)
@given(rule=st.dictionaries(FIELDS, NESTED, max_size=3), item=st.dictionaries(FIELDS, NESTED, max_size=3))
def test_invented_rules(rule: Body, item: Body) -> None:
    answered(cnp(egress=[rule], egressDeny=[{"toPorts": [item]}], ingress=[{"toPorts": [item]}]))


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"egress": {}}, "spec.egress"),
        ({"egress": ["x"]}, "spec.egress[0]"),
        ({"egress": [{"toEndpoints": {}}]}, "spec.egress[0].toEndpoints"),
        ({"egress": [{"toEndpoints": [{"matchLabels": {"a": 1}}]}]}, "spec.egress[0].toEndpoints[0].matchLabels"),
        ({"egress": [{"toPorts": [{"ports": [{"port": 53}]}]}]}, "spec.egress[0].toPorts[0].ports[0].port"),
        ({"egress": [{"toEntities": ["world", 1]}]}, "spec.egress[0].toEntities[1]"),
        ({"egress": [{}], "enableDefaultDeny": {"egress": "no"}}, "spec.enableDefaultDeny.egress"),
        (
            {"selector": {"matchExpressions": [{"key": "a", "operator": "Gt", "values": ["1"]}]}, "egress": [{}]},
            "operator",
        ),
    ],
)
def test_a_wrong_type_is_an_error_that_names_the_field(spec: Body, field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        reach(cnp(**spec))
    assert field in str(caught.value)
    assert "CiliumNetworkPolicy agents/p" in str(caught.value)


def test_an_error_in_another_namespace_is_no_matter() -> None:
    assert not egress(cnp("broken", where="other", egress="x"), cnp(egress=[{}]))(WORLD)


@pytest.mark.parametrize(
    "rule",
    [
        {"toCIDR": ["1.2.3.4/33"]},
        {"toCIDRSet": [{"cidr": "10.0.0.0/8", "except": ["11.0.0.0/16"]}]},
        {"toCIDRSet": [{"cidr": "10.0.0.0/8", "cidrGroupRef": "x"}]},
        {"toCIDRSet": [{}]},
        {"toEntities": ["wolrd"]},
        {"toEndpoints": [{}], "toCIDR": ["1.2.3.4/32"]},
        {"toPorts": ports("70000/TCP")},
        {"toPorts": ports("99999999999999999999/TCP")},
        {"toPorts": ports("-1/TCP")},
        {"toPorts": ports("09/TCP")},
        {"toPorts": ports("53/ICMP")},
        {"toPorts": [{"ports": [{"protocol": "TCP"}]}]},
        {"toPorts": ports(*["80/TCP"] * 41)},
        {"toPorts": ports("80/UDP", rules={"http": [{}]})},
        {"toPorts": ports("0/TCP", rules={"http": [{}]})},
        {"toPorts": ports("80/TCP", rules={"http": [{}], "dns": [{"matchPattern": "*"}]})},
        {"toPorts": [{"ports": [], "rules": {"dns": [{"matchPattern": "*"}]}}]},
        {"toPorts": ports("53/UDP", rules={"dns": [{"matchName": "a*b"}]})},
        {"toPorts": ports("443/TCP", serverNames=["a"], rules={"http": [{}]})},
        {"toPorts": ports("80/TCP"), "icmps": [{"fields": [{"type": 8}]}]},
        {"icmps": [{"fields": [{"type": 256}]}]},
        {"icmps": [{"fields": [{"type": "PacketTooBig"}]}]},
        {"toFQDNs": [{"matchName": "a", "matchPattern": "b"}]},
        {"toFQDNs": [{"matchPattern": "a b"}]},
        {"toFQDNs": [{"matchName": "a" * 256}]},
    ],
    ids=lambda rule: str(rule)[:60],
)
def test_what_cilium_refuses_closes_nothing_and_opens_nothing_but_a_verdict_tells(rule: Body) -> None:
    refused = cnp("refused", egress=[rule])
    assert egress(refused)(WORLD)
    found = reach(refused, cnp("close", egress=[{}]))
    assert not found.allows("egress", WORLD, 443)
    verdict = found.within("no_network")
    assert not verdict.holds
    assert "Cilium does not import it" in str(verdict.undecided[0].reason)


def test_dns_rules_are_refused_for_ingress() -> None:
    policy = cnp(ingress=[{"toPorts": ports("53/UDP", rules={"dns": [{"matchPattern": "*"}]})}])
    assert reach(policy).allows("ingress", WORLD, 8080)


def test_a_policy_without_a_selector_or_a_rule_does_nothing() -> None:
    policy = cnp(egress=[{}])
    del policy["spec"]["endpointSelector"]
    assert egress(policy)(WORLD)
    assert egress(cnp())(WORLD)
    namespaced = cnp(egress=[{}])
    namespaced["spec"]["nodeSelector"] = namespaced["spec"].pop("endpointSelector")
    assert egress(namespaced)(WORLD)
    assert egress({key: value for key, value in policy.items() if key != "spec"})(WORLD)


def test_many_exceptions_overlapping_blocks_and_slow_patterns_are_quick() -> None:
    excluded = [f"10.{number // 256}.{number % 256}.0/24" for number in range(10000)]
    blocks = [f"10.{number}.0.0/{8 + number % 17}" for number in range(250)]
    slow = "*a" * 100 + "*b"
    start = time.process_time()
    policies = [
        cnp("many", egress=[{"toCIDRSet": [{"cidr": "10.0.0.0/8", "except": excluded}]}]),
        cnp("overlapping", egress=[{"toCIDR": blocks}]),
        cnp(
            "slow",
            egress=[{"toPorts": ports("53/UDP", rules={"dns": [{"matchPattern": slow}]}), "toEntities": ["all"]}],
        ),
        cnp("http", egress=[{"toPorts": ports("80/TCP", rules={"http": [{"path": "(a|a)*(a+)+$"}]})}]),
    ]
    found = reach(*policies)
    assert found.allows("egress", {"ip": "10.200.0.1"}, 443)
    assert not found.allows("egress", {"ip": "198.51.100.1"}, 53, "UDP", {"dns": "a" * 63})
    assert not found.within("no_network").holds
    assert time.process_time() - start < 5
