# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Boxes: the exact sets of traffic that all of the algebra works on.

A point of traffic, seen from the pod that is judged, is a peer and a protocol and port. A ``Box`` is a product of
independent constraints on it: which kinds of peer, one set for each dimension of a peer (its namespace, a namespace
label, a pod label, its address, its name, …), and a set of ports. Boxes are closed under ``meet``; ``minus`` gives a
list of disjoint boxes. So regions are lists of boxes, and every question is answered without enumerating anything.

A dimension that a box does not mention is unconstrained. Dimensions are open: an engine may add its own, as long as its
sets have ``empty``, ``meet``, ``minus``, ``contains`` and ``example``.
"""

from __future__ import annotations

import collections.abc as c
import functools
import typing as t

from ..errors import QuestionError
from .addresses import ALL_ADDRESSES, AddressSet
from .names import NameSet
from .ports import ALL_PORTS, PortSet
from .selectors import Selector, ValueSet

#: A peer that is a pod with its own network.
POD = "pod"
#: An address that is neither a pod's nor a node's.
OUTSIDE = "outside"
#: A node of the cluster, or a pod on the node's network.
NODE = "node"
#: What only an engine knows: reserved identities that are none of the above.
OTHER = "other"
KINDS = frozenset({POD, OUTSIDE, NODE, OTHER})

#: What a constraint is about: a name of the dimension, and a label key where it is about a label.
Dimension = tuple[str, str]

ADDRESS: Dimension = ("address", "")
#: The DNS name that an outside peer was found under.
DNS_NAME: Dimension = ("name", "")
NAMESPACE: Dimension = ("namespace", "")
#: ``yes`` for the node that the judged pod runs on.
LOCAL: Dimension = ("local", "")

#: The label that the API server keeps equal to a namespace's name.
NAMESPACE_NAME_LABEL = "kubernetes.io/metadata.name"

#: Above this many boxes a region is not computed further; the caller counts what is left as open.
MOST_BOXES = 5_000


def namespace_label(key: str) -> Dimension:
    """The dimension of a namespace's label; the name label is the namespace's name."""
    return NAMESPACE if key == NAMESPACE_NAME_LABEL else ("namespace-label", key)


def pod_label(key: str) -> Dimension:
    """The dimension of a pod's label."""
    return ("pod-label", key)


def node_label(key: str) -> Dimension:
    """The dimension of a node's label."""
    return ("node-label", key)


class ValuesOf(t.Protocol):
    """The set of values that a box allows in one dimension."""

    @property
    def empty(self) -> bool: ...

    def meet(self, other: t.Any, /) -> t.Any: ...

    def minus(self, other: t.Any, /) -> t.Any: ...

    def contains(self, value: object, /) -> bool: ...

    def example(self) -> t.Any: ...


class Box:
    """A product of constraints; never empty when made by ``meet`` and ``minus``.

    Attributes:
        kinds: the kinds of peer.
        where: the set of each constrained dimension.
        ports: the protocols and ports.
    """

    __slots__ = ("kinds", "ports", "where")

    def __init__(
        self,
        kinds: frozenset[str] = KINDS,
        where: c.Mapping[Dimension, ValuesOf] | None = None,
        ports: PortSet = ALL_PORTS,
    ) -> None:
        self.kinds = kinds
        self.where: c.Mapping[Dimension, ValuesOf] = where or {}
        self.ports = ports

    @property
    def empty(self) -> bool:
        """Whether nothing is in it."""
        return not self.kinds or self.ports.empty or any(held.empty for held in self.where.values())

    def on(self, ports: PortSet) -> Box:
        """The same peers on other ports."""
        return self if ports is self.ports else Box(self.kinds, self.where, ports)

    def meet(self, other: Box) -> Box | None:
        """What is in both, or None when nothing is."""
        if other is EVERYTHING:
            return self
        if self is EVERYTHING:
            return other
        kinds = self.kinds & other.kinds
        if not kinds:
            return None
        ports = self.ports.meet(other.ports)
        if ports.empty:
            return None
        if not other.where:
            return Box(kinds, self.where, ports)
        where = dict(self.where)
        for dimension, held in other.where.items():
            mine = where.get(dimension)
            both = held if mine is None else mine.meet(held)
            if both.empty:
                return None
            where[dimension] = both
        return Box(kinds, where, ports)

    def minus(self, other: Box) -> list[Box]:
        """What is in this one and not in the other, as disjoint boxes."""
        if self.meet(other) is None:
            return [self]
        out: list[Box] = []
        kinds = self.kinds - other.kinds
        if kinds:
            out.append(Box(kinds, self.where, self.ports))
        shared = self.kinds & other.kinds
        where = dict(self.where)
        for dimension, held in other.where.items():
            mine = where.get(dimension)
            rest = _everything(held).minus(held) if mine is None else mine.minus(held)
            if not rest.empty:
                out.append(Box(shared, {**where, dimension: rest}, self.ports))
            where[dimension] = held if mine is None else mine.meet(held)
        ports = self.ports.minus(other.ports)
        if not ports.empty:
            out.append(Box(shared, where, ports))
        return out

    def contains(self, kind: str, value: c.Callable[[Dimension], object], protocol: str, port: int) -> bool:
        """Whether one point is in it; ``value`` tells the peer's value in a dimension."""
        # A loop, because a generator costs more than most of its steps, and every question asks every rule.
        if kind not in self.kinds or not self.ports.contains(protocol, port):
            return False
        for dimension, held in self.where.items():  # noqa: SIM110
            if not held.contains(value(dimension)):
                return False
        return True

    def __repr__(self) -> str:
        return f"Box({sorted(self.kinds)}, {dict(self.where)}, {self.ports})"


#: All traffic.
EVERYTHING = Box()

Region = list[Box]


def _everything(held: ValuesOf) -> ValuesOf:
    """The full set of the dimension that a set belongs to."""
    if isinstance(held, AddressSet):
        return ALL_ADDRESSES
    if isinstance(held, NameSet):
        return NameSet(absent=True, which=None)
    if isinstance(held, ValueSet):
        return _ANY_VALUE
    return t.cast("ValuesOf", t.cast("t.Any", held).everything())


_ANY_VALUE = ValueSet(frozenset(), others=True)


def meet_all(region: c.Iterable[Box], other: c.Iterable[Box]) -> Region:
    """What two regions share."""
    other = list(other)
    return [both for one in region for two in other if (both := one.meet(two)) is not None]


def minus_all(region: c.Iterable[Box], other: c.Iterable[Box]) -> Region:
    """What is in the first region and in no box of the second.

    Raises:
        TooManyBoxes: above ``MOST_BOXES``.
    """
    left = list(region)
    for box in other:
        left = [piece for one in left for piece in one.minus(box)]
        if len(left) > MOST_BOXES:
            raise TooManyBoxes(f"more than {MOST_BOXES} pieces")
    return left


class TooManyBoxes(QuestionError):
    """A region fell into more pieces than are worth computing; what depends on it counts as open."""


def pods(
    namespaces: Selector | None, labels: Selector, *, namespace: str | None = None, ports: PortSet = ALL_PORTS
) -> Region:
    """Pods by label, in namespaces by label or in the one named; empty when the selectors contradict themselves.

    Args:
        namespaces: which namespaces, None when ``namespace`` says it.
        labels: which pods in them.
        namespace: one namespace by name.
        ports: the ports.
    """
    return [box.on(ports) for box in _pods(namespaces, labels, namespace) if not ports.empty]


@functools.lru_cache(maxsize=4096)
def _pods(namespaces: Selector | None, labels: Selector, namespace: str | None) -> tuple[Box, ...]:
    """The region of ``pods`` on every port; many rules name the same peers, such as the cluster's DNS servers."""
    where: dict[Dimension, ValuesOf] = {}
    if namespace is not None:
        where[NAMESPACE] = ValueSet(frozenset({namespace}))
    for key, held in (namespaces.needs() if namespaces is not None else {}).items():
        dimension = namespace_label(key)
        mine = where.get(dimension)
        where[dimension] = held if mine is None else mine.meet(held)
    where.update((pod_label(key), held) for key, held in labels.needs().items())
    box = Box(frozenset({POD}), where)
    return () if box.empty else (box,)


def addresses(held: AddressSet, *, kinds: frozenset[str] = KINDS, ports: PortSet = ALL_PORTS) -> Region:
    """Peers by address; ``kinds`` says whether pods and nodes with such an address are meant too."""
    return [] if held.empty else [Box(kinds, {ADDRESS: held}, ports)]
