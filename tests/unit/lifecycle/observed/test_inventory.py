# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What stands in a namespace: which objects count, in which phase they are, and in whose words."""

from __future__ import annotations

import datetime
import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import Body, Kind
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import CredentialError, UnavailableError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.inventory import (
    SandboxInfo,
    list_sandboxes,
)

PODS = pathlib.Path(__file__).parent / "pods"
NOW = datetime.datetime(2026, 1, 31, 12, 0, 0, tzinfo=datetime.UTC)
CREATED = "2026-01-31T11:00:00Z"
LATER = "2026-01-31T13:00:00Z"
EARLIER = "2026-01-31T11:59:59Z"


class FixedClock:
    """A clock that stands at NOW, on which nobody waits."""

    def monotonic(self) -> float:
        return SYSTEM_CLOCK.monotonic()

    def now(self) -> datetime.datetime:
        return NOW

    def sleep(self, seconds: float) -> None:
        """Do not wait."""


class Lists:
    """A client that lists what it is made of, by plural; each item is a body, or an error for the next list."""

    clock = FixedClock()

    def __init__(self, **objects: list[t.Any]) -> None:
        self.asked: list[tuple[str, str, str | None]] = []
        self._objects = objects

    def list(self, kind: Kind, namespace: str, *, label_selector: str | None = None, deadline: Deadline) -> Body:
        self.asked.append((kind.plural, namespace, label_selector))
        found = self._objects.get(kind.plural, [])
        if found and isinstance(found[0], Exception):
            raise found.pop(0)
        wanted = dict([label_selector.split("=")]) if label_selector else {}
        items = [body for body in found if wanted.items() <= (body["metadata"].get("labels") or {}).items()]
        return {"items": items}


def ready(status: str, reason: str = "Because", message: str = "its words") -> Body:
    return {"conditions": [{"type": "Ready", "status": status, "reason": reason, "message": message}]}


def claim(name: str = "build-1", bound: str | None = "python-1", status: Body | None = None, **metadata: t.Any) -> Body:
    status = ready("True") if status is None else dict(status)
    if bound:
        status["sandbox"] = {"name": bound}
    spec = {"warmPoolRef": {"name": "python"}, "lifecycle": {"shutdownTime": LATER}}
    about = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", "creationTimestamp": CREATED, **metadata}
    return {"metadata": about, "spec": spec, "status": status}


def sandbox(name: str = "python-1", owner: str | None = "SandboxClaim", **metadata: t.Any) -> Body:
    about: Body = {"name": name, "namespace": "team-a", "uid": f"uid-{name}", "creationTimestamp": CREATED, **metadata}
    if owner:
        about["ownerReferences"] = [{"kind": owner, "name": "x"}]
    else:
        about.setdefault("annotations", {"sandbox.namzu.ai/acquire-id": "of-somebody"})
    pod = {"metadata": {"labels": {"sandbox.namzu.ai/template": "python-3"}}}
    return {
        "metadata": about,
        "spec": {"podTemplate": pod, "shutdownTime": LATER},
        "status": {**ready("True"), "serviceFQDN": f"{name}.team-a.svc.cluster.local"},
    }


def pod(name: str = "python-1", **status: t.Any) -> Body:
    about = {"name": name, "uid": "pod-1"}
    return {"metadata": about, "spec": {"nodeName": "node-1"}, "status": {"podIP": "10.0.0.7", **status}}


def existing(*, query: t.Mapping[str, str] | None = None, **objects: list[t.Any]) -> list[SandboxInfo]:
    client: t.Any = Lists(**objects)
    return list_sandboxes(client, "team-a", Deadline(5.0, client.clock), **(query or {}))


def one(**objects: list[t.Any]) -> SandboxInfo:
    (found,) = existing(**objects)
    return found


def test_claim_says_all_that_its_objects_say() -> None:
    launched = sandbox(labels={"agents.x-k8s.io/launch-type": "warm"})
    found = one(sandboxclaims=[claim(labels={"job": "1"})], sandboxes=[launched], pods=[pod()])
    assert found == SandboxInfo(
        name="build-1",
        namespace="team-a",
        kind="claim",
        uid="uid-build-1",
        labels={"job": "1"},
        warm_pool="python",
        template=None,
        workspace_id=None,
        sandbox="python-1",
        pod="python-1",
        service="python-1.team-a.svc.cluster.local",
        pod_ip="10.0.0.7",
        node="node-1",
        warm=True,
        phase="ready",
        reason=None,
        message=None,
        created_at=NOW - datetime.timedelta(hours=1),
        expires_at=NOW + datetime.timedelta(hours=1),
        age=3600.0,
        lease_left=3600.0,
    )


def test_direct_sandbox_says_all_that_its_objects_say() -> None:
    found = one(sandboxes=[sandbox("build-2", owner=None)], pods=[pod("build-2")])
    assert (found.name, found.kind, found.sandbox, found.pod) == ("build-2", "direct", "build-2", "build-2")
    assert (found.warm_pool, found.template, found.warm, found.phase) == (None, "python-3", False, "ready")


@pytest.mark.parametrize("annotations", [{}, {"other": "1"}, {"sandbox.namzu.ai/acquire-id": ""}, None])
def test_sandbox_that_no_acquire_made_is_unmanaged(annotations: Body | None) -> None:
    """Found: every Sandbox without an owner, a workspace too, was called direct."""
    assert one(sandboxes=[sandbox("build-2", owner=None, annotations=annotations)]).kind == "unmanaged"


@pytest.mark.parametrize(("launch", "warm"), [("warm", True), ("cold", False), (None, None)])
def test_claim_is_warm_as_the_controller_has_labelled_its_sandbox(launch: str | None, warm: bool | None) -> None:
    labels = {"agents.x-k8s.io/launch-type": launch} if launch else None
    assert one(sandboxclaims=[claim()], sandboxes=[sandbox(labels=labels)]).warm is warm


EXPIRED = {**claim(), "spec": {"lifecycle": {"shutdownTime": EARLIER}}}


@pytest.mark.parametrize(
    ("body", "phase", "reason"),
    [
        (claim(), "ready", None),
        (claim(status=ready("False", "DependenciesNotReady")), "pending", "DependenciesNotReady"),
        (claim(status={"conditions": None}), "pending", None),
        (claim(status=ready("False", "SandboxSuspended")), "suspended", "SandboxSuspended"),
        (claim(status=ready("False", "ClaimExpired")), "expired", "ClaimExpired"),
        (claim(status=ready("False", "SandboxExpired")), "expired", "SandboxExpired"),
        (EXPIRED, "expired", None),
        (claim(status=ready("False", "PodSucceeded")), "finished", "PodSucceeded"),
        (claim(status=ready("False", "PodFailed")), "failed", "PodFailed"),
        (claim(status=ready("False", "MultiplePods")), "failed", "MultiplePods"),
        (claim(bound=None, status=ready("False", "WarmPoolNotFound")), "rejected", "WarmPoolNotFound"),
        (claim(bound=None, status=ready("False", "TemplateNotFound")), "rejected", "TemplateNotFound"),
        (claim(bound=None, status=ready("False", "InvalidMetadata")), "rejected", "InvalidMetadata"),
        (claim(bound=None, status=ready("False", "EnvVarsInjectionRejected")), "rejected", "EnvVarsInjectionRejected"),
        (claim(deletionTimestamp=CREATED), "terminating", None),
        (claim(status=ready("False", "PodFailed"), deletionTimestamp=CREATED), "terminating", "PodFailed"),
    ],
)
def test_phase_is_what_the_claim_says(body: Body, phase: str, reason: str | None) -> None:
    found = one(sandboxclaims=[body], sandboxes=[sandbox()], pods=[pod()])
    assert (found.phase, found.reason) == (phase, reason)
    assert found.message == ("its words" if reason else None)


def test_claim_whose_sandbox_is_being_deleted_is_terminating() -> None:
    found = one(sandboxclaims=[claim()], sandboxes=[sandbox(deletionTimestamp=CREATED)])
    assert found.phase == "terminating"


@pytest.mark.parametrize(
    ("file", "reason", "words"),
    [
        ("unschedulable", "capacity", "its pod cannot be scheduled: 0/3 nodes are available: 3 Insufficient cpu."),
        ("err-image-pull", "image-pull", "the image registry.example/missing:1 cannot be pulled"),
        ("init-image-pull-backoff", "image-pull", "the image registry.example/missing:2 cannot be pulled"),
        ("starting", "DependenciesNotReady", "its words"),
        ("without-status", "DependenciesNotReady", "its words"),
    ],
)
@pytest.mark.parametrize("kind", ["claim", "direct"])
def test_pending_sandbox_is_explained_by_its_pod_before_its_controller(
    file: str, reason: str, words: str, kind: str
) -> None:
    waiting = yaml.safe_load((PODS / f"{file}.yaml").read_text())
    status = ready("False", "DependenciesNotReady")
    if kind == "claim":
        found = one(sandboxclaims=[claim(status=status)], sandboxes=[sandbox()], pods=[waiting])
    else:
        found = one(sandboxes=[{**sandbox(owner=None), "status": status}], pods=[waiting])
    assert (found.kind, found.phase, found.reason) == (kind, "pending", reason)
    assert found.message is not None
    assert found.message.startswith(words)


def test_claim_that_is_bound_to_nothing_has_no_pod() -> None:
    found = one(sandboxclaims=[claim(bound=None, status={})], sandboxes=[sandbox(owner="SandboxWarmPool")])
    assert (found.phase, found.sandbox, found.pod, found.pod_ip, found.node) == ("pending", None, None, None, None)


def test_lease_of_an_expired_one_is_over_and_of_one_without_a_time_endless() -> None:
    endless = {**claim("build-2"), "spec": {}}
    expired, other = existing(sandboxclaims=[EXPIRED, endless])
    assert (expired.lease_left, other.lease_left, other.expires_at) == (0.0, None, None)


def test_members_that_wait_in_a_pool_are_not_listed() -> None:
    pooled, claimed = sandbox("python-2", owner="SandboxWarmPool"), sandbox("python-1")
    assert [found.name for found in existing(sandboxclaims=[claim()], sandboxes=[pooled, claimed])] == ["build-1"]


def test_sandboxes_are_in_the_order_of_their_names() -> None:
    found = existing(sandboxclaims=[claim("c"), claim("a")], sandboxes=[sandbox("b", owner=None)])
    assert [each.name for each in found] == ["a", "b", "c"]


def test_objects_without_anything_are_listed_all_the_same() -> None:
    bare: Body = {"metadata": {"name": "bare", "labels": None}}
    found = one(sandboxclaims=[bare])
    assert (found.phase, found.created_at, found.age, dict(found.labels)) == ("pending", None, None, {})


def test_name_chooses_one() -> None:
    assert [found.name for found in existing(query={"name": "a"}, sandboxclaims=[claim("a"), claim("b")])] == ["a"]
    assert existing(query={"name": "none"}, sandboxclaims=[claim("a")]) == []


def test_selector_chooses_claims_and_direct_sandboxes_by_their_own_labels() -> None:
    found = existing(
        query={"label_selector": "job=1"},
        sandboxclaims=[claim("a", labels={"job": "1"}), claim("b")],
        sandboxes=[
            sandbox(labels={"agents.x-k8s.io/launch-type": "warm"}),
            sandbox("c", owner=None, labels={"job": "1"}),
            sandbox("d", owner=None),
        ],
    )
    assert [(each.name, each.warm) for each in found] == [("a", True), ("c", False)]


@pytest.mark.parametrize("count", [0, 1, 50])
def test_inventory_costs_one_list_a_kind_however_much_stands_there(count: int) -> None:
    client: t.Any = Lists(sandboxclaims=[claim(f"c-{number}") for number in range(count)])
    assert len(list_sandboxes(client, "team-a", Deadline(5.0, client.clock))) == count
    lists = [(plural, "team-a", None) for plural in ("sandboxclaims", "sandboxes", "pods")]
    assert sorted(client.asked) == sorted(lists)


def test_selector_costs_a_second_list_of_sandboxes() -> None:
    client: t.Any = Lists()
    list_sandboxes(client, "team-a", Deadline(5.0, client.clock), label_selector="job=1")
    asked = sorted((plural, selector or "") for plural, _namespace, selector in client.asked)
    assert asked == [("pods", ""), ("sandboxclaims", "job=1"), ("sandboxes", ""), ("sandboxes", "job=1")]


@pytest.mark.parametrize("plural", ["sandboxclaims", "sandboxes", "pods"])
def test_list_that_fails_for_a_moment_is_read_again(plural: str) -> None:
    objects: dict[str, list[t.Any]] = {"sandboxclaims": [claim()], "sandboxes": [sandbox()], "pods": [pod()]}
    objects[plural].insert(0, UnavailableError("busy", status=503))
    assert one(**objects).phase == "ready"


@pytest.mark.parametrize("plural", ["sandboxclaims", "sandboxes", "pods"])
def test_list_that_is_refused_fails(plural: str) -> None:
    with pytest.raises(CredentialError):
        existing(**{plural: [CredentialError("no", status=403)]})
