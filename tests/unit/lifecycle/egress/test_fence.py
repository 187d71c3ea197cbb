# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The fence is what role ``admission_fence`` makes, and everything that weakens it has a name."""

from __future__ import annotations

import copy
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CILIUM_POLICY, NETWORK_POLICY
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress import fence

RULES = pathlib.Path(__file__).parents[4] / "roles" / "admission_fence" / "vars" / "main" / "egress.yml"

Spec = dict[str, t.Any]
Change = t.Callable[[Spec], object]

#: What the role binds, as the API server has it.
BOUND: Spec = {
    "policyName": "namzu-fence-egress",
    "validationActions": ["Deny"],
    "matchResources": {
        "matchPolicy": "Equivalent",
        "objectSelector": {},
        "namespaceSelector": {
            "matchExpressions": [{"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["agents", "more"]}]
        },
    },
}


@pytest.fixture(scope="module")
def rules() -> Spec:
    """The policy's spec as the role has it."""
    return dict(yaml.safe_load(RULES.read_text(encoding="utf-8"))["admission_fence_egress_rules"])


def judged(judge: t.Callable[..., None], spec: Spec, change: Change, namespace: str = "agents") -> None:
    changed = copy.deepcopy(spec)
    change(changed)
    judge({"spec": changed}, NETWORK_POLICY, namespace)


def nothing(_spec: Spec) -> None:
    """As it is."""


def test_fence_of_the_role_is_the_one_that_is_asked_for(rules: Spec) -> None:
    assert fence.fingerprint(rules) == fence.EXPRESSIONS


@pytest.mark.parametrize("kind", [NETWORK_POLICY, CILIUM_POLICY], ids=lambda kind: kind.name)
def test_fence_of_the_role_is_whole(rules: Spec, kind: t.Any) -> None:
    conditions = [{"name": "held", "expression": "true"}]
    fence.raise_if_weak_policy({"spec": {**rules, "matchConditions": conditions}}, kind, "agents")
    fence.raise_if_weak_binding({"spec": BOUND}, kind, "agents")


def test_white_space_and_messages_are_no_matter(rules: Spec) -> None:
    changed = copy.deepcopy(rules)
    for entry in changed["validations"]:
        entry["message"] = "another"
        entry["expression"] = entry["expression"].replace(" ", "\n  ") + "\n"
    assert fence.fingerprint(changed) == fence.EXPRESSIONS


def replace_expression(spec: Spec) -> None:
    spec["validations"][2]["expression"] = "true"


def drop_operation(spec: Spec) -> None:
    for rule in spec["matchConstraints"]["resourceRules"]:
        rule["operations"] = ["CREATE", "DELETE"]


def name_one(spec: Spec) -> None:
    for rule in spec["matchConstraints"]["resourceRules"]:
        rule["resourceNames"] = ["another"]


WEAKENED: dict[str, Change] = {
    "what fails is let through": lambda spec: spec.update(failurePolicy="Ignore"),
    "another expression": replace_expression,
    "an expression less": lambda spec: spec["validations"].pop(),
    "no expression": lambda spec: spec.pop("validations"),
    "another variable": lambda spec: spec["variables"][0].update(expression="true"),
    "parameters": lambda spec: spec.update(paramKind={"apiVersion": "v1", "kind": "ConfigMap"}),
    "no resources": lambda spec: spec["matchConstraints"].pop("resourceRules"),
    "no updates": drop_operation,
    "objects of some names": name_one,
    "objects with a label": lambda spec: spec["matchConstraints"].update(objectSelector={"matchLabels": {"a": "b"}}),
    "some resources left out": lambda spec: spec["matchConstraints"].update(
        excludeResourceRules=[{"resources": ["*"]}]
    ),
    "no match at all": lambda spec: spec.pop("matchConstraints"),
}


@pytest.mark.parametrize("change", WEAKENED.values(), ids=WEAKENED)
def test_weakened_policy_is_refused(rules: Spec, change: Change) -> None:
    with pytest.raises(fence.FenceWeakenedError) as caught:
        judged(fence.raise_if_weak_policy, rules, change)
    assert (caught.value.reason, caught.value.retryable) == ("fence-weakened", False)
    assert caught.value.object == "ValidatingAdmissionPolicy namzu-fence-egress"
    assert "admission_fence" in str(caught.value)


def select(spec: Spec, field: str, **expression: t.Any) -> None:
    entry = {"key": "kubernetes.io/metadata.name", **expression}
    spec.setdefault(field, {})["namespaceSelector"] = {"matchExpressions": [entry]}


BADLY_BOUND: dict[str, tuple[Change, str]] = {
    "another policy": (lambda spec: spec.update(policyName="another"), "fence-weakened"),
    "audit alone": (lambda spec: spec.update(validationActions=["Audit"]), "fence-not-denying"),
    "warnings alone": (lambda spec: spec.update(validationActions=["Warn", "Audit"]), "fence-not-denying"),
    "no action": (lambda spec: spec.pop("validationActions"), "fence-not-denying"),
    "parameters": (lambda spec: spec.update(paramRef={"name": "a"}), "fence-weakened"),
    "some resources": (
        lambda spec: spec["matchResources"].update(resourceRules=[{"resources": ["pods"], "operations": ["*"]}]),
        "fence-weakened",
    ),
    "some objects": (
        lambda spec: spec["matchResources"].update(objectSelector={"matchLabels": {"a": "b"}}),
        "fence-weakened",
    ),
    "left out resources": (
        lambda spec: spec["matchResources"].update(excludeResourceRules=[{}]),
        "fence-weakened",
    ),
    "a selector that nobody understands": (
        lambda spec: spec["matchResources"].update(namespaceSelector={"matchFields": []}),
        "fence-weakened",
    ),
    "other namespaces": (
        lambda spec: select(spec, "matchResources", operator="In", values=["other"]),
        "fence-elsewhere",
    ),
    "all namespaces but this": (
        lambda spec: select(spec, "matchResources", operator="NotIn", values=["agents"]),
        "fence-elsewhere",
    ),
}


@pytest.mark.parametrize(("change", "reason"), BADLY_BOUND.values(), ids=BADLY_BOUND)
def test_binding_that_does_not_hold_here_is_refused(change: Change, reason: str) -> None:
    with pytest.raises(fence.FenceError) as caught:
        judged(fence.raise_if_weak_binding, BOUND, change)
    assert (caught.value.reason, caught.value.object) == (reason, "ValidatingAdmissionPolicyBinding namzu-fence-egress")


@pytest.mark.parametrize(
    "change",
    [
        nothing,
        lambda spec: spec.pop("matchResources"),
        lambda spec: spec.update(validationActions=["Audit", "Deny"]),
        lambda spec: select(spec, "matchResources", operator="NotIn", values=["kube-system"]),
        # Which labels the namespace has is not read; the dry run tells.
        lambda spec: spec["matchResources"].update(namespaceSelector={"matchLabels": {"fenced": "true"}}),
    ],
    ids=["as made", "everywhere", "audit too", "everywhere but one", "by a label"],
)
def test_binding_that_may_hold_here_is_left_to_the_trial(change: Change) -> None:
    judged(fence.raise_if_weak_binding, BOUND, change)


def test_policy_that_leaves_the_namespace_out_is_refused(rules: Spec) -> None:
    with pytest.raises(fence.FenceElsewhereError):
        judged(
            fence.raise_if_weak_policy,
            rules,
            lambda spec: select(spec, "matchConstraints", operator="In", values=["b"]),
        )
