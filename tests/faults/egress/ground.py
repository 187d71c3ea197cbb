# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake cluster behind the operator's fence, with one sandbox that may get a policy of its own."""

from __future__ import annotations

import contextlib
import pathlib
import typing as t

import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress.change import (
    EgressChange,
    remove_egress,
    set_egress,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress.fence import FENCE_NAME
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import EgressBoundary

from .. import bounded
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.store import Refusal

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
    from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import Acquired

    from ..fake.store import Body

HELD = "build-1"
LABEL = "sandbox.users.io/egress"
POLICIES, BINDINGS = "validatingadmissionpolicies", "validatingadmissionpolicybindings"
_ROLE = pathlib.Path(__file__).parents[3] / "roles" / "admission_fence" / "vars" / "main" / "egress.yml"

INTERNET = EgressBoundary.of("public_internet")
NARROWER = EgressBoundary.of({"kind": "public_internet", "except_cidrs": ["203.0.113.0/24"]})


def fence(cluster: FakeCluster) -> None:
    """What the operator's role makes, and an API server that does what it says."""
    rules = yaml.safe_load(_ROLE.read_text(encoding="utf-8"))["admission_fence_egress_rules"]
    cluster.store.create(POLICIES, "", {"metadata": {"name": FENCE_NAME}, "spec": rules})
    here = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": [NAMESPACE]}
    spec = {
        "policyName": FENCE_NAME,
        "validationActions": ["Deny"],
        "matchResources": {"namespaceSelector": {"matchExpressions": [here]}},
    }
    cluster.store.create(BINDINGS, "", {"metadata": {"name": FENCE_NAME}, "spec": spec})
    cluster.server.admission = raise_if_wide


def raise_if_wide(verb: str, plural: str, body: Body) -> None:
    """The fence's word to a policy for every pod, and to a change of the fence by who is held."""
    if plural == POLICIES:
        raise Refusal(403, "Forbidden", 'User "claimant" cannot patch resource "validatingadmissionpolicies"')
    wide = plural == "networkpolicies" and verb == "create" and body["spec"]["podSelector"] == {}
    if wide or (plural == "ciliumnetworkpolicies" and body["spec"].get("endpointSelector") == {}):
        words = f"ValidatingAdmissionPolicy '{FENCE_NAME}' with binding '{FENCE_NAME}' denied request: selector"
        raise Refusal(422, "Invalid", f'{plural} "{body["metadata"]["name"]}" is forbidden: {words}')


def hold(cluster: FakeCluster, client: Client, **changes: t.Any) -> Acquired:
    """Acquire a sandbox behind a boundary of ``dns_only``."""
    usual = {"name": HELD, "per_sandbox_egress": True, "egress": None, "ingress": "unverified"}
    acquired = acquire(client, bounded.wanted(cluster, **{**usual, **changes}))
    cluster.plan.clear()
    return acquired


def hold_directly(cluster: FakeCluster, client: Client) -> Acquired:
    """The same, made from the template."""
    return hold(cluster, client, warm_pool=None, template="python", pod_labels={})


def give(client: Client, egress: EgressBoundary = INTERNET, seconds: float = 20.0, **given: t.Any) -> EgressChange:
    """Set its egress."""
    return set_egress(client, NAMESPACE, HELD, egress, Deadline(seconds, client.clock), **given)


def take(client: Client, seconds: float = 20.0, **given: t.Any) -> EgressChange:
    """Take it away."""
    return remove_egress(client, NAMESPACE, HELD, Deadline(seconds, client.clock), **given)


def own_policies(cluster: FakeCluster, plural: str = "networkpolicies") -> dict[str, Body]:
    """The policies of single sandboxes, by name."""
    names = [name for name in cluster.store.names(plural) if name.startswith("namzu-egress-")]
    return {name: cluster.store.get(cluster.key(plural, name)) for name in names}


def specs(cluster: FakeCluster) -> list[Body]:
    """What they grant."""
    return [body["spec"] for body in own_policies(cluster).values()]


@contextlib.contextmanager
def when_written(cluster: FakeCluster, action: t.Callable[[], object]) -> t.Iterator[None]:
    """Do something once, right before a policy of one sandbox is written, when all was proven before."""
    usual = cluster.server.admission
    actions = [action]

    def admit(verb: str, plural: str, body: Body) -> None:
        usual(verb, plural, body)
        wide = verb == "create" and (body.get("spec") or {}).get("podSelector") == {}
        if plural == "networkpolicies" and not wide and actions:
            actions.pop()()

    cluster.server.admission = admit
    yield
    cluster.server.admission = usual
