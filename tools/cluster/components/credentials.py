# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Credentials for the API server: certificates, tokens and kubeconfigs of one instance, new with every start."""

from __future__ import annotations

import base64
import json
import secrets
from collections.abc import Mapping
from dataclasses import dataclass

from ..layout import CLUSTER_DOMAIN, CONTROLLER_NAMESPACE, NODE_NAME, Layout
from .certificates import Authority, Issued, signing_pair, write_private

ADMINISTRATOR = "namzu-admin"
MASTERS = "system:masters"
DNS_USER = "namzu:coredns"
FIREWALL_USER = "namzu:kube-router"
VOLUMES_USER = "namzu:volumes"


@dataclass(frozen=True)
class Identity:
    """A user of the API server and the groups it is in."""

    user: str
    groups: tuple[str, ...] = ()


# Components use tokens: the controller's name is longer than the 64 characters of a certificate's common name.
COMPONENT_IDENTITIES: Mapping[str, Identity] = {
    "kube-controller-manager": Identity("system:kube-controller-manager"),
    "kube-scheduler": Identity("system:kube-scheduler"),
    "kubelet": Identity(f"system:node:{NODE_NAME}", ("system:nodes",)),
    "kube-proxy": Identity("system:kube-proxy"),
    "coredns": Identity(DNS_USER),
    "kube-router": Identity(FIREWALL_USER),
    "volumes": Identity(VOLUMES_USER),
    "agent-sandbox-controller": Identity(
        f"system:serviceaccount:{CONTROLLER_NAMESPACE}:agent-sandbox-controller",
        ("system:serviceaccounts", f"system:serviceaccounts:{CONTROLLER_NAMESPACE}"),
    ),
}

# They are in another network namespace than the API server, as the pods are.
ON_THE_POD_NETWORK = ("kube-proxy", "kube-router")


def write_credentials(layout: Layout) -> None:
    """Write the authority, every certificate, the administrator's token and all kubeconfigs."""
    authority = Authority(layout.name)
    tokens = {user: secrets.token_urlsafe(32) for user in ("namzu", *COMPONENT_IDENTITIES)}
    write_private(layout.certificates / "authority.crt", authority.certificate)
    write_private(layout.certificates / "tokens.csv", _token_table(tokens))
    private, public = signing_pair()
    write_private(layout.certificates / "service-account.key", private)
    write_private(layout.certificates / "service-account.pub", public)
    _write_pair(layout, "kube-apiserver", authority.server("kube-apiserver", server_names(layout)))
    _write_pair(layout, "local", authority.server("localhost", ["localhost", "127.0.0.1"]))
    _write_pair(layout, "kubelet", authority.server(f"system:node:{NODE_NAME}", [NODE_NAME, layout.node_address]))
    _write_pair(layout, "kube-apiserver-to-kubelet", authority.client("kube-apiserver", [MASTERS]))
    for component in COMPONENT_IDENTITIES:
        users = {component: {"token": tokens[component]}}
        server = layout.server_for_pods if component in ON_THE_POD_NETWORK else layout.server
        write_private(layout.user_kubeconfig(component), kubeconfig(layout.name, server, authority.certificate, users))
    administrator = {
        "namzu": {"token": tokens["namzu"]},
        "namzu-certificate": _certificate_user(authority.client(ADMINISTRATOR, [MASTERS])),
    }
    write_private(layout.kubeconfig, kubeconfig(layout.name, layout.server, authority.certificate, administrator))


def server_names(layout: Layout) -> list[str]:
    """Every name and address under which the API server may be called."""
    service = ["kubernetes", "kubernetes.default", "kubernetes.default.svc", f"kubernetes.default.svc.{CLUSTER_DOMAIN}"]
    return ["localhost", "127.0.0.1", layout.node_address, layout.service_address, *service]


def kubeconfig(cluster: str, server: str, authority: bytes, users: Mapping[str, Mapping[str, str]]) -> bytes:
    """A kubeconfig with one context for each user, named like it; the first is the current one. JSON is YAML."""
    document = {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [
            {"name": cluster, "cluster": {"server": server, "certificate-authority-data": _base64(authority)}}
        ],
        "users": [{"name": name, "user": dict(user)} for name, user in users.items()],
        "contexts": [{"name": name, "context": {"cluster": cluster, "user": name}} for name in users],
        "current-context": next(iter(users)),
    }
    return (json.dumps(document, indent=2) + "\n").encode()


def _token_table(tokens: Mapping[str, str]) -> bytes:
    identities = {"namzu": Identity(ADMINISTRATOR, (MASTERS,)), **COMPONENT_IDENTITIES}
    lines = [f'{token},{identities[of].user},{of},"{",".join(identities[of].groups)}"' for of, token in tokens.items()]
    return ("\n".join(lines) + "\n").encode()


def _certificate_user(issued: Issued) -> dict[str, str]:
    return {"client-certificate-data": _base64(issued.certificate), "client-key-data": _base64(issued.key)}


def _write_pair(layout: Layout, name: str, issued: Issued) -> None:
    write_private(layout.certificates / f"{name}.crt", issued.certificate)
    write_private(layout.certificates / f"{name}.key", issued.key)


def _base64(content: bytes) -> str:
    return base64.b64encode(content).decode("ascii")
