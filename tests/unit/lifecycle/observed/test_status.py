# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every Ready reason of the controller is a decision with a reason of ours, or a delay."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, SANDBOX, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.status import raise_if_decided

REF = CLAIM.ref("team-a", "build-1")

#: Ready reason to the reason of the error, or None for a delay. Sources: the conditions of agent-sandbox v0.5.6 and the
#: reasons that its client 1.0.8 takes for terminal.
REASONS: dict[str, str | None] = {
    "WarmPoolNotFound": "claim-rejected",
    "TemplateNotFound": "claim-rejected",
    "InvalidMetadata": "claim-rejected",
    "InvalidConfiguration": "claim-rejected",
    "EnvVarsInjectionRejected": "claim-rejected",
    "VolumeClaimTemplatesError": "claim-rejected",
    "ClaimExpired": "claim-rejected",
    "SandboxExpired": "claim-rejected",
    "PodFailed": "not-ready",
    "PodSucceeded": "not-ready",
    "MultiplePods": "not-ready",
    "DependenciesNotReady": None,
    "SandboxNotReady": None,
    "SandboxMissing": None,
    "SandboxCreatePending": None,
    "AdoptionConflict": None,
    "ReconcilerError": None,
    "SandboxSuspended": None,
}


def claim(status: str, reason: str, **fields: t.Any) -> Body:
    ready = {"type": "Ready", "status": status, "reason": reason, "message": "the message"}
    return {"metadata": {"name": "build-1"}, "status": {"conditions": [ready], "sandbox": {"name": "p-1"}}, **fields}


def error_of(body: Body) -> AcquireError | None:
    try:
        raise_if_decided(body, REF)
    except AcquireError as error:
        return error
    return None


@pytest.mark.parametrize(("reason", "expected"), REASONS.items())
def test_reason_of_the_controller_is_a_decision_or_a_delay(reason: str, expected: str | None) -> None:
    error = error_of(claim("False", reason))
    if expected is None:
        assert error is None
        return
    assert error is not None
    assert (error.reason, error.retryable, error.controller_reason) == (expected, False, reason)
    assert error.controller_message == "the message"
    assert error_of(claim("True", reason)) is None


def test_refused_metadata_shows_the_labels_that_were_sent() -> None:
    spec = {"additionalPodMetadata": {"labels": {"example.com/team": "a", "b": "c"}}}
    error = error_of(claim("False", "InvalidMetadata", spec=spec))
    assert error is not None
    assert "example.com/team=a, b=c" in error.message


@pytest.mark.parametrize("status", [{}, {"sandbox": None}, {"sandbox": {"name": ""}}])
def test_claim_that_is_ready_and_names_no_sandbox_fails_at_once(status: Body) -> None:
    body = claim("True", "DependenciesReady")
    body["status"] = {"conditions": body["status"]["conditions"], **status}
    error = error_of(body)
    assert error is not None
    assert (error.reason, error.retryable) == ("not-ready", False)
    raise_if_decided(body, SANDBOX.ref("team-a", "build-1"))
