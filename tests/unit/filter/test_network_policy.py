# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter writes what the verifier reads, and says what is wrong with the rest."""

from __future__ import annotations

import typing as t

import pytest
from ansible.errors import AnsibleFilterError

from ansible_collections.namzu.sandbox.plugins.filter.network_policy import FilterModule
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import EgressBoundary

network_policy = FilterModule().filters()["network_policy"]
HERE = {"namespace": "agents", "template": "python"}
PODS = {"sandbox.namzu.ai/template": "python"}

REQUESTS: list[tuple[t.Any, str]] = [
    ("no_network", "core"),
    ("dns_only", "core"),
    ("public_internet", "core"),
    ({"kind": "public_internet", "except_cidrs": ["203.0.113.0/24", "2001:db8::/32"]}, "core"),
    ({"kind": "dns_only", "dns": {"addresses": ["169.254.20.10/32"]}, "engine": "cilium"}, "cilium"),
    (
        {
            "kind": "hosts",
            "hosts": ["pypi.org", {"host": "*.example.com", "ports": [443, "53/UDP"]}],
            "engine": "cilium",
        },
        "cilium",
    ),
    ("allow_all", "core"),
]


@pytest.mark.parametrize(("asked", "engine"), REQUESTS, ids=str)
def test_what_the_filter_writes_is_within_what_was_asked(asked: t.Any, engine: str) -> None:
    body = network_policy(asked, **HERE)
    assert body["kind"] == ("CiliumNetworkPolicy" if engine == "cilium" else "NetworkPolicy")
    assert body["metadata"] == {"name": "namzu-python-egress", "namespace": "agents"}
    reach = Reach.for_labels([body], "agents", PODS, engine=engine)
    assert reach.within(EgressBoundary.of(asked).request).holds
    assert reach.compiled.egress.isolated


def test_a_profile_has_a_policy_of_its_own() -> None:
    body = network_policy({"kind": "dns_only", "profile": {"value": "quiet"}}, **HERE)
    assert body["metadata"]["name"] == "namzu-python-quiet-egress"
    assert body["spec"]["podSelector"]["matchLabels"] == {**PODS, "sandbox.users.io/egress-profile": "quiet"}


def test_a_name_and_labels_take_the_place_of_a_template() -> None:
    body = network_policy("dns_only", namespace="agents", name="mine", labels={"app": "x"})
    assert body["metadata"]["name"] == "mine"
    assert body["spec"]["podSelector"] == {"matchLabels": {"app": "x"}}


def test_nobody_and_somebody_reach_the_agent() -> None:
    nobody = network_policy([], **HERE, direction="ingress")
    assert "ingress" not in nobody["spec"]
    somebody = network_policy(
        [{"podSelector": {"matchLabels": {"app": "plays"}}}], **HERE, direction="ingress", port="2024"
    )
    reach = Reach.for_labels([somebody], "agents", PODS)
    assert reach.ingress_verdict(2024, somebody["spec"]["ingress"][0]["from"]).holds
    assert reach.ingress_verdict(1024, []).holds
    assert not reach.ingress_verdict(2024, []).holds


@pytest.mark.parametrize(
    ("value", "options", "words"),
    [
        ("nothing", HERE, "kind is one of"),
        ({"kind": "hosts", "hosts": ["example.com"]}, HERE, "engine core cannot express"),
        ({"kind": "public_internet", "except_cidrs": ["10.0.0.0/33"]}, HERE, "blocks"),
        ({"kind": "dns_only", "hosts": ["a.b"]}, HERE, "has no 'hosts'"),
        ("dns_only", {"template": "python"}, "namespace is missing"),
        ("dns_only", {"namespace": "agents"}, "template is missing"),
        ("dns_only", {**HERE, "direction": "both"}, "direction is one of"),
        ([{"podSelector": {"matchLabels": 1}}], {**HERE, "direction": "ingress"}, "allow_from"),
        ([], {**HERE, "direction": "ingress", "port": 0}, "port is a number"),
        ("nobody", {**HERE, "direction": "ingress"}, "allow_from"),
        ({}, {**HERE, "direction": "ingress"}, "allow_from is missing"),
    ],
)
def test_what_cannot_be_written_is_refused_in_words(value: t.Any, options: dict[str, t.Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        network_policy(value, **options)


@pytest.mark.parametrize(
    "peer",
    [
        {"ipBlock": {"cidr": "0.0.0.0/0"}},
        {"ipBlock": {"cidr": "::/0"}},
        {"ipBlock": {"cidr": "10.0.0.0/8"}},
        {"namespaceSelector": {}},
        {"namespaceSelector": {"matchLabels": {}}},
        {"namespaceSelector": {}, "podSelector": {"matchLabels": {}}},
        {"podSelector": {}},
        {"podSelector": {"matchExpressions": [{"key": "app", "operator": "DoesNotExist"}]}},
        {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "agents"}}},
    ],
    ids=str,
)
def test_peers_that_mean_everyone_or_the_sandboxes_themselves_are_refused(peer: dict[str, t.Any]) -> None:
    with pytest.raises(AnsibleFilterError, match="allow_from lets in"):
        network_policy([peer], **HERE, direction="ingress")


def test_many_small_blocks_that_are_everyone_together_are_refused() -> None:
    peers = [{"ipBlock": {"cidr": f"{first}.0.0.0/9"}} for first in (10, 11)]
    assert network_policy(peers[:1], **HERE, direction="ingress")
    with pytest.raises(AnsibleFilterError, match="allow_from lets in"):
        network_policy(peers, **HERE, direction="ingress")
