# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""All traffic that a direction allows, as regions, with the rule that allows each.

``flow`` pushes a region through the tiers: what is of no interest is taken out of the start, so what comes out is
exactly the excess.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import itertools
import typing as t

from ..sets.boxes import ADDRESS, Box, Dimension, Region, TooManyBoxes, ValuesOf, meet_all, minus_all
from ..sets.ports import ALL_PORTS, PortSet
from ..world.peers import Endpoint
from .model import ALLOW, DENY, L7, PASS, Direction, Rule, Tier, Uncertainty, named_ports, permits


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Hit:
    """Allowed traffic.

    Attributes:
        rule: what allows it, or None when no policy closes it.
        region: the traffic.
        reason: why it only may be allowed, or None.
    """

    rule: Rule | None
    region: Region
    reason: str | None = None


class Memo:
    """What a flow found out about one start, for the next pod under the same tiers or rules.

    Attributes:
        start: the traffic of interest.
    """

    def __init__(self, start: Region) -> None:
        self.start = start
        self._rules: dict[int, dict[Rule, tuple[Hit, ...]]] = {}
        # A region is kept with its results, so that its identity stays its own.
        self._tiers: dict[tuple[int, Tier], tuple[Region, list[Hit], Region]] = {}

    def tier(self, tier: Tier, live: Region, closed: bool) -> tuple[list[Hit], Region]:
        """What a tier allows of a region, and what it leaves to the next."""
        key = (id(live), tier)
        found = self._tiers.get(key)
        if found is None:
            hits, rest = _ordered(tier, live, closed) if tier.ordered else self._union(tier, live, closed)
            found = self._tiers[key] = (live, hits, rest)
        return found[1], found[2]

    def _union(self, tier: Tier, live: Region, closed: bool) -> tuple[list[Hit], Region]:
        kept = self._rules.setdefault(id(live), {})
        for rule in tier.rules:
            if rule not in kept:
                kept[rule] = self._allowed(rule, live, closed)
        hits = list(itertools.chain.from_iterable(map(kept.__getitem__, tier.rules)))
        return hits, ([] if tier.default == DENY else live)

    def _allowed(self, rule: Rule, live: Region, closed: bool) -> tuple[Hit, ...]:
        if live is self.start:
            return tuple(_allowed(rule, live, closed))
        # Denies may have left many pieces of the start; most rules do not even meet the whole of it.
        touched = self._rules.setdefault(id(self.start), {})
        whole = touched.get(rule)
        if whole is None:
            whole = touched[rule] = tuple(_allowed(rule, self.start, closed))
        cut = (Hit(hit.rule, meet_all(hit.region, live), hit.reason) for hit in whole)
        return tuple(hit for hit in cut if hit.region)


def flow(tiers: c.Iterable[Tier], memo: Memo, *, closed: bool = False) -> c.Iterator[Hit]:
    """What of a region is allowed, rule by rule; a point may come out under several rules.

    Args:
        tiers: the tiers of one direction.
        memo: of the traffic of interest; one memo serves one value of ``closed``.
        closed: whether an uncertainty that implementations must close (``Uncertainty.closed``) counts as closed.
    """
    open_ = memo.start
    for tier in tiers:
        if not open_:
            return
        hits, open_ = memo.tier(tier, open_, closed)
        yield from hits
    if open_:
        yield Hit(None, open_)


def _ordered(tier: Tier, start: Region, closed: bool) -> tuple[list[Hit], Region]:
    """What an ordered tier allows, and what it leaves to the next: what no rule matched, and what was passed on."""
    hits: list[Hit] = []
    live, passed = start, t.cast("Region", [])
    for number, rule in enumerate(tier.rules):
        if rule.action == ALLOW:
            hits.extend(_allowed(rule, live, closed))
        elif rule.action == PASS:
            wide = [
                box
                for uncertainty in rule.uncertain
                if not (closed and uncertainty.closed)
                for box in uncertainty.region
            ]
            passed.extend(meet_all(live, [*rule.region, *wide]))
        try:
            live = minus_all(live, _surely(rule, closed))
        except TooManyBoxes as exc:
            reason = f"the policies are too entangled to compute: {exc}"
            hits.extend(Hit(late, live, reason) for late in tier.rules[number + 1 :] if late.action == ALLOW)
            return [*hits, Hit(None, live, reason)], passed
    return hits, (passed if tier.default == DENY else live + passed)


def _allowed(rule: Rule, live: Region, closed: bool) -> c.Iterator[Hit]:
    region = meet_all(live, rule.region)
    if region:
        yield Hit(rule, region)
    for uncertainty in rule.uncertain:
        if closed and uncertainty.closed:
            continue
        region = meet_all(live, uncertainty.region)
        if region:
            yield Hit(rule, region, uncertainty.reason)


def _surely(rule: Rule, closed: bool) -> list[Box]:
    """What no later rule of the tier sees."""
    region = list(rule.region)
    if closed and rule.action == DENY:
        region.extend(box for uncertainty in rule.uncertain if uncertainty.closed for box in uncertainty.region)
    return region


def possible(rules: Direction, endpoint: Endpoint, port: int, protocol: str, l7: L7 | None) -> bool:
    """Whether an endpoint whose address is not known is let through under any address that it may have."""
    ports = PortSet.of(protocol, port)
    tiers = [part for tier in rules.tiers for part in _residual(tier, endpoint, ports, l7)]
    start = [Box(frozenset({endpoint.kind}), {}, ports)]
    return any(True for _unused in flow(tiers, Memo(start), closed=True))


def allowed_with(rules: Direction, endpoint: Endpoint) -> list[Hit]:
    """What of the traffic with one endpoint is allowed, rule by rule; the ports are those of the regions' boxes."""
    tiers = [part for tier in rules.tiers for part in _residual(tier, endpoint, ALL_PORTS, None)]
    return list(flow(tiers, Memo([Box(frozenset({endpoint.kind}))])))


def _residual(tier: Tier, endpoint: Endpoint, ports: PortSet, l7: L7 | None) -> list[Tier]:
    """The tier with everything but the ports, and an address that is not known, decided.

    A second tier closes the traffic of allow rules whose layer 7 limits refuse the request.
    """

    def rest(boxes: c.Iterable[Box]) -> tuple[Box, ...]:
        return tuple(left for box in boxes if (left := _without(box, endpoint, ports)) is not None)

    rules: list[Rule] = []
    refused: list[Rule] = []
    for rule in tier.rules:
        named = [
            item.peers.on(item.peers.ports.meet(named_ports(endpoint.pod, item.name, item.protocol)))
            for item in rule.named
            if endpoint.pod is not None
        ]
        region = rest((*rule.region, *named))
        if rule.action == ALLOW and not permits(rule, l7):
            refused.append(Rule(rule.policy, rule.index, DENY, region))
            continue
        uncertain = []
        for one in rule.uncertain:
            held = one.ports_of(endpoint.pod)
            boxes = one.region if held is ALL_PORTS else [box.on(box.ports.meet(held)) for box in one.region]
            uncertain.append(Uncertainty(one.reason, rest(boxes), one.closed, one.name))
        rules.append(dataclasses.replace(rule, region=region, named=(), uncertain=tuple(uncertain)))
    found = [dataclasses.replace(tier, rules=tuple(rules))]
    return [*found, Tier(tier.name, tuple(refused), ordered=True)] if refused else found


def _without(box: Box, endpoint: Endpoint, ports: PortSet) -> Box | None:
    both = box.ports.meet(ports)
    if endpoint.kind not in box.kinds or both.empty:
        return None
    where: dict[Dimension, ValuesOf] = {}
    for dimension, held in box.where.items():
        if dimension == ADDRESS and endpoint.address is None:
            where[dimension] = held
        elif not held.contains(endpoint.value(dimension)):
            return None
    return Box(frozenset({endpoint.kind}), where, both)
