# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each pod against the boundary of its template: which policies are that boundary, and what is beyond it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.named import Profile, policy_labels
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import (
    translate,
    translate_ingress,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import World
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.direct import name_hash
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.check.check import Asked, Checked, Subject, check
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.check.planned import (
    TEMPLATE_HASH_LABEL,
    managed_policy,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import IngressBoundary

PYTHON = policy_labels("python")
CALLERS = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "awx"}}}]
INGRESS = translate_ingress(CALLERS, namespace="agents", name="namzu-python-ingress", labels=PYTHON)
TEMPLATE = {"metadata": {"name": "python", "namespace": "agents"}, "spec": {}}


def egress(kind: str, name: str = "namzu-python-egress", labels: dict[str, str] | None = None, **more: t.Any) -> t.Any:
    labels = PYTHON if labels is None else labels
    return translate(kind, namespace="agents", name=name, labels=labels, **more)


def checked(*policies: t.Any, labels: dict[str, str] | None = None, engine: str | None = None) -> Checked:
    metadata = {"name": "one", "namespace": "agents", "labels": PYTHON if labels is None else labels}
    pod = {"apiVersion": "v1", "kind": "Pod", "metadata": metadata, "spec": {"containers": []}}
    world = World.read([pod, *policies])
    asked = Asked(None, IngressBoundary(engine=engine), template_boundary=True)
    return check(world, Subject("one", world.pod("agents/one")), asked)


def policies_of_findings(found: Checked) -> dict[str, list[str | None]]:
    sides = {"egress": found.egress, "ingress": found.ingress}
    return {way: [one.policy for one in side.findings + side.undecided] for way, side in sides.items() if side}


@pytest.mark.parametrize("kind", ["no_network", "dns_only", "public_internet", "allow_all"])
def test_a_pod_with_the_boundary_of_its_template_alone_holds(kind: str) -> None:
    found = checked(egress(kind), INGRESS)
    assert found.holds
    assert found.egress is not None
    assert "NetworkPolicy agents/namzu-python-egress" in found.egress.request


def test_the_same_traffic_in_a_second_policy_is_not_beyond_the_boundary() -> None:
    assert checked(egress("public_internet"), egress("dns_only", name="dns"), INGRESS).holds


def test_what_a_second_policy_adds_is_a_finding_that_names_it() -> None:
    found = checked(egress("dns_only"), egress("public_internet", name="web"), INGRESS)
    assert policies_of_findings(found) == {"egress": ["NetworkPolicy agents/web"], "ingress": []}


def test_a_policy_of_another_template_is_not_the_boundary() -> None:
    found = checked(egress("public_internet", name="namzu-node-egress"), INGRESS)
    assert set(policies_of_findings(found)["egress"]) == {"NetworkPolicy agents/namzu-node-egress"}


def test_a_profile_is_part_of_the_boundary_of_the_pods_that_carry_it() -> None:
    profile = Profile("packages")
    labels = policy_labels("python", profile)
    packages = egress("public_internet", name="namzu-python-packages-egress", labels=labels)
    assert checked(egress("dns_only"), packages, INGRESS, labels=labels).holds
    for_all = {**packages, "spec": {**packages["spec"], "podSelector": {}}}
    assert policies_of_findings(checked(egress("dns_only"), for_all, INGRESS))["egress"] == [
        "NetworkPolicy agents/namzu-python-packages-egress"
    ]


def test_the_policy_that_the_controller_makes_for_a_template_is_a_boundary() -> None:
    made = managed_policy(TEMPLATE)
    assert checked(made, labels={TEMPLATE_HASH_LABEL: name_hash("python")}).holds
    other = {**t.cast("dict[str, t.Any]", made), "metadata": {"name": "node-network-policy", "namespace": "agents"}}
    assert not checked(other, labels={TEMPLATE_HASH_LABEL: name_hash("python")}).holds


@pytest.mark.parametrize("labels", [PYTHON, {"app": "db"}], ids=["template without a policy", "no template"])
def test_a_pod_without_a_boundary_must_reach_nothing(labels: dict[str, str]) -> None:
    assert policies_of_findings(checked(labels=labels)) == {"egress": [None], "ingress": [None]}
    closed = {"kind": "NetworkPolicy", "metadata": {"name": "closed", "namespace": "agents"}}
    spec = {"podSelector": {}, "policyTypes": ["Egress", "Ingress"]}
    assert checked({**closed, "apiVersion": "networking.k8s.io/v1", "spec": spec}, labels=labels).holds


def test_an_ingress_boundary_that_lets_everyone_in_does_not_hold() -> None:
    everyone = {**INGRESS, "spec": {**INGRESS["spec"], "ingress": [{}]}}
    assert policies_of_findings(checked(egress("dns_only"), everyone))["ingress"] == [
        "NetworkPolicy agents/namzu-python-ingress"
    ]


def test_a_cilium_policy_is_a_boundary_under_cilium() -> None:
    hosts = {"kind": "hosts", "hosts": ["pypi.org"]}
    boundary = translate(hosts, namespace="agents", name="namzu-python-egress", labels=PYTHON, engine="cilium")
    ingress = translate_ingress(
        CALLERS, namespace="agents", name="namzu-python-ingress", labels=PYTHON, engine="cilium"
    )
    assert checked(boundary, ingress, engine="cilium").holds
    wide = translate("public_internet", namespace="agents", name="web", labels=PYTHON, engine="cilium")
    found = policies_of_findings(checked(boundary, ingress, wide, engine="cilium"))
    assert set(found["egress"]) == {"CiliumNetworkPolicy agents/web"}
