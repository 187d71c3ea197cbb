# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Pod labels, runtime class and boundary stay with a workspace when a later task does not repeat them."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import WorkspaceMismatchError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import OPENED_WITH_ANNOTATION

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request
from .ground import TEMPLATE, edit_template, key, mode, prepare, refresh, refresh_asleep, run, sandbox, suspend

PROFILE = "sandbox.users.io/egress-profile"
NO_NETWORK: dict[str, t.Any] = {"kind": "no_network"}
WEB: dict[str, t.Any] = {**NO_NETWORK, "profile": {"value": "web"}}


@pytest.fixture(autouse=True)
def _ground(cluster: FakeCluster) -> None:
    prepare(cluster)
    for name, labels in (("egress", {}), ("web-egress", {PROFILE: "web"})):
        selector = {"matchLabels": {"sandbox.namzu.ai/template": TEMPLATE, **labels}}
        spec = {"podSelector": selector, "policyTypes": ["Egress"]}
        policy = {"metadata": {"name": f"namzu-{TEMPLATE}-{name}"}, "spec": spec}
        cluster.store.create("networkpolicies", NAMESPACE, policy)
    for name in ("gvisor", "kata"):
        cluster.store.create("runtimeclasses", "", {"metadata": {"name": name}})


def pod_labels(cluster: FakeCluster) -> dict[str, str]:
    labels: dict[str, str] = sandbox(cluster)["spec"]["podTemplate"]["metadata"]["labels"]
    return labels


def runtime_class(cluster: FakeCluster) -> str | None:
    return t.cast("str | None", sandbox(cluster)["spec"]["podTemplate"]["spec"].get("runtimeClassName"))


def open_egress(cluster: FakeCluster) -> None:
    """Somebody opens the egress of every pod."""
    spec = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}
    cluster.store.create("networkpolicies", NAMESPACE, {"metadata": {"name": "open"}, "spec": spec})


def test_refresh_keeps_labels_profile_and_runtime_class(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, pod_labels={"job": "4711"}, egress=WEB, runtime_class="gvisor")
    edit_template(cluster)
    refreshed = refresh(cluster, client)
    assert refreshed.refreshed
    assert {"job": "4711", PROFILE: "web"}.items() <= pod_labels(cluster).items()
    assert runtime_class(cluster) == "gvisor"
    again = run(cluster, client, pod_labels={"job": "4711"}, egress=WEB, runtime_class="gvisor")
    assert (again.origin, again.changed) == ("adopted", False)


def test_refresh_of_a_suspended_workspace_keeps_them_too(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, pod_labels={"job": "4711"}, egress=WEB, runtime_class="gvisor")
    suspend(cluster, client)
    edit_template(cluster)
    assert refresh_asleep(cluster, client)
    assert {"job": "4711", PROFILE: "web"}.items() <= pod_labels(cluster).items()
    assert runtime_class(cluster) == "gvisor"
    assert not refresh_asleep(cluster, client)


def test_refresh_of_nothing_changes_nothing(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, pod_labels={"job": "4711"}, egress=WEB, runtime_class="gvisor")
    assert not refresh(cluster, client).changed


@pytest.mark.parametrize("start", [refresh, run], ids=["refresh", "resume"])
def test_start_verifies_the_egress_that_the_workspace_was_opened_with(
    cluster: FakeCluster, client: Client, start: t.Callable[..., object]
) -> None:
    run(cluster, client, egress=WEB)
    suspend(cluster, client)
    open_egress(cluster)
    with pytest.raises(BoundaryError, match="open"):
        start(cluster, client)
    assert mode(cluster) == "Suspended"


def test_egress_that_a_later_task_asks_for_replaces_the_earlier_one(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, pod_labels={"job": "4711"}, egress=WEB)
    refreshed = refresh(cluster, client, egress=NO_NETWORK)
    assert refreshed.refreshed
    assert PROFILE not in pod_labels(cluster)
    assert pod_labels(cluster)["job"] == "4711"


def test_removal_is_explicit(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, pod_labels={"job": "4711"}, egress=WEB, runtime_class="gvisor")
    open_egress(cluster)
    refreshed = refresh(cluster, client, carry_over=False)
    assert refreshed.refreshed
    assert not {"job", PROFILE} & pod_labels(cluster).keys()
    assert runtime_class(cluster) is None
    assert not refresh(cluster, client).changed


def test_ingress_that_was_asked_for_is_verified_again(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, ingress={"allow_from": []})
    suspend(cluster, client)
    peer = {"podSelector": {"matchLabels": {"app": "proxy"}}}
    spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{"from": [peer]}]}
    cluster.store.create("networkpolicies", NAMESPACE, {"metadata": {"name": "proxy"}, "spec": spec})
    with pytest.raises(BoundaryError, match="proxy"):
        run(cluster, client, ingress=None)


def test_unverified_ingress_is_asked_for_each_time(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, ingress="unverified")
    suspend(cluster, client)
    everyone = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}
    cluster.store.create("networkpolicies", NAMESPACE, {"metadata": {"name": "everyone"}, "spec": everyone})
    with pytest.raises(BoundaryError, match="everyone"):
        run(cluster, client, ingress=None)


@pytest.mark.parametrize("text", ["", "[]", "{", '{"egress": {"kind": "nothing"}}', '{"ingress": 7}'])
def test_record_that_cannot_be_read_is_refused(cluster: FakeCluster, client: Client, text: str) -> None:
    run(cluster, client)
    cluster.store.patch(key(), {"metadata": {"annotations": {OPENED_WITH_ANNOTATION: text}}})
    before = sandbox(cluster)
    with pytest.raises(WorkspaceMismatchError):
        refresh(cluster, client)
    assert sandbox(cluster) == before
    assert run(cluster, client, carry_over=False).origin == "adopted"


def test_other_runtime_class_is_a_mismatch_without_a_refresh(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, runtime_class="gvisor")
    with pytest.raises(WorkspaceMismatchError, match="runtime class is gvisor, not kata"):
        run(cluster, client, runtime_class="kata")
    assert refresh(cluster, client, runtime_class="kata").refreshed
    assert runtime_class(cluster) == "kata"


def test_runtime_class_that_does_not_exist_is_refused_before_anything_is_made(
    cluster: FakeCluster, client: Client
) -> None:
    with pytest.raises(InputError, match="RuntimeClass nowhere"):
        run(cluster, client, runtime_class="nowhere")
    assert cluster.store.names("sandboxes") == []


def test_runtime_class_that_may_not_be_read_is_not_refused(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(Fault(How.STATUS, 403), Request("get", "runtimeclasses"))
    assert run(cluster, client, runtime_class="nowhere").origin == "created"


def test_template_that_is_too_weakly_isolated_creates_no_workspace(cluster: FakeCluster, client: Client) -> None:
    with pytest.raises(SandboxError) as caught:
        run(cluster, client, isolation="gvisor")
    assert caught.value.reason == "isolation"
    assert cluster.store.names("sandboxes") == []


def test_running_workspace_that_is_too_weakly_isolated_is_refused_and_runs_on(
    cluster: FakeCluster, client: Client
) -> None:
    run(cluster, client)
    with pytest.raises(SandboxError) as caught:
        run(cluster, client, isolation="vm")
    assert caught.value.reason == "isolation"
    assert sandbox(cluster)["spec"]["operatingMode"] == "Running"
