# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second, naive reading of NetworkPolicy and the administrators' policies, to hold the real one against.

It shares no code and no idea with the real one: it takes one concrete peer on one concrete port at a time and walks the
plain objects. ``universe`` lists enough peers and ports to stand for all, for policies that are made of ``VOCABULARY``.
"""

from __future__ import annotations

import dataclasses
import ipaddress
import itertools
import typing as t

Body = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Peer:
    """A peer that exists or may come to exist: a pod when it has a namespace, else an address."""

    ip: str
    namespace: str | None = None
    namespace_labels: tuple[tuple[str, str], ...] = ()
    labels: tuple[tuple[str, str], ...] = ()
    named: tuple[tuple[str, int, str], ...] = ()


@dataclasses.dataclass(frozen=True)
class Subject:
    """The pod that is judged."""

    namespace: str
    namespace_labels: tuple[tuple[str, str], ...]
    labels: tuple[tuple[str, str], ...]
    named: tuple[tuple[str, int, str], ...] = ()


def selects(selector: Body | None, labels: t.Iterable[tuple[str, str]]) -> bool:
    have = dict(labels)
    for key, value in ((selector or {}).get("matchLabels") or {}).items():
        if have.get(key) != value:
            return False
    for item in (selector or {}).get("matchExpressions") or []:
        value, operator = have.get(item["key"]), item["operator"]
        if operator == "In" and value not in item["values"]:
            return False
        if operator == "NotIn" and value in item["values"]:
            return False
        if operator == "Exists" and value is None:
            return False
        if operator == "DoesNotExist" and value is not None:
            return False
    return True


def in_block(ip: str, cidr: str) -> bool:
    address, network = ipaddress.ip_address(ip), ipaddress.ip_network(cidr)
    return address.version == network.version and address in network


def allows(objects: list[Body], subject: Subject, direction: str, peer: Peer, protocol: str, port: int) -> bool:
    """Whether the policies among the objects let one peer through on one port."""
    admin = [body for body in objects if body["kind"] == "ClusterNetworkPolicy"]
    for tier in ("Admin", "Baseline"):
        mine = [body for body in admin if body["spec"]["tier"] == tier]
        for body in sorted(mine, key=lambda body: body["spec"]["priority"]):
            if not selects(body["spec"]["subject"]["namespaces"], subject.namespace_labels):
                continue
            action = _first(body, direction, peer, protocol, port)
            if action == "Pass":
                break
            if action is not None:
                return action == "Accept"
        if tier == "Admin":
            answer = _network_policies(objects, subject, direction, peer, protocol, port)
            if answer is not None:
                return answer
    return True


def _first(body: Body, direction: str, peer: Peer, protocol: str, port: int) -> str | None:
    for rule in body["spec"].get(direction) or []:
        peers = rule["to" if direction == "egress" else "from"]
        matched = False
        for item in peers:
            if "namespaces" in item:
                matched |= peer.namespace is not None and selects(item["namespaces"], peer.namespace_labels)
            elif "networks" in item:
                matched |= any(in_block(peer.ip, cidr) for cidr in item["networks"])
        ports = rule.get("protocols")
        on_port = ports is None or any(
            name.upper() == protocol and body["destinationPort"]["number"] == port
            for item in ports
            for name, body in item.items()
        )
        if matched and on_port:
            return str(rule["action"])
    return None


def _network_policies(
    objects: list[Body], subject: Subject, direction: str, peer: Peer, protocol: str, port: int
) -> bool | None:
    isolated = False
    for body in objects:
        spec = body.get("spec") or {}
        if body["kind"] != "NetworkPolicy" or body["metadata"]["namespace"] != subject.namespace:
            continue
        if not selects(spec.get("podSelector"), subject.labels):
            continue
        types = spec.get("policyTypes") or (["Ingress", "Egress"] if spec.get("egress") else ["Ingress"])
        if direction.capitalize() not in types:
            continue
        isolated = True
        for rule in spec.get(direction) or []:
            peers = rule.get("to" if direction == "egress" else "from")
            if peers and not any(_is_peer(item, subject.namespace, peer) for item in peers):
                continue
            if not rule.get("ports") or any(
                _is_port(item, direction, subject, peer, protocol, port) for item in rule["ports"]
            ):
                return True
    return False if isolated else None


def _is_peer(item: Body, own: str, peer: Peer) -> bool:
    if "ipBlock" in item:
        block = item["ipBlock"]
        return in_block(peer.ip, block["cidr"]) and not any(in_block(peer.ip, cidr) for cidr in block.get("except", []))
    if peer.namespace is None:
        return False
    if "namespaceSelector" in item:
        if not selects(item["namespaceSelector"], peer.namespace_labels):
            return False
    elif peer.namespace != own:
        return False
    return selects(item.get("podSelector"), peer.labels)


def _is_port(item: Body, direction: str, subject: Subject, peer: Peer, protocol: str, port: int) -> bool:
    if item.get("protocol", "TCP") != protocol:
        return False
    value = item.get("port")
    if value is None:
        return True
    if isinstance(value, str):
        named = subject.named if direction == "ingress" else peer.named
        return (value, port, protocol) in named
    return bool(value <= port <= item.get("endPort", value))


#: Addresses that stand for every cell of the blocks that the strategies use and of the public internet.
ADDRESSES = (
    "10.0.0.1", "10.1.0.1", "192.0.2.1", "198.51.100.1", "100.64.0.1", "127.0.0.1", "168.63.129.16", "169.254.0.1",
    "172.16.0.1", "192.168.0.1", "2001:db8::1", "2001:db9::1", "::1", "fc00::1", "fe80::1",
)  # fmt: skip
PORTS = (("TCP", 80), ("TCP", 82), ("TCP", 443), ("TCP", 53), ("UDP", 53), ("UDP", 80), ("SCTP", 80), ("ICMP", 8))
NAMESPACES: dict[str, tuple[tuple[str, str], ...]] = {
    "agents": (("kubernetes.io/metadata.name", "agents"), ("team", "red")),
    "web": (("kubernetes.io/metadata.name", "web"), ("team", "blue")),
    "kube-system": (("kubernetes.io/metadata.name", "kube-system"),),
}
_LATER = (
    ("later-red", (("kubernetes.io/metadata.name", "later-red"), ("team", "red"))),
    ("later-green", (("kubernetes.io/metadata.name", "later-green"), ("team", "green"))),
    ("later", (("kubernetes.io/metadata.name", "later"),)),
)


def universe(addresses: t.Sequence[str]) -> t.Iterator[Peer]:
    """Outside addresses, and every pod that may exist under them."""
    for ip in addresses:
        yield Peer(ip)
    values = ((), (("app", "x"),), (("app", "y"),), (("k8s-app", "kube-dns"),), (("app", "x"), ("k8s-app", "kube-dns")))
    names: t.Sequence[tuple[tuple[str, int, str], ...]] = ((), (("web", 82, "TCP"),))
    for (name, labels), pod, ip, named in itertools.product((*NAMESPACES.items(), *_LATER), values, addresses, names):
        yield Peer(ip, name, labels, pod, named)
