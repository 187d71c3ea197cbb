# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Workspaces on a real cluster, with real disks: what is on a disk is there again, whatever happened in between."""

from __future__ import annotations

import hashlib
import typing as t
import uuid

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import (
    WorkspaceDiskError,
    WorkspaceMismatchError,
    WorkspacePreconditionError,
    WorkspaceReplacedError,
    WorkspaceSuspendedError,
    WorkspaceSuspendTimeoutError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.handle import Workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.identity import GuestRestart
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.inventory import list_workspaces
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import HOLDER_EPOCH_ANNOTATION
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.open import open_workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.request import SuspendRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.suspend import suspend_workspace

from .workspace_ground import ADDRESS, ADDRESS_OPTION, CLASSES, POLICIES, TEMPLATE, TEMPLATES, Ground, disk  # fmt: skip

#: More than one frame of the agent's wire, and no text.
DATA = b"".join(hashlib.sha256(bytes([number % 256])).digest() * 64 for number in range(1500))
DIGEST = hashlib.sha256(DATA).hexdigest()


@pytest.fixture(autouse=True)
def _nothing_left(ground: Ground) -> t.Iterator[None]:
    """A test that fails leaves no workspace to the next, which lists them all."""
    yield
    for one in list_workspaces(ground.client, ground.namespace, Deadline(10.0)):
        ground.delete(one.workspace_id)


def write(workspace: Workspace, data: bytes = DATA) -> None:
    program = "import sys; open('/workspace/kept', 'wb').write(sys.stdin.buffer.read())"
    done = workspace.execute(["python3", "-c", program], deadline=Deadline(30.0), stdin=data)
    assert done.rc == 0, done.stderr_text


def digest(workspace: Workspace) -> str:
    return read(workspace, ["sha256sum", "/workspace/kept"]).split()[0]


def read(workspace: Workspace, argv: list[str]) -> str:
    done = workspace.execute(argv, deadline=Deadline(30.0))
    assert done.rc == 0, done.stderr_text
    return done.stdout_text


def test_play_writes_suspends_resumes_and_deletes_only_when_told_to(play, ground):
    base = {"namespace": ground.namespace, "workspace_id": "play/1"}
    options = {**base, **ADDRESS_OPTION}

    def workspace(name: str, **more: t.Any) -> dict[str, t.Any]:
        return {"name": name, "namzu.sandbox.workspace": {**options, **more}}

    def execute(name: str, command: str) -> dict[str, t.Any]:
        held = {"namespace": ground.namespace, "name": "{{ made.workspace.name }}", **ADDRESS_OPTION}
        return {"name": name, "namzu.sandbox.sandbox_exec": {**held, "command": command}}

    info = {"name": "info", "namzu.sandbox.workspace_info": base}
    played = play(
        [
            {**workspace("make", template=TEMPLATE), "register": "made"},
            execute("write", "head -c 3000000 /dev/urandom > kept; sha256sum kept"),
            workspace("as it is", template=TEMPLATE),
            workspace("sleep", state="suspended", quiesce=True),
            workspace("sleep on", state="suspended"),
            {**info, "name": "asleep"},
            {**workspace("delete without a word", state="absent"), "ignore_errors": True},
            workspace("wake", template=TEMPLATE),
            execute("read", "sha256sum kept"),
            workspace("delete", state="absent", delete_disk=True, wait=True),
            workspace("delete again", state="absent", delete_disk=True),
            {**info, "name": "gone"},
        ]
    )
    assert [played[name]["origin"] for name in ("make", "as it is", "wake")] == ["created", "adopted", "resumed"]
    changed = {name: played[name]["changed"] for name in ("make", "as it is", "sleep", "sleep on", "wake", "delete")}
    assert changed == {
        "make": True, "as it is": False, "sleep": True, "sleep on": False, "wake": True, "delete": True,
    }  # fmt: skip
    assert played["sleep"]["workspace"]["flushed"]["path"] == "/workspace"
    (asleep,) = played["asleep"]["workspaces"]
    assert (asleep["mode"], asleep["template_current"]) == ("suspended", True)
    assert asleep["phase"] in ("suspending", "suspended"), "the controller writes it some time after the pod has gone"
    assert asleep["disks"][0]["phase"] == "Bound"
    assert played["delete without a word"]["reason"] == "invalid-input"
    assert played["wake"]["workspace"]["identity"]["guest"] != played["make"]["workspace"]["identity"]["guest"]
    assert played["read"]["stdout"] == played["write"]["stdout"]
    assert not played["delete again"]["changed"]
    assert played["gone"]["workspaces"] == []
    assert ground.kube.get(ground.claim("play/1")) is None


def test_data_outlives_a_deleted_and_a_failed_pod_and_each_is_told(ground):
    told: list[GuestRestart] = []
    workspace = ground.open("mended", on_restart=told.append)
    write(workspace)

    ground.kube.delete(ground.pod("mended"))
    ground.kube.until(ground.pod("mended"), is_another_pod(workspace, ground), 30)
    assert digest(workspace) == DIGEST
    assert [notice.reason for notice in told] == ["pod-replaced"]

    pod = ground.kube.request("PATCH", ground.pod("mended"), {"spec": {"activeDeadlineSeconds": 1}})
    ground.kube.until(ground.pod("mended"), lambda body: body["status"]["phase"] == "Failed", 30)
    ground.kube.until(
        ground.sandbox("mended"),
        lambda body: any(one["reason"] == "PodFailed" for one in body["status"]["conditions"]),
        30,
    )
    (failed,) = list_workspaces(ground.client, ground.namespace, Deadline(10.0), workspace_id="mended")
    assert failed.phase == "failed"
    opened = workspace.resume()
    assert opened.origin == "recovered"
    assert digest(workspace) == DIGEST
    assert len(told) == 2
    assert ground.kube.get(ground.pod("mended"))["metadata"]["uid"] != pod["metadata"]["uid"]
    ground.delete("mended")


def is_another_pod(workspace: Workspace, ground: Ground) -> t.Callable[[t.Any], bool]:
    """Whether a pod of the name runs that is not the one that the workspace was opened with, and is ready."""
    before = workspace.opened.agent.token

    def holds(body: t.Any) -> bool:
        if body is None or body["metadata"]["uid"] == before:
            return False
        conditions = body["status"].get("conditions") or []
        return any(one["type"] == "Ready" and one["status"] == "True" for one in conditions)

    return holds


def test_start_that_is_not_proven_is_suspended_and_keeps_its_disk(ground):
    workspace = ground.open("exposed")
    write(workspace)
    workspace.suspend()
    uid = ground.kube.get(ground.claim("exposed"))["metadata"]["uid"]
    policy = {
        "metadata": {"name": "everyone"},
        "spec": {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]},
    }
    ground.kube.request("POST", POLICIES.format(ground.namespace), policy)
    try:
        with pytest.raises(BoundaryError, match="everyone"):
            workspace.resume()
        assert ground.kube.get(ground.sandbox("exposed"))["spec"]["operatingMode"] == "Suspended"
        with pytest.raises(BoundaryError, match="everyone"):
            ground.open("never started")
        assert ground.kube.get(ground.sandbox("never started")) is None, "what will not hold is not made"
    finally:
        ground.kube.delete(f"{POLICIES.format(ground.namespace)}/everyone")
    assert workspace.resume().origin == "resumed"
    assert digest(workspace) == DIGEST
    assert ground.kube.get(ground.claim("exposed"))["metadata"]["uid"] == uid
    ground.delete("exposed")


def test_edited_template_is_a_mismatch_until_a_refresh_is_asked_for(ground):
    workspace = ground.open("older")
    write(workspace)
    path = f"{TEMPLATES.format(ground.namespace)}/{TEMPLATE}"
    before = ground.kube.get(path)
    edited = {"spec": {"podTemplate": {"metadata": {"annotations": {"namzu-test/edit": "1"}}}}}
    grace = {"spec": {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 7}}}}
    ground.kube.request("PATCH", path, edited)
    ground.kube.request("PATCH", path, grace)
    try:
        with pytest.raises(WorkspaceMismatchError, match="terminationGracePeriodSeconds"):
            ground.open("older")
        reported = ground.open("older", on_stale="report")
        assert (reported.opened.origin, reported.opened.template_current) == ("adopted", False)
        refreshed = workspace.refresh()
        assert (refreshed.origin, refreshed.refreshed, refreshed.template_current) == ("resumed", True, True)
        pod = ground.kube.get(ground.pod("older"))
        assert pod["spec"]["terminationGracePeriodSeconds"] == 7
        assert pod["metadata"]["annotations"]["namzu-test/edit"] == "1"
        assert digest(workspace) == DIGEST
        assert not workspace.refresh().changed
    finally:
        old = before["spec"]["podTemplate"]
        back = {"spec": {"podTemplate": {**old, "metadata": {**old["metadata"], "annotations": None}}}}
        ground.kube.request("PATCH", path, back)
    # The edit that is taken back is taken back in a workspace as well: the template as a whole replaces it.
    assert workspace.refresh().refreshed
    assert "namzu-test/edit" not in (ground.kube.get(ground.pod("older"))["metadata"].get("annotations") or {})
    ground.delete("older")


def test_older_holder_is_refused_by_the_server_itself(ground):
    seventh = ground.open("fenced", holder_epoch=7)
    eighth = ground.open("fenced", holder_epoch=8)
    assert (eighth.opened.origin, eighth.opened.changed, eighth.opened.holder_epoch) == ("adopted", True, 8)
    before = ground.kube.get(ground.sandbox("fenced"))
    for attempt in (
        seventh.suspend,
        seventh.resume,
        seventh.refresh,
        lambda: seventh.delete(delete_disk=True),
        lambda: ground.open("fenced"),
        lambda: suspend_workspace(ground.client, SuspendRequest(ground.namespace, "fenced")),
    ):
        with pytest.raises(WorkspacePreconditionError) as refused:
            attempt()
        assert refused.value.stored_epoch == "8"
    assert ground.kube.get(ground.sandbox("fenced"))["spec"] == before["spec"]
    assert eighth.suspend().changed
    with pytest.raises(WorkspaceSuspendedError):
        seventh.look()
    broken = {"metadata": {"annotations": {HOLDER_EPOCH_ANNOTATION: "-8"}}}
    ground.kube.request("PATCH", ground.sandbox("fenced"), broken)
    with pytest.raises(WorkspacePreconditionError, match="which is none"):
        eighth.resume()
    mended = {"metadata": {"annotations": {HOLDER_EPOCH_ANNOTATION: "8"}}}
    ground.kube.request("PATCH", ground.sandbox("fenced"), mended)
    ground.delete("fenced")


@pytest.fixture
def full_class(kube: t.Any) -> t.Iterator[str]:
    """A StorageClass that has no volume left."""
    name = f"namzu-test-{uuid.uuid4().hex[:8]}"
    head = {"apiVersion": "storage.k8s.io/v1", "kind": "StorageClass", "metadata": {"name": name}}
    how = {"provisioner": "kubernetes.io/no-provisioner", "volumeBindingMode": "WaitForFirstConsumer"}
    kube.request("POST", CLASSES, {**head, **how})
    yield name
    kube.delete(f"{CLASSES}/{name}")


def test_disk_that_cannot_be_bound_is_named_and_the_workspace_waits_suspended(ground, full_class):
    for name, storage_class in (("no-class", "namzu-test-nowhere"), ("no-room", full_class)):
        ground.copy_template(name, volumeClaimTemplates=[disk(storage_class)])
        request = ground.request(name, template=name, ready_timeout=4.0, ingress="unverified")
        with pytest.raises(WorkspaceDiskError) as refused:
            open_workspace(ground.client, request)
        assert refused.value.claim.endswith(f"workspace-{request.ref.name}")
        assert "It was suspended" in str(refused.value)
        assert ground.kube.get(ground.sandbox(name))["spec"]["operatingMode"] == "Suspended"
        if name == "no-class":
            assert "namzu-test-nowhere" in str(refused.value)
        ground.delete(name)


def test_disk_that_somebody_deletes_is_never_taken_for_a_new_one(ground):
    workspace = ground.open("robbed")
    write(workspace)
    ground.kube.delete(ground.claim("robbed"))
    with pytest.raises(WorkspaceDiskError, match="goes as soon as the pod stops"):
        workspace.suspend()
    assert digest(workspace) == DIGEST, "it runs on, and everything can still be saved"
    # Behind our back it is suspended all the same, so that the disk is gone.
    before = ground.kube.get(ground.claim("robbed"))["metadata"]["uid"]
    ground.kube.request("PATCH", ground.sandbox("robbed"), {"spec": {"operatingMode": "Suspended"}})
    ground.kube.until(ground.claim("robbed"), lambda body: not body or body["metadata"]["uid"] != before, 30)
    # The controller watches pods and not claims (agent-sandbox v0.5.6): it makes a new one when it next looks.
    ground.kube.request("PATCH", ground.sandbox("robbed"), {"metadata": {"annotations": {"namzu-test": "look"}}})
    ground.kube.until(ground.claim("robbed"), lambda body: body and body["metadata"]["uid"] != before, 30)
    with pytest.raises(WorkspaceDiskError, match="a new, empty one has its name"):
        workspace.resume()
    assert ground.kube.get(ground.sandbox("robbed"))["spec"]["operatingMode"] == "Suspended"
    (listed,) = list_workspaces(ground.client, ground.namespace, Deadline(10.0), workspace_id="robbed")
    assert listed.disks[0].replaced
    ground.delete("robbed")


def test_suspend_that_takes_too_long_says_so_and_is_not_taken_back(ground):
    name = "slow"
    pod = ground.kube.get(f"{TEMPLATES.format(ground.namespace)}/{TEMPLATE}")["spec"]["podTemplate"]
    pod["spec"]["terminationGracePeriodSeconds"] = 20
    pod["spec"]["containers"][0]["lifecycle"] = {"preStop": {"exec": {"command": ["sleep", "4"]}}}
    ground.copy_template(name, podTemplate=pod)
    workspace = ground.open(name, template=name, ingress="unverified")
    write(workspace)
    with pytest.raises(WorkspaceSuspendTimeoutError):
        workspace.suspend(timeout=1.5)
    assert ground.kube.get(ground.sandbox(name))["spec"]["operatingMode"] == "Suspended"
    assert not workspace.suspend(timeout=30.0).changed
    assert ground.kube.get(ground.pod(name)) is None
    workspace.resume()
    assert digest(workspace) == DIGEST
    ground.delete(name)


def test_end_of_the_ttl_takes_the_pod_and_never_the_disk(ground):
    workspace = ground.open("expiring", ttl=600)
    write(workspace)
    assert not ground.open("expiring", ttl=600).opened.changed
    ground.kube.request("PATCH", ground.sandbox("expiring"), {"spec": {"shutdownTime": "2026-01-01T00:00:00Z"}})
    ground.kube.until_gone(ground.pod("expiring"), 30)
    (expired,) = list_workspaces(ground.client, ground.namespace, Deadline(10.0), workspace_id="expiring")
    assert expired.phase == "expired"
    assert workspace.resume().origin == "resumed"
    assert digest(workspace) == DIGEST
    # Neither does a suspended one lose anything by it.
    workspace.suspend()
    assert "shutdownTime" not in ground.kube.get(ground.sandbox("expiring"))["spec"]
    ground.kube.request("PATCH", ground.sandbox("expiring"), {"spec": {"shutdownTime": "2026-01-01T00:00:00Z"}})
    workspace.resume()
    assert digest(workspace) == DIGEST
    ground.delete("expiring")


def test_another_workspace_under_the_name_is_never_followed(ground):
    workspace = ground.open("twice")
    ground.delete("twice")
    with pytest.raises(WorkspaceReplacedError):
        workspace.resume()
    other = ground.open("twice")
    for attempt in (workspace.resume, workspace.suspend, workspace.look):
        with pytest.raises(WorkspaceReplacedError):
            attempt()
    assert workspace.delete(delete_disk=True) is False, "what is to be deleted is gone already"
    assert other.look() is None
    ground.delete("twice")


def test_retention_says_what_it_would_do_and_does_it_only_when_told(play, ground):
    for name in ("idle", "busy", "old"):
        ground.open(name)
    busy = ground.open("busy")
    read(
        busy, ["python3", "-c", "import os, time\nif os.fork() == 0: os.setsid(); os.closerange(0, 9); time.sleep(600)"]
    )
    suspend_workspace(ground.client, SuspendRequest(ground.namespace, "old", agent_address=ADDRESS))
    variables = {
        "retention_namespace": ground.namespace,
        "retention_suspend_after": "0s",
        "retention_delete_after": "1s",
        "retention_agent_address": ADDRESS,
    }
    ground.kube.until(
        ground.sandbox("old"),
        lambda body: any(one["reason"] == "PodTerminated" for one in body["status"]["conditions"]),
    )

    def modes() -> dict[str, str]:
        found = list_workspaces(ground.client, ground.namespace, Deadline(10.0))
        return {one.workspace_id: one.mode for one in found if one.workspace_id in ("idle", "busy", "old")}

    before = modes()
    said = play.playbook("namzu.sandbox.retention", variables=variables)["Show what is to be done"]["msg"]
    assert (said["suspend"], said["delete"]) == (["idle"], ["old"])
    assert modes() == before == {"idle": "running", "busy": "running", "old": "suspended"}
    play.playbook("namzu.sandbox.retention", variables={**variables, "retention_apply": True})
    assert modes() == {"idle": "suspended", "busy": "running"}
    for name in ("idle", "busy"):
        ground.delete(name)
