# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Peers of a question: a pod, an address, the outside, a DNS name, a node, or an engine's entity.

The forms are those of ``boundary_check`` and of the tests: ``{"pod": "namespace/name"}``, ``{"ip": "192.0.2.1"}`` (a
pod's or node's address means that pod or node), ``{"external": True}``, ``{"fqdn": "example.com"}``, ``{"node":
"name"}`` and ``{"entity": "host"}``.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ..errors import QuestionError
from ..sets.addresses import Address, parse_address
from ..sets.boxes import ADDRESS, DNS_NAME, LOCAL, NAMESPACE, NODE, OTHER, OUTSIDE, POD, Dimension
from ..sets.names import is_name
from .objects import Node, Pod, World

Peer = c.Mapping[str, t.Any]

#: The outside address that stands for "somewhere out there" (TEST-NET-2 of RFC 5737).
EXTERNAL = "198.51.100.77"

#: Entities that are nodes; ``host`` is the judged pod's own.
NODE_ENTITIES = frozenset({"host", "remote-node", "kube-apiserver"})
#: Entities that are outside the cluster.
OUTSIDE_ENTITIES = frozenset({"world", "world-ipv4", "world-ipv6", "kube-apiserver-external"})


@dataclasses.dataclass(frozen=True, eq=False)
class Endpoint:
    """One concrete peer.

    Attributes:
        kind: one of ``boxes.KINDS``.
        address: the address that traffic uses, or None when it is not known (then every address is possible).
        pod: the pod, for a pod, also one on the host's network.
        node: the node, for a node and for a pod on the host's network, when it is known.
        name: the DNS name that it was found under.
        entity: the reserved identity that the question named.
        local: whether it is the node of the judged pod.
        namespace_labels: the labels of the pod's namespace, or None when they are not known.
    """

    kind: str
    address: Address | None = None
    pod: Pod | None = None
    node: Node | None = None
    name: str | None = None
    entity: str | None = None
    local: bool = False
    namespace_labels: c.Mapping[str, str] | None = None

    def value(self, dimension: Dimension) -> object:
        """The endpoint's value in a dimension; None where it has none."""
        what, key = dimension
        labels = self._labels(what)
        return labels.get(key) if labels is not None else _PLAIN.get(what, _nothing)(self)

    def _labels(self, what: str) -> c.Mapping[str, str] | None:
        if what == "pod-label":
            return self.pod.labels if self.pod else {}
        if what == "namespace-label":
            return self.namespace_labels or {}
        if what == "node-label":
            return self.node.labels if self.node else {}
        return None


#: The dimensions that are no labels.
_PLAIN: dict[str, c.Callable[[Endpoint], object]] = {
    ADDRESS[0]: lambda endpoint: endpoint.address,
    DNS_NAME[0]: lambda endpoint: endpoint.name,
    NAMESPACE[0]: lambda endpoint: endpoint.pod.namespace if endpoint.pod else None,
    LOCAL[0]: lambda endpoint: "yes" if endpoint.local else None,
    "entity": lambda endpoint: endpoint.entity,
}


def _nothing(_endpoint: Endpoint) -> None:
    return None


def resolve(world: World, peer: Peer, subject: Pod) -> tuple[Endpoint, ...]:
    """The endpoints that a peer stands for: one for each of a pod's or node's addresses.

    Raises:
        QuestionError: the peer has no known form, or names something that is not among the objects.
    """
    body: object = peer
    if not isinstance(body, c.Mapping) or len(body) != 1:
        raise QuestionError(f"A peer is a mapping with one key, got {peer!r}.")
    ((form, value),) = body.items()
    found = _FORMS.get(form)
    if found is None:
        raise QuestionError(f"A peer is one of {', '.join(_FORMS)}, got {form!r}.")
    if form != "external" and (not isinstance(value, str) or not value):
        raise QuestionError(f"The peer's {form} must be a text, got {value!r}.")
    return found(world, value, subject)


def _pod(world: World, value: str, subject: Pod) -> tuple[Endpoint, ...]:
    return of_pod(world, world.pod(value), subject)


def of_pod(world: World, pod: Pod, subject: Pod) -> tuple[Endpoint, ...]:
    """A pod as endpoints; a pod on the host's network is its node."""
    if pod.host_network:
        node = world.nodes.get(pod.node) if pod.node else None
        local = pod.node is not None and pod.node == subject.node
        held: tuple[Address | None, ...] = (node.addresses if node else ()) or pod.addresses or (None,)
        return tuple(Endpoint(NODE, address, pod, node, local=local) for address in held)
    labels = world.namespace_labels(pod.namespace)
    return tuple(Endpoint(POD, address, pod, namespace_labels=labels) for address in pod.addresses or (None,))


def _of_node(node: Node, subject: Pod, addresses: tuple[Address | None, ...]) -> tuple[Endpoint, ...]:
    return tuple(
        Endpoint(
            NODE,
            address,
            node=node,
            entity="host" if node.name == subject.node else "remote-node",
            local=node.name == subject.node,
        )
        for address in addresses or (None,)
    )


def _node(world: World, value: str, subject: Pod) -> tuple[Endpoint, ...]:
    node = world.node(value)
    return _of_node(node, subject, node.addresses)


def _ip(world: World, value: str, subject: Pod) -> tuple[Endpoint, ...]:
    try:
        address = parse_address(value)
    except ValueError as exc:
        raise QuestionError(f"The peer's ip: {exc}.") from exc
    pod = world.pod_at(address)
    if pod is not None:
        return (Endpoint(POD, address, pod, namespace_labels=world.namespace_labels(pod.namespace)),)
    node = world.node_at(address)
    if node is not None:
        return _of_node(node, subject, (address,))
    return (Endpoint(OUTSIDE, address),)


def _external(world: World, value: object, subject: Pod) -> tuple[Endpoint, ...]:
    if value is not True:
        raise QuestionError(f"The peer's external must be true, got {value!r}.")
    return _ip(world, EXTERNAL, subject)


def _name(_world: World, value: str, _subject: Pod) -> tuple[Endpoint, ...]:
    if not is_name(value):
        raise QuestionError(f"The peer's fqdn must be a DNS name, got {value!r}.")
    return (Endpoint(OUTSIDE, name=value.lower().rstrip(".")),)


def _entity(world: World, value: str, subject: Pod) -> tuple[Endpoint, ...]:
    if value in OUTSIDE_ENTITIES:
        return (Endpoint(OUTSIDE, entity=value),)
    if value not in NODE_ENTITIES:
        return (Endpoint(OTHER, entity=value),)
    local = value == "host"
    node = world.nodes.get(subject.node) if local and subject.node else None
    held: tuple[Address | None, ...] = (node.addresses if node else ()) or (None,)
    return tuple(Endpoint(NODE, address, node=node, entity=value, local=local) for address in held)


_FORMS: dict[str, c.Callable[[World, t.Any, Pod], tuple[Endpoint, ...]]] = {
    "pod": _pod,
    "ip": _ip,
    "external": _external,
    "fqdn": _name,
    "node": _node,
    "entity": _entity,
}
