# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a claimant may want to write and must not: one change of something good each, and the field that refuses it."""

from __future__ import annotations

import copy
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import EGRESS_LABEL

Body = dict[str, t.Any]

SANDBOX_API = "agents.x-k8s.io/v1beta1"
DISK: Body = {
    "metadata": {"name": "disk"},
    "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Mi"}}},
}
EGRESS = "namzu-egress-of-a-test"

GONE = object()

#: Name → the changes, as path and value, and what of the refusal's message names the field.
Hostile = dict[str, tuple[dict[str, t.Any], str]]


def changed(body: Body, changes: dict[str, t.Any]) -> Body:
    """A copy with other values at some paths; ``+`` appends to a list, GONE takes away."""
    out = copy.deepcopy(body)
    for path, value in changes.items():
        *steps, last = path.split("/")
        place: t.Any = out
        for step in steps:
            place = place[int(step)] if isinstance(place, list) else place.setdefault(step, {})
        if last == "+":
            place.append(value)
        elif value is GONE:
            del place[last]
        else:
            place[last] = value
    return out


CONTEXT = "spec/containers/0/securityContext/"
VOLUME = "spec/volumes/+"
SECOND = "spec/containers/+"
GOOD_CONTEXT = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
ROOT_BY_CONTAINER = {"spec/securityContext/runAsUser": GONE, CONTEXT + "runAsNonRoot": False}


def container(**fields: t.Any) -> Body:
    return {"name": "second", "image": "example.com/second", "securityContext": GOOD_CONTEXT, **fields}


#: Changes of a pod template.
PODS: Hostile = {
    "a privileged container": ({CONTEXT + "privileged": True}, "privileged"),
    "a privileged second container": (
        {SECOND: container(securityContext={**GOOD_CONTEXT, "privileged": True})},
        "privileged",
    ),
    "a privileged init container": (
        {"spec/initContainers": [container(securityContext={**GOOD_CONTEXT, "privileged": True})]},
        "privileged",
    ),
    "a privileged ephemeral container": (
        {"spec/ephemeralContainers": [container(securityContext={**GOOD_CONTEXT, "privileged": True})]},
        "privileged",
    ),
    "escalation allowed": ({CONTEXT + "allowPrivilegeEscalation": True}, "allowPrivilegeEscalation"),
    "escalation not ruled out": ({CONTEXT + "allowPrivilegeEscalation": GONE}, "allowPrivilegeEscalation"),
    "no security context": ({"spec/containers/0/securityContext": GONE}, "allowPrivilegeEscalation"),
    "a capability": ({CONTEXT + "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}, "capabilities.add"),
    "capabilities kept": ({CONTEXT + "capabilities": GONE}, "capabilities.drop"),
    "only some capabilities dropped": ({CONTEXT + "capabilities": {"drop": ["NET_RAW"]}}, "capabilities.drop"),
    "root, by the container": ({CONTEXT + "runAsUser": 0}, "runAsUser"),
    "root, by the pod": ({"spec/securityContext/runAsUser": 0}, "runAsUser"),
    "the image's user, by the container": (ROOT_BY_CONTAINER, "runAsNonRoot"),
    "the image's user, by nobody": (
        {
            "spec/securityContext/runAsUser": GONE,
            "spec/securityContext/runAsNonRoot": GONE,
            CONTEXT + "runAsNonRoot": GONE,
        },
        "runAsNonRoot",
    ),
    "no seccomp": ({"spec/securityContext/seccompProfile": GONE}, "seccompProfile"),
    "seccomp Unconfined, by the pod": ({"spec/securityContext/seccompProfile/type": "Unconfined"}, "seccompProfile"),
    "seccomp Unconfined, by the container": ({CONTEXT + "seccompProfile": {"type": "Unconfined"}}, "seccompProfile"),
    "AppArmor Unconfined, by the pod": (
        {"spec/securityContext/appArmorProfile": {"type": "Unconfined"}},
        "appArmorProfile",
    ),
    "AppArmor Unconfined, by the container": ({CONTEXT + "appArmorProfile": {"type": "Unconfined"}}, "appArmorProfile"),
    "AppArmor Unconfined, by an annotation": (
        {"metadata/annotations": {"container.apparmor.security.beta.kubernetes.io/agent": "unconfined"}},
        "podTemplate.metadata.annotations",
    ),
    "an SELinux type, by the pod": ({"spec/securityContext/seLinuxOptions": {"type": "spc_t"}}, "seLinuxOptions"),
    "another's SELinux level": ({CONTEXT + "seLinuxOptions": {"level": "s0:c1,c2"}}, "seLinuxOptions"),
    "a host process": ({CONTEXT + "windowsOptions": {"hostProcess": True}}, "windowsOptions"),
    "an unmasked proc": ({CONTEXT + "procMount": "Unmasked"}, "procMount"),
    "a kernel parameter": (
        {"spec/securityContext/sysctls": [{"name": "kernel.msgmax", "value": "1"}]},
        "sysctls",
    ),
    "the node's network": ({"spec/hostNetwork": True}, "hostNetwork"),
    "the node's processes": ({"spec/hostPID": True}, "hostPID"),
    "the node's IPC": ({"spec/hostIPC": True}, "hostIPC"),
    "a port of the node": ({"spec/containers/0/ports/0/hostPort": 8080}, "hostPort"),
    "a probe of a foreign host": (
        {"spec/containers/0/livenessProbe": {"httpGet": {"host": "169.254.169.254", "port": 80}}},
        "host of a probe",
    ),
    "a hook to a foreign host": (
        {"spec/containers/0/lifecycle": {"postStart": {"tcpSocket": {"host": "10.0.0.1", "port": 22}}}},
        "host of a probe",
    ),
    "a token": ({"spec/automountServiceAccountToken": True}, "automountServiceAccountToken"),
    "a token by default": ({"spec/automountServiceAccountToken": GONE}, "automountServiceAccountToken"),
    "another service account": ({"spec/serviceAccountName": "admin"}, "serviceAccountName"),
    "another service account, by the old name": ({"spec/serviceAccount": "admin"}, "serviceAccountName"),
    "a folder of the node": ({VOLUME: {"name": "node", "hostPath": {"path": "/"}}}, "spec.volumes"),
    "a Secret as a volume": ({VOLUME: {"name": "secret", "secret": {"secretName": "other"}}}, "spec.volumes"),
    "somebody's disk": (
        {VOLUME: {"name": "disk", "persistentVolumeClaim": {"claimName": "other"}}},
        "spec.volumes",
    ),
    "a network file system": ({VOLUME: {"name": "nfs", "nfs": {"server": "10.0.0.1", "path": "/"}}}, "spec.volumes"),
    "a driver's volume": ({VOLUME: {"name": "csi", "csi": {"driver": "example.com"}}}, "spec.volumes"),
    "two kinds in one volume": (
        {VOLUME: {"name": "two", "emptyDir": {}, "hostPath": {"path": "/"}}},
        "spec.volumes",
    ),
    "a projected token": (
        {VOLUME: {"name": "token", "projected": {"sources": [{"serviceAccountToken": {"path": "token"}}]}}},
        "projected.sources",
    ),
    "a projected Secret": (
        {VOLUME: {"name": "token", "projected": {"sources": [{"secret": {"name": "other"}}]}}},
        "projected.sources",
    ),
    "a variable from a Secret": (
        {"spec/containers/0/env/+": {"name": "A", "valueFrom": {"secretKeyRef": {"name": "other", "key": "a"}}}},
        "must not come from a Secret",
    ),
    "all variables of a Secret": (
        {"spec/containers/0/envFrom": [{"secretRef": {"name": "other"}}]},
        "must not come from a Secret",
    ),
    "a copy of somebody's disk": (
        {
            VOLUME: {
                "name": "copy",
                "ephemeral": {
                    "volumeClaimTemplate": {"spec": {"dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}}}
                },
            }
        },
        "dataSource",
    ),
    "a device": (
        {"spec/containers/0/volumeDevices": [{"name": "workspace", "devicePath": "/dev/a"}]},
        "volumeDevices",
    ),
    "mounts that reach the node": (
        {"spec/containers/0/volumeMounts/+": {"name": "x", "mountPath": "/x", "mountPropagation": "Bidirectional"}},
        "mountPropagation",
    ),
    "a node by name": ({"spec/nodeName": "control-plane"}, "nodeName"),
    "a priority over all": ({"spec/priorityClassName": "system-node-critical"}, "priorityClassName"),
    "no template's label": ({"metadata/labels": {}}, "podTemplate.metadata.labels"),
}

#: Changes of the whole object that holds the pod template.
HOLDERS: Hostile = {
    "a disk copied from somebody's": (
        {"spec/volumeClaimTemplates/0/spec/dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}},
        "dataSource",
    ),
    "a disk copied from another namespace": (
        {
            "spec/volumeClaimTemplates/0/spec/dataSourceRef": {
                "kind": "PersistentVolumeClaim",
                "name": "other",
                "namespace": "kube-system",
            }
        },
        "dataSourceRef",
    ),
    "somebody's volume": ({"spec/volumeClaimTemplates/0/spec/volumeName": "pv-of-another"}, "volumeName"),
    "a place in a pool, by owner": (
        {
            "metadata/ownerReferences": [
                {
                    "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
                    "kind": "SandboxWarmPool",
                    "name": "python",
                    "uid": "11111111-2222-3333-4444-555555555555",
                    "controller": True,
                }
            ]
        },
        "ownerReferences.controller",
    ),
    "a place in a pool, by label": (
        {"metadata/labels": {"agents.x-k8s.io/warm-pool-sandbox": "00000000"}},
        "metadata.labels",
    ),
}

ANOTHER_UID = "11111111-2222-3333-4444-555555555555"
DEPLOYMENT = {"apiVersion": "apps/v1", "kind": "Deployment", "name": "other", "uid": ANOTHER_UID}

#: Changes of a policy of one sandbox, which both engines refuse.
POLICIES: Hostile = {
    "another's name": ({"metadata/name": "namzu-python-egress"}, "metadata.name"),
    "no name of its own": ({"metadata/name": GONE, "metadata/generateName": "namzu-egress-"}, "matchLabels"),
    "a name too long": ({"metadata/name": "namzu-egress-" + "a" * 51}, "metadata.name"),
    "no owner": ({"metadata/ownerReferences": GONE}, "metadata.ownerReferences"),
    "two owners": ({"metadata/ownerReferences/+": DEPLOYMENT}, "metadata.ownerReferences"),
    "an owner of another kind": ({"metadata/ownerReferences/0/kind": "SandboxTemplate"}, "ownerReferences.kind"),
    "an owner of another group": ({"metadata/ownerReferences/0/apiVersion": "example.com/v1"}, "ownerReferences.kind"),
    "an owner that it controls": ({"metadata/ownerReferences/0/controller": True}, "ownerReferences.controller"),
    "an owner that it blocks": ({"metadata/ownerReferences/0/blockOwnerDeletion": True}, "blockOwnerDeletion"),
    "a finalizer": ({"metadata/finalizers": ["example.com/stay"]}, "metadata.finalizers"),
}

SELECTOR = {EGRESS_LABEL: "namzu-egress-other"}
EXPRESSION = [{"key": EGRESS_LABEL, "operator": "Exists"}]

#: Of a NetworkPolicy.
CORE_POLICIES: Hostile = {
    "all pods": ({"spec/podSelector": {}}, "spec.podSelector.matchLabels"),
    "another's pod": ({"spec/podSelector/matchLabels": SELECTOR}, "spec.podSelector.matchLabels"),
    "a template's pods": (
        {"spec/podSelector/matchLabels": {"sandbox.namzu.ai/template": "python"}},
        "spec.podSelector.matchLabels",
    ),
    "one label more": ({"spec/podSelector/matchLabels/app": "x"}, "spec.podSelector.matchLabels"),
    "an expression": ({"spec/podSelector/matchExpressions": EXPRESSION}, "matchExpressions"),
    "expressions alone": ({"spec/podSelector": {"matchExpressions": EXPRESSION}}, "spec.podSelector.matchLabels"),
    "ingress too": ({"spec/policyTypes": ["Egress", "Ingress"]}, "spec.policyTypes"),
    "ingress instead": ({"spec/policyTypes": ["Ingress"]}, "spec.policyTypes"),
    "types left to the server": ({"spec/policyTypes": GONE}, "spec.policyTypes"),
    "everyone may come in": ({"spec/ingress": [{}]}, "spec.ingress"),
}

#: Of a CiliumNetworkPolicy.
CILIUM_POLICIES: Hostile = {
    "all pods": ({"spec/endpointSelector": {}}, "endpointSelector"),
    "another's pod": ({"spec/endpointSelector/matchLabels": SELECTOR}, "endpointSelector"),
    "an expression": ({"spec/endpointSelector/matchExpressions": EXPRESSION}, "matchExpressions"),
    "everyone may come in": ({"spec/ingress": [{"fromEntities": ["all"]}]}, "spec.ingress"),
    "nobody may come in": ({"spec/ingressDeny": [{"fromEntities": ["all"]}]}, "spec.ingress"),
    "ingress instead": ({"spec/egress": GONE, "spec/ingress": [{}]}, "spec.ingress"),
    "the node": ({"spec/endpointSelector": GONE, "spec/nodeSelector": {}}, "endpointSelector"),
    "specs instead": (
        {"spec": GONE, "specs": [{"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]}]},
        "endpointSelector",
    ),
    "specs too": ({"specs": [{"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]}]}, "specs"),
    "default deny off": ({"spec/enableDefaultDeny": {"egress": False}}, "enableDefaultDeny"),
}


def claim(pod_labels: dict[str, str], **spec: t.Any) -> Body:
    """A claim of the pool that asks for labels on its pod."""
    return {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxClaim",
        "metadata": {"name": "another"},
        "spec": {"warmPoolRef": {"name": "python"}, "additionalPodMetadata": {"labels": pod_labels}, **spec},
    }


def owned_policies(sandbox: Body) -> dict[str, Body]:
    """A good policy of one Sandbox, for each engine."""
    named = sandbox["metadata"]
    owner = {"apiVersion": SANDBOX_API, "kind": "Sandbox", "name": named["name"], "uid": named["uid"]}
    metadata = {"name": EGRESS, "ownerReferences": [owner]}
    labels = {"matchLabels": {EGRESS_LABEL: EGRESS}}
    peers = [{"ipBlock": {"cidr": "192.0.2.0/24"}}]
    return {
        "networkpolicies": {
            "apiVersion": "networking.k8s.io/v1",
            "kind": "NetworkPolicy",
            "metadata": metadata,
            "spec": {"podSelector": labels, "policyTypes": ["Egress"], "egress": [{"to": peers}]},
        },
        "ciliumnetworkpolicies": {
            "apiVersion": "cilium.io/v2",
            "kind": "CiliumNetworkPolicy",
            "metadata": metadata,
            "spec": {"endpointSelector": labels, "egress": [{"toCIDR": ["192.0.2.0/24"]}]},
        },
    }


def renamed(policy: Body, name: str) -> Body:
    """A good policy under another name, with the selector that goes with it."""
    out = changed(policy, {"metadata/name": name})
    selector = "podSelector" if "podSelector" in out["spec"] else "endpointSelector"
    out["spec"][selector] = {"matchLabels": {EGRESS_LABEL: name}}
    return out
