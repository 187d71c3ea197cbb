# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Sandbox that is made from a template, to the letter, and when one that stands there is another."""

from __future__ import annotations

import copy
import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import SANDBOX, Body, expires_at
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.direct import (
    Template,
    raise_if_other,
    sandbox_body,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.manifest import ManifestBuilder
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import ClaimMismatchError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.status import is_ready

REF = SANDBOX.ref("team-a", "build-1")
NOW = datetime.datetime(2026, 1, 31, 12, 0, 0, tzinfo=datetime.UTC)
LABEL = "sandbox.namzu.ai/template"
CLAIMS = [{"metadata": {"name": "work"}, "spec": {"accessModes": ["ReadWriteOnce"], "unknown": {"to": ["us"]}}}]
POD = {
    "metadata": {"labels": {"app": "python", "tier": "low", LABEL: "stale"}, "annotations": {"a": "b"}},
    "spec": {"runtimeClassName": "runc", "containers": [{"name": "agent", "image": "python:3.13"}]},
}


def request(**changes: t.Any) -> AcquireRequest:
    return AcquireRequest(**{"namespace": "team-a", "template": "python", **changes})


def body(claims: list[Body] | None = None, batch: str | None = None, **changes: t.Any) -> Body:
    return sandbox_body(
        ManifestBuilder(request(**changes), REF, "id-1", NOW, batch), Template("python", copy.deepcopy(POD), claims)
    )


def test_sandbox_is_what_the_controller_expects() -> None:
    made = body(CLAIMS, labels={"job": "1"}, pod_labels={"tier": "high"}, runtime_class="gvisor", ttl=90)
    assert made == {
        "apiVersion": "agents.x-k8s.io/v1beta1",
        "kind": "Sandbox",
        "metadata": {
            "name": "build-1",
            "namespace": "team-a",
            "labels": {"job": "1"},
            "annotations": {"sandbox.namzu.ai/acquire-id": "id-1"},
        },
        "spec": {
            "operatingMode": "Running",
            "service": True,
            "shutdownTime": "2026-01-31T12:01:30Z",
            "shutdownPolicy": "Delete",
            "volumeClaimTemplates": CLAIMS,
            "podTemplate": {
                "metadata": {"labels": {"app": "python", "tier": "high", LABEL: "python"}, "annotations": {"a": "b"}},
                "spec": {"runtimeClassName": "gvisor", "containers": [{"name": "agent", "image": "python:3.13"}]},
            },
        },
    }


def test_sandbox_asks_for_nothing_that_was_not_asked_for() -> None:
    made = body()
    assert set(made["spec"]) == {"operatingMode", "service", "shutdownTime", "shutdownPolicy", "podTemplate"}
    assert made["spec"]["podTemplate"]["spec"]["runtimeClassName"] == "runc"
    assert "labels" not in made["metadata"]


def test_label_of_the_template_wins_over_everybody() -> None:
    """Found: a pod label of this key put the pod under the policies of another template."""
    labels = body(pod_labels={LABEL: "another"})["spec"]["podTemplate"]["metadata"]["labels"]
    assert labels[LABEL] == "python"


def test_batch_label_stands_on_the_sandbox_and_not_on_its_pod() -> None:
    made = body(batch="b-1", labels={"job": "1"})
    assert made["metadata"]["labels"] == {"job": "1", "sandbox.namzu.ai/batch": "b-1"}
    assert "sandbox.namzu.ai/batch" not in made["spec"]["podTemplate"]["metadata"]["labels"]


def test_template_is_not_changed_by_what_is_made_from_it() -> None:
    template = Template("python", copy.deepcopy(POD), None)
    sandbox_body(ManifestBuilder(request(pod_labels={"x": "y"}, runtime_class="gvisor"), REF, "id", NOW), template)
    assert template.pod_template == POD


@pytest.mark.parametrize("pod", [{"spec": {}}, {"metadata": None, "spec": {}}, {"metadata": {}, "spec": {}}])
def test_template_without_labels_gets_ours(pod: Body) -> None:
    made = sandbox_body(ManifestBuilder(request(), REF, "id", NOW), Template("python", pod, None))
    assert made["spec"]["podTemplate"]["metadata"] == {"labels": {LABEL: "python"}}


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({}, "Exactly one of warm_pool and template"),
        ({"warm_pool": "pool", "template": "python"}, "Exactly one of warm_pool and template"),
        ({"warm_pool": "pool", "runtime_class": "gvisor"}, "runtime_class cannot be applied"),
        ({"template": "Python"}, "template is 'Python'"),
        ({"template": "python", "runtime_class": "a b"}, "runtime_class is 'a b'"),
    ],
)
def test_what_a_path_cannot_honour_is_refused_before_anything_is_sent(options: dict[str, t.Any], words: str) -> None:
    with pytest.raises(InputError, match=words):
        AcquireRequest(namespace="team-a", **options)


def test_sandbox_that_matches_is_taken() -> None:
    asked = {"labels": {"job": "1"}, "pod_labels": {"tier": "high"}, "runtime_class": "gvisor"}
    raise_if_other(body(**asked), REF, request(**asked), NOW)


def altered(**changes: t.Any) -> Body:
    """A sandbox of ours with metadata or spec overlaid."""
    made = body(labels={"job": "1"}, ttl=90)
    return {**made, **{part: {**made[part], **change} for part, change in changes.items()}}


@pytest.mark.parametrize(
    ("existing", "words"),
    [
        (altered(metadata={"annotations": {}}), "it was not acquired as a sandbox"),
        (altered(metadata={"annotations": None}), "it was not acquired as a sandbox"),
        (altered(metadata={"labels": {"job": "2"}}), "its label job is '2', not '1'"),
        (altered(metadata={"deletionTimestamp": "2026-01-31T11:00:00Z"}), "it is being deleted"),
        (altered(spec={"shutdownTime": "2026-01-31T12:00:00Z"}), "its lease ended at 2026-01-31T12:00:00Z"),
        (altered(spec={"podTemplate": None}), f"its pod label {LABEL} is None, not 'python'"),
        (altered(spec={"podTemplate": {"metadata": None, "spec": {}}}), f"its pod label {LABEL} is None"),
        (altered(spec={"podTemplate": {"metadata": {"labels": {LABEL: "go"}}}}), "is 'go', not 'python'"),
        ({"metadata": {}, "spec": None}, "it was not acquired as a sandbox"),
    ],
)
def test_sandbox_that_is_another_is_refused(existing: Body, words: str) -> None:
    with pytest.raises(ClaimMismatchError, match=words) as caught:
        raise_if_other(existing, REF, request(labels={"job": "1"}), NOW)
    assert (caught.value.reason, caught.value.object) == ("conflict", "Sandbox team-a/build-1")


def test_other_runtime_class_is_refused_only_when_one_was_asked_for() -> None:
    raise_if_other(body(), REF, request(), NOW)
    with pytest.raises(ClaimMismatchError, match="its runtime class is runc, not gvisor"):
        raise_if_other(body(), REF, request(runtime_class="gvisor"), NOW)


@pytest.mark.parametrize(
    ("conditions", "ready"),
    [
        ([{"type": "Ready", "status": "True"}], True),
        ([{"type": "Ready", "status": "False"}], False),
        ([{"type": "Other", "status": "True"}], False),
        (None, False),
    ],
)
def test_sandbox_is_ready_when_its_condition_says_so(conditions: t.Any, ready: bool) -> None:
    assert is_ready({"status": {"conditions": conditions}}) is ready


def test_sandbox_without_a_time_does_not_expire() -> None:
    assert expires_at({"spec": None}) is None
    assert expires_at(body(ttl=90)) == NOW + datetime.timedelta(seconds=90)
