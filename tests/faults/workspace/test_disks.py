# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The disks of workspaces: bound or not, there or not, and gone only when that is asked for; and their inventory."""

from __future__ import annotations

import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import WORKSPACE_ID_ANNOTATION
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.delete import DeleteRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import (
    WorkspaceDiskError,
    WorkspaceMismatchError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.inventory import list_workspaces
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import (
    DISKS_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
    workspace_ref,
)

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from .ground import ID, TEMPLATE, delete, key, mode, prepare, run, sandbox, suspend  # fmt: skip


@pytest.fixture(autouse=True)
def _template(cluster: FakeCluster) -> None:
    prepare(cluster)


def test_other_disks_in_the_template_are_a_mismatch_even_for_a_refresh(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    entry = {"metadata": {"name": "workspace"}, "spec": {"accessModes": ["ReadWriteMany"]}}
    spec = {"spec": {"volumeClaimTemplates": [entry]}}
    cluster.store.patch(cluster.key("sandboxtemplates", TEMPLATE), spec)
    for refreshing in (False, True):
        with pytest.raises(WorkspaceMismatchError, match="the disks of its template have changed"):
            run(cluster, client, refresh=refreshing)
    assert mode(cluster) == "Running"


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"volumeClaimTemplates": None}, "it has no volumeClaimTemplates"),
        ({"podTemplate": {"spec": {"containers": [{"name": "agent"}]}}}, "no container mounts its disk workspace"),
    ],
)
def test_template_that_cannot_carry_a_disk_is_refused_before_anything_is_made(
    cluster: FakeCluster, client: Client, spec: dict[str, t.Any], words: str
) -> None:
    cluster.store.patch(cluster.key("sandboxtemplates", TEMPLATE), {"spec": spec})
    with pytest.raises(WorkspaceDiskError, match=words):
        run(cluster, client)
    assert cluster.store.names("sandboxes") == []


def test_disk_that_is_gone_is_never_taken_for_a_new_one(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    suspend(cluster, client)
    cluster.store.replace(key("persistentvolumeclaims"), cluster.store.get(key("persistentvolumeclaims")) | {
        "metadata": {"name": key("persistentvolumeclaims").name}
    })  # fmt: skip
    with pytest.raises(WorkspaceDiskError, match="a new, empty one has its name") as refused:
        run(cluster, client)
    assert refused.value.claim == f"PersistentVolumeClaim {NAMESPACE}/{key('persistentvolumeclaims').name}"
    assert mode(cluster) == "Suspended"


def test_disk_that_goes_with_the_pod_keeps_the_pod(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    marked = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}
    cluster.store.patch(key("persistentvolumeclaims"), marked)
    with pytest.raises(WorkspaceDiskError, match="goes as soon as the pod stops"):
        suspend(cluster, client)
    adopted = run(cluster, client)
    assert [disk.deleting for disk in adopted.disks] == [True]


@pytest.mark.parametrize(("phase", "words"), [("Pending", "is Pending"), ("Lost", "is Lost")])
def test_disk_that_is_not_bound_is_what_a_start_that_fails_names(
    cluster: FakeCluster, real_time_client: Client, phase: str, words: str
) -> None:
    cluster.controller.workspaces.phase = phase
    cluster.controller.workspaces.starts = False
    with pytest.raises(WorkspaceDiskError, match=words) as refused:
        run(cluster, real_time_client, ready_timeout=1.0)
    assert refused.value.retryable
    assert mode(cluster) == "Suspended"


def test_pod_that_does_not_start_on_a_good_disk_is_no_matter_of_the_disk(
    cluster: FakeCluster, real_time_client: Client
) -> None:
    cluster.controller.workspaces.starts = False
    with pytest.raises(AcquireError) as late:
        run(cluster, real_time_client, ready_timeout=1.0)
    assert late.value.reason == "not-ready"
    assert mode(cluster) == "Suspended"


def test_disk_goes_only_when_that_is_asked_for(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    cluster.plan.clear()
    with pytest.raises(InputError, match="delete_disk does not say so"):
        delete(cluster, client, delete_disk=False)
    with pytest.raises(InputError):
        DeleteRequest(NAMESPACE, ID, delete_disk="yes")  # type: ignore[arg-type]
    assert cluster.plan.received() == []


def test_disks_are_written_down_once_and_never_over(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    written = sandbox(cluster)["metadata"]["annotations"][DISKS_ANNOTATION]
    suspend(cluster, client)
    run(cluster, client)
    assert sandbox(cluster)["metadata"]["annotations"][DISKS_ANNOTATION] == written


def test_inventory_of_500_is_one_list_a_kind_and_takes_less_than_a_second(
    cluster: FakeCluster, real_time_client: Client
) -> None:
    run(cluster, real_time_client)
    model = sandbox(cluster)
    with cluster.store.changed:
        for number in range(500):
            workspace_id = f"many-{number:03d}"
            metadata = {
                "name": workspace_ref(NAMESPACE, workspace_id).name,
                "labels": model["metadata"]["labels"],
                "annotations": {**model["metadata"]["annotations"], WORKSPACE_ID_ANNOTATION: workspace_id},
                "creationTimestamp": "2026-01-01T00:00:00Z",
            }
            made = {"metadata": metadata, "spec": {**model["spec"], "operatingMode": "Suspended"}}
            cluster.store.create("sandboxes", NAMESPACE, made)
    with cluster.store.changed:
        assert cluster.store.changed.wait_for(lambda: len(cluster.store.names("persistentvolumeclaims")) > 500, 30.0)
    cluster.plan.clear()
    began = time.process_time()
    found = list_workspaces(real_time_client, NAMESPACE, Deadline(10.0))
    took = time.process_time() - began
    assert len(found) == 501
    assert [str(one) for one in cluster.plan.received()] == [
        "list-sandboxes", "list-persistentvolumeclaims", "list-sandboxtemplates",
    ]  # fmt: skip
    # The fake server's own time is in it, which is most of it.
    assert took < 1.0
    assert {one.mode for one in found} == {"running", "suspended"}


def test_inventory_knows_who_is_current_who_holds_and_what_cannot_be_read(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, holder_epoch=7)
    run(cluster, client, workspace_id="other")
    cluster.store.patch(
        key(workspace_id="other"),
        {"metadata": {"annotations": {TEMPLATE_HASH_ANNOTATION: "sha256:older", DISKS_ANNOTATION: "["}}},
    )
    first, other = list_workspaces(client, NAMESPACE, Deadline(5.0, client.clock))
    assert (first.workspace_id, first.holder_epoch, first.template_current, first.phase) == (ID, 7, True, "ready")
    assert (other.template_current, other.holder_epoch, other.disks) == (False, None, ())
    cluster.store.patch(key(), {"metadata": {"annotations": {"sandbox.namzu.ai/holder-epoch": "x"}}})
    (first,) = list_workspaces(client, NAMESPACE, Deadline(5.0, client.clock), workspace_id=ID)
    assert (first.holder_epoch, first.holder_epoch_readable) == (None, False)
