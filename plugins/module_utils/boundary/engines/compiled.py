# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The compiled policies of one pod, and the decision about one point of traffic."""

from __future__ import annotations

import collections.abc as c
import dataclasses
import typing as t

from ..errors import QuestionError
from ..world.objects import Pod, World
from ..world.peers import Endpoint
from .flow import possible
from .model import ALLOW, DENY, DIRECTIONS, EGRESS, L7, PASS, Direction, Tier, permits


@dataclasses.dataclass(frozen=True, eq=False)
class Compiled:
    """An engine's reading of the policies of one pod. An engine with more to say overrides ``decide``."""

    pod: Pod
    egress: Direction
    ingress: Direction

    def direction(self, name: str) -> Direction:
        """The rules of ``egress`` or ``ingress``."""
        if name not in DIRECTIONS:
            raise QuestionError(f"A direction is egress or ingress, got {name!r}.")
        return self.egress if name == EGRESS else self.ingress

    def seen(self, endpoint: Endpoint) -> Endpoint:
        """A peer as the engine sees it."""
        return endpoint

    def decide(self, direction: str, endpoint: Endpoint, port: int, protocol: str, l7: L7 | None = None) -> bool:
        """Whether one point of traffic is allowed; what is unknown counts as open."""
        rules = self.direction(direction)
        if any(box.contains(endpoint.kind, endpoint.value, protocol, port) for box in rules.always):
            return True
        if endpoint.address is None:
            return possible(rules, endpoint, port, protocol, l7)
        return _decide(rules.tiers, endpoint, port, protocol, l7)


class Engine(t.Protocol):
    """The semantics of one implementation."""

    name: str

    def compile(self, world: World, pod: Pod) -> Compiled:
        """The rules of the policies that select this pod; parsed policies are kept in ``world.memo``."""


def _decide(tiers: c.Sequence[Tier], endpoint: Endpoint, port: int, protocol: str, l7: L7 | None) -> bool:
    for number, tier in enumerate(tiers):
        limited = False
        for rule in tier.rules:
            sure = rule.matches(endpoint, port, protocol)
            uncertainty = None if sure or not rule.uncertain else rule.uncertainty_at(endpoint, port, protocol)
            if not sure and uncertainty is None:
                continue
            closed = uncertainty is not None and uncertainty.closed
            if rule.action == ALLOW and not closed and permits(rule, l7):
                return True
            # A layer 7 limit drops what no rule permits, also where the direction is open by default.
            limited = limited or (rule.action == ALLOW and sure)
            if rule.action == DENY and (sure or closed):
                return False
            if rule.action == PASS and sure:
                break
            if rule.action == PASS and not closed and _decide(tiers[number + 1 :], endpoint, port, protocol, l7):
                return True
        else:
            if tier.default == DENY or limited:
                return False
    return True
