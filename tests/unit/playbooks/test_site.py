# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook ``site`` checks every variable of every role before its first change."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from .running import run

GIVEN = {"site_controller": True, "template_image": "registry.example.com/python:3"}


@pytest.mark.parametrize(
    "wrong",
    [
        {"warm_pool_wait_for": 5},
        {"template_env": {"NAME": "value"}},
        {"template_run_as_user": 0},
        {"template_agent_roots": ["relative"]},
        {"template_volume_claim_templates": "none"},
        {"boundary_egress": "nonsense"},
        {"boundary_ingress_from": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]},
        {"claimant_subjects": "team"},
        {"namespace_wait_timeout": "soon"},
        {"warm_pool_update_strategy": "Never"},
        {"site_state": "gone"},
    ],
    ids=lambda wrong: next(iter(wrong)),
)
def test_wrong_variables_fail_before_anything_is_changed(tmp_path: pathlib.Path, wrong: dict[str, t.Any]) -> None:
    # Without a cluster, so that a task that asks for one fails under its own name.
    manifest = tmp_path / "release.yaml"
    ran = run("namzu.sandbox.site", tmp_path, **{**GIVEN, "controller_manifests": [{"src": str(manifest)}], **wrong})
    assert ran.code == 2
    failed = [name for name, result in ran.tasks if result.get("failed")]
    assert len(failed) == 1
    assert failed[0].partition(" : ")[2].startswith("Check") or failed[0].startswith("Check"), ran.tasks[-1]
    assert next(iter(wrong)) in str(ran.tasks[-1])
