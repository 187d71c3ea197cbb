# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The administrators' tiers: ClusterNetworkPolicy, AdminNetworkPolicy and BaselineAdminNetworkPolicy.

Source: ``policy.networking.k8s.io`` v1alpha2 and v1alpha1. The lower priority number wins; inside a policy the order of
rules decides; Pass leaves the tier. What the specification leaves undefined (two policies of one priority) is taken in
the order that is worse for the boundary.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import itertools
import typing as t

from ..sets import boxes
from ..sets.boxes import Box
from ..world.objects import Body, Pod, PolicyRef, World, policy_ref
from ..world.strict_reader import Reader
from .admin_peers import ports_of, protocols_of, read_peers, read_subject
from .model import ALLOW, DENY, EGRESS, INGRESS, PASS, Rule, Tier, Uncertainty
from .rule_source import RuleSource

ADMIN = "admin"
BASELINE = "baseline"

_ACTIONS = {
    "ClusterNetworkPolicy": {"Accept": ALLOW, "Deny": DENY, "Pass": PASS},
    "AdminNetworkPolicy": {"Allow": ALLOW, "Deny": DENY, "Pass": PASS},
    "BaselineAdminNetworkPolicy": {"Allow": ALLOW, "Deny": DENY},
}
#: The baseline's only old-style policy comes behind every ClusterNetworkPolicy of the tier.
_LAST = 1001

#: Whether a policy selects a pod: yes, no, or not to be known (with the reason).
Selects = c.Callable[[Pod, t.Optional[c.Mapping[str, str]]], t.Union[bool, str]]


@dataclasses.dataclass(frozen=True, eq=False)
class AdminPolicy:
    """One policy of the administrators, read.

    Attributes:
        ref: which one.
        tier: ``admin`` or ``baseline``.
        priority: 0 to 1000, the lower wins.
        selects: whether it selects a pod.
        rules: the rules by direction.
        notes: what a reader of a verdict should know about it.
    """

    ref: PolicyRef
    tier: str
    priority: int
    selects: Selects
    rules: c.Mapping[str, tuple[RuleSource, ...]]
    notes: tuple[str, ...] = ()

    @functools.cached_property
    def same_for_all(self) -> c.Mapping[str, bool]:
        """Whether the rules of a direction are the same for every pod."""
        return {way: all(one.same_for_all is not None for one in sources) for way, sources in self.rules.items()}


def admin_policies(world: World) -> list[AdminPolicy]:
    """All policies of the administrators by precedence, read once; raises PolicyError when one is malformed."""
    found: list[AdminPolicy] | None = world.memo.get("admin policies")
    if found is None:
        found = [read_policy(body) for kind in _ACTIONS for body in world.policies(kind)]
        found.sort(key=lambda policy: (policy.priority, policy.ref.name, policy.ref.kind))
        world.memo["admin policies"] = found
    return found


def admin_tiers(world: World, pod: Pod, direction: str) -> tuple[list[Tier], list[Tier], list[str]]:
    """The tiers before and behind NetworkPolicy for one pod, and notes; no tier where there is no rule."""
    policies = admin_policies(world)
    if not policies:
        return [], [], []
    labels = world.namespace_labels(pod.namespace)
    kept: dict[t.Hashable, tuple[list[Tier], tuple[str, ...]]] = world.memo.setdefault("admin tiers", {})
    found: dict[str, list[Tier]] = {}
    notes: list[str] = []
    for name in (ADMIN, BASELINE):
        in_tier = [policy for policy in policies if policy.tier == name and policy.rules[direction]]
        chosen = [(policy, selects) for policy in in_tier if (selects := policy.selects(pod, labels)) is not False]
        # Pods that the same policies select share one tier, and so all that is computed about it.
        shared = all(policy.same_for_all[direction] for policy, _selects in chosen)
        key = (name, direction, tuple(chosen))
        tier = kept.get(key) if shared else None
        if tier is None:
            tier = _tier(name, chosen, lambda source: source.rule(pod, labels), direction)
            if shared:
                kept[key] = tier
        found[name] = tier[0]
        notes.extend(tier[1])
    return found[ADMIN], found[BASELINE], notes


def _tier(
    name: str, chosen: c.Sequence[tuple[AdminPolicy, bool | str]], rule: c.Callable[[RuleSource], Rule], direction: str
) -> tuple[list[Tier], tuple[str, ...]]:
    """The tier of the policies that select, or may select, a pod, and its notes; no tier where there is no rule."""
    rules: list[Rule] = []
    refs: list[PolicyRef] = []
    notes: list[str] = []
    for priority, group in itertools.groupby(chosen, key=lambda pair: pair[0].priority):
        parts: list[tuple[PolicyRef, list[Rule]]] = []
        for policy, selects in group:
            part = [rule(source) for source in policy.rules[direction]]
            certain = part if selects is True else [_made_uncertain(one, str(selects)) for one in part]
            parts.append((policy.ref, certain))
            notes.extend(policy.notes)
        refs.extend(ref for ref, _unused in parts)
        if len(parts) > 1:
            both = ", ".join(str(ref) for ref, _unused in parts)
            notes.append(f"{both} share priority {priority}: their order is undefined, the worse one is counted")
            rules.extend(_worst_first([part for _unused, part in parts]))
        for _unused, part in parts:
            rules.extend(part)
    tiers = [Tier(f"the {name} tier", tuple(rules), ordered=True, policies=tuple(refs))] if rules else []
    return tiers, tuple(notes)


def _made_uncertain(rule: Rule, reason: str) -> Rule:
    """A rule of a policy that may not select the pod at all."""
    region = (*rule.region, *(named.peers for named in rule.named))
    return dataclasses.replace(rule, region=(), named=(), uncertain=(Uncertainty(reason, region), *rule.uncertain))


def _worst_first(parts: list[list[Rule]]) -> list[Rule]:
    """What each of several policies would allow or pass if it came first, as rules to put before all of them."""
    first: list[Rule] = []
    for part in parts:
        before: list[Box] = []
        for rule in part:
            if rule.action != DENY:
                own = tuple(boxes.minus_all(rule.region, before))
                if rule.action == ALLOW:
                    first.append(dataclasses.replace(rule, region=own))
                else:
                    wide = (*own, *(named.peers for named in rule.named))
                    reason = "the order of policies with one priority is undefined"
                    first.append(
                        dataclasses.replace(
                            rule, region=(), named=(), uncertain=(Uncertainty(reason, wide), *rule.uncertain)
                        )
                    )
            before.extend(rule.region)
    return sorted(first, key=lambda rule: rule.action != ALLOW)


_SPEC = {
    "ClusterNetworkPolicy": frozenset({"tier", "priority", "subject", "ingress", "egress"}),
    "AdminNetworkPolicy": frozenset({"priority", "subject", "ingress", "egress"}),
    "BaselineAdminNetworkPolicy": frozenset({"subject", "ingress", "egress"}),
}


def read_policy(body: Body) -> AdminPolicy:
    """A policy of one of the three kinds; raises PolicyError when it is malformed."""
    ref = policy_ref(body)
    root = Reader(body, str(ref))
    spec = root.mapping("spec")
    if spec is None:
        raise root.error("expected a mapping", "spec")
    unknown = spec.unknown(_SPEC[ref.kind])
    tier, priority = _place(spec, ref)
    return AdminPolicy(
        ref=ref,
        tier=tier,
        priority=priority,
        selects=read_subject(spec),
        rules={
            direction: tuple(
                _rule(entry, ref, index, direction, unknown) for index, entry in enumerate(spec.items(direction) or ())
            )
            for direction in (EGRESS, INGRESS)
        },
        notes=tuple(f"{ref}: unknown field {path}" for path in unknown),
    )


def _place(spec: Reader, ref: PolicyRef) -> tuple[str, int]:
    if ref.kind == "BaselineAdminNetworkPolicy":
        return BASELINE, _LAST
    priority = spec.number("priority", 0, 1000)
    if priority is None:
        raise spec.error("expected a number", "priority")
    if ref.kind == "AdminNetworkPolicy":
        return ADMIN, priority
    tier = spec.text("tier")
    if tier not in {"Admin", "Baseline"}:
        raise spec.error(f"{tier!r} is neither Admin nor Baseline", "tier")
    return (ADMIN if tier == "Admin" else BASELINE), priority


def _rule(entry: Reader, ref: PolicyRef, index: int, direction: str, unknown: list[str]) -> RuleSource:
    actions = _ACTIONS[ref.kind]
    action = actions.get(entry.text("action") or "")
    if action is None:
        raise entry.error(f"{entry.text('action')!r} is none of {', '.join(actions)}", "action")
    peers_key = "to" if direction == EGRESS else "from"
    cluster = ref.kind == "ClusterNetworkPolicy"
    ports_key = "protocols" if cluster else "ports"
    odd = entry.unknown({"name", "action", peers_key, ports_key})
    unknown.extend(odd)
    peers, uncertain, relative = read_peers(entry, peers_key, direction, action)
    ports, names, odd_ports = (protocols_of if cluster else ports_of)(entry, ports_key)
    if odd:
        # A field that narrows or widens the rule in a way not known here.
        uncertain.append(Uncertainty(f"unknown rule field {odd[0]}", (boxes.EVERYTHING,), closed=True))
        if action != ALLOW:
            uncertain.extend(Uncertainty(f"unknown rule field {odd[0]}", (box,)) for box in peers)
            peers = []
    return RuleSource(
        ref, index, action, direction, tuple(peers), ports, names, tuple(uncertain), odd_ports, tuple(relative)
    )
