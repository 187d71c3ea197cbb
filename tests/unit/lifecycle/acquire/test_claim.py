# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The claim that is sent, and what the controller's answer means."""

from __future__ import annotations

import datetime
import typing as t

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, SANDBOX, Body, expires_at
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.claim import (
    claim_body,
    raise_if_other,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.manifest import ManifestBuilder
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.unique_name import name_in_use
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError, ClaimMismatchError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.status import (
    EXPIRED_REASONS,
    TERMINAL_REASONS,
    bound_sandbox,
    raise_if_decided,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.timestamps import timestamp

REF = CLAIM.ref("team-a", "build-1")
NOW = datetime.datetime(2026, 1, 31, 12, 0, 0, tzinfo=datetime.UTC)
LABELS = st.dictionaries(st.from_regex(r"[a-z]{1,9}", fullmatch=True), st.from_regex(r"[a-z]{0,9}", fullmatch=True))


def request(**changes: t.Any) -> AcquireRequest:
    return AcquireRequest(**{"namespace": "team-a", "warm_pool": "python", **changes})


def ready(status: str, reason: str, sandbox: str | None = None) -> Body:
    conditions = [{"type": "Other", "status": "True"}, {"type": "Ready", "status": status, "reason": reason}]
    return {"status": {"conditions": conditions, "sandbox": {"name": sandbox} if sandbox else {}}}


@given(LABELS, LABELS, st.floats(min_value=10, max_value=1e8))
def test_claim_is_pristine_whatever_is_asked_for(labels: dict[str, str], pod: dict[str, str], ttl: float) -> None:
    spec = claim_body(ManifestBuilder(request(labels=labels, pod_labels=pod, ttl=ttl), REF, "id", NOW))["spec"]
    assert set(spec) <= {"warmPoolRef", "lifecycle", "additionalPodMetadata"}
    assert set(spec["lifecycle"]) == {"shutdownTime", "shutdownPolicy"}
    assert set(spec.get("additionalPodMetadata", {})) <= {"labels"}


def test_claim_is_what_the_controller_expects() -> None:
    body = claim_body(
        ManifestBuilder(request(labels={"job": "1"}, pod_labels={"x.io/a": "b"}, ttl=90), REF, "id-1", NOW)
    )
    assert body == {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxClaim",
        "metadata": {
            "name": "build-1",
            "namespace": "team-a",
            "labels": {"job": "1"},
            "annotations": {"sandbox.namzu.ai/acquire-id": "id-1"},
        },
        "spec": {
            "warmPoolRef": {"name": "python"},
            "lifecycle": {"shutdownTime": "2026-01-31T12:01:30Z", "shutdownPolicy": "Delete"},
            "additionalPodMetadata": {"labels": {"x.io/a": "b"}},
        },
    }


def test_claim_without_labels_has_none() -> None:
    body = claim_body(ManifestBuilder(request(), REF, "id", NOW))
    assert "labels" not in body["metadata"]
    assert "additionalPodMetadata" not in body["spec"]


MOMENTS = st.datetimes(datetime.datetime(1970, 1, 2), datetime.datetime(9000, 1, 1))  # noqa: DTZ001 - a zone comes later
ZONES = st.integers(min_value=-720, max_value=720).map(
    lambda minutes: datetime.timezone(datetime.timedelta(minutes=minutes))
)


@given(MOMENTS, ZONES)
def test_timestamp_never_shortens_a_lease_and_adds_less_than_a_second(
    moment: datetime.datetime, zone: datetime.timezone
) -> None:
    moment = moment.replace(tzinfo=zone)
    written = datetime.datetime.fromisoformat(timestamp(moment))
    assert datetime.timedelta(0) <= written - moment < datetime.timedelta(seconds=1)
    assert written.microsecond == 0


@pytest.mark.parametrize(
    ("microsecond", "text"),
    [(0, "2026-01-31T12:00:00Z"), (1, "2026-01-31T12:00:01Z"), (999999, "2026-01-31T12:00:01Z")],
)
def test_timestamp_is_rounded_up(microsecond: int, text: str) -> None:
    assert timestamp(NOW.replace(microsecond=microsecond)) == text


def test_expiry_is_read_back() -> None:
    body = claim_body(ManifestBuilder(request(ttl=3600), REF, "id", NOW))
    assert expires_at(body) == NOW + datetime.timedelta(hours=1)


@pytest.mark.parametrize("body", [{}, {"spec": {}}, {"spec": {"lifecycle": None}}, {"spec": {"lifecycle": {}}}])
def test_claim_without_an_expiry_has_none(body: Body) -> None:
    assert expires_at(body) is None


@pytest.mark.parametrize(
    ("claim", "sandbox"),
    [
        ({}, None),
        ({"status": None}, None),
        ({"status": {"conditions": None}}, None),
        ({"status": {"sandbox": {"name": "python-1"}}}, None),
        (ready("False", "SandboxNotReady", "python-1"), None),
        (ready("Unknown", "SandboxNotReady", "python-1"), None),
        (ready("True", "DependenciesReady"), None),
        (ready("True", "DependenciesReady", "python-1"), "python-1"),
    ],
)
def test_claim_is_bound_only_when_it_is_ready_and_names_its_sandbox(claim: Body, sandbox: str | None) -> None:
    assert bound_sandbox(claim, REF) == sandbox


@pytest.mark.parametrize("reason", sorted(TERMINAL_REASONS | EXPIRED_REASONS))
def test_decision_is_refused_with_the_controllers_words(reason: str) -> None:
    claim = ready("False", reason)
    claim["status"]["conditions"][1]["message"] = "its words"
    with pytest.raises(AcquireError) as caught:
        raise_if_decided(claim, REF)
    error = caught.value
    assert (error.reason, error.retryable, error.controller_reason) == ("claim-rejected", False, reason)
    assert error.controller_message == "its words"
    assert error.next_step is not None
    assert error.fields()["controller_reason"] == reason


@pytest.mark.parametrize(
    "reason",
    ["ReconcilerError", "SandboxNotReady", "AdoptionConflict", "SandboxCreatePending", "SandboxMissing", "New"],
)
def test_delay_is_waited_for(reason: str) -> None:
    raise_if_decided(ready("False", reason), REF)


def test_metadata_conflict_is_a_decision_though_the_controller_tries_again() -> None:
    """agent-sandbox issue 574: it arrives as the ReconcilerError of everything that is repeated."""
    claim = ready("False", "ReconcilerError")
    words = 'Error seen: metadata override conflict: label "a" is defined in template with value "b"'
    claim["status"]["conditions"][1]["message"] = words
    with pytest.raises(AcquireError) as caught:
        raise_if_decided(claim, REF)
    assert (caught.value.reason, caught.value.retryable) == ("claim-rejected", False)
    assert (caught.value.controller_reason, caught.value.controller_message) == ("ReconcilerError", words)
    assert "pod_labels" in str(caught.value)


def test_reason_of_a_ready_claim_decides_nothing() -> None:
    raise_if_decided(ready("True", "WarmPoolNotFound", sandbox="python-1"), REF)


def test_label_of_a_foreign_domain_is_pointed_to_the_setting() -> None:
    with pytest.raises(AcquireError) as caught:
        raise_if_decided(ready("False", "InvalidMetadata"), REF)
    assert "allowed-label-domains" in str(caught.value)


def existing(**changes: t.Any) -> Body:
    """The claim of an earlier, equal acquire, with changes to its parts."""
    wanted = request(labels={"job": "1"}, pod_labels={"x.io/a": "b"})
    body = claim_body(ManifestBuilder(wanted, REF, "other", NOW))
    for path, value in changes.items():
        *parents, last = path.split("__")
        part = body
        for parent in parents:
            part = part[parent]
        part[last] = value
    return body


@pytest.mark.parametrize(
    "changes",
    [
        {},
        {"metadata__labels": {"job": "1", "added": "by somebody"}},
        {"spec__lifecycle": {}},
        {"spec__lifecycle__shutdownTime": "2026-01-31T12:00:01Z"},
        {"spec__lifecycle__shutdownTime": "2027-01-31T13:00:00+01:00"},
    ],
    ids=str,
)
def test_claim_that_matches_is_taken(changes: dict[str, t.Any]) -> None:
    raise_if_other(existing(**changes), REF, request(labels={"job": "1"}, pod_labels={"x.io/a": "b"}), NOW)


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"spec__warmPoolRef": {"name": "node"}}, "its warm pool is node, not python"),
        ({"spec__warmPoolRef": None}, "its warm pool is None, not python"),
        ({"metadata__labels": {"job": "2"}}, "its label job is '2', not '1'"),
        ({"metadata__labels": None}, "its label job is None, not '1'"),
        ({"spec__additionalPodMetadata": {"labels": {}}}, "its pod label x.io/a is None, not 'b'"),
        ({"spec__additionalPodMetadata": None}, "its pod label x.io/a is None, not 'b'"),
        ({"metadata__deletionTimestamp": "2026-01-31T11:59:59Z"}, "it is being deleted"),
        ({"spec__lifecycle__shutdownTime": "2026-01-31T12:00:00Z"}, "its lease ended at 2026-01-31T12:00:00Z"),
    ],
    ids=str,
)
def test_claim_that_differs_is_refused_with_the_difference(changes: dict[str, t.Any], words: str) -> None:
    with pytest.raises(ClaimMismatchError) as caught:
        raise_if_other(existing(**changes), REF, request(labels={"job": "1"}, pod_labels={"x.io/a": "b"}), NOW)
    assert words in str(caught.value)
    assert (caught.value.reason, caught.value.object) == ("conflict", "SandboxClaim team-a/build-1")


def test_every_difference_is_named() -> None:
    other = existing(spec__warmPoolRef={"name": "node"}, metadata__labels={})
    with pytest.raises(ClaimMismatchError) as caught:
        raise_if_other(other, REF, request(labels={"job": "1"}), NOW)
    assert "its warm pool is node" in str(caught.value)
    assert "its label job is None" in str(caught.value)


def test_a_conflict_has_the_end_of_the_lease() -> None:
    other = existing(spec__warmPoolRef={"name": "node"}, spec__lifecycle={"shutdownTime": "2026-01-02T03:04:05Z"})
    with pytest.raises(ClaimMismatchError) as caught:
        raise_if_other(other, REF, request(), NOW)
    assert "Its lease ends at 2026-01-02T03:04:05Z." in str(caught.value)
    in_use = name_in_use(SANDBOX.ref(REF.namespace, REF.name), existing(spec__lifecycle=None))
    assert "It does not expire." in str(in_use)
