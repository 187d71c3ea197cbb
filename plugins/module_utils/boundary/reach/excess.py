# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The excess of a direction over what was asked for, one finding for each rule and reason."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ..engines.flow import Hit, Memo, flow
from ..engines.model import Direction, Tier
from ..sets.boxes import Region, minus_all
from ..sets.names import NameSet
from ..world.objects import World
from .verdict import Finding
from .witness import example, realizable, show_peers

#: Returns the part of the excess that is worth a finding.
HitFilter = c.Callable[[list[Hit], World], c.Iterable[Hit]]


class BeyondNames:
    """All excess but the DNS questions that rules limit to the names of a request."""

    def __init__(self, dns: Region, names: NameSet) -> None:
        """Args:
        dns: the DNS servers that may be asked.
        names: the names that they may be asked for.
        """
        self._dns = dns
        self._names = names

    def __call__(self, hits: list[Hit], _world: World) -> c.Iterator[Hit]:
        """The hits, those of rules that limit names without the DNS servers."""
        for hit in hits:
            limit = hit.rule.l7 if hit.rule is not None else None
            if limit is None or not limit.looks_up_within(self._names):
                yield hit
                continue
            region = minus_all(hit.region, self._dns)
            if region:
                yield Hit(hit.rule, region, hit.reason)


class Excess:
    """What of one start a direction lets through, with the work kept for the next pod of the same world."""

    def __init__(self, world: World, start: Region, keep: HitFilter | None = None) -> None:
        """Args:
        world: what is known of the cluster.
        start: all traffic that was not asked for.
        keep: selects the excess that counts; None when all of it does.
        """
        self._world = world
        self._filter = keep
        self._memo = Memo(start)
        self._findings: dict[Hit, Finding | None] = {}
        self._answers: dict[tuple[Tier, ...], tuple[Finding, ...]] = {}

    def findings(self, rules: Direction, direction: str) -> tuple[Finding, ...]:
        """The findings of one direction (always the same one) of one pod."""
        found = self._answers.get(rules.tiers)
        if found is None:
            hits: t.Iterable[Hit] = flow(rules.tiers, self._memo)
            if self._filter is not None:
                hits = self._filter(list(hits), self._world)
            made = (self._finding(direction, hit) for hit in hits)
            found = self._answers[rules.tiers] = tuple(finding for finding in made if finding is not None)
        return found

    def _finding(self, direction: str, hit: Hit) -> Finding | None:
        if hit not in self._findings:
            self._findings[hit] = _finding(self._world, direction, hit)
        return self._findings[hit]


def _finding(world: World, direction: str, hit: Hit) -> Finding | None:
    for box in hit.region:
        real = realizable(box, world)
        if real is None:
            continue
        point = example(real, world)
        return Finding(
            direction=direction,
            policy=None if hit.rule is None else str(hit.rule.policy),
            rule=None if hit.rule is None else hit.rule.index,
            peers=show_peers(real),
            ports=str(box.ports),
            example=point.peer,
            address=point.address,
            protocol=point.protocol,
            port=point.port,
            reason=hit.reason,
        )
    return None
