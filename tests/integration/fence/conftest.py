# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pool's namespace behind the fence, somebody who may write everything in it, and claimants of every kind."""

from __future__ import annotations

import fcntl
import tempfile
import time
import typing as t

import pytest

from .asking import Answer, Asking, Body
from .hostile import DISK, SANDBOX_API, changed, claim, owned_policies

RBAC = "/apis/rbac.authorization.k8s.io/v1"
GROUPS = {
    "sandboxes": "/apis/agents.x-k8s.io/v1beta1",
    "sandboxtemplates": "/apis/extensions.agents.x-k8s.io/v1beta1",
    "sandboxclaims": "/apis/extensions.agents.x-k8s.io/v1beta1",
    "networkpolicies": "/apis/networking.k8s.io/v1",
    "ciliumnetworkpolicies": "/apis/cilium.io/v2",
}
#: Every kind of claimant, by the options of role ``claimant``.
CLAIMANTS: dict[str, Body] = {
    "plain": {},
    "direct": {"claimant_direct": True},
    "workspaces": {"claimant_workspaces": True},
    "forwarding": {"claimant_port_forward": True},
    "egress": {"claimant_egress": True, "claimant_cilium": True, "claimant_cluster_policies": True},
}
#: How long an API server may take to hear of a policy.
HEARD_SECONDS = 30.0


class Fenced(t.NamedTuple):
    """A namespace behind the fence, with good objects to change, and who may write all there but for the fence."""

    namespace: str
    held: Asking
    admin: Asking
    template: Body
    sandbox: Body
    policies: dict[str, Body]

    def path(self, resource: str, name: str = "") -> str:
        return f"{GROUPS[resource]}/namespaces/{self.namespace}/{resource}{name and '/' + name}"


def fence_task(state: str, namespace: str, **options: t.Any) -> Body:
    return {
        "name": f"fence {state}",
        "ansible.builtin.include_role": {"name": "namzu.sandbox.admission_fence"},
        "vars": {"admission_fence_state": state, "admission_fence_namespaces": [namespace], **options},
    }


@pytest.fixture(scope="module")
def permitted(kube, pool) -> t.Iterator[str]:
    """A user who may write everything that the fence looks at, so that nothing but the fence can refuse it."""
    name = f"{pool.namespace}-held"
    groups = sorted({path.split("/")[2] for path in GROUPS.values()})
    head = {"metadata": {"name": name}}
    kube.request(
        "POST", f"{RBAC}/clusterroles", {**head, "rules": [{"apiGroups": groups, "resources": ["*"], "verbs": ["*"]}]}
    )
    subject = {"kind": "User", "name": name, "apiGroup": "rbac.authorization.k8s.io"}
    role = {"apiGroup": "rbac.authorization.k8s.io", "kind": "ClusterRole", "name": name}
    kube.request("POST", f"{RBAC}/clusterrolebindings", {**head, "roleRef": role, "subjects": [subject]})
    yield name
    kube.delete(f"{RBAC}/clusterrolebindings/{name}")
    kube.delete(f"{RBAC}/clusterroles/{name}")


@pytest.fixture(scope="module")
def turn() -> t.Iterator[None]:
    """Files take turns, also those of other processes: the fence is one for the whole cluster."""
    with open(f"{tempfile.gettempdir()}/namzu-test-fence.lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


@pytest.fixture(scope="module")
def fenced(turn, play, kube, kubeconfig, pool, permitted) -> t.Iterator[Fenced]:
    """The fence around the pool's namespace, and in it a suspended Sandbox with a policy of its own."""
    namespace = pool.namespace
    claimants = [
        {
            "ansible.builtin.include_role": {"name": "namzu.sandbox.claimant"},
            "vars": {"claimant_namespace": namespace, "claimant_name": name, **options},
        }
        for name, options in CLAIMANTS.items()
    ]
    play([fence_task("present", namespace), *claimants])
    made = kube.get(f"{GROUPS['sandboxtemplates']}/namespaces/{namespace}/sandboxtemplates/python")
    template = {
        "apiVersion": made["apiVersion"],
        "kind": made["kind"],
        "metadata": {"name": "another"},
        "spec": {**made["spec"], "volumeClaimTemplates": [DISK]},
    }
    sandbox = {
        "apiVersion": SANDBOX_API,
        "kind": "Sandbox",
        "metadata": {"name": "another"},
        "spec": {
            "operatingMode": "Suspended",
            "service": True,
            "podTemplate": made["spec"]["podTemplate"],
            "volumeClaimTemplates": [DISK],
        },
    }
    sandboxes = f"{GROUPS['sandboxes']}/namespaces/{namespace}/sandboxes"
    owner = kube.get(f"{GROUPS['sandboxtemplates']}/namespaces/{namespace}/sandboxwarmpools/{pool.name}")
    owned = {key: owner[key] for key in ("apiVersion", "kind")} | {
        key: owner["metadata"][key] for key in ("name", "uid")
    }
    metadata = {"name": "existing-desk", "ownerReferences": [owned]}
    existing = kube.request("POST", sandboxes, {**sandbox, "metadata": metadata})
    policies = owned_policies(existing)
    kube.request(
        "POST", f"{GROUPS['networkpolicies']}/namespaces/{namespace}/networkpolicies", policies["networkpolicies"]
    )
    held = Asking(kubeconfig=kubeconfig, impersonate_user=permitted)
    admin = Asking(kubeconfig=kubeconfig)
    ground = Fenced(namespace, held, admin, template, sandbox, policies)
    until_it_holds(ground)
    yield ground
    kube.delete(f"{sandboxes}/existing-desk")
    play([fence_task("absent", namespace)])
    held.close()
    admin.close()


def until_it_holds(fenced: Fenced) -> None:
    """Wait until the API server has heard of the whole fence."""
    hostile = {
        "sandboxes": changed(fenced.sandbox, {"spec/podTemplate/spec/hostPID": True}),
        "networkpolicies": changed(fenced.policies["networkpolicies"], {"metadata/name": "other"}),
        "sandboxclaims": claim({"sandbox.namzu.ai/template": "other"}),
    }
    for resource, body in hostile.items():
        until(lambda answer: answer.by_fence, fenced.held, fenced.path(resource), body)


def until(heard: t.Callable[[Answer], bool], who: Asking, path: str, body: Body) -> None:
    """Ask until the API server has heard of a policy, of which it learns by a watch."""
    deadline = time.monotonic() + HEARD_SECONDS
    while not heard(answer := who("POST", path, body)):
        assert time.monotonic() < deadline, f"the API server did not hear of the fence: {answer}"


@pytest.fixture(scope="module")
def claimants(fenced, kube) -> t.Iterator[dict[str, tuple[Body, Asking]]]:
    """For every kind of claimant its access options, and requests in its name."""
    out: dict[str, tuple[Body, Asking]] = {}
    for name in CLAIMANTS:
        path = f"/api/v1/namespaces/{fenced.namespace}/serviceaccounts/{name}/token"
        token = kube.request("POST", path, {"spec": {"expirationSeconds": 3600}})["status"]["token"]
        access = {"host": kube.server, "api_key": token, "ca_cert": kube.ca_cert}
        out[name] = access, Asking(**access)
    yield out
    for _access, asking in out.values():
        asking.close()
