# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role ``claimant`` grants what the core's table lists, and nothing else."""

from __future__ import annotations

import datetime
import json
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.rbac import (
    CILIUM,
    CLAIMANT,
    CLUSTER_POLICIES,
    DIRECT,
    EGRESS,
    EGRESS_CILIUM,
    EGRESS_CLUSTER,
    OPTIONS,
    PORT_FORWARD,
    RUNTIME_CLASSES,
    WORKSPACES,
    Rule,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.responses import error_from_answer
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError

VARS = pathlib.Path(__file__).parents[2] / "roles" / "claimant" / "vars" / "main.yml"


def as_rbac(rules: tuple[Rule, ...]) -> list[dict[str, t.Any]]:
    return [
        {"apiGroups": [rule.kind.group], "resources": [rule.kind.plural], "verbs": list(rule.verbs)} for rule in rules
    ]


def test_role_grants_what_the_table_lists() -> None:
    granted = yaml.safe_load(VARS.read_text(encoding="utf-8"))
    assert granted["claimant_rules"] == as_rbac(CLAIMANT)
    assert granted["claimant_direct_rules"] == as_rbac(DIRECT)
    assert granted["claimant_workspaces_rules"] == as_rbac(WORKSPACES)
    assert granted["claimant_cilium_rules"] == as_rbac(CILIUM)
    assert granted["claimant_cluster_policies_rules"] == as_rbac(CLUSTER_POLICIES)
    assert granted["claimant_egress_rules"] == as_rbac(EGRESS)
    assert granted["claimant_egress_cilium_rules"] == as_rbac(EGRESS_CILIUM)
    assert granted["claimant_egress_cluster_rules"] == as_rbac(EGRESS_CLUSTER)
    assert granted["claimant_runtime_classes_rules"] == as_rbac(RUNTIME_CLASSES)
    group, resource, verbs = PORT_FORWARD
    assert granted["claimant_port_forward_rules"] == [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    ]


def rows(rules: t.Iterable[Rule], *options: str) -> set[tuple[str, str, str]]:
    named = " and ".join(f"`{option}`" for option in options)
    return {(named, f"`{rule.kind.plural}`", ", ".join(rule.verbs)) for rule in rules}


def test_tables_of_the_readme_are_the_rules() -> None:
    page = (VARS.parents[1] / "README.md").read_text(encoding="utf-8")
    lines = [line.strip("| ").split(" | ") for line in page.splitlines() if line.startswith("| `")]
    base = {("", row[0], row[1]) for row in lines if len(row) == 3}
    optional = {(row[0], row[1], row[2]) for row in lines if len(row) == 4}
    assert base == rows(CLAIMANT)
    _group, resource, verbs = PORT_FORWARD
    assert optional == {
        *rows(DIRECT, "claimant_direct"),
        *rows(WORKSPACES, "claimant_workspaces"),
        *rows(CILIUM, "claimant_cilium"),
        *rows(EGRESS, "claimant_egress"),
        *rows(EGRESS_CILIUM, "claimant_egress", "claimant_cilium"),
        ("`claimant_port_forward`", f"`{resource}`", ", ".join(verbs)),
    }


@pytest.mark.parametrize(
    ("verb", "resource", "step"),
    [
        ("create", "sandboxclaims", "role namzu.sandbox.claimant does."),
        ("create", "sandboxes", "does with claimant_direct or claimant_workspaces."),
        ("list", "persistentvolumeclaims", "does with claimant_workspaces."),
        ("patch", "networkpolicies", "does with claimant_egress."),
        ("create", "ciliumnetworkpolicies", "does with claimant_egress and claimant_cilium."),
        ("list", "clusternetworkpolicies", "does with claimant_cluster_policies."),
        ("get", "runtimeclasses", "does with claimant_runtime_classes."),
        ("create", "pods/portforward", "does with claimant_port_forward."),
        ("create", "pods", "Grant the missing rule"),
    ],
)
def test_refusal_names_the_option_that_grants_what_is_missing(verb: str, resource: str, step: str) -> None:
    said = f'{resource} "x" is forbidden: User "u" cannot {verb} resource "{resource}" in API group "g"'
    body = json.dumps({"kind": "Status", "reason": "Forbidden", "message": said}).encode()
    error = error_from_answer("GET", "/path", "an object", 403, {}, body, datetime.datetime.now(datetime.UTC))
    assert step in str(error.next_step)


def test_namespace_that_is_not_there_says_what_to_do() -> None:
    details = {"name": "nowhere", "kind": "namespaces"}
    body = json.dumps({"kind": "Status", "reason": "NotFound", "details": details}).encode()
    path = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/nowhere/sandboxclaims"
    error = error_from_answer("POST", path, "an object", 404, {}, body, datetime.datetime.now(datetime.UTC))
    assert error.__class__ is GoneError
    assert "Create the namespace" in str(error.next_step)


def test_every_option_that_a_refusal_may_name_is_one_of_the_role() -> None:
    defaults = yaml.safe_load((VARS.parents[1] / "defaults" / "main.yml").read_text(encoding="utf-8"))
    assert {word for option in OPTIONS for word in option.split(" and ")} < defaults.keys()


def test_what_is_granted_in_the_whole_cluster_is_reading_alone() -> None:
    assert {verb for rule in CLUSTER_POLICIES for verb in rule.verbs} == {"list"}
    assert {verb for rule in (*EGRESS_CLUSTER, *RUNTIME_CLASSES) for verb in rule.verbs} == {"get"}


def test_no_rule_lets_a_claimant_write_what_binds_it() -> None:
    writing = {"create", "update", "patch", "delete", "deletecollection"}
    written = {rule.kind.name for rule in CLAIMANT if writing & set(rule.verbs)}
    assert written == {"SandboxClaim"}
