# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Pods that no policy tells apart, as groups: what a person can read about two hundred pods.

Two pods are in one group when the same rules apply to both, and when every rule about peers takes both or neither. So
what holds for one of a group holds for all, and labels that no policy names, such as a controller's hashes, do not
matter.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses

from ..engines.model import DIRECTIONS, Rule
from ..sets.addresses import AddressSet
from ..sets.boxes import ADDRESS, LOCAL, Box
from ..world.objects import Pod, World
from .reach import Reach

#: Labels that differ from pod to pod, or that a controller makes up; left out of a group's name.
_MADE_UP = frozenset(
    {
        "agents.x-k8s.io/sandbox-name-hash",
        "agents.x-k8s.io/sandbox-template-ref-hash",
        "agents.x-k8s.io/warm-pool-sandbox",
        "apps.kubernetes.io/pod-index",
        "controller-revision-hash",
        "pod-template-generation",
        "pod-template-hash",
        "statefulset.kubernetes.io/pod-name",
    }
)


@dataclasses.dataclass(frozen=True)
class Group:
    """Pods that no policy tells apart.

    Attributes:
        name: namespace and common labels; the same in the next report as long as these are.
        pods: the pods, by name.
        reach: of one of them, when the pods are judged; None for those that are peers alone.
    """

    name: str
    pods: tuple[Pod, ...]
    reach: Reach | None

    @property
    def pod(self) -> Pod:
        """One pod as the example of all."""
        return self.pods[0]

    @property
    def namespace(self) -> str:
        """The namespace of all of them."""
        return self.pod.namespace

    @property
    def labels(self) -> dict[str, str]:
        """The labels that all of them carry."""
        common = set(self.pod.labels.items())
        for pod in self.pods[1:]:
            common &= set(pod.labels.items())
        return dict(sorted(common))


def grouped(world: World, judged: c.Collection[Pod], engine: str) -> list[Group]:
    """The pods of a world as groups, those that are judged first.

    Args:
        world: all that is known.
        judged: the pods whose reach is asked for; they are in the world.
        engine: who enforces the policies.

    Raises:
        PolicyError: a policy that selects a judged pod is malformed.
    """
    reaches = {pod: Reach(world, pod, engine) for pod in judged}
    told_apart = _Differences(reaches.values())
    found: dict[tuple[object, ...], list[Pod]] = {}
    for pod in sorted(world.pods.values(), key=lambda pod: (pod not in reaches, str(pod))):
        rules = _rules(reaches[pod]) if pod in reaches else None
        found.setdefault((rules, *told_apart.of(pod)), []).append(pod)
    taken: dict[str, int] = {}
    groups: list[Group] = []
    for pods in found.values():
        group = Group("", tuple(pods), reaches.get(pods[0]))
        shown = ", ".join(f"{key}={value}" for key, value in group.labels.items() if key not in _MADE_UP)
        name = f"{group.namespace}: {shown or 'pods without labels'}"
        taken[name] = taken.get(name, 0) + 1
        groups.append(dataclasses.replace(group, name=name if taken[name] == 1 else f"{name} ({taken[name]})"))
    return groups


def _rules(reach: Reach) -> tuple[object, ...]:
    """What is equal for two pods exactly when the same rules apply to them."""
    sides = [reach.compiled.direction(direction) for direction in DIRECTIONS]
    return tuple((tier.rules, tier.default, tier.policies) for side in sides for tier in side.tiers)


class _Differences:
    """What the rules of some pods look at in a peer."""

    def __init__(self, reaches: c.Iterable[Reach]) -> None:
        self._blocks: dict[AddressSet, None] = {}
        self._keys: dict[str, None] = {}
        self._local = False
        seen: set[Rule] = set()
        for reach in reaches:
            for direction in DIRECTIONS:
                for tier in reach.compiled.direction(direction).tiers:
                    for rule in tier.rules:
                        if rule not in seen:
                            seen.add(rule)
                            self._learn(rule)

    def _learn(self, rule: Rule) -> None:
        boxes: list[Box] = [*rule.region, *(named.peers for named in rule.named)]
        boxes += [box for uncertainty in rule.uncertain for box in uncertainty.region]
        for box in boxes:
            for (what, key), held in box.where.items():
                if (what, key) == ADDRESS and isinstance(held, AddressSet):
                    self._blocks[held] = None
                elif what == "pod-label":
                    self._keys[key] = None
                elif (what, key) == LOCAL:
                    self._local = True

    def of(self, pod: Pod) -> tuple[object, ...]:
        """What is equal for two pods exactly when no rule tells them apart as peers."""
        inside = tuple(tuple(held.contains(address) for held in self._blocks) for address in pod.addresses)
        ports = frozenset(pod.ports or ())
        node = pod.node if pod.host_network or self._local else None
        where = (pod.namespace, pod.host_network, node, pod.service_account)
        return (*where, ports, frozenset(inside), tuple(pod.labels.get(key) for key in self._keys))
