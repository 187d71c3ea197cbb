# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake cluster with a template for workspaces, and the verbs of a workspace as functions."""

from __future__ import annotations

import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import Body
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import Renewal, ensure_left
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.delete import DeleteRequest, delete_workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.lease import WorkspaceLease, find_workspace_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import workspace_ref
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.open import open_workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.request import (
    Opened,
    Suspended,
    SuspendRequest,
    WorkspaceRequest,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.suspend import (
    refresh_suspended,
    suspend_workspace,
)

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.store import Key
from ..fake.workspaces import template

TEMPLATE = "desk"
ID = "build-1"


def prepare(cluster: FakeCluster) -> None:
    """Make the template."""
    cluster.store.create("sandboxtemplates", NAMESPACE, template(TEMPLATE))


def edit_template(cluster: FakeCluster) -> None:
    """Edit the template's pod, not its disks."""
    spec = {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 7}}}
    cluster.store.patch(cluster.key("sandboxtemplates", TEMPLATE), {"spec": spec})


def request(cluster: FakeCluster, **changes: t.Any) -> WorkspaceRequest:
    """What is asked for unless a test says otherwise."""
    wanted: dict[str, t.Any] = {
        "namespace": NAMESPACE,
        "workspace_id": ID,
        "template": TEMPLATE,
        "ready_timeout": 5.0,
        "agent_port": cluster.agent.port,
        "ingress": "unverified",
        **changes,
    }
    return WorkspaceRequest(**wanted)


def run(cluster: FakeCluster, client: Client, **changes: t.Any) -> Opened:
    """``state: running``."""
    return open_workspace(client, request(cluster, **changes))


def refresh(cluster: FakeCluster, client: Client, **changes: t.Any) -> Opened:
    """``state: running`` with ``refresh``."""
    return run(cluster, client, refresh=True, **changes)


def suspend(cluster: FakeCluster, client: Client, **changes: t.Any) -> Suspended:
    """``state: suspended``."""
    wanted: dict[str, t.Any] = {"workspace_id": ID, "timeout": 5.0, "agent_port": cluster.agent.port, **changes}
    return suspend_workspace(client, SuspendRequest(NAMESPACE, **wanted))


def refresh_asleep(cluster: FakeCluster, client: Client, **changes: t.Any) -> bool:
    """``state: suspended`` with ``refresh``, of a suspended one."""
    return refresh_suspended(client, request(cluster, refresh=True, **changes))


def extend(_cluster: FakeCluster, client: Client, **changes: t.Any) -> Renewal:
    """``sandbox_lease`` of a workspace, for a century."""
    workspace_id, epoch = changes.get("workspace_id", ID), changes.get("holder_epoch")

    def find(limit: Deadline) -> WorkspaceLease:
        return find_workspace_lease(client, NAMESPACE, workspace_id, epoch, limit)

    return ensure_left(client, find, 100 * 365 * 86400.0, Deadline(5.0, client.clock))


def delete(_cluster: FakeCluster, client: Client, **changes: t.Any) -> bool:
    """``state: absent``."""
    wanted: dict[str, t.Any] = {"workspace_id": ID, "delete_disk": True, "timeout": 5.0, **changes}
    return delete_workspace(client, DeleteRequest(NAMESPACE, **wanted))


def key(plural: str = "sandboxes", workspace_id: str = ID) -> Key:
    """Where the Sandbox, the pod or the claim of a workspace stands."""
    name = workspace_ref(NAMESPACE, workspace_id).name
    return Key(plural, NAMESPACE, f"workspace-{name}" if plural == "persistentvolumeclaims" else name)


def sandbox(cluster: FakeCluster, workspace_id: str = ID) -> Body:
    """The Sandbox of a workspace."""
    return cluster.store.get(key(workspace_id=workspace_id))


def mode(cluster: FakeCluster) -> str:
    """Whether it is to run or suspended."""
    return str(sandbox(cluster)["spec"]["operatingMode"])
