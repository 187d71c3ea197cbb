# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the tests of workspaces stand on, and where its objects are."""

from __future__ import annotations

import dataclasses
import os
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.delete import DeleteRequest, delete_workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.handle import Workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import (
    HOLDER_EPOCH_ANNOTATION,
    workspace_ref,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.request import WorkspaceRequest

Body = dict[str, t.Any]

CLASSES = "/apis/storage.k8s.io/v1/storageclasses"
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
    """A namespace with a template that has a disk, and a client with the rights of a claimant."""

    namespace: str
    client: Client
    kube: t.Any
    access: Body = dataclasses.field(repr=False)

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


def disk(storage_class: str | None) -> Body:
    """A volumeClaimTemplates entry; None takes the cluster's default class."""
    spec: Body = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}}
    return {
        "metadata": {"name": "workspace"},
        "spec": {**spec, **({"storageClassName": storage_class} if storage_class else {})},
    }


def usable_class(kube: t.Any) -> str | None:
    """The StorageClass that NAMZU_TEST_STORAGE_CLASS names, else None for the default one, which must be there."""
    named = os.environ.get("NAMZU_TEST_STORAGE_CLASS")
    mark = "storageclass.kubernetes.io/is-default-class"
    found = [one for one in kube.items(CLASSES) if (one["metadata"].get("annotations") or {}).get(mark) == "true"]
    if not named and not found:
        pytest.skip("the cluster has no default StorageClass for disks: name one in NAMZU_TEST_STORAGE_CLASS")
    return named


@pytest.fixture(scope="session")
def ground(play: t.Any, kube: t.Any, new_namespace: t.Callable[[], str], image: str) -> t.Iterator[Ground]:
    """Workspaces, made with the rights of role ``claimant``."""
    namespace = new_namespace()
    names = {
        "namespace_name": namespace,
        "template_namespace": namespace,
        "template_name": TEMPLATE,
        "template_image": image,
        "template_volume_claim_templates": [disk(usable_class(kube))],
        "boundary_namespace": namespace,
        "boundary_template": TEMPLATE,
    }
    # The tests have these rights and no others.
    names |= {"claimant_namespace": namespace, "claimant_name": "desk", "claimant_workspaces": True}
    roles = ("namespace", "template", "boundary", "claimant")
    play([{"ansible.builtin.include_role": {"name": f"namzu.sandbox.{role}"}} for role in roles], variables=names)
    account = f"/api/v1/namespaces/{namespace}/serviceaccounts/desk/token"
    token = kube.request("POST", account, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
    access = {"host": kube.server, "api_key": token, "ca_cert": kube.ca_cert}
    with Client(resolve_access(access, {})) as client:
        yield Ground(namespace, client, kube, access)
    for body in kube.items(SANDBOXES.format(namespace)):
        kube.delete(f"{SANDBOXES.format(namespace)}/{body['metadata']['name']}")
    kube.until(CLAIMS.format(namespace), lambda body: not body["items"])
