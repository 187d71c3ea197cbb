# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What no claimant can do: requests that the API server refuses to each of them, by RBAC or by the fence.

Paths have ``{ns}`` for the namespace, ``{pod}`` and ``{member}`` for a pod and a Sandbox of its pool.
"""

from __future__ import annotations

import typing as t

from .hostile import EGRESS, SANDBOX_API

#: Method, path, body.
Request = tuple[str, str, t.Any]

CORE = "/api/v1/namespaces/{ns}"
SYSTEM = "/api/v1/namespaces/kube-system"
AGENTS = "/apis/agents.x-k8s.io/v1beta1/namespaces/{ns}/sandboxes"
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{ns}"
POLICIES = "/apis/networking.k8s.io/v1/namespaces/{ns}/networkpolicies"
CILIUM = "/apis/cilium.io/v2/namespaces/{ns}/ciliumnetworkpolicies"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
FENCE = "/apis/admissionregistration.k8s.io/v1"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"

POD_SPEC = {"containers": [{"name": "a", "image": "a", "securityContext": {"privileged": True}}]}
POD = {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": "a"}, "spec": POD_SPEC}
LABELLED = {"app": "a"}
TEMPLATE = {"metadata": {"labels": LABELLED}, "spec": POD_SPEC}
DEPLOYMENT = {"metadata": {"name": "a"}, "spec": {"selector": {"matchLabels": LABELLED}, "template": TEMPLATE}}
EVERYTHING = [{"apiGroups": ["*"], "resources": ["*"], "verbs": ["*"]}]
ROLE_REF = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": "cluster-admin"}
ANYONE = [{"kind": "Group", "name": "system:authenticated", "apiGroup": "rbac.authorization.k8s.io"}]
BINDING = {"metadata": {"name": "a"}, "roleRef": ROLE_REF, "subjects": ANYONE}
MORE_RULES = [{"op": "add", "path": "/rules/-", "value": EVERYTHING[0]}]
DEBUG = {"spec": {"ephemeralContainers": [{"name": "debug", "image": "a", "targetContainerName": "agent"}]}}
OPEN_POLICY = {
    "apiVersion": "networking.k8s.io/v1",
    "kind": "NetworkPolicy",
    "metadata": {"name": "open"},
    "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]},
}
OPEN_CILIUM = {
    "apiVersion": "cilium.io/v2",
    "kind": "CiliumNetworkPolicy",
    "metadata": {"name": "open"},
    "spec": {"endpointSelector": {}, "egress": [{"toEntities": ["all"]}]},
}
OPENED = {"spec": {"egress": [{}]}}
TEMPLATE_CHANGE = {"spec": {"podTemplate": {"spec": {"hostNetwork": True}}}}
REVIEW = {"spec": {"user": "system:admin", "resourceAttributes": {"verb": "get", "resource": "secrets"}}}
CLAIM = {
    "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
    "kind": "SandboxClaim",
    "metadata": {"name": "a"},
    "spec": {"warmPoolRef": {"name": "python"}},
}
BOUNDARY = {"additionalPodMetadata": {"labels": {"sandbox.namzu.ai/template": "other"}}}


def sandbox(**spec: t.Any) -> dict[str, t.Any]:
    """A Sandbox with a pod that looks harmless but for what is added to it."""
    context = {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}}
    pod = {
        "automountServiceAccountToken": False,
        "securityContext": {"runAsUser": 1000, "runAsNonRoot": True, "seccompProfile": {"type": "RuntimeDefault"}},
        "containers": [{"name": "a", "image": "a", "securityContext": context}],
        **spec,
    }
    labels = {"sandbox.namzu.ai/template": "python"}
    return {
        "apiVersion": SANDBOX_API,
        "kind": "Sandbox",
        "metadata": {"name": "a"},
        "spec": {"operatingMode": "Suspended", "podTemplate": {"metadata": {"labels": labels}, "spec": pod}},
    }


ESCAPES: dict[str, Request] = {
    # Into pods.
    "run a command in a pod": ("POST", CORE + "/pods/{pod}/exec?command=id&stdout=true", None),
    "run a command in a pod, by GET": ("GET", CORE + "/pods/{pod}/exec?command=id&stdout=true", None),
    "attach to a pod": ("POST", CORE + "/pods/{pod}/attach?stdin=true", None),
    "read a pod's log": ("GET", CORE + "/pods/{pod}/log", None),
    "reach a pod through the API server": ("GET", CORE + "/pods/{pod}:1024/proxy/", None),
    "debug a pod": ("PATCH", CORE + "/pods/{pod}/ephemeralcontainers", DEBUG),
    "make a pod": ("POST", CORE + "/pods", POD),
    "label a pod": ("PATCH", CORE + "/pods/{pod}", {"metadata": {"labels": {"a": "b"}}}),
    "write a pod's status": ("PATCH", CORE + "/pods/{pod}/status", {"status": {"podIP": "10.0.0.1"}}),
    "delete a pod": ("DELETE", CORE + "/pods/{pod}", None),
    "delete all pods": ("DELETE", CORE + "/pods", None),
    "evict a pod": ("POST", CORE + "/pods/{pod}/eviction", {"metadata": {"name": "{pod}"}}),
    "bind a pod to a node": ("POST", CORE + "/pods/{pod}/binding", {"target": {"name": "node"}}),
    "make pods by a deployment": ("POST", "/apis/apps/v1/namespaces/{ns}/deployments", DEPLOYMENT),
    "make pods by a daemon set": ("POST", "/apis/apps/v1/namespaces/{ns}/daemonsets", DEPLOYMENT),
    "make pods by a job": (
        "POST",
        "/apis/batch/v1/namespaces/{ns}/jobs",
        {"metadata": {"name": "a"}, "spec": {"template": TEMPLATE}},
    ),
    # Secrets, tokens, configuration.
    "list secrets": ("GET", CORE + "/secrets", None),
    "read a secret": ("GET", CORE + "/secrets/any", None),
    "make a token's secret": ("POST", CORE + "/secrets", {"metadata": {"name": "a"}, "data": {}}),
    "ask for a token": ("POST", CORE + "/serviceaccounts/default/token", {"spec": {}}),
    "ask for a controller's token": ("POST", SYSTEM + "/serviceaccounts/generic-garbage-collector/token", {"spec": {}}),
    "make a service account": ("POST", CORE + "/serviceaccounts", {"metadata": {"name": "a"}}),
    "list config maps": ("GET", CORE + "/configmaps", None),
    "change the agent": ("POST", CORE + "/configmaps", {"metadata": {"name": "a"}, "data": {"__main__.py": ""}}),
    # Other namespaces and the cluster.
    "list pods of the cluster": ("GET", "/api/v1/pods", None),
    "list pods of another namespace": ("GET", SYSTEM + "/pods", None),
    "claim in another namespace": (
        "POST",
        "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims",
        CLAIM,
    ),
    "list claims of the cluster": ("GET", "/apis/extensions.agents.x-k8s.io/v1beta1/sandboxclaims", None),
    "change a node": ("PATCH", "/api/v1/nodes/any", {"metadata": {"labels": {"a": "b"}}}),
    "reach a node's kubelet": ("GET", "/api/v1/nodes/any/proxy/pods", None),
    "make a namespace": ("POST", "/api/v1/namespaces", {"metadata": {"name": "a"}}),
    "relabel its namespace": (
        "PATCH",
        "/api/v1/namespaces/{ns}",
        {"metadata": {"labels": {"pod-security.kubernetes.io/enforce": "privileged"}}},
    ),
    "delete its namespace": ("DELETE", "/api/v1/namespaces/{ns}", None),
    "read the API server's metrics": ("GET", "/metrics", None),
    # Boundaries.
    "open every pod's egress": ("POST", POLICIES, OPEN_POLICY),
    "open every pod's egress with Cilium": ("POST", CILIUM, OPEN_CILIUM),
    "open the template's boundary": ("PATCH", POLICIES + "/namzu-python-egress", OPENED),
    "open the template's ingress": ("PATCH", POLICIES + "/namzu-python-ingress", {"spec": {"ingress": [{}]}}),
    "replace the template's boundary": (
        "PUT",
        POLICIES + "/namzu-python-egress",
        {**OPEN_POLICY, "metadata": {"name": "namzu-python-egress"}},
    ),
    "delete the template's boundary": ("DELETE", POLICIES + "/namzu-python-egress", None),
    "open what no boundary selects": ("DELETE", POLICIES + "/namzu-fence-closed", None),
    "delete all policies": ("DELETE", POLICIES, None),
    "turn its policy to all pods": ("PATCH", f"{POLICIES}/{EGRESS}", {"spec": {"podSelector": {"matchLabels": None}}}),
    "open a cluster's policy": (
        "POST",
        "/apis/cilium.io/v2/ciliumclusterwidenetworkpolicies",
        {**OPEN_CILIUM, "kind": "CiliumClusterwideNetworkPolicy"},
    ),
    # Templates, pools, claims, Sandboxes.
    "change a template": ("PATCH", EXTENSIONS + "/sandboxtemplates/python", TEMPLATE_CHANGE),
    "delete a template": ("DELETE", EXTENSIONS + "/sandboxtemplates/python", None),
    "make a template": ("POST", EXTENSIONS + "/sandboxtemplates", {"metadata": {"name": "a"}, "spec": {}}),
    "make a pool": ("POST", EXTENSIONS + "/sandboxwarmpools", {"metadata": {"name": "a"}, "spec": {}}),
    "scale a pool": ("PATCH", EXTENSIONS + "/sandboxwarmpools/python/scale", {"spec": {"replicas": 99}}),
    "change a pool": ("PATCH", EXTENSIONS + "/sandboxwarmpools/python", {"spec": {"replicas": 99}}),
    "delete a pool": ("DELETE", EXTENSIONS + "/sandboxwarmpools/python", None),
    "write a claim's status": ("PATCH", EXTENSIONS + "/sandboxclaims/any/status", {"status": {"sandbox": {}}}),
    "delete all claims": ("DELETE", EXTENSIONS + "/sandboxclaims", None),
    "leave its boundary by a claim's label": (
        "POST",
        EXTENSIONS + "/sandboxclaims",
        {**CLAIM, "spec": {**CLAIM["spec"], **BOUNDARY}},
    ),
    "write a Sandbox's status": ("PATCH", AGENTS + "/{member}/status", {"status": {"podIPs": ["10.0.0.1"]}}),
    "delete all Sandboxes": ("DELETE", AGENTS, None),
    "make a privileged Sandbox": ("POST", AGENTS, sandbox(containers=POD_SPEC["containers"])),
    "make a Sandbox on the node's network": ("POST", AGENTS, sandbox(hostNetwork=True)),
    "make a Sandbox with a token": ("POST", AGENTS, sandbox(automountServiceAccountToken=True)),
    "make a Sandbox of another service account": ("POST", AGENTS, sandbox(serviceAccountName="forwarding")),
    "read the node by a Sandbox": (
        "POST",
        AGENTS,
        sandbox(volumes=[{"name": "node", "hostPath": {"path": "/"}}]),
    ),
    "read a secret by a Sandbox": (
        "POST",
        AGENTS,
        sandbox(volumes=[{"name": "a", "secret": {"secretName": "any"}}]),
    ),
    "take somebody's disk by a Sandbox": (
        "POST",
        AGENTS,
        sandbox(volumes=[{"name": "a", "persistentVolumeClaim": {"claimName": "disk-existing-desk"}}]),
    ),
    "change a member of the pool": ("PATCH", AGENTS + "/{member}", TEMPLATE_CHANGE),
    "delete a disk": ("DELETE", CORE + "/persistentvolumeclaims/disk-existing-desk", None),
    "make a disk": ("POST", CORE + "/persistentvolumeclaims", {"metadata": {"name": "a"}, "spec": {}}),
    # Rights.
    "bind a role": ("POST", RBAC + "/namespaces/{ns}/rolebindings", BINDING),
    "bind a role in the cluster": ("POST", RBAC + "/clusterrolebindings", BINDING),
    "make a role": ("POST", RBAC + "/namespaces/{ns}/roles", {"metadata": {"name": "a"}, "rules": EVERYTHING}),
    "add to its own role": ("PATCH", RBAC + "/namespaces/{ns}/roles/plain", {"rules": EVERYTHING}),
    "make a role of the cluster": ("POST", RBAC + "/clusterroles", {"metadata": {"name": "a"}, "rules": EVERYTHING}),
    "ask for a certificate": (
        "POST",
        "/apis/certificates.k8s.io/v1/certificatesigningrequests",
        {"metadata": {"name": "a"}, "spec": {}},
    ),
    "ask what others may do": ("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", REVIEW),
    "ask whose token it is": ("POST", "/apis/authentication.k8s.io/v1/tokenreviews", {"spec": {"token": "a"}}),
    # The fence and the API itself.
    "change the fence": (
        "PATCH",
        FENCE + "/validatingadmissionpolicies/namzu-fence-pods",
        {"spec": {"failurePolicy": "Ignore"}},
    ),
    "delete the fence": ("DELETE", FENCE + "/validatingadmissionpolicies/namzu-fence-egress", None),
    "unbind the fence": ("DELETE", FENCE + "/validatingadmissionpolicybindings/namzu-fence-egress", None),
    "let the fence only warn": (
        "PATCH",
        FENCE + "/validatingadmissionpolicybindings/namzu-fence-pods",
        {"spec": {"validationActions": ["Warn"]}},
    ),
    "make a webhook": ("POST", FENCE + "/mutatingwebhookconfigurations", {"metadata": {"name": "a"}}),
    "change a definition": ("PATCH", CRDS + "/sandboxes.agents.x-k8s.io", {"spec": {"scope": "Cluster"}}),
    "delete a definition": ("DELETE", CRDS + "/sandboxclaims.extensions.agents.x-k8s.io", None),
    # Services, events, leases.
    "make a service": ("POST", CORE + "/services", {"metadata": {"name": "a"}, "spec": {"ports": [{"port": 1024}]}}),
    "turn a service elsewhere": ("PATCH", CORE + "/services/{member}", {"spec": {"externalName": "example.com"}}),
    "write endpoints": (
        "POST",
        "/apis/discovery.k8s.io/v1/namespaces/{ns}/endpointslices",
        {"metadata": {"name": "a"}, "addressType": "IPv4", "endpoints": []},
    ),
    "write events": ("POST", CORE + "/events", {"metadata": {"name": "a"}, "involvedObject": {}}),
    "take the controller's lease": (
        "PATCH",
        "/apis/coordination.k8s.io/v1/namespaces/agent-sandbox-system/leases/any",
        {"spec": {"holderIdentity": "a"}},
    ),
    "widen a quota": ("POST", CORE + "/resourcequotas", {"metadata": {"name": "a"}, "spec": {}}),
}

#: What some kinds of claimants may do by right, and the others not.
RIGHTS: dict[str, tuple[Request, set[str]]] = {
    "forward a port": (("GET", CORE + "/pods/{pod}/portforward?ports=1024", None), {"forwarding"}),
    "make a harmless Sandbox": (("POST", AGENTS, sandbox()), {"direct", "workspaces"}),
    "list disks": (("GET", CORE + "/persistentvolumeclaims", None), {"workspaces"}),
    "list nodes": (("GET", "/api/v1/nodes", None), {"egress"}),
    "read the fence": (("GET", FENCE + "/validatingadmissionpolicies/namzu-fence-egress", None), {"egress"}),
    "close its own policy": (("PATCH", f"{POLICIES}/{EGRESS}", {"spec": {"egress": []}}), {"egress"}),
    "delete its own policy": (("DELETE", f"{POLICIES}/{EGRESS}", None), {"egress"}),
}
