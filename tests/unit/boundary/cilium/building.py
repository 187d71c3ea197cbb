# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A small cluster for the tests of the Cilium engine, and short ways to write policies.

Two namespaces of agents (``agents``, labelled ``team=ai``, and ``other``), the DNS servers, two nodes. The sandbox runs
on ``node-1``.
"""

from __future__ import annotations

import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach

Body = dict[str, t.Any]

SANDBOX = "agents/sandbox"
WORLD = {"ip": "203.0.113.9"}
DNS = {"pod": "kube-system/coredns"}
PEER = {"pod": "agents/peer"}
FOREIGN = {"pod": "other/peer"}
HOST = {"node": "node-1"}
OTHER_NODE = {"node": "node-2"}


def namespace(name: str, **labels: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def pod(
    place: str,
    address: str | None = None,
    *,
    labels: dict[str, str] | None = None,
    ports: dict[str, int] | None = None,
    node: str | None = "node-1",
    **spec: t.Any,
) -> Body:
    where, _unused, name = place.partition("/")
    listed = [{"name": key, "containerPort": number, "protocol": "TCP"} for key, number in (ports or {}).items()]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": where, "labels": labels or {}},
        "spec": {"nodeName": node, "containers": [{"name": "c", "ports": listed}], **spec},
        "status": {"podIPs": [{"ip": address}] if address else []},
    }


def node(name: str, address: str, **labels: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"addresses": [{"type": "InternalIP", "address": address}]},
    }


CLUSTER: list[Body] = [
    namespace("agents", team="ai"),
    namespace("other", team="web"),
    namespace("kube-system"),
    node("node-1", "192.168.0.1"),
    node("node-2", "192.168.0.2", role="edge"),
    pod(SANDBOX, "10.1.0.10", labels={"app": "sandbox"}, ports={"agent": 8080}),
    pod("agents/peer", "10.1.0.11", labels={"app": "peer"}, ports={"agent": 8081}, serviceAccountName="worker"),
    pod("other/peer", "10.1.1.10", labels={"app": "peer"}, ports={"agent": 8082}),
    pod("other/sandbox", "10.1.1.11", labels={"app": "sandbox"}),
    pod("kube-system/coredns", "10.1.2.53", labels={"k8s-app": "kube-dns"}),
    pod("kube-system/hosted", "192.168.0.2", labels={"app": "peer"}, node="node-2", hostNetwork=True),
]

SELECTOR = {"matchLabels": {"app": "sandbox"}}


def cnp(name: str = "p", *, where: str = "agents", selector: Body | None = None, **spec: t.Any) -> Body:
    """A CiliumNetworkPolicy; the fields of its spec as keywords."""
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": {"name": name, "namespace": where},
        "spec": {"endpointSelector": SELECTOR if selector is None else selector, **spec},
    }


def ccnp(name: str = "c", *, selector: Body | None = None, **spec: t.Any) -> Body:
    """A CiliumClusterwideNetworkPolicy; the fields of its spec as keywords."""
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumClusterwideNetworkPolicy",
        "metadata": {"name": name},
        "spec": {"endpointSelector": SELECTOR if selector is None else selector, **spec},
    }


def netpol(name: str = "k", *, selector: Body | None = None, **spec: t.Any) -> Body:
    """A NetworkPolicy; the fields of its spec as keywords."""
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": "agents"},
        "spec": {"podSelector": SELECTOR if selector is None else selector, **spec},
    }


def ports(*texts: str, **more: t.Any) -> list[Body]:
    """``toPorts`` with one item: ``443/TCP``, ``53`` (no protocol), ``agent/TCP``."""
    listed = []
    for text in texts:
        number, _unused, protocol = text.partition("/")
        listed.append({"port": number, "protocol": protocol} if protocol else {"port": number})
    return [{"ports": listed, **more}]


def labels(**pairs: str) -> list[Body]:
    """A list with one selector by labels; ``__`` stands for a slash, and keys with dots go in as a mapping."""
    return [{"matchLabels": pairs}]


def reach(*policies: Body, of: str = SANDBOX) -> Reach:
    return Reach.from_objects([*CLUSTER, *policies], of, engine="cilium")


def egress(*policies: Body, of: str = SANDBOX) -> t.Callable[..., bool]:
    """``allowed(peer, port=443, protocol="TCP", l7=None)`` for what the sandbox may reach."""
    found = reach(*policies, of=of)

    def allowed(peer: Body, port: int | None = 443, protocol: str = "TCP", l7: Body | None = None) -> bool:
        return found.allows("egress", peer, port, protocol, l7)

    return allowed


def ingress(*policies: Body, of: str = SANDBOX) -> t.Callable[..., bool]:
    """``allowed(peer, port=8080, protocol="TCP", l7=None)`` for who may reach the sandbox."""
    found = reach(*policies, of=of)

    def allowed(peer: Body, port: int | None = 8080, protocol: str = "TCP", l7: Body | None = None) -> bool:
        return found.allows("ingress", peer, port, protocol, l7)

    return allowed
