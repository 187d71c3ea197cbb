# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Boundaries are checked as a whole before anything is sent."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.named import (
    Profile,
    policy_labels,
    policy_name,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import BOUNDARY
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.direct import name_hash
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import (
    EgressBoundary,
    IngressBoundary,
)


def request(**changes: t.Any) -> AcquireRequest:
    return AcquireRequest(**{"namespace": "agents", "warm_pool": "python", **changes})


#: What a task may ask for and nothing can honour, with a word of the answer.
NOT_EGRESS: dict[str, tuple[t.Any, str]] = {
    "unknown kind": ("some_network", "kind is one of"),
    "names with core": ({"kind": "hosts", "hosts": ["example.com"]}, "engine core cannot express"),
    "no names": ({"kind": "hosts", "engine": "cilium"}, "at least one host"),
    "names of another kind": ({"kind": "dns_only", "hosts": ["example.com"]}, "has no 'hosts'"),
    "half a block": ({"kind": "public_internet", "except_cidrs": ["10.0.0.0/33"]}, "10.0.0.0/33"),
    "a name for a block": ({"kind": "public_internet", "except_cidrs": ["example.com"]}, "example.com"),
    "a wrong DNS block": ({"kind": "dns_only", "dns": {"addresses": ["dns"]}}, "dns"),
    "unknown engine": ({"kind": "dns_only", "engine": "calico"}, "core or cilium"),
    "unknown proof": ({"kind": "dns_only", "verify": "hope"}, "union, named_object"),
    "unknown field": ({"kind": "dns_only", "port": 1}, "'port'"),
    "empty profile": ({"kind": "dns_only", "profile": {"value": ""}}, "profile"),
    "half a profile": ({"kind": "dns_only", "profile": {"key": "a/b"}}, "profile"),
    "a number": (7, "kind"),
    "a profile that no policy's name can hold": ({"kind": "dns_only", "profile": "Team_A"}, "Team_A"),
    "a profile that ends with a dash": ({"kind": "dns_only", "profile": {"value": "team-"}}, "team-"),
    "a profile that is too long": ({"kind": "dns_only", "profile": "a" * 64}, "63"),
    "a name that no policy can have": ({"kind": "dns_only", "name": "Team_A"}, "Team_A"),
    "names to look up with core": ({"kind": "dns_only", "dns": {"names": ["a.example"]}}, "dns.names"),
    "names to look up for the internet with core": (
        {"kind": "public_internet", "dns": {"names": ["a.example"]}},
        "dns.names",
    ),
    "names to look up with hosts": (
        {"kind": "hosts", "engine": "cilium", "hosts": ["a.example"], "dns": {"names": ["b.example"]}},
        "dns.names",
    ),
    "a name to look up that is not one": ({"kind": "dns_only", "engine": "cilium", "dns": {"names": ["a b"]}}, "a b"),
    "ports without the internet": ({"kind": "dns_only", "ports": [443]}, "'ports'"),
    "no port of the internet": ({"kind": "public_internet", "ports": []}, "at least one"),
    "a port that does not exist": ({"kind": "public_internet", "ports": [0]}, "1 and 65535"),
}


@pytest.mark.parametrize(("value", "word"), NOT_EGRESS.values(), ids=NOT_EGRESS)
def test_egress_that_cannot_be_is_refused_with_the_reason(value: t.Any, word: str) -> None:
    with pytest.raises(SandboxError) as caught:
        EgressBoundary.of(value)
    assert caught.value.reason == "invalid-input"
    assert word in str(caught.value)


NOT_INGRESS: dict[str, tuple[t.Any, str]] = {
    "another word": ("open", "unverified"),
    "a peer that is none": ({"allow_from": ["agents"]}, "list of peers"),
    "no list": ({"allow_from": {"podSelector": {}}}, "list of peers"),
    "unknown field": ({"allow": []}, "allow_from"),
    "a wrong block": ({"allow_from": [{"ipBlock": {"cidr": "10.0.0.0"}}]}, "10.0.0.0"),
    "an empty peer": ({"allow_from": [{}]}, "allow_from"),
    "unknown engine": ({"engine": "calico"}, "core, cilium"),
}


@pytest.mark.parametrize(("value", "word"), NOT_INGRESS.values(), ids=NOT_INGRESS)
def test_ingress_that_cannot_be_is_refused_with_the_reason(value: t.Any, word: str) -> None:
    with pytest.raises(SandboxError) as caught:
        IngressBoundary.of(value)
    assert caught.value.reason == "invalid-input"
    assert word in str(caught.value)


def test_names_are_a_matter_of_cilium() -> None:
    asked = EgressBoundary.of({"kind": "hosts", "hosts": ["example.com"], "engine": "cilium"})
    assert [host.pattern for host in asked.request.hosts] == ["example.com"]


def test_suboptions_that_were_not_given_are_not_there() -> None:
    options = BOUNDARY["egress"]["options"]
    given = {name: spec.get("default") for name, spec in options.items()}
    given |= {"kind": "dns_only", "dns": {"namespace": None, "labels": None, "addresses": ["169.254.20.10/32"]}}
    asked = EgressBoundary.of(given)
    assert asked.request.dns.namespace == "kube-system"
    assert asked.request.dns.addresses == ("169.254.20.10/32",)


def test_kinds_and_engines_of_the_options_are_those_that_are_taken() -> None:
    for kind in BOUNDARY["egress"]["options"]["kind"]["choices"]:
        hosts = {"hosts": ["example.com"]} if kind == "hosts" else {}
        assert EgressBoundary.of({"kind": kind, "engine": "cilium", **hosts}).request.kind == kind
    for verify in BOUNDARY["egress"]["options"]["verify"]["choices"]:
        assert EgressBoundary.of({"kind": "dns_only", "verify": verify}).verify == verify


def test_ingress_is_verified_unless_somebody_says_otherwise() -> None:
    assert request().ingress == IngressBoundary() == IngressBoundary.of(None)
    assert IngressBoundary.of("unverified") == "unverified"
    assert IngressBoundary.of({"allow_from": []}) == IngressBoundary(allow_from=())


def test_two_engines_are_refused() -> None:
    egress = EgressBoundary.of({"kind": "dns_only", "engine": "cilium"})
    assert request(egress=egress, ingress=IngressBoundary()).egress == egress
    with pytest.raises(SandboxError, match="one engine"):
        request(egress=egress, ingress=IngressBoundary(engine="core"))


def test_network_probe_without_egress_has_nothing_to_try() -> None:
    with pytest.raises(SandboxError, match="there is no egress"):
        request(network_probe=True)


def test_label_of_a_profile_becomes_one_of_the_pod() -> None:
    egress = EgressBoundary.of({"kind": "dns_only", "profile": "strict"})
    asked = request(egress=egress, pod_labels={"a": "b"})
    assert asked.pod_labels == {"a": "b", "sandbox.users.io/egress-profile": "strict"}
    with pytest.raises(SandboxError, match=r"egress\.profile needs"):
        request(egress=egress, pod_labels={"sandbox.users.io/egress-profile": "loose"})
    with pytest.raises(SandboxError, match="no valid label"):
        request(egress=EgressBoundary.of({"kind": "dns_only", "profile": {"value": "strict", "key": "no such key"}}))


def test_policy_is_called_and_selects_by_template_and_profile() -> None:
    assert policy_name("python") == "namzu-python-egress"
    assert policy_name("python", Profile("strict")) == "namzu-python-strict-egress"
    assert policy_labels("python", Profile("strict", "team.example/profile")) == {
        "sandbox.namzu.ai/template": "python",
        "team.example/profile": "strict",
    }


def test_hash_of_a_name_is_the_controllers() -> None:
    # Seen on a pod of agent-sandbox v0.5.6.
    assert name_hash("python-wss9m") == "9868f62f"


@pytest.mark.parametrize(
    "value",
    [
        "no_network",
        {"kind": "public_internet", "except_cidrs": ["8.8.8.0/24"]},
        {"kind": "dns_only", "dns": {"namespace": "dns", "labels": {"app": "dns"}, "addresses": ["169.254.20.10/32"]}},
        {"kind": "dns_only", "engine": "cilium", "dns": {"names": ["a.example", "*.a.example"]}},
        {"kind": "public_internet", "ports": [443, "53/UDP"]},
        {"kind": "hosts", "hosts": ["*.example.com", {"host": "a.org", "ports": [80, "53/UDP"]}], "engine": "cilium"},
        {"kind": "no_network", "name": "closed", "profile": "web", "verify": "named_object"},
    ],
    ids=str,
)
def test_plain_data_makes_the_same_boundary(value: t.Any) -> None:
    boundary = EgressBoundary.of(value)
    assert EgressBoundary.of(json.loads(json.dumps(boundary.as_dict()))) == boundary


@pytest.mark.parametrize("value", [None, {"allow_from": []}, {"allow_from": [{"podSelector": {}}], "engine": "core"}])
def test_plain_data_makes_the_same_ingress(value: t.Any) -> None:
    boundary = IngressBoundary.of(value)
    assert isinstance(boundary, IngressBoundary)
    assert IngressBoundary.of(json.loads(json.dumps(boundary.as_dict()))) == boundary
