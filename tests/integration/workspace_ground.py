# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of workspaces stand on, and where its objects are."""

from __future__ import annotations

import dataclasses
import os
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.handle import Workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.naming import (
    HOLDER_EPOCH_ANNOTATION,
    workspace_ref,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.removal import DeleteRequest, delete_workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.request import WorkspaceRequest

from .workspace_storage import Storage

CLAIMS = "/api/v1/namespaces/{}/persistentvolumeclaims"
PODS = "/api/v1/namespaces/{}/pods"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"
TEMPLATES = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxtemplates"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/{}/networkpolicies"

TEMPLATE = "desk"
ADDRESS = os.environ.get("NAMZU_TEST_AGENT_ADDRESS") or "pod_ip"
ADDRESS_OPTION = {"agent": {"address": ADDRESS}}


@dataclasses.dataclass(frozen=True)
class Ground:
    """A namespace with a template that has a disk, and free volumes for eight workspaces."""

    namespace: str
    client: Client
    kube: t.Any
    storage: Storage

    def request(self, workspace_id: str, **changes: t.Any) -> WorkspaceRequest:
        wanted = {"template": TEMPLATE, "agent_address": ADDRESS, "ready_timeout": 90.0, **changes}
        return WorkspaceRequest(self.namespace, workspace_id, **wanted)

    def open(self, workspace_id: str, *, on_restart: t.Any = None, **changes: t.Any) -> Workspace:
        return Workspace.open(self.client, self.request(workspace_id, **changes), on_restart)

    def sandbox(self, workspace_id: str) -> str:
        return f"{SANDBOXES.format(self.namespace)}/{workspace_ref(self.namespace, workspace_id).name}"

    def pod(self, workspace_id: str) -> str:
        return f"{PODS.format(self.namespace)}/{workspace_ref(self.namespace, workspace_id).name}"

    def claim(self, workspace_id: str) -> str:
        return f"{CLAIMS.format(self.namespace)}/workspace-{workspace_ref(self.namespace, workspace_id).name}"

    def copy_template(self, name: str, **spec: t.Any) -> None:
        """Make another template that differs in some fields."""
        templates = TEMPLATES.format(self.namespace)
        body = self.kube.get(f"{templates}/{TEMPLATE}")
        head = {"apiVersion": body["apiVersion"], "kind": body["kind"], "metadata": {"name": name}}
        self.kube.request("POST", templates, {**head, "spec": {**body["spec"], **spec}})

    def delete(self, workspace_id: str) -> None:
        body = self.kube.get(self.sandbox(workspace_id))
        epoch = ((body or {}).get("metadata", {}).get("annotations") or {}).get(HOLDER_EPOCH_ANNOTATION)
        held = int(epoch) if epoch else None
        asked = DeleteRequest(self.namespace, workspace_id, delete_disk=True, wait=True, holder_epoch=held)
        delete_workspace(self.client, asked)
