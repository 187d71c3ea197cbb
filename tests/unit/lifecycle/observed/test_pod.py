# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which pod is the live one, and where its agent answers."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import Body, Kind, ObjectRef
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.agent_address import agent_address
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.pod import BoundPod, bind_pod, live_pod

from ....faults.fake.clock import SkippingClock


class Cluster:
    """A client with pods and one Sandbox, by name."""

    def __init__(self, *pods: Body, sandbox: Body | None = None) -> None:
        self.pods = list(pods)
        self.sandbox = sandbox
        self.selectors: list[str | None] = []

    def get(self, ref: ObjectRef, _deadline: Deadline) -> Body:
        if ref.kind.plural == "pods":
            found = next((pod for pod in self.pods if pod["metadata"]["name"] == ref.name), None)
        else:
            found = self.sandbox
        if found is None:
            raise GoneError(f"{ref} is not there", status=404)
        return found

    def list(self, _kind: Kind, _namespace: str, *, label_selector: str | None = None, deadline: Deadline) -> Body:
        self.selectors.append(label_selector)
        return {"items": self.pods}


def pod(name: str = "python-1", **changes: t.Any) -> Body:
    metadata = {"name": name, "uid": f"uid-of-{name}", "labels": {"a": "b"}, **changes.pop("metadata", {})}
    return {"metadata": metadata, "status": {"phase": "Running", "podIP": "10.0.0.7", **changes}}


def bound(cluster: Cluster, *, labels: dict[str, str] | None = None, need_ip: bool = True) -> BoundPod:
    deadline = Deadline(1.0, SkippingClock())
    return bind_pod(t.cast("t.Any", cluster), "team-a", "python-1", deadline, labels=labels or {}, need_ip=need_ip)


def test_pod_of_the_sandboxes_name_is_bound() -> None:
    assert bound(Cluster(pod())) == BoundPod("python-1", "uid-of-python-1", "10.0.0.7", {"a": "b"})


ENDED = {"finished": pod(phase="Succeeded"), "failed": pod(phase="Failed")}
ENDING = {
    "ending": pod(metadata={"deletionTimestamp": "2026-01-31T12:00:00Z"}),
    "ended and ending": pod(phase="Failed", metadata={"deletionTimestamp": "2026-01-31T12:00:00Z"}),
}
DEAD = {**ENDED, **ENDING}


@pytest.mark.parametrize("dead", ENDING.values(), ids=ENDING)
def test_another_one_is_waited_for_while_a_pod_is_being_deleted(dead: Body) -> None:
    with pytest.raises(AcquireError, match="no live pod appeared") as caught:
        bound(Cluster(dead))
    assert (caught.value.reason, caught.value.retryable) == ("not-ready", True)


@pytest.mark.parametrize("dead", ENDED.values(), ids=ENDED)
def test_pod_that_has_ended_and_stays_is_not_waited_for(dead: Body) -> None:
    cluster = Cluster(dead)
    with pytest.raises(AcquireError, match=r"has ended \((Succeeded|Failed)\)") as caught:
        bound(cluster)
    assert (caught.value.reason, caught.value.retryable) == ("not-ready", False)


@pytest.mark.parametrize("dead", DEAD.values(), ids=DEAD)
def test_selector_finds_the_pod_that_lives(dead: Body) -> None:
    dead = {**dead, "metadata": {**dead["metadata"], "name": "other-1"}}
    cluster = Cluster(dead, pod("other-2"), sandbox={"status": {"selector": "x=y"}})
    assert bound(cluster).name == "other-2"
    assert cluster.selectors == ["x=y"]


@pytest.mark.parametrize("sandbox", [None, {}, {"status": None}, {"status": {"selector": ""}}])
def test_sandbox_without_a_selector_lists_no_pods(sandbox: Body | None) -> None:
    cluster = Cluster(pod("other-1"), sandbox=sandbox)
    assert live_pod(t.cast("t.Any", cluster), "team-a", "python-1", Deadline(1.0)) is None
    assert cluster.selectors == []


def test_pod_without_the_requested_label_is_not_bound() -> None:
    with pytest.raises(AcquireError, match="x=1, a=c did not appear"):
        bound(Cluster(pod()), labels={"x": "1", "a": "c"})


def test_pod_without_an_address_is_bound_only_when_none_is_needed() -> None:
    cluster = Cluster(pod(podIP=None))
    assert bound(cluster, need_ip=False).ip is None
    with pytest.raises(AcquireError, match="got no IP"):
        bound(cluster, need_ip=True)


def test_agent_is_at_the_pods_own_address() -> None:
    live = BoundPod("python-1", "uid-1", "10.0.0.7", {})
    address = agent_address(t.cast("t.Any", Cluster()), "team-a", "python-1", live, 1024, "pod_ip", Deadline(1.0))
    assert (address.host, address.port, address.token) == ("10.0.0.7", 1024, "uid-1")


def test_agent_is_at_the_service_of_its_sandbox() -> None:
    cluster = Cluster(sandbox={"status": {"serviceFQDN": "python-1.team-a.svc", "podIPs": ["10.0.0.8"]}})
    live = BoundPod("python-1", "uid-1", "10.0.0.7", {})
    address = agent_address(t.cast("t.Any", cluster), "team-a", "python-1", live, 1024, "service", Deadline(1.0))
    assert address.host == "python-1.team-a.svc"


def test_sandbox_without_a_service_points_to_the_option() -> None:
    live = BoundPod("python-1", "uid-1", "10.0.0.7", {})
    cluster = t.cast("t.Any", Cluster(sandbox={"status": {}}))
    with pytest.raises(AcquireError, match=r"agent\.address: pod_ip"):
        agent_address(cluster, "team-a", "python-1", live, 1024, "service", Deadline(1.0))
