# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The numbers of a pool, counted from the objects."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import Body, Kind, ObjectRef
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    CredentialError,
    GoneError,
    SandboxError,
    UnavailableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.capacity import Capacity, read_capacity


class Pool:
    """A client of a namespace with one pool; ``failures`` come first, one a request."""

    clock = SYSTEM_CLOCK

    def __init__(
        self,
        pool: Body,
        claims: t.Any = (),
        pods: t.Any = (),
        failures: t.Sequence[SandboxError] = (),
        sandboxes: t.Any = (),
    ):
        self.asked: list[str] = []
        self._pool = pool
        self._lists: dict[str, t.Any] = {"sandboxclaims": claims, "pods": pods, "sandboxes": sandboxes}
        self._failures = list(failures)

    def get(self, ref: ObjectRef, deadline: Deadline) -> Body:
        self._next(f"get {ref}")
        return self._pool

    def list(self, kind: Kind, namespace: str, *, label_selector: str | None = None, deadline: Deadline) -> Body:
        assert label_selector is None
        self._next(f"list {kind.plural} {namespace}")
        return {"items": self._lists[kind.plural]}

    def _next(self, request: str) -> None:
        self.asked.append(request)
        if self._failures:
            raise self._failures.pop(0)


def capacity_of(client: t.Any) -> Capacity:
    return read_capacity(client, "team-a", "python", Deadline(5.0))


def claim(pool: str | None, ready: str | None) -> Body:
    conditions = [{"type": "Ready", "status": ready}] if ready else []
    return {"spec": {"warmPoolRef": {"name": pool}} if pool else None, "status": {"conditions": conditions}}


def pool(ready: int | None, desired: int | None) -> Body:
    return {"spec": {"replicas": desired}, "status": {"readyReplicas": ready}}


def test_numbers_are_counted_from_the_objects_of_this_pool() -> None:
    claims = [claim("python", "True"), claim("python", "False"), claim("python", None), claim("go", None)]
    phases = ("Pending", "Running", "Pending", "Succeeded", None)
    pods: list[Body] = [{"metadata": {"name": str(phase)}, "status": {"phase": phase}} for phase in phases]
    pods[2]["spec"] = {"schedulingGates": [{"name": "example.com/hold"}]}
    client = Pool(pool(5, 8), claims, pods)
    assert capacity_of(client) == Capacity(
        warm_pool="python",
        ready=5,
        desired=8,
        active_claims=3,
        waiting_claims=2,
        pending_pods=2,
        gated_pods=1,
        headroom=3,
    )
    lists = [f"list {plural} team-a" for plural in ("sandboxclaims", "pods", "sandboxes")]
    assert client.asked == ["get SandboxWarmPool team-a/python", *lists]


@pytest.mark.parametrize(("ready", "waiting", "headroom"), [(0, 0, 0), (3, 0, 3), (3, 3, 0), (1, 5, 0)])
def test_headroom_is_what_nobody_waits_for_and_never_negative(ready: int, waiting: int, headroom: int) -> None:
    assert capacity_of(Pool(pool(ready, 3), [claim("python", None)] * waiting)).headroom == headroom


@pytest.mark.parametrize("body", [{}, {"spec": None, "status": None}, pool(None, None)])
def test_pool_that_says_nothing_has_nothing(body: Body) -> None:
    found = capacity_of(Pool(body, [claim(None, None), {"spec": {}}], [{}, {"status": None}]))
    assert (found.ready, found.desired, found.active_claims, found.pending_pods, found.headroom) == (0, 0, 0, 0, 0)


def test_lists_without_items_are_empty() -> None:
    assert capacity_of(Pool(pool(1, 1), None, None)).active_claims == 0


@pytest.mark.parametrize("failure", [GoneError("no", status=404), CredentialError("no", status=403)])
def test_pool_that_cannot_be_read_fails_at_once(failure: SandboxError) -> None:
    client = Pool(pool(1, 1), failures=[failure])
    with pytest.raises(type(failure)):
        capacity_of(client)
    assert len(client.asked) == 1


def test_failure_that_passes_is_outlived() -> None:
    client = Pool(pool(1, 1), failures=[UnavailableError("busy", status=503, retry_after=0.0)])
    assert capacity_of(client).ready == 1
    assert len(client.asked) == 4


def member(name: str, pool: str = "python", ready: str = "False", message: str = "pending") -> Body:
    owner = {"kind": "SandboxWarmPool", "name": pool}
    conditions = [{"type": "Ready", "status": ready, "reason": "DependenciesNotReady", "message": message}]
    return {"metadata": {"name": name, "ownerReferences": [owner]}, "status": {"conditions": conditions}}


def unpullable(name: str) -> Body:
    waiting = {"reason": "ErrImagePull", "message": f"not found for {name}"}
    containers = [{"name": "agent", "image": "python:none", "state": {"waiting": waiting}}]
    return {"metadata": {"name": name}, "status": {"phase": "Pending", "containerStatuses": containers}}


def test_a_pool_that_is_not_warm_has_the_reason_of_a_member_of_its_own() -> None:
    members = [member("other", pool="go"), member("b"), member("a", ready="True"), member("c")]
    found = capacity_of(Pool(pool(1, 3), pods=[unpullable(name) for name in ("other", "a", "b")], sandboxes=members))
    assert found.problem is not None
    assert found.problem.reason == "image-pull"
    assert "not found for b" in found.problem.words


def test_a_member_that_a_quota_keeps_from_having_a_pod_is_a_reason() -> None:
    quota = "pods is forbidden: exceeded quota: small"
    found = capacity_of(Pool(pool(0, 1), sandboxes=[member("a", message=quota)]))
    assert found.problem is not None
    assert found.problem.reason == "quota"


@pytest.mark.parametrize("ready", [0, 1])
def test_a_pool_without_a_reason_has_no_problem(ready: int) -> None:
    assert capacity_of(Pool(pool(ready, 1), sandboxes=[member("a")])).problem is None
