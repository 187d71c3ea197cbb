# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The demo, as a newcomer runs it."""

from __future__ import annotations

import json

import pytest

pytestmark = pytest.mark.each_ansible

EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces"


@pytest.fixture
def given(namespace_name, image) -> dict[str, object]:
    """The demo's variables, for a namespace of the test's own."""
    return {"demo_namespace": namespace_name, "demo_image": image, "demo_replicas": 1}


def test_the_demo_from_first_run_to_removal(play, kube, namespace_name, given) -> None:
    first = play.command("namzu.sandbox.demo", "--extra-vars", json.dumps(given))
    assert first.returncode == 0, first.stdout + first.stderr
    assert "Egress stays within: " in first.stdout
    assert "Ingress stays within: " in first.stdout
    said_last = first.stdout.partition("PLAY RECAP")[0].rpartition("TASK [")[2]
    assert "uid 1000" in said_last
    assert "May I become root?                 no" in said_last
    assert "78498" in said_last
    assert kube.items(f"{EXTENSIONS}/{namespace_name}/sandboxclaims") == []

    second = play.playbook("namzu.sandbox.demo", variables=given)
    assert second.changes == [
        "Acquire a sandbox",
        "Run a program in it",
        "Release it, and wait until it is gone",
    ]

    play.playbook("namzu.sandbox.demo", variables={**given, "demo_state": "absent"})
    for path in (
        f"{EXTENSIONS}/{namespace_name}/sandboxwarmpools",
        f"{EXTENSIONS}/{namespace_name}/sandboxtemplates",
        f"/apis/networking.k8s.io/v1/namespaces/{namespace_name}/networkpolicies",
    ):
        assert kube.items(path) == []
    # The namespace is not called like the demo's own, so it stays.
    assert kube.get(f"/api/v1/namespaces/{namespace_name}") is not None


def test_a_demo_whose_program_fails_gives_the_sandbox_back(play, kube, namespace_name, given) -> None:
    ran = play.playbook("namzu.sandbox.demo", variables={**given, "demo_program": "raise SystemExit(3)"}, may_fail=True)
    assert ran["Run a program in it"]["rc"] == 3
    assert ran["Release it, and wait until it is gone"]["released"]
    assert ran.rc != 0
    assert kube.items(f"{EXTENSIONS}/{namespace_name}/sandboxclaims") == []
