# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role ``claimant`` grants what the core's table lists, and nothing else."""

from __future__ import annotations

import pathlib
import typing as t

import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.rules import (
    CILIUM,
    CLAIMANT,
    CLUSTER_POLICIES,
    DIRECT,
    EGRESS,
    EGRESS_CILIUM,
    EGRESS_CLUSTER,
    PORT_FORWARD,
    WORKSPACES,
    Rule,
)

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
    group, resource, verbs = PORT_FORWARD
    assert granted["claimant_port_forward_rules"] == [
        {"apiGroups": [group], "resources": [resource], "verbs": list(verbs)}
    ]


def test_what_is_granted_in_the_whole_cluster_is_reading_alone() -> None:
    assert {verb for rule in CLUSTER_POLICIES for verb in rule.verbs} == {"list"}
    assert {verb for rule in EGRESS_CLUSTER for verb in rule.verbs} == {"get"}


def test_no_rule_lets_a_claimant_write_what_binds_it() -> None:
    writing = {"create", "update", "patch", "delete", "deletecollection"}
    written = {rule.kind.name for rule in CLAIMANT if writing & set(rule.verbs)}
    assert written == {"SandboxClaim"}
