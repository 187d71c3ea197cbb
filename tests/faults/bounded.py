# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake cluster whose sandboxes have a boundary: what the tests of it set up, ask for and look at."""

from __future__ import annotations

import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import translate
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import (
    EgressBoundary,
    IngressBoundary,
)

from .fake.cluster import FakeCluster
from .fake.controller import NAMESPACE, POOL
from .fake.plan import Request

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

TEMPLATE_LABEL = "sandbox.namzu.ai/template"
LIST_POLICIES = Request("list", "networkpolicies")
GROUP = Request("list", "/apis/policy.networking.k8s.io")
LIST_ADMIN = Request("list", "clusternetworkpolicies")
LIST_NAMESPACES = Request("list", "namespaces")
GET_POOL = Request("get", "sandboxwarmpools")
VERIFY = (LIST_POLICIES, GROUP, LIST_ADMIN, LIST_NAMESPACES)
#: Real seconds that no acquire here may take.
IN_TIME = 8.0

DNS_ONLY = EgressBoundary.of("dns_only")
ANYONE: dict[str, t.Any] = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}
NOBODY: dict[str, t.Any] = {"podSelector": {}, "policyTypes": ["Ingress"]}


def set_up(cluster: FakeCluster) -> FakeCluster:
    """A pool, its template, and the policies that role ``boundary`` makes; another one is about the whole cluster."""
    cluster.store.delete(cluster.key("networkpolicies", "closed"))
    cluster.store.create("sandboxwarmpools", NAMESPACE, {"metadata": {"name": POOL}, "spec": POOL_SPEC})
    pod = {"metadata": {}, "spec": {"containers": [{"name": "agent"}]}}
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": {"podTemplate": pod}})
    add(cluster, "namzu-python-egress", ours()["spec"])
    add(cluster, "namzu-python-ingress", {**NOBODY, "podSelector": ours()["spec"]["podSelector"]})
    cluster.server.groups["policy.networking.k8s.io"] = ["v1beta1"]
    elsewhere = {"namespaces": {"matchLabels": {"kubernetes.io/metadata.name": "elsewhere"}}}
    spec = {"tier": "Admin", "priority": 1, "subject": elsewhere}
    cluster.store.create("clusternetworkpolicies", "", {"metadata": {"name": "elsewhere"}, "spec": spec})
    return cluster


POOL_SPEC = {"sandboxTemplateRef": {"name": "python"}}


def ours(request: str = "dns_only") -> dict[str, t.Any]:
    return translate(request, namespace=NAMESPACE, name="namzu-python-egress", labels={TEMPLATE_LABEL: "python"})


def add(cluster: FakeCluster, name: str, spec: dict[str, t.Any]) -> None:
    cluster.store.create("networkpolicies", NAMESPACE, {"metadata": {"name": name}, "spec": spec})


def wanted(cluster: FakeCluster, **changes: t.Any) -> t.Any:
    usual = {"egress": DNS_ONLY, "ingress": IngressBoundary(), "pod_labels": {TEMPLATE_LABEL: "python"}}
    return cluster.request(**{**usual, **changes})


def direct(cluster: FakeCluster, **changes: t.Any) -> t.Any:
    return wanted(cluster, **{"warm_pool": None, "template": "python", "pod_labels": {}, **changes})


def failure_of(client: Client, request: t.Any) -> SandboxError:
    began = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        acquire(client, request)
    assert time.monotonic() - began < IN_TIME
    return caught.value


def refusal_of(client: Client, cluster: FakeCluster, request: t.Any) -> BoundaryError:
    """The boundary's refusal, after which nothing of ours is left."""
    error = failure_of(client, request)
    assert isinstance(error, BoundaryError), error
    assert (error.reason, error.retryable, error.leftover) == ("boundary", False, None)
    assert cluster.claims() == []
    assert Request("create", "sandboxes") not in cluster.plan.received()
    return error
