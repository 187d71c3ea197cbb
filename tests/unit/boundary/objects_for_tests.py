# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Objects for tests, in as few words as they need."""

from __future__ import annotations

import typing as t

Body = dict[str, t.Any]


def namespace(name: str, **labels: str) -> Body:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


def pod(
    where: str,
    labels: dict[str, str] | None = None,
    *,
    ips: t.Sequence[str] = (),
    ports: t.Sequence[tuple[str, int, str]] = (),
    node: str | None = None,
    host_network: bool = False,
) -> Body:
    """A pod ``namespace/name``; ports are (name, number, protocol)."""
    space, _unused, name = where.partition("/")
    spec: Body = {
        "containers": [
            {
                "name": "main",
                "ports": [{"name": n, "containerPort": number, "protocol": protocol} for n, number, protocol in ports],
            }
        ]
    }
    if node is not None:
        spec["nodeName"] = node
    if host_network:
        spec["hostNetwork"] = True
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": space, "labels": labels or {}},
        "spec": spec,
        "status": {"podIPs": [{"ip": ip} for ip in ips]},
    }


def node(name: str, *addresses: str, **labels: str) -> Body:
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name, "labels": labels},
        "status": {"addresses": [{"type": "InternalIP", "address": address} for address in addresses]},
    }


def policy(where: str, **spec: t.Any) -> Body:
    """A NetworkPolicy ``namespace/name`` that selects every pod unless the spec says otherwise."""
    space, _unused, name = where.partition("/")
    return {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": name, "namespace": space},
        "spec": {"podSelector": {}, **spec},
    }


def cluster_policy(name: str, priority: int = 10, tier: str = "Admin", **spec: t.Any) -> Body:
    """A ClusterNetworkPolicy about every namespace unless the spec says otherwise."""
    return {
        "apiVersion": "policy.networking.k8s.io/v1alpha2",
        "kind": "ClusterNetworkPolicy",
        "metadata": {"name": name},
        "spec": {"tier": tier, "priority": priority, "subject": {"namespaces": {}}, **spec},
    }


def admin_policy(name: str, priority: int = 10, **spec: t.Any) -> Body:
    return {
        "apiVersion": "policy.networking.k8s.io/v1alpha1",
        "kind": "AdminNetworkPolicy",
        "metadata": {"name": name},
        "spec": {"priority": priority, "subject": {"namespaces": {}}, **spec},
    }


def baseline_policy(**spec: t.Any) -> Body:
    return {
        "apiVersion": "policy.networking.k8s.io/v1alpha1",
        "kind": "BaselineAdminNetworkPolicy",
        "metadata": {"name": "default"},
        "spec": {"subject": {"namespaces": {}}, **spec},
    }


def labelled(**labels: str) -> Body:
    return {"matchLabels": labels}


def named(name: str) -> Body:
    """The selector of one namespace by name."""
    return {"matchLabels": {"kubernetes.io/metadata.name": name}}


def block(cidr: str, *excluded: str) -> Body:
    return {"ipBlock": {"cidr": cidr, "except": list(excluded)} if excluded else {"cidr": cidr}}
