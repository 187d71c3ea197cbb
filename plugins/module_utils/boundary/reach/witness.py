# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Examples out of regions, and regions in words: what turns excess into evidence that a person can check."""

from __future__ import annotations

import dataclasses
import typing as t

from ..sets.addresses import ALL_ADDRESSES, AddressSet, parse_address, show_address, show_addresses
from ..sets.boxes import ADDRESS, DNS_NAME, KINDS, LOCAL, NAMESPACE, NODE, OTHER, OUTSIDE, POD, Box
from ..sets.names import NameSet
from ..sets.ports import PROTOCOLS
from ..sets.selectors import ValueSet
from ..world.objects import Pod, World, show_pod
from ..world.peers import EXTERNAL, Endpoint

#: How many of the known pods are tried as the example of a region.
_MOST_PODS = 500
_VERSION = {"ICMP": 4, "ICMPv6": 6}


@dataclasses.dataclass(frozen=True, slots=True)
class Example:
    """One point of a region.

    Attributes:
        peer: the peer in words.
        address: its address, or None when any will do.
        protocol, port: the port.
    """

    peer: str
    address: str | None
    protocol: str
    port: int


def realizable(box: Box, world: World) -> Box | None:
    """What of a box can exist: a known namespace has the labels that it has, and each ICMP has its IP version."""
    kinds = box.kinds
    if POD in kinds and _namespace(box, world) is None:
        kinds = kinds - {POD}
    ports = box.ports
    held = box.where.get(ADDRESS)
    if isinstance(held, AddressSet):
        for protocol, version in _VERSION.items():
            if not (held.v4 if version == 4 else held.v6) and ports.held[PROTOCOLS.index(protocol)]:
                index = PROTOCOLS.index(protocol)
                ports = dataclasses.replace(ports, held=(*ports.held[:index], (), *ports.held[index + 1 :]))
    if not kinds or ports.empty:
        return None
    return Box(kinds, box.where, ports)


def _namespace(box: Box, world: World) -> str | None:
    """A namespace that the box's pods may be in: a known one before a made-up one; None when there is none."""
    names = t.cast("ValueSet | None", box.where.get(NAMESPACE))
    wanted = [(key, held) for (what, key), held in box.where.items() if what == "namespace-label"]
    if names is not None and not names.others:
        candidates = sorted(name for name in names.values if name is not None)
    else:
        candidates = [name for name in world.namespaces if names is None or names.contains(name)]
    for name in candidates:
        labels = world.namespace_labels(name)
        if labels is None or all(held.contains(labels.get(key)) for key, held in wanted):
            return name
    if names is not None and not names.others:
        return None
    taken = {*world.namespaces, *(names.values if names is not None else ())}
    return next(name for name in (f"namespace-{number}" for number in range(len(taken) + 1)) if name not in taken)


def example(box: Box, world: World) -> Example:
    """One point of a box that can exist."""
    protocol, port = box.ports.example() or ("TCP", 1)
    kind = next(kind for kind in (OUTSIDE, POD, NODE, OTHER) if kind in box.kinds)
    peer, address = _PEERS[kind](box, world)
    return Example(peer, address, protocol, port)


def _outside(box: Box, _world: World) -> tuple[str, str | None]:
    names = box.where.get(DNS_NAME)
    name = names.example() if names is not None else None
    address = _address(box)
    if name is not None:
        return f"{name} at {address}" if ADDRESS in box.where else name, address if ADDRESS in box.where else None
    return address, address


def _address(box: Box) -> str:
    held = box.where.get(ADDRESS)
    if held is None or held.contains(parse_address(EXTERNAL)):
        return EXTERNAL
    return show_address(held.example())


def _pod(box: Box, world: World) -> tuple[str, str | None]:
    known = _known_pod(box, world)
    if known is not None:
        return show_pod(known), show_address(known.addresses[0]) if known.addresses else None
    where = [f"a pod in namespace {_namespace(box, world)}"]
    labels = {key: held.example() for (what, key), held in sorted(box.where.items()) if what == "pod-label"}
    carried = ", ".join(f"{key}={value}" for key, value in labels.items() if value is not None)
    if carried:
        where.append(f"labelled {carried}")
    if ADDRESS in box.where:
        where.append(f"at {_address(box)}")
    return " ".join(where), _address(box) if ADDRESS in box.where else None


def _known_pod(box: Box, world: World) -> Pod | None:
    number = box.ports.example() or ("TCP", 1)
    for pod, endpoint in _known_pods(world):
        if box.contains(POD, endpoint.value, *number):
            return pod
    return None


def _known_pods(world: World) -> list[tuple[Pod, Endpoint]]:
    """Pods that may be an example, once for each address; made once for a world."""
    found: list[tuple[Pod, Endpoint]] | None = world.memo.get("example pods")
    if found is None:
        found = world.memo["example pods"] = [
            (pod, Endpoint(POD, address, pod, namespace_labels=world.namespace_labels(pod.namespace)))
            for pod in list(world.pods.values())[:_MOST_PODS]
            if not pod.host_network
            for address in pod.addresses or (None,)
        ]
    return found


def _node(box: Box, world: World) -> tuple[str, str | None]:
    number = box.ports.example() or ("TCP", 1)
    for node in world.nodes.values():
        for address in node.addresses:
            if box.contains(NODE, Endpoint(NODE, address, node=node).value, *number):
                return f"node {node.name} ({show_address(address)})", show_address(address)
    if ADDRESS in box.where:
        return f"a node at {_address(box)}", _address(box)
    return "a node", None


def _other(box: Box, _world: World) -> tuple[str, str | None]:
    held = box.where.get(("entity", ""))
    name = held.example() if held is not None else None
    return f"the entity {name}" if name else "an entity of the engine", None


_PEERS = {OUTSIDE: _outside, POD: _pod, NODE: _node, OTHER: _other}

_KIND_WORDS = {POD: "pods", OUTSIDE: "addresses outside", NODE: "nodes", OTHER: "other entities"}


def show_peers(box: Box) -> str:
    """The peers of a box in words."""
    who = (
        "anything"
        if box.kinds == KINDS
        else " and ".join(_KIND_WORDS[kind] for kind in (POD, OUTSIDE, NODE, OTHER) if kind in box.kinds)
    )
    parts = [_show(dimension, held) for dimension, held in sorted(box.where.items(), key=lambda item: item[0])]
    return " ".join([who, *parts])


def _show(dimension: tuple[str, str], held: object) -> str:
    what, key = dimension
    if isinstance(held, AddressSet):
        return "at any address" if held == ALL_ADDRESSES else f"at {show_addresses(held)}"
    if isinstance(held, NameSet):
        return f"named {held}" if not held.absent else f"not only named {held}"
    if dimension == NAMESPACE:
        return f"in namespace {held}"
    if dimension == LOCAL:
        return "(the pod's own node)" if isinstance(held, ValueSet) and held.contains("yes") else "(not the pod's own)"
    words = {"pod-label": "labelled", "namespace-label": "in namespaces labelled", "node-label": "labelled"}
    return f"{words.get(what, what)} {key + '=' if key else ''}{held}"
