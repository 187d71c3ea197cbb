# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What an engine is, and what it makes of a pod's policies.

An engine (core Kubernetes, Cilium) turns the policies that select one pod into a ``Compiled``: for each direction a
list of ``Tier``, each a list of ``Rule`` whose regions are boxes. Everything else (single decisions, containment with
witnesses, descriptions) is the same for every engine and works on that.

How the tiers are read, for one point of traffic:

- An **ordered** tier is read from the top: the first rule that matches decides. ``allow`` and ``deny`` end the matter,
  ``pass`` goes on with the next tier. No match: the tier's default.
- An **unordered** tier only adds up: it holds ``allow`` rules, and any that matches allows.
- A tier's default is ``next`` (go on with the next tier) or ``deny``. What no tier decides is allowed.

Core is ``admin (ordered, next), NetworkPolicy (unordered, deny when isolated), baseline (ordered, next)``. Cilium is
``deny rules (ordered, next), allow rules (unordered, deny when default-denied)``.

What a rule matches for sure is its ``region``. What it may match is an ``Uncertainty``: an uncertain allow counts as
open, an uncertain deny is not relied on, and a verdict names the reason.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import operator
import typing as t

from ..sets.boxes import Box
from ..sets.names import NameSet
from ..sets.ports import ALL_PORTS, PortSet, union_of
from ..world.objects import Pod, PolicyRef
from ..world.peers import Endpoint

ALLOW = "allow"
DENY = "deny"
PASS = "pass"  # noqa: S105 - the action's name in the API
NEXT = "next"

EGRESS = "egress"
INGRESS = "ingress"
DIRECTIONS = (EGRESS, INGRESS)

L7 = c.Mapping[str, t.Any]

#: A port by name, and the protocol it must have (None: any).
PortName = tuple[str, t.Optional[str]]


def named_ports(pod: Pod, name: str, protocol: str | None, *, sidecar: bool = False) -> PortSet:
    """The ports that a pod has under a name: those of its containers, or those of its sidecars."""
    return union_of(
        PortSet.of(port.protocol, port.number)
        for port in pod.ports or ()
        if port.name == name and protocol in {None, port.protocol} and port.sidecar == sidecar
    )


class L7Limit(t.Protocol):
    """What an allow rule demands above layer 4."""

    def permits(self, l7: L7) -> bool:
        """Whether a request (``{"dns": …}``, ``{"http": {…}}``, ``{"sni": …}``) is let through."""

    def looks_up_within(self, names: NameSet) -> bool:
        """Whether DNS questions about these names alone are let through."""


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Uncertainty:
    """Traffic that a rule may or may not match.

    Attributes:
        reason: why it cannot be known, for people.
        region: the traffic.
        closed: whether a single decision takes the closed side: an allow as not given, because the engine's defaults do
            not give it, and a deny as given, because every implementation must fail closed here (an unknown peer
            field). A verdict counts the allow as open all the same.
        name: for traffic on a port known by name, the name and its protocol (None: any). The ports of a pod whose ports
            are known are looked up; what is left of it is a sidecar's port.
    """

    reason: str
    region: tuple[Box, ...]
    closed: bool = False
    name: PortName | None = None

    def ports_of(self, pod: Pod | None) -> PortSet:
        """The ports on which it concerns a peer."""
        if self.name is None or pod is None or pod.ports is None:
            return ALL_PORTS
        return named_ports(pod, *self.name, sidecar=True)


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Named:
    """Peers on a port that each of them knows by name (egress only; an ingress name is known from the judged pod).

    Attributes:
        peers: the peers; the box's ports are those of the protocols that the name may stand for.
        name: the port's name.
        protocol: the protocol that the named port must have, or None for any.
    """

    peers: Box
    name: str
    protocol: str | None

    def matches(self, endpoint: Endpoint, port: int, protocol: str) -> bool:
        """Whether the endpoint is one of the peers and has a port of that name at that number."""
        return self.matches_port(endpoint, port, protocol) and self.peers.contains(
            endpoint.kind, endpoint.value, protocol, port
        )

    def matches_port(self, endpoint: Endpoint, port: int, protocol: str) -> bool:
        """Whether the endpoint is a pod that has a port of that name at that number."""
        return endpoint.pod is not None and named_ports(endpoint.pod, self.name, self.protocol).contains(protocol, port)


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Rule:
    """One rule of a policy, as a set of traffic and an action.

    Attributes:
        policy: the policy that it belongs to.
        index: its number in the policy's list, or None for the whole policy.
        action: ``allow``, ``deny`` or ``pass``.
        region: what it matches for sure.
        named: what it matches on a port known by name.
        uncertain: what it may match; the engine adds the uncertainty of a ``named`` itself.
        l7: the demand above layer 4 of an allow rule, or None.
    """

    policy: PolicyRef
    index: int | None
    action: str
    region: tuple[Box, ...]
    named: tuple[Named, ...] = ()
    uncertain: tuple[Uncertainty, ...] = ()
    l7: L7Limit | None = None

    def matches(self, endpoint: Endpoint, port: int, protocol: str) -> bool:
        """Whether it matches one point for sure."""
        for box in self.region:
            if box.contains(endpoint.kind, endpoint.value, protocol, port):
                return True
        return any(named.matches(endpoint, port, protocol) for named in self.named) if self.named else False

    def uncertainty_at(self, endpoint: Endpoint, port: int, protocol: str) -> Uncertainty | None:
        """The uncertainty that a point falls under, or None."""
        for uncertainty in self.uncertain:
            if uncertainty.ports_of(endpoint.pod).contains(protocol, port) and any(
                box.contains(endpoint.kind, endpoint.value, protocol, port) for box in uncertainty.region
            ):
                return uncertainty
        return None


@dataclasses.dataclass(frozen=True, eq=False)
class Tier:
    """Rules that are read together.

    Attributes:
        name: for people.
        rules: in order of precedence.
        ordered: whether the first match decides; else they add up and all allow.
        default: ``next`` or ``deny``.
        policies: the policies that make the default ``deny``, or belong to the tier.
    """

    name: str
    rules: tuple[Rule, ...]
    ordered: bool
    default: str = NEXT
    policies: tuple[PolicyRef, ...] = ()

    @functools.cached_property
    def policy_names(self) -> tuple[str, ...]:
        """The policies as text, each once."""
        return tuple(dict.fromkeys(map(operator.attrgetter("text"), self.policies)))


@dataclasses.dataclass(frozen=True, eq=False, slots=True)
class Direction:
    """One direction of a pod's traffic.

    Attributes:
        tiers: in order.
        always: traffic that no policy can close (the local node's to its pods); never judged.
        notes: what a reader of a verdict should know.
    """

    tiers: tuple[Tier, ...]
    always: tuple[Box, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def isolated(self) -> bool:
        """Whether some tier closes what nothing allows."""
        return any(tier.default == DENY for tier in self.tiers)


def permits(rule: Rule, l7: L7 | None) -> bool:
    """Whether an allow rule lets an application request through; without one the question is about layer 4 only."""
    return l7 is None or rule.l7 is None or rule.l7.permits(l7)
