# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A rule as a policy has it, before the pod that it is about is known.

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
from .model import INGRESS, Named, PortName, Rule, Uncertainty, named_ports

#: Peers that depend on the labels of the judged pod's namespace (None: not known), as boxes and uncertainties.
Relative = c.Callable[[t.Optional[c.Mapping[str, str]]], tuple[list[Box], list[Uncertainty]]]

NOT_ONLY_PODS = "Cilium before v1.20 opens the number of a pod's port by name to peers that are not pods too"


@dataclasses.dataclass(frozen=True, eq=False)
class RuleSource:
    """A rule of a policy.

    Attributes:
        policy, index, action, direction: its place in the policy and what it does.
        peers: its peers, on every port.
        ports: its ports by number.
        names: its ports by name.
        uncertain: what else it may match, on every port.
        odd_ports: why its ports may be wider than ``ports`` and ``names`` say, or None.
        relative: its peers that depend on the pod's namespace.
        fails_closed: whether implementations must fail closed on what they do not know of it.
        elsewhere: for an engine whose older versions open a port by name to all peers under the number that any pod
            has under the name: these numbers. None where a port by name is always looked up on the peer.
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
    fails_closed: bool = True
    elsewhere: PortSet | None = None

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
        ports, named, uncertain = self._by_name(peers, pod)
        reachable = ALL_PORTS if self.names and (uncertain or pod is None) else ports
        for one in wide:
            if not reachable.empty:
                region = tuple(box.on(reachable) for box in one.region)
                uncertain.append(Uncertainty(one.reason, region, one.closed and self.fails_closed))
        if self.odd_ports is not None:
            everyone = (*peers, *(box for one in wide for box in one.region))
            uncertain.append(Uncertainty(self.odd_ports, everyone, closed=self.fails_closed))
        region = () if ports.empty else tuple(box.on(ports) for box in peers)
        return Rule(self.policy, self.index, self.action, region, tuple(named), tuple(uncertain))

    def _by_name(self, peers: list[Box], pod: Pod | None) -> tuple[PortSet, list[Named], list[Uncertainty]]:
        """The ports by number with those by name that are known, the peers on the others, and what is not certain.

        Args:
            peers: the rule's peers.
            pod: the pod that has the ports, for ingress; None when each peer has its own.
        """
        ports = self.ports
        named: list[Named] = []
        uncertain: list[Uncertainty] = []
        for name, protocol in self.names:
            possible = union_of(PortSet.of(each) for each in TRANSPORTS if protocol in {None, each})
            if pod is None:
                # Outside and on nodes, nothing has a port by name.
                pods = [Box(frozenset({POD}), box.where, possible) for box in peers if POD in box.kinds]
                named.extend(Named(box, name, protocol) for box in pods)
                if pods:
                    reason = f"named port {name!r} is whatever the peer calls so"
                    uncertain.append(Uncertainty(reason, tuple(pods), name=(name, protocol)))
                uncertain += self._elsewhere(peers, possible)
            elif pod.ports is None:
                reason = f"the pod's ports are not known, so port {name!r} may be any"
                uncertain.append(Uncertainty(reason, tuple(box.on(possible) for box in peers)))
            else:
                ports = ports.union(named_ports(pod, name, protocol))
                sidecar = named_ports(pod, name, protocol, sidecar=True)
                if not sidecar.empty:
                    reason = f"not every network plugin finds the port {name!r} of a sidecar by its name"
                    uncertain.append(Uncertainty(reason, tuple(box.on(sidecar) for box in peers)))
        return ports, named, uncertain

    def _elsewhere(self, peers: list[Box], possible: PortSet) -> list[Uncertainty]:
        """What an older version of the engine opens to peers that are not pods; see ``elsewhere``."""
        others = tuple(Box(box.kinds - {POD}, box.where, possible) for box in peers if box.kinds - {POD})
        if self.elsewhere is None or not others:
            return []
        # A verdict counts every number as open, because a later pod may call any port so.
        known = tuple(box.on(possible.meet(self.elsewhere)) for box in others)
        return [Uncertainty(NOT_ONLY_PODS, known), Uncertainty(NOT_ONLY_PODS, others, closed=True)]
