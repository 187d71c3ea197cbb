# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sets of NetworkPolicies, each made from a number: the same number gives the same set."""

from __future__ import annotations

import ipaddress
import random
from collections.abc import Callable, Iterator, Mapping

from tests.truth.stage import HOST, SUBJECTS, Body

POD_SELECTORS: tuple[Body, ...] = (
    {},
    {"matchLabels": {"app": "web"}},
    {"matchLabels": {"app": "db"}},
    {"matchLabels": {"app": "web", "tier": "front"}},
    {"matchLabels": {"app": "nobody"}},
    {"matchExpressions": [{"key": "tier", "operator": "In", "values": ["front", "back"]}]},
    {"matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["front"]}]},
    {"matchExpressions": [{"key": "tier", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "tier", "operator": "DoesNotExist"}]},
    {"matchLabels": {"app": "web"}, "matchExpressions": [{"key": "tier", "operator": "NotIn", "values": ["back"]}]},
)
NAMESPACE_SELECTORS: tuple[Body, ...] = (
    {},
    {"matchLabels": {"team": "red"}},
    {"matchLabels": {"team": "blue"}},
    {"matchExpressions": [{"key": "team", "operator": "NotIn", "values": ["red"]}]},
    {"matchExpressions": [{"key": "team", "operator": "Exists"}]},
    {"matchExpressions": [{"key": "team", "operator": "DoesNotExist"}]},
)
PORT_ENTRIES: tuple[Body, ...] = (
    {"port": 24700},
    {"port": 24701, "protocol": "TCP"},
    {"port": 24700, "protocol": "UDP"},
    {"protocol": "TCP"},
    {"protocol": "UDP"},
    {"port": 24700, "endPort": 24701},
    {"port": 24701, "endPort": 24705, "protocol": "TCP"},
    {"port": 24701, "endPort": 30000, "protocol": "UDP"},
    {"port": "web"},
    {"port": "data", "protocol": "UDP"},
    {"port": "data", "protocol": "TCP"},
    {"port": 53, "protocol": "UDP"},
)
POLICY_TYPES = (None, None, [], ["Ingress"], ["Egress"], ["Ingress", "Egress"])


def policy_set(number: int, namespaces: Mapping[str, str], addresses: Mapping[str, str]) -> list[Body]:
    """One to three policies.

    Args:
        number: which set.
        namespaces: the cluster's names of ``red`` and ``blue``.
        addresses: the address of each pod, and of the node.
    """
    return list(_Maker(number, addresses).policies(namespaces))


class _Maker:
    def __init__(self, number: int, addresses: Mapping[str, str]) -> None:
        self._random = random.Random(f"truth {number}")  # noqa: S311 (repeatable on purpose)
        self._number = number
        self._addresses = addresses

    def policies(self, namespaces: Mapping[str, str]) -> Iterator[Body]:
        for index in range(self._random.choice((1, 2, 2, 3))):
            spec: Body = {"podSelector": self._random.choice(POD_SELECTORS)}
            for direction, peers in (("ingress", "from"), ("egress", "to")):
                if (rules := self._rules(peers)) is not None:
                    spec[direction] = rules
            if (types := self._random.choice(POLICY_TYPES)) is not None:
                spec["policyTypes"] = types
            yield {
                "apiVersion": "networking.k8s.io/v1",
                "kind": "NetworkPolicy",
                "metadata": {"name": f"set-{self._number}-{index}", "namespace": namespaces[self._namespace()]},
                "spec": spec,
            }

    def _namespace(self) -> str:
        return self._random.choice(("red", "red", "blue"))

    def _rules(self, peers: str) -> list[Body] | None:
        kind = self._random.choice(("absent", "none", "anything", "some", "some", "some", "some"))
        if kind == "absent":
            return None
        if kind == "none":
            return []
        if kind == "anything":
            return [{}]
        return [self._rule(peers) for _each in range(self._random.choice((1, 1, 2)))]

    def _rule(self, peers: str) -> Body:
        rule: Body = {}
        if (who := self._some(self._peer)) is not None:
            rule[peers] = who
        if (ports := self._some(lambda: self._random.choice(PORT_ENTRIES))) is not None:
            rule["ports"] = ports
        return rule

    def _some(self, make: Callable[[], Body]) -> list[Body] | None:
        """Left out, empty, or one or two of them."""
        count = self._random.choice((None, 0, 1, 1, 1, 2, 2))
        return None if count is None else [make() for _each in range(count)]

    def _peer(self) -> Body:
        kind = self._random.choice(("pods", "namespaces", "both", "block", "block"))
        if kind == "block":
            return {"ipBlock": self._block()}
        peer: Body = {}
        if kind in ("pods", "both"):
            peer["podSelector"] = self._random.choice(POD_SELECTORS)
        if kind in ("namespaces", "both"):
            peer["namespaceSelector"] = self._random.choice(NAMESPACE_SELECTORS)
        return peer

    def _block(self) -> Body:
        """A block around a pod or the node, often without the one or the other address."""
        around = self._addresses[self._random.choice((*SUBJECTS, HOST))]
        length = self._random.choice((0, 8, 16, 29, 30, 32))
        block = ipaddress.ip_network(f"{around}/{length}", strict=False)
        holes = []
        for name in self._random.sample((*SUBJECTS, HOST), self._random.choice((0, 1, 2))):
            hole = ipaddress.ip_network(f"{self._addresses[name]}/{self._random.choice((31, 32))}", strict=False)
            if hole.subnet_of(block) and hole != block and str(hole) not in holes:
                holes.append(str(hole))
        return {"cidr": str(block), **({"except": holes} if holes else {})}
