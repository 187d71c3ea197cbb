# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A pod's reach in words, rule by rule, in the order in which the rules are read."""

from __future__ import annotations

import collections.abc as c

from ..engines.compiled import Compiled
from ..engines.model import ALLOW, DENY, DIRECTIONS, EGRESS, Direction, Rule, Tier
from ..world.objects import World
from .witness import realizable, show_peers

_VERBS = {"allow": "allows", "deny": "denies", "pass": "passes on"}


def describe(world: World, compiled: Compiled) -> str:
    """What a pod may reach and who may reach it, as text of several lines."""
    lines: list[str] = []
    for name in DIRECTIONS:
        lines.extend(_direction(world, compiled, name, compiled.direction(name)))
    return "\n".join(lines)


def _direction(world: World, compiled: Compiled, name: str, rules: Direction) -> c.Iterator[str]:
    state = "closed but for what is allowed" if rules.isolated else "open but for what is denied"
    yield f"{name} of {compiled.pod}: {state}"
    for tier in rules.tiers:
        if not tier.rules and tier.default != DENY:
            continue
        yield f"  {_tier(tier)}"
        for rule in tier.rules:
            yield from (f"    {line}" for line in _rule(world, rule, name))
    for note in rules.notes:
        yield f"  note: {note}"


def _tier(tier: Tier) -> str:
    order = "the first that matches decides" if tier.ordered else "they add up"
    end = ", the rest is closed" if tier.default == DENY else ""
    return f"{tier.name} ({order}{end}): {', '.join(map(str, tier.policies)) or 'none'}"


def _rule(world: World, rule: Rule, direction: str) -> c.Iterator[str]:
    number = "" if rule.index is None else f" rule {rule.index}"
    place = "to" if direction == EGRESS else "from"
    head = f"{rule.policy}{number} {_VERBS[rule.action]} traffic {place}"
    limit = " as far as its layer 7 rules go" if rule.l7 is not None and rule.action == ALLOW else ""
    found = False
    for box in rule.region:
        real = realizable(box, world)
        if real is not None:
            found = True
            yield f"{head} {show_peers(real)} on {box.ports}{limit}"
    for uncertainty in rule.uncertain:
        for box in uncertainty.region:
            found = True
            yield f"{head} {show_peers(box)} on {box.ports} perhaps: {uncertainty.reason}"
    if not found:
        yield f"{head} nothing"
