# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""How Cilium judges the policies of a pod: its own, Kubernetes', and what it makes of an administrator's.

Written against Cilium v1.20.2 with its defaults: ``enable-policy: default``, ``allow-localhost`` for Kubernetes,
``policy-cidr-match-mode`` off, ``policy-default-local-cluster`` on, the default label filter. In short
(``pkg/policy/repository.go``, ``pkg/policy/rule.go``, ``Documentation/security/policy``):

- All policies add up; a deny of any of them wins over every allow, also over a NetworkPolicy's.
- A direction is default-denied when one policy that selects the pod says so. Else all that is not denied is allowed.
- The local host reaches its pods, unless a deny says otherwise. Other nodes do not.
- Rules above the port hold only while nothing else allows the same traffic, so they are read as "at least this much".
  (Between rules on different port ranges, and with TLS server names, Cilium keeps the limit; that is narrower.)
- NetworkPolicy is read as Kubernetes has it, but for ``ipBlock``, which never means a pod or a node.
- ClusterNetworkPolicy exists behind a feature gate (``enable-k8s-cluster-network-policy``), so what its admin tier
  accepts may be open; AdminNetworkPolicy and BaselineAdminNetworkPolicy mean nothing to Cilium.
- A pod on its node's network is a node: no policy about pods touches it.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ..engines import core
from ..engines.compiled import Compiled
from ..engines.model import ALLOW, DENY, EGRESS, INGRESS, L7, NEXT, Direction, Rule, Tier, Uncertainty
from ..engines.rule_source import RuleSource
from ..sets.boxes import ADDRESS, EVERYTHING, KINDS, LOCAL, NODE, OUTSIDE, Box, Dimension
from ..world.objects import Pod, PolicyRef, World
from ..world.peers import Endpoint
from .rules import CiliumPolicy, Part, Spec, numbers_of, policies
from .selectors import SERVICE_ACCOUNT, YES, identity_labels, in_identity

LOCAL_HOST = Box(frozenset({NODE}), {LOCAL: YES})

BY_NODE = "it selects nodes by label, which Cilium takes only where enable-node-selector-labels is on"
HOST_NETWORK_NOTE = (
    "the pod uses its node's network, where Cilium's pod policies do not apply: everything counts as open"
)


@dataclasses.dataclass(frozen=True, eq=False)
class CiliumEndpoint(Endpoint):
    """A peer with what only Cilium asks about: the service account of a pod."""

    def value(self, dimension: Dimension) -> object:
        """The endpoint's value in a dimension; None where it has none."""
        if dimension == SERVICE_ACCOUNT:
            return self.pod.service_account if self.pod is not None else None
        return Endpoint.value(self, dimension)


@dataclasses.dataclass(frozen=True, eq=False)
class CiliumCompiled(Compiled):
    """Cilium's reading of one pod's policies: a deny closes the local host too, and a pod may run on any node."""

    def seen(self, endpoint: Endpoint) -> Endpoint:
        """A peer with its service account."""
        return CiliumEndpoint(**vars(endpoint))

    def decide(self, direction: str, endpoint: Endpoint, port: int, protocol: str, l7: L7 | None = None) -> bool:
        """Whether one point of traffic is allowed; what is unknown counts as open."""
        endpoint = self.seen(endpoint)
        named = endpoint.node is not None or endpoint.pod is not None
        if endpoint.kind == NODE and named and self.pod.node is None and not endpoint.local:
            # Where the pod will run is not known, so the node may be its own.
            own = dataclasses.replace(endpoint, local=True)
            if self._decide(direction, own, port, protocol, l7):
                return True
        return self._decide(direction, endpoint, port, protocol, l7)

    def _decide(self, direction: str, endpoint: Endpoint, port: int, protocol: str, l7: L7 | None) -> bool:
        if direction == INGRESS and endpoint.local and self._denied(endpoint, port, protocol):
            return False
        return super().decide(direction, endpoint, port, protocol, l7)

    def _denied(self, endpoint: Endpoint, port: int, protocol: str) -> bool:
        return any(
            rule.action == DENY and rule.matches(endpoint, port, protocol)
            for tier in self.ingress.tiers
            for rule in tier.rules
        )


class _Collected:
    """The rules of one direction while they come in."""

    def __init__(self) -> None:
        self.allow: list[Rule] = []
        self.deny: list[Rule] = []
        self.isolating: dict[PolicyRef, None] = {}
        self.unconfirmed: dict[PolicyRef, None] = {}
        self.notes: dict[str, None] = {}

    def add(self, rule: Rule, reason: str | None) -> None:
        """Add a rule; with a reason, of a policy that may not select the pod."""
        held = self.deny if rule.action == DENY else self.allow
        held.append(rule if reason is None else _made_uncertain(rule, reason, closed=rule.action == ALLOW))

    def direction(self, before: tuple[Tier, ...], always: tuple[Box, ...]) -> Direction:
        """The tiers: what denies, then what allows."""
        refs = tuple(self.isolating)
        if self.unconfirmed.keys() >= self.isolating.keys():
            self.allow += [_open(ref, BY_NODE, closed=False) for ref in self.unconfirmed]
        return Direction(
            (
                *before,
                Tier("Cilium's deny rules", tuple(self.deny), ordered=True, policies=_refs(self.deny)),
                Tier(
                    "Cilium's allow rules",
                    tuple(self.allow),
                    ordered=False,
                    default=DENY if refs else NEXT,
                    policies=refs or _refs(self.allow),
                ),
            ),
            always,
            tuple(self.notes),
        )


def _refs(rules: list[Rule]) -> tuple[PolicyRef, ...]:
    return tuple(dict.fromkeys(rule.policy for rule in rules))


def _open(ref: PolicyRef, reason: str, *, closed: bool) -> Rule:
    """What a policy that Cilium may not have imported may leave open; *closed*: not in a single decision."""
    return Rule(ref, None, ALLOW, (), uncertain=(Uncertainty(reason, (EVERYTHING,), closed=closed),))


def _made_uncertain(rule: Rule, reason: str, *, closed: bool) -> Rule:
    """A rule that may not be in force; *closed* when a single decision shall take the closed side."""
    region = (*rule.region, *(named.peers for named in rule.named))
    uncertain = (Uncertainty(reason, region, closed=closed), *rule.uncertain)
    return dataclasses.replace(rule, region=(), named=(), uncertain=uncertain)


class CiliumEngine:
    """The semantics of Cilium."""

    name = "cilium"

    def compile(self, world: World, pod: Pod) -> Compiled:
        """The rules of the policies that select this pod.

        Raises:
            PolicyError: a policy of the pod's namespace, or a clusterwide one, is malformed.
        """
        if pod.host_network:
            open_ = Direction((), (), (HOST_NETWORK_NOTE,))
            return Compiled(pod, open_, dataclasses.replace(open_, always=(LOCAL_HOST,)))
        selected = _Selected(_kubernetes(world, pod), _own(world, pod))
        administrators = {direction: _administrators(world, pod, direction) for direction in (EGRESS, INGRESS)}
        # Pods that the same policies select share their tiers, and so all that is computed about these.
        shared: dict[t.Hashable, tuple[Direction, Direction]] = world.memo.setdefault("cilium directions", {})
        key = (selected, *administrators.values())
        directions = shared.get(key)
        if directions is None:
            directions = _directions(world, pod, selected, administrators)
            if selected.same_for_all(world):
                shared[key] = directions
        return CiliumCompiled(pod, *directions)


@dataclasses.dataclass(frozen=True)
class _Selected:
    """The policies that select a pod, or may select it: then with the reason why that is not certain.

    Attributes:
        kubernetes: NetworkPolicies.
        own: Cilium's policies, by spec.
    """

    kubernetes: tuple[tuple[core.CorePolicy, str | None], ...]
    own: tuple[tuple[CiliumPolicy, Spec, str | None], ...]

    def same_for_all(self, world: World) -> bool:
        """Whether none of the rules depends on the pod."""
        sources = [
            _by_cilium(world, source)
            for policy, _reason in self.kubernetes
            for direction in (EGRESS, INGRESS)
            for source in policy.rules[direction]
        ]
        for policy, spec, _reason in self.own:
            parts = policy.read(world)
            if not isinstance(parts, str):
                sources += [limited.source for rules in parts[spec].rules.values() for limited in rules]
        return all(source.same_for_all is not None for source in sources)


def _directions(
    world: World, pod: Pod, selected: _Selected, administrators: dict[str, tuple[Tier, ...]]
) -> tuple[Direction, Direction]:
    found = {EGRESS: _Collected(), INGRESS: _Collected()}
    for policy, reason in selected.kubernetes:
        _take_kubernetes(world, pod, policy, found, reason)
    for own, spec, reason in selected.own:
        _take(world, pod, own, spec, found, reason)
    return (
        found[EGRESS].direction(administrators[EGRESS], ()),
        found[INGRESS].direction(administrators[INGRESS], (LOCAL_HOST,)),
    )


def _own(world: World, pod: Pod) -> tuple[tuple[CiliumPolicy, Spec, str | None], ...]:
    """Cilium's own policies, by spec."""
    known = world.namespace_labels(pod.namespace)
    labels = identity_labels(pod, known or {}, whole=False)
    whole = labels if all(map(in_identity, pod.labels)) else identity_labels(pod, known or {}, whole=True)
    found: list[tuple[CiliumPolicy, Spec, str | None]] = []
    for namespace in (pod.namespace, None):
        for policy, spec in policies(world, namespace).candidates(whole):
            selects = spec.selects(labels, whole, namespace_known=known is not None)
            if selects is not False:
                found.append((policy, spec, None if selects is True else str(selects)))
    return tuple(found)


def _take(
    world: World, pod: Pod, policy: CiliumPolicy, spec: Spec, found: dict[str, _Collected], reason: str | None
) -> None:
    parts = policy.read(world)
    if isinstance(parts, str):
        for held in found.values():
            # What an earlier version of the policy allowed stays in force where an agent had imported it.
            held.allow.append(_open(policy.ref, parts, closed=True))
            held.notes[f"{policy.ref}: {parts}"] = None
        return
    part: Part = parts[spec]
    unconfirmed = policy.unconfirmed(parts)
    for direction, held in found.items():
        for source in part.rules[direction]:
            rule = source.rule(pod)
            # Without node labels Cilium refuses the whole policy, so what it closes is not sure.
            held.add(
                _made_uncertain(rule, BY_NODE, closed=False) if unconfirmed and rule.action == DENY else rule, reason
            )
        if unconfirmed and direction in part.isolates:
            held.unconfirmed[policy.ref] = None
        if direction in part.isolates and reason is None:
            held.isolating[policy.ref] = None
        if part.rules[direction] or direction in part.isolates:
            held.notes.update(dict.fromkeys(part.notes))
        if part.odd:
            held.notes[f"{policy.ref}: {part.odd}, so nothing that it closes is relied on"] = None
        if reason is not None:
            held.notes[f"{policy.ref}: {reason}"] = None


def _kubernetes(world: World, pod: Pod) -> tuple[tuple[core.CorePolicy, str | None], ...]:
    """NetworkPolicies, by the labels of the pod's identity."""
    selecting = core.selecting(world, pod)
    sure = selecting
    if not all(map(in_identity, pod.labels)):
        labels = {key: value for key, value in pod.labels.items() if in_identity(key)}
        sure = core.selecting(world, dataclasses.replace(pod, labels=labels))
        selecting = sure + [policy for policy in selecting if policy not in sure]
    certain = frozenset(sure)
    reason = "whether it selects the pod depends on Cilium's label settings"
    return tuple((policy, None if policy in certain else reason) for policy in selecting)


def _take_kubernetes(
    world: World, pod: Pod, policy: core.CorePolicy, found: dict[str, _Collected], reason: str | None
) -> None:
    """Add a NetworkPolicy.

    Cilium reads the rules of a direction that ``policyTypes`` omits, and isolates by them
    (``pkg/k8s/network_policy.go``); Kubernetes does neither. What they allow counts, what they close does not.
    """
    for direction, held in found.items():
        for source in policy.rules[direction]:
            held.add(_by_cilium(world, source).rule(pod, None), reason)
        if direction in policy.isolates and reason is None:
            held.isolating[policy.ref] = None
        held.notes.update(dict.fromkeys(policy.notes))


def _by_cilium(world: World, source: RuleSource) -> RuleSource:
    """A NetworkPolicy's rule with ``ipBlock`` and ports by name as Cilium takes them; one object for all pods."""
    by_name = source.direction == EGRESS and source.names
    if not by_name and not any(ADDRESS in box.where for box in source.peers):
        return source
    kept: dict[RuleSource, RuleSource] = world.memo.setdefault("cilium blocks", {})
    if source not in kept:
        elsewhere = numbers_of(world, source.names) if by_name else None
        kept[source] = dataclasses.replace(source, peers=tuple(map(_outside, source.peers)), elsewhere=elsewhere)
    return kept[source]


def _outside(box: Box) -> Box:
    """An ``ipBlock`` as Cilium takes it: addresses that are neither a pod's nor a node's."""
    return Box(frozenset({OUTSIDE}), box.where, box.ports) if ADDRESS in box.where and box.kinds == KINDS else box


def _administrators(world: World, pod: Pod, direction: str) -> tuple[Tier, ...]:
    """What the admin tier of ClusterNetworkPolicies accepts, as an uncertainty: only a feature makes Cilium read it."""
    if not world.policies("ClusterNetworkPolicy"):
        return ()
    from ..engines.admin import admin_tiers

    reason = "Cilium reads ClusterNetworkPolicy only where enable-k8s-cluster-network-policy is on"
    admin, _baseline, _notes = admin_tiers(world, pod, direction)
    shared: dict[tuple[Tier, ...], tuple[Tier, ...]] = world.memo.setdefault("cilium administrators", {})
    if tuple(admin) in shared:
        return shared[tuple(admin)]
    rules = tuple(
        _made_uncertain(rule, reason, closed=True)
        for tier in admin
        for rule in tier.rules
        if rule.action == ALLOW and rule.policy.kind == "ClusterNetworkPolicy"
    )
    shared[tuple(admin)] = found = (Tier("ClusterNetworkPolicy", rules, ordered=False),) if rules else ()
    return found
