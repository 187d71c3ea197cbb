# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Why a claim did not become ready: the pod's word, then the controller's, then the API server's."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, Body, ObjectRef
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ApiAnswerError,
    ApiTimeoutError,
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    GoneError,
    InvalidError,
    SandboxError,
    UnavailableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.diagnosis import explain, not_ready

PODS = pathlib.Path(__file__).parent / "pods"
REF = CLAIM.ref("team-a", "build-1")


class PodReader:
    """A client that has one pod, or fails."""

    clock = SYSTEM_CLOCK

    def __init__(self, pod: Body | SandboxError | None) -> None:
        self.asked: list[str] = []
        self._pod = pod

    def get(self, ref: ObjectRef, _deadline: Deadline) -> Body:
        self.asked.append(str(ref))
        if isinstance(self._pod, SandboxError):
            raise self._pod
        assert self._pod is not None
        return self._pod


def pod(name: str) -> Body:
    loaded: Body = yaml.safe_load((PODS / f"{name}.yaml").read_text())
    return loaded


def claim(message: str | None = "Pod is not ready", sandbox: str | None = "python-1") -> Body:
    ready = {"type": "Ready", "status": "False", "reason": "SandboxNotReady", "message": message}
    status: Body = {"conditions": [ready], "sandbox": {"name": sandbox} if sandbox else {}}
    return {"metadata": {"name": "build-1"}, "status": status}


def diagnosis(reader: PodReader, body: Body) -> AcquireError:
    return not_ready(t.cast("t.Any", reader), REF, body, Deadline(60.0))


@pytest.mark.parametrize(
    ("name", "reason", "retryable", "words"),
    [
        ("unschedulable", "capacity", True, "3 Insufficient cpu"),
        ("err-image-pull", "image-pull", False, "registry.example/missing:1"),
        ("init-image-pull-backoff", "image-pull", False, "registry.example/missing:2"),
        ("crash-loop", "not-ready", True, "container sandbox ended with exit code 137 (OOMKilled), restarted 3 times"),
        ("ended-init", "not-ready", False, 'prepare ended with exit code 2 (StartError: exec: "prepare": executable'),
        ("starting", "not-ready", True, "Pod is not ready"),
        ("without-status", "not-ready", True, "Pod is not ready"),
    ],
)
def test_pod_says_why(name: str, reason: str, retryable: bool, words: str) -> None:
    error = diagnosis(PodReader(pod(name)), claim())
    assert (error.reason, error.retryable) == (reason, retryable)
    assert words in str(error)
    assert (error.controller_reason, error.controller_message) == ("SandboxNotReady", "Pod is not ready")
    assert error.object == "SandboxClaim team-a/build-1"


@pytest.mark.parametrize("reason", ["ImagePullBackOff", "InvalidImageName", "ErrImageNeverPull", "RegistryUnavailable"])
def test_every_word_for_a_missing_image_is_known(reason: str) -> None:
    body = pod("err-image-pull")
    body["status"]["containerStatuses"][1]["state"]["waiting"]["reason"] = reason
    assert diagnosis(PodReader(body), claim()).reason == "image-pull"


@pytest.mark.parametrize(
    "message",
    ['pods "python-1" is forbidden: exceeded quota: compute, requested: cpu=1, used: cpu=4', "failed quota: compute"],
)
def test_quota_is_said_and_is_not_mistaken_for_capacity(message: str) -> None:
    reader = PodReader(pod("unschedulable"))
    error = diagnosis(reader, claim(message))
    assert (error.reason, error.retryable) == ("quota", True)
    assert message in str(error)
    assert reader.asked == []


def test_pod_that_a_gate_holds_lacks_capacity_and_names_the_gate() -> None:
    held = {"spec": {"schedulingGates": [{"name": "example.com/hold"}]}, "status": {"phase": "Pending"}}
    error = diagnosis(PodReader(held), claim())
    assert (error.reason, error.retryable) == ("capacity", True)
    assert "example.com/hold" in error.message


def test_claim_without_a_status_says_so() -> None:
    error = diagnosis(PodReader(None), {"metadata": {"name": "build-1"}})
    assert (error.reason, error.controller_reason) == ("not-ready", None)
    assert "the controller has not answered (no status)" in str(error)


def test_claim_without_a_sandbox_asks_no_pod() -> None:
    reader = PodReader(None)
    assert diagnosis(reader, claim(sandbox=None)).reason == "not-ready"
    assert reader.asked == []


def test_pod_that_cannot_be_read_changes_nothing() -> None:
    reader = PodReader(CredentialError("no", status=403))
    assert diagnosis(reader, claim()).reason == "not-ready"
    assert reader.asked == ["Pod team-a/python-1"]


@pytest.mark.parametrize(
    ("error", "reason", "retryable"),
    [
        (CredentialError("m", status=401), "forbidden", False),
        (CredentialError("m", status=403), "forbidden", False),
        (CredentialError("m", status=403, api_message="exceeded quota: q"), "quota", True),
        (UnavailableError("m", status=503), "api-unreachable", True),
        (ApiUnreachableError("m"), "api-unreachable", True),
        (ApiUnreachableError("m", retryable=False), "api-unreachable", False),
        (ApiTimeoutError("m"), "api-timeout", True),
        (ApiAnswerError("m"), "api-unreachable", True),
    ],
)
def test_failed_request_becomes_the_reason(error: SandboxError, reason: str, retryable: bool) -> None:
    explained = explain(error, REF)
    assert explained.__class__ is AcquireError
    assert (explained.reason, explained.retryable, explained.object) == (reason, retryable, str(REF))


@pytest.mark.parametrize(
    "error",
    [
        ConflictError("m", status=409),
        GoneError("m", status=404),
        InvalidError("m", status=422),
        AcquireError("m", reason="capacity", retryable=True),
    ],
)
def test_what_is_said_already_stays_as_it_is(error: SandboxError) -> None:
    assert explain(error, REF) is error
