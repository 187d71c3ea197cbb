# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Kubernetes' own policies: NetworkPolicy, and the administrators' tiers around it.

Source: ``networking.k8s.io/v1`` of the Kubernetes API reference. Where it leaves a choice to the implementation, this
engine takes what Kubernetes' end-to-end tests expect (an ``ipBlock`` matches a pod by its address), else what is
worse for the boundary.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import itertools
import re
import typing as t

from ..sets import boxes
from ..sets.addresses import ALL_ADDRESSES, AddressSet
from ..sets.addresses import union_of as join
from ..sets.boxes import LOCAL, NODE, Box
from ..sets.ports import ALL_PORTS, PortSet, union_of
from ..sets.selectors import EVERYTHING, Selector, ValueSet
from ..world.objects import Body, Pod, PolicyRef, World, policy_ref
from ..world.strict_reader import Reader
from .admin import admin_tiers
from .compiled import Compiled
from .model import ALLOW, DENY, EGRESS, INGRESS, NEXT, Direction, PortName, Rule, Tier, Uncertainty
from .rule_source import RuleSource

#: Where a pod's own node comes from: no policy can close a port to it.
LOCAL_NODE = Box(frozenset({NODE}), {LOCAL: ValueSet(frozenset({"yes"}))})

HOST_NETWORK_NOTE = "the pod uses its node's network, where NetworkPolicy is undefined: everything counts as open"

_PORT_NAME = re.compile(r"(?=[a-z0-9-]*[a-z])[a-z0-9]+(-[a-z0-9]+)*")


class CorePolicy:
    """A NetworkPolicy: whom it selects is read at once, its rules when it first selects a pod.

    Attributes:
        ref: which one.
        selector: the pods of its namespace that it selects.
    """

    def __init__(self, body: Body) -> None:
        self.ref = policy_ref(body)
        self._spec = Reader(body, str(self.ref)).mapping("spec") or Reader({}, str(self.ref), "spec")
        self.selector = self._spec.selector("podSelector") or EVERYTHING

    @functools.cached_property
    def isolates(self) -> frozenset[str]:
        """The directions that it isolates; rules of another direction mean nothing."""
        return _isolates(self._spec)

    @functools.cached_property
    def rules(self) -> c.Mapping[str, tuple[RuleSource, ...]]:
        """The rules by direction; raises PolicyError when one is malformed."""
        return self._read[0]

    @functools.cached_property
    def fixed(self) -> c.Mapping[str, tuple[Rule, ...] | None]:
        """The compiled rules by direction, where none of them depends on the pod."""
        return {direction: _same_for_all(sources) for direction, sources in self.rules.items()}

    @functools.cached_property
    def notes(self) -> tuple[str, ...]:
        """What a reader of a verdict should know about it."""
        return self._read[1]

    @functools.cached_property
    def _read(self) -> tuple[c.Mapping[str, tuple[RuleSource, ...]], tuple[str, ...]]:
        unknown = self._spec.unknown(_SPEC)
        rules = {
            direction: tuple(
                _rule(entry, self.ref, index, direction, unknown)
                for index, entry in enumerate(self._spec.items(direction) or ())
            )
            for direction in (EGRESS, INGRESS)
        }
        return rules, tuple(f"{self.ref}: unknown field {path}, which clusters ignore" for path in unknown)


def _same_for_all(sources: c.Iterable[RuleSource]) -> tuple[Rule, ...] | None:
    found: list[Rule] = []
    for source in sources:
        rule = source.same_for_all
        if rule is None:
            return None
        found.append(rule)
    return tuple(found)


class CoreEngine:
    """The semantics of the Kubernetes API."""

    name = "core"

    def compile(self, world: World, pod: Pod) -> Compiled:
        """The rules of the policies that select this pod."""
        if pod.host_network:
            open_ = Direction((), (), (HOST_NETWORK_NOTE,))
            return Compiled(pod, open_, dataclasses.replace(open_, always=(LOCAL_NODE,)))
        policies = selecting(world, pod)
        found: dict[str, Direction] = {}
        for direction in (EGRESS, INGRESS):
            admin, baseline, notes = admin_tiers(world, pod, direction)
            own = tier(world, policies, pod, direction)
            found[direction] = Direction(
                (*admin, own, *baseline),
                (LOCAL_NODE,) if direction == INGRESS else (),
                (*notes, *_notes(world, policies)),
            )
        return Compiled(pod, found[EGRESS], found[INGRESS])


def _notes(world: World, policies: list[CorePolicy]) -> tuple[str, ...]:
    kept: dict[tuple[CorePolicy, ...], tuple[str, ...]] = world.memo.setdefault("core notes", {})
    key = tuple(policies)
    if key not in kept:
        kept[key] = tuple(note for policy in policies for note in policy.notes)
    return kept[key]


def tier(world: World, policies: c.Sequence[CorePolicy], pod: Pod, direction: str) -> Tier:
    """The tier that NetworkPolicies make together: isolated when one isolates, and the union of their rules.

    Pods that the same policies select share one tier, unless a rule depends on the pod.
    """
    kept: dict[t.Hashable, Tier] = world.memo.setdefault("core tiers", {})
    isolating = tuple([policy for policy in policies if direction in policy.isolates])
    found = kept.get((direction, isolating))
    if found is None:
        fixed = [policy.fixed[direction] for policy in isolating]
        shared = None not in fixed
        rules = [
            [source.rule(pod, None) for source in policy.rules[direction]] if held is None else held
            for policy, held in zip(isolating, fixed, strict=True)
        ]
        found = Tier(
            "NetworkPolicy",
            tuple(itertools.chain.from_iterable(rules)),
            ordered=False,
            default=DENY if isolating else NEXT,
            policies=tuple([policy.ref for policy in isolating]),
        )
        if shared:
            kept[direction, isolating] = found
    return found


class _Index:
    """The policies of a namespace by selector, and the selectors by one label that they demand.

    So a pod meets only the selectors that may select it, and each of them once.
    """

    def __init__(self, policies: c.Iterable[CorePolicy]) -> None:
        self.policies = tuple(policies)
        self._numbers: dict[Selector, list[int]] = {}
        for number, policy in enumerate(self.policies):
            self._numbers.setdefault(policy.selector, []).append(number)
        self._by_label: dict[tuple[str, str], list[Selector]] = {}
        self._others: list[Selector] = []
        for selector in self._numbers:
            place = self._by_label.setdefault(min(selector.equal), []) if selector.equal else self._others
            place.append(selector)

    def selecting(self, labels: c.Mapping[str, str]) -> list[CorePolicy]:
        items = labels.items()
        candidates = [*self._others, *(one for item in items for one in self._by_label.get(item, ()))]
        numbers = [self._numbers[one] for one in candidates if one.matches_items(items, labels)]
        return [self.policies[number] for number in sorted(itertools.chain.from_iterable(numbers))]


def selecting(world: World, pod: Pod) -> list[CorePolicy]:
    """The NetworkPolicies that select a pod, in the order of the objects."""
    return _index(world, pod.namespace).selecting(pod.labels)


def _index(world: World, namespace: str) -> _Index:
    kept: dict[str, _Index] = world.memo.setdefault("core index", {})
    if namespace not in kept:
        kept[namespace] = _Index(
            CorePolicy(body)
            for body in world.policies("NetworkPolicy")
            if (body["metadata"].get("namespace") or "default") == namespace
        )
    return kept[namespace]


_SPEC = frozenset({"podSelector", "policyTypes", "ingress", "egress"})
_TYPES = {"Ingress": INGRESS, "Egress": EGRESS}
_PEERS = {EGRESS: "to", INGRESS: "from"}
_RULE = {direction: frozenset({key, "ports"}) for direction, key in _PEERS.items()}
_PEER = frozenset({"podSelector", "namespaceSelector", "ipBlock"})
_PORT = frozenset({"port", "protocol", "endPort"})


def _isolates(spec: Reader) -> frozenset[str]:
    """The directions of ``policyTypes``; left out or empty: ingress, and egress when there is an egress rule."""
    types = spec.texts("policyTypes")
    if not types:
        return frozenset({INGRESS, EGRESS} if spec.sequence(EGRESS) else {INGRESS})
    for name in types:
        if name not in _TYPES:
            raise spec.error(f"{name!r} is none of {', '.join(_TYPES)}", "policyTypes")
    return frozenset(_TYPES[name] for name in types)


def _rule(entry: Reader, ref: PolicyRef, index: int, direction: str, unknown: list[str]) -> RuleSource:
    key = _PEERS[direction]
    unknown.extend(entry.unknown(_RULE[direction]))
    peers, uncertain = read_peers(entry, key, ref.namespace or "")
    ports, names, odd = _ports(entry)
    return RuleSource(ref, index, ALLOW, direction, tuple(peers), ports, names, tuple(uncertain), odd)


def read_peers(entry: Reader, key: str, namespace: str) -> tuple[list[Box], list[Uncertainty]]:
    """The peers of a rule: a missing or empty list is everyone.

    Args:
        entry: the mapping that holds the list.
        key: the list's name.
        namespace: what a ``podSelector`` without ``namespaceSelector`` is about.

    Raises:
        PolicyError: a peer is malformed.
    """
    peers = entry.items(key)
    if not peers:
        return [boxes.EVERYTHING], []
    found: list[Box] = []
    uncertain: list[Uncertainty] = []
    for peer in peers:
        unknown = peer.unknown(_PEER)
        if unknown and not any(peer.has(known) for known in _PEER):
            uncertain.append(Uncertainty(f"unknown peer field {unknown[0]}", (boxes.EVERYTHING,), closed=True))
        else:
            found.extend(_peer(peer, namespace))
    return found, uncertain


def _peer(peer: Reader, namespace: str) -> list[Box]:
    block = peer.mapping("ipBlock")
    pods, namespaces = peer.selector("podSelector"), peer.selector("namespaceSelector")
    if block is not None:
        if pods is not None or namespaces is not None:
            raise peer.error("ipBlock must not have selectors beside it")
        return boxes.addresses(_block(block))
    if pods is None and namespaces is None:
        raise peer.error("a peer needs a podSelector, a namespaceSelector or an ipBlock")
    if namespaces is None:
        return boxes.pods(None, pods or EVERYTHING, namespace=namespace)
    return boxes.pods(namespaces, pods or EVERYTHING)


def _block(block: Reader) -> AddressSet:
    held = block.cidr("cidr")
    if held is None:
        raise block.error("expected a CIDR block", "cidr")
    excluded = block.texts("except") or []
    version = 4 if held.v4 else 6
    parts = []
    for index, text in enumerate(excluded):
        part = block.block(text, f"except[{index}]")
        if (4 if part.v4 else 6) != version:
            raise block.error(f"{text!r} is of the other IP version", f"except[{index}]")
        parts.append(part)
    if parts:
        held = held.minus(join(parts))
    return ALL_ADDRESSES if held == ALL_ADDRESSES else held


def _ports(entry: Reader) -> tuple[PortSet, tuple[PortName, ...], str | None]:
    """The ports of a rule: a missing or empty list is every port of every protocol."""
    ports = entry.items("ports")
    if not ports:
        return ALL_PORTS, (), None
    held: list[PortSet] = []
    names: list[PortName] = []
    odd: str | None = None
    for port in ports:
        for path in port.unknown(_PORT):
            odd = f"unknown port field {path}"
        protocol = port.protocol("protocol") or "TCP"
        value = port.body.get("port")
        if isinstance(value, str):
            if port.has("endPort"):
                raise port.error("a range has a number in port", "endPort")
            if len(value) > 15 or _PORT_NAME.fullmatch(value) is None:
                raise port.error(f"{value!r} is neither a port number nor a port's name", "port")
            names.append((value, protocol))
            continue
        low, high = port.number("port", 1, 65535), port.number("endPort", 1, 65535)
        if high is not None and (low is None or high < low):
            raise port.error("a range ends at or above its port", "endPort")
        held.append(PortSet.of(protocol, low, high))
    return union_of(held), tuple(names), odd
