# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A rule as it stands in a policy, before it is known which pod it is about.

Most rules mean the same for every pod and are compiled once. Two things depend on the pod: an ingress port by name,
which is looked up on the pod itself, and peers relative to the pod's namespace.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import typing as t

from ..sets.boxes import POD, Box
from ..sets.ports import ALL_PORTS, TRANSPORTS, PortSet, union_of
from ..world.objects import Pod, PolicyRef
from .model import INGRESS, NAMED_PORT, Named, Rule, Uncertainty

#: A port by name, and the protocol it must have (None: any).
PortName = tuple[str, t.Optional[str]]

#: Peers that depend on the labels of the judged pod's namespace (None: not known), as boxes and uncertainties.
Relative = c.Callable[[t.Optional[c.Mapping[str, str]]], tuple[list[Box], list[Uncertainty]]]


@dataclasses.dataclass(frozen=True, eq=False)
class RuleSource:
    """A rule of a policy.

    Attributes:
        policy, index, action, direction: where it stands and what it does.
        peers: its peers, on every port.
        ports: its ports by number.
        names: its ports by name.
        uncertain: what else it may match, on every port.
        odd_ports: why its ports may be wider than ``ports`` and ``names`` say, or None.
        relative: its peers that depend on the pod's namespace.
    """

    policy: PolicyRef
    index: int
    action: str
    direction: str
    peers: tuple[Box, ...]
    ports: PortSet = ALL_PORTS
    names: tuple[PortName, ...] = ()
    uncertain: tuple[Uncertainty, ...] = ()
    odd_ports: str | None = None
    relative: tuple[Relative, ...] = ()

    def rule(self, pod: Pod, namespace_labels: c.Mapping[str, str] | None) -> Rule:
        """The rule for one pod."""
        return self.same_for_all or self._compile(pod if self.direction == INGRESS else None, namespace_labels)

    @functools.cached_property
    def same_for_all(self) -> Rule | None:
        """The rule, or None when it differs from pod to pod."""
        if self.relative or (self.names and self.direction == INGRESS):
            return None
        if self.names or self.uncertain or self.odd_ports is not None:
            return self._compile(None, None)
        region = () if self.ports.empty else tuple([box.on(self.ports) for box in self.peers])
        return Rule(self.policy, self.index, self.action, region)

    def _compile(self, pod: Pod | None, namespace_labels: c.Mapping[str, str] | None) -> Rule:
        peers, wide = list(self.peers), list(self.uncertain)
        for relative in self.relative:
            boxes, uncertain = relative(namespace_labels)
            peers.extend(boxes)
            wide.extend(uncertain)
        ports = self.ports
        named: list[Named] = []
        by_name: list[tuple[str, PortSet, list[Box]]] = []
        for name, protocol in self.names:
            possible = union_of(PortSet.of(each) for each in TRANSPORTS if protocol in {None, each})
            if pod is None:
                # Outside and on nodes, nothing has a port by name.
                pods = [Box(frozenset({POD}), box.where, possible) for box in peers if POD in box.kinds]
                named.extend(Named(box, name, protocol) for box in pods)
                by_name.append((f"{NAMED_PORT} {name!r} is whatever the peer calls so", possible, pods))
            elif pod.ports is None:
                by_name.append((f"the pod's ports are not known, so port {name!r} may be any", possible, peers))
            else:
                ports = ports.union(named_ports(pod, name, protocol))
        uncertain = [
            Uncertainty(why, tuple(box.on(possible) for box in held)) for why, possible, held in by_name if held
        ]
        for uncertainty in wide:
            reachable = ALL_PORTS if by_name else ports
            if not reachable.empty:
                uncertain.append(
                    Uncertainty(
                        uncertainty.reason, tuple(box.on(reachable) for box in uncertainty.region), uncertainty.closed
                    )
                )
        if self.odd_ports is not None:
            everyone = (*peers, *(box for uncertainty in wide for box in uncertainty.region))
            uncertain.append(Uncertainty(self.odd_ports, everyone, closed=True))
        region = () if ports.empty else tuple(box.on(ports) for box in peers)
        return Rule(self.policy, self.index, self.action, region, tuple(named), tuple(uncertain))


def named_ports(pod: Pod, name: str, protocol: str | None) -> PortSet:
    """The ports that a pod has under a name."""
    held = [
        PortSet.of(port.protocol, port.number)
        for port in pod.ports or ()
        if port.name == name and protocol in {None, port.protocol}
    ]
    return union_of(held)
