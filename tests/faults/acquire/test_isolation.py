# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox that is less isolated than was asked for is not handed out, and nothing is left of it."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.isolation import IsolationError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.privileges import probe_privileges
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import acquire as acquire_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire, would_acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import Acquired

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE, POOL
from ..fake.plan import Fault, How, Request

READ_CLASS = Request("get", "runtimeclasses")


def template(cluster: FakeCluster, **pod: t.Any) -> None:
    spec = {"podTemplate": {"spec": {"containers": [{"name": "agent"}], **pod}}}
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": spec})


def runtime_class(cluster: FakeCluster, name: str, handler: str) -> None:
    overhead = {"podFixed": {"memory": "64Mi"}}
    body = {"metadata": {"name": name}, "handler": handler, "overhead": overhead}
    cluster.store.create("runtimeclasses", "", body)


@pytest.fixture
def inside_gvisor(monkeypatch: pytest.MonkeyPatch) -> None:
    """The agent reports gVisor's kernel, as gVisor's does, or that of a hostile image."""

    def probe(*given: t.Any) -> t.Any:
        return dataclasses.replace(probe_privileges(*given), kernel="gvisor")

    monkeypatch.setattr(acquire_module, "probe_privileges", probe)


def direct(cluster: FakeCluster, client: Client, **changes: t.Any) -> Acquired:
    return acquire(client, cluster.request(warm_pool=None, template="python", **changes))


def created(cluster: FakeCluster) -> list[str]:
    """What acquires of this test left; the fake pool adds members of its own."""
    made = [*cluster.claims(), *cluster.store.names("sandboxes")]
    return [name for name in made if not name.startswith(f"{POOL}-")]


@pytest.mark.usefixtures("inside_gvisor")
def test_gvisor_is_stated_where_both_agree(cluster: FakeCluster, client: Client) -> None:
    runtime_class(cluster, "sandboxed", "runsc")
    template(cluster, runtimeClassName="sandboxed")
    found = direct(cluster, client, isolation="gvisor").verdict.isolation
    assert found is not None
    assert found.as_dict() == {
        "level": "gvisor",
        "kernel": "gvisor",
        "runtime_class": "sandboxed",
        "handler": "runsc",
        "overhead": {"memory": "64Mi"},
        "user_namespace": False,
        "seccomp": None,
        "host_namespaces": [],
    }


@pytest.mark.usefixtures("inside_gvisor")
def test_lie_from_inside_does_not_raise_the_verdict(cluster: FakeCluster, client: Client) -> None:
    template(cluster)
    found = direct(cluster, client).verdict.isolation
    assert found is not None
    assert (found.kernel, found.level) == ("gvisor", "container")


@pytest.mark.usefixtures("inside_gvisor")
@pytest.mark.parametrize("name", [None, "plain"])
def test_template_that_is_too_weak_is_refused_before_anything_is_created(
    cluster: FakeCluster, client: Client, name: str | None
) -> None:
    runtime_class(cluster, "plain", "runc")
    template(cluster, **({"runtimeClassName": name} if name else {}))
    for attempt in (acquire, would_acquire):
        request = cluster.request(warm_pool=None, template="python", isolation="gvisor")
        with pytest.raises(IsolationError) as caught:
            attempt(client, request)
        assert (caught.value.reason, caught.value.isolation) == ("isolation", None)
    assert created(cluster) == []


@pytest.mark.usefixtures("inside_gvisor")
def test_member_of_a_pool_is_refused_by_its_template(cluster: FakeCluster, client: Client) -> None:
    template(cluster)
    cluster.store.create(
        "sandboxwarmpools", NAMESPACE, {"metadata": {"name": POOL}, "spec": {"sandboxTemplateRef": {"name": "python"}}}
    )
    with pytest.raises(IsolationError, match="SandboxTemplate"):
        acquire(client, cluster.request(isolation="gvisor"))
    assert created(cluster) == []


@pytest.mark.usefixtures("inside_gvisor")
def test_member_of_a_pool_is_refused_by_its_pod(cluster: FakeCluster, client: Client) -> None:
    """The template is of no use: the pool does not exist where it is read, and the pod has no RuntimeClass."""
    with pytest.raises(IsolationError, match="Pod"):
        acquire(client, cluster.request(isolation="gvisor"))
    assert created(cluster) == []


def test_linux_kernel_below_a_gvisor_handler_is_refused(cluster: FakeCluster, client: Client) -> None:
    runtime_class(cluster, "sandboxed", "runsc")
    template(cluster, runtimeClassName="sandboxed")
    with pytest.raises(IsolationError, match="kernel inside"):
        direct(cluster, client, isolation="gvisor")
    assert created(cluster) == []


@pytest.mark.parametrize("field", ["hostNetwork", "hostPID", "hostIPC"])
def test_namespace_of_the_node_is_refused_before_anything_is_created(
    cluster: FakeCluster, client: Client, field: str
) -> None:
    template(cluster, **{field: True})
    with pytest.raises(IsolationError, match=field):
        direct(cluster, client)
    assert created(cluster) == []


def test_runtime_class_of_a_template_that_does_not_exist_is_refused(cluster: FakeCluster, client: Client) -> None:
    template(cluster, runtimeClassName="nowhere")
    with pytest.raises(InputError, match="nowhere") as caught:
        direct(cluster, client)
    assert caught.value.object == "RuntimeClass nowhere"
    assert created(cluster) == []


@pytest.mark.usefixtures("inside_gvisor")
def test_handler_that_cannot_be_read_proves_nothing(cluster: FakeCluster, client: Client) -> None:
    runtime_class(cluster, "sandboxed", "runsc")
    template(cluster, runtimeClassName="sandboxed")
    for _time in range(3):
        cluster.plan.add(Fault(How.STATUS, 403), READ_CLASS)
    found = direct(cluster, client).verdict.isolation
    assert found is not None
    assert (found.runtime.handler, found.level) == (None, "container")
    with pytest.raises(SandboxError) as caught:
        direct(cluster, client, isolation="gvisor")
    assert caught.value.reason == "isolation"
    assert "could not be read" in caught.value.message
