# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The kinds that the product reads and writes, and how to name one object of them.

Sources: the CRDs of agent-sandbox v0.5.6 (``agents.x-k8s.io`` and ``extensions.agents.x-k8s.io``, v1beta1) and the
Kubernetes API reference. Paths are fixed by group, version and plural, so no discovery request is ever sent.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t
import urllib.parse

#: A Kubernetes object as plain data.
Body = dict[str, t.Any]

AGENTS_GROUP = "agents.x-k8s.io"
EXTENSIONS_GROUP = "extensions.agents.x-k8s.io"

#: On a claim or Sandbox: which acquire made it, so that an object whose POST lost its answer is known as ours.
ACQUIRE_ID_ANNOTATION = "sandbox.namzu.ai/acquire-id"

#: On a claim or Sandbox that was made together with others: which of them, so that one watch follows all.
BATCH_LABEL = "sandbox.namzu.ai/batch"

#: On a pod: the template that it was made from. Policies of role ``boundary`` select by it.
TEMPLATE_LABEL = "sandbox.namzu.ai/template"

#: On a pod: the name of the policy that is its own, by which that policy selects it. A claim may give its pod labels of
#: the controller's allowed domains alone, and this domain is allowed unless a controller is told otherwise
#: (agent-sandbox v0.5.6, ``validateAdditionalPodMetadata``).
EGRESS_LABEL = "sandbox.users.io/egress"

#: On a Sandbox that is a workspace: that it is one, and its id to the letter, of which a name can hold only a part.
WORKSPACE_LABEL = "sandbox.namzu.ai/workspace"
WORKSPACE_ID_ANNOTATION = "sandbox.namzu.ai/workspace-id"

#: On a Sandbox: ``warm`` or ``cold``, written by the controller when it serves a claim.
LAUNCH_TYPE_LABEL = f"{AGENTS_GROUP}/launch-type"


@dataclasses.dataclass(frozen=True)
class Kind:
    """A kind of object and where the API serves it.

    Attributes:
        group: the API group, empty for the core group.
        version: the served version.
        name: the kind as objects carry it.
        plural: the resource's name in paths and in RBAC rules.
    """

    group: str
    version: str
    name: str
    plural: str

    @property
    def api_version(self) -> str:
        """``group/version``, or ``version`` for the core group."""
        return f"{self.group}/{self.version}" if self.group else self.version

    def collection(self, namespace: str | None) -> str:
        """The path of all objects of this kind in a namespace; None: in the whole cluster, or a cluster's own kind."""
        root = f"/apis/{self.group}/{self.version}" if self.group else f"/api/{self.version}"
        if namespace is None:
            return f"{root}/{self.plural}"
        return f"{root}/namespaces/{urllib.parse.quote(namespace, safe='')}/{self.plural}"

    def ref(self, namespace: str, name: str) -> ObjectRef:
        """One object of this kind."""
        return ObjectRef(self, namespace, name)


@dataclasses.dataclass(frozen=True)
class ObjectRef:
    """One object by kind, namespace (empty for a kind of the cluster) and name; as text ``Kind namespace/name``."""

    kind: Kind
    namespace: str
    name: str

    @property
    def path(self) -> str:
        """The object's path below the API server's address."""
        return f"{self.kind.collection(self.namespace or None)}/{urllib.parse.quote(self.name, safe='')}"

    def __str__(self) -> str:
        return f"{self.kind.name} {self.namespace}/{self.name}" if self.namespace else f"{self.kind.name} {self.name}"


CLAIM = Kind(EXTENSIONS_GROUP, "v1beta1", "SandboxClaim", "sandboxclaims")
TEMPLATE = Kind(EXTENSIONS_GROUP, "v1beta1", "SandboxTemplate", "sandboxtemplates")
WARM_POOL = Kind(EXTENSIONS_GROUP, "v1beta1", "SandboxWarmPool", "sandboxwarmpools")
SANDBOX = Kind(AGENTS_GROUP, "v1beta1", "Sandbox", "sandboxes")
POD = Kind("", "v1", "Pod", "pods")
VOLUME_CLAIM = Kind("", "v1", "PersistentVolumeClaim", "persistentvolumeclaims")

#: What decides about a pod's network. Which versions of the administrators' policies a cluster serves is asked of it.
NAMESPACE = Kind("", "v1", "Namespace", "namespaces")
NODE = Kind("", "v1", "Node", "nodes")
RUNTIME_CLASS = Kind("node.k8s.io", "v1", "RuntimeClass", "runtimeclasses")
SERVICE = Kind("", "v1", "Service", "services")
NETWORK_POLICY = Kind("networking.k8s.io", "v1", "NetworkPolicy", "networkpolicies")
ADMIN_GROUP = "policy.networking.k8s.io"
CLUSTER_NETWORK_POLICY = Kind(ADMIN_GROUP, "v1beta1", "ClusterNetworkPolicy", "clusternetworkpolicies")
ADMIN_NETWORK_POLICY = Kind(ADMIN_GROUP, "v1alpha1", "AdminNetworkPolicy", "adminnetworkpolicies")
BASELINE_POLICY = Kind(ADMIN_GROUP, "v1alpha1", "BaselineAdminNetworkPolicy", "baselineadminnetworkpolicies")
CILIUM_GROUP = "cilium.io"
CILIUM_POLICY = Kind(CILIUM_GROUP, "v2", "CiliumNetworkPolicy", "ciliumnetworkpolicies")
CILIUM_CLUSTERWIDE_POLICY = Kind(
    CILIUM_GROUP, "v2", "CiliumClusterwideNetworkPolicy", "ciliumclusterwidenetworkpolicies"
)
CILIUM_CIDR_GROUP = Kind(CILIUM_GROUP, "v2", "CiliumCIDRGroup", "ciliumcidrgroups")

#: What an admission fence is made of.
ADMISSION_GROUP = "admissionregistration.k8s.io"
ADMISSION_POLICY = Kind(ADMISSION_GROUP, "v1", "ValidatingAdmissionPolicy", "validatingadmissionpolicies")
ADMISSION_BINDING = Kind(ADMISSION_GROUP, "v1", "ValidatingAdmissionPolicyBinding", "validatingadmissionpolicybindings")


def mapping(value: t.Any) -> Body:
    """The value when it is a mapping, else an empty one: a field that is absent, null or of another type."""
    return value if isinstance(value, dict) else {}


def entries(value: t.Any) -> list[Body]:
    """The mappings in a list, such as ``status.conditions``; none for a field that is absent, null or no list."""
    return [one for one in value if isinstance(one, dict)] if isinstance(value, list) else []


def metadata(body: Body) -> Body:
    """``metadata`` of an object, or of a pod template."""
    return mapping(body.get("metadata"))


def spec(body: Body) -> Body:
    """``spec`` of an object, or of a pod template."""
    return mapping(body.get("spec"))


def status(body: Body) -> Body:
    """``status`` of an object."""
    return mapping(body.get("status"))


def name(body: Body) -> str:
    """``metadata.name``; empty when the object has none."""
    return str(metadata(body).get("name") or "")


def namespace(body: Body) -> str:
    """``metadata.namespace``; empty for an object of the cluster."""
    return str(metadata(body).get("namespace") or "")


def uid(body: Body) -> str:
    """``metadata.uid``; empty for an object that was not created yet."""
    return str(metadata(body).get("uid") or "")


def resource_version(body: Body) -> str:
    """``metadata.resourceVersion``; empty when the object has none."""
    return str(metadata(body).get("resourceVersion") or "")


def labels(body: Body) -> dict[str, str]:
    """``metadata.labels`` of an object, or of a pod template."""
    return mapping(metadata(body).get("labels"))


def all_annotations(body: Body) -> dict[str, str]:
    """``metadata.annotations`` of an object, or of a pod template."""
    return mapping(metadata(body).get("annotations"))


def annotation(body: Body, key: str) -> str | None:
    """The value of one annotation, or None."""
    value = all_annotations(body).get(key)
    return None if value is None else str(value)


def owner_uids(body: Body) -> list[str]:
    """The uid of each owner in ``metadata.ownerReferences``."""
    return [str(one.get("uid")) for one in entries(metadata(body).get("ownerReferences"))]


def is_being_deleted(body: Body) -> bool:
    """Whether the object has a ``metadata.deletionTimestamp``."""
    return bool(metadata(body).get("deletionTimestamp"))


def expires_at(body: Body) -> datetime.datetime | None:
    """When the controller ends a claim (``spec.lifecycle.shutdownTime``) or Sandbox (``spec.shutdownTime``), in UTC.

    None when it has no such time.
    """
    text = {**spec(body), **mapping(spec(body).get("lifecycle"))}.get("shutdownTime")
    return datetime.datetime.fromisoformat(str(text)) if text else None


def pod_template(body: Body) -> Body:
    """``spec.podTemplate`` of a Sandbox or SandboxTemplate, itself with ``metadata`` and ``spec``."""
    return mapping(spec(body).get("podTemplate"))


def condition(body: Body, type_name: str) -> Body:
    """The condition of that type in ``status.conditions``, or an empty mapping."""
    return next((one for one in entries(status(body).get("conditions")) if one.get("type") == type_name), {})


def workspace_id(sandbox: Body) -> str | None:
    """The id of the workspace that a Sandbox is; None for a Sandbox that is not a workspace."""
    return annotation(sandbox, WORKSPACE_ID_ANNOTATION) if labels(sandbox).get(WORKSPACE_LABEL) == "true" else None
