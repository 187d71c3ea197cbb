# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where kube-router, the firewall of the local cluster, is known to enforce something else than what policies say.

Each deviation has a set of policies that shows it, and the connections in which it shows. The tests hold kube-router
to both: it must deviate there as described, and nowhere else. So a firewall that gets better fails a test, too.
Everything was read from the source of v2.1.0 and seen on the cluster.
"""

from __future__ import annotations

import dataclasses
import ipaddress
from collections.abc import Callable, Iterator, Mapping, Sequence

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World, connects
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.verdict import Verdict
from tests.truth.stage import HOST, ROLES, Body, Cell

SOURCE = "https://github.com/cloudnativelabs/kube-router/blob/v2.1.0/pkg/controllers/netpol"


@dataclasses.dataclass(frozen=True)
class Deviation:
    """Something that kube-router does otherwise.

    Attributes:
        name: what, in a few words.
        reference: where it can be read.
        spec: a policy of namespace ``red`` that shows it; ``{name}`` stands for the address of a pod or the node.
        cells: the connections that differ, with what kube-router makes of them: True is open.
    """

    name: str
    reference: str
    spec: Body
    cells: Mapping[Cell, bool]


DEVIATIONS = (
    Deviation(
        "a policy of both directions lets its own pods reach each other where either direction allows it",
        f"{SOURCE}/pod.go#L196 (its chain is run for both directions; compare issue #474)",
        {"podSelector": {}, "policyTypes": ["Ingress", "Egress"], "ingress": [{"from": [{"podSelector": {}}]}]},
        {Cell("front", "back", "TCP", 24700): True, Cell("back", "plain", "UDP", 24703): True},
    ),
    Deviation(
        "a rule for pods whose ports are names that none of them has opens every port",
        f"{SOURCE}/policy.go#L237 (no port is left, which reads as no restriction)",
        {
            "podSelector": {},
            "policyTypes": ["Ingress"],
            "ingress": [{"from": [{"podSelector": {}}], "ports": [{"port": "nobody-has-this"}]}],
        },
        {Cell("front", "back", "TCP", 24705): True, Cell("front", "back", "UDP", 24700): True},
    ),
    Deviation(
        "an egress rule to everyone with a port's name means that number, of pods of its namespace, anywhere",
        "https://github.com/cloudnativelabs/kube-router/issues/1036",
        {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"ports": [{"port": "web"}]}]},
        {
            Cell("plain", "front", "TCP", 24701): True,
            Cell("plain", "store", "TCP", 24700): True,
            Cell("plain", HOST, "TCP", 24700): True,
        },
    ),
    Deviation(
        "an egress rule to addresses ignores ports by name",
        f"{SOURCE}/policy.go#L439 (named ports are looked up for pods alone)",
        {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [{"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}], "ports": [{"port": "web"}]}],
        },
        {Cell("plain", "front", "TCP", 24700): False, Cell("plain", "back", "TCP", 24701): False},
    ),
    Deviation(
        "an exception of one block is one of all blocks of its rule",
        "https://github.com/cloudnativelabs/kube-router/pull/543 (one ipset a rule)",
        {
            "podSelector": {},
            "policyTypes": ["Egress"],
            "egress": [
                {
                    "to": [
                        {"ipBlock": {"cidr": "0.0.0.0/0", "except": ["{front}/32"]}},
                        {"ipBlock": {"cidr": "{front}/31"}},
                    ]
                }
            ],
        },
        {Cell("plain", "front", "TCP", 24700): False},
    ),
)


class KubeRouter:
    """What kube-router makes of policies: the library's answer on what it reads them as.

    Args:
        objects: nodes, namespaces and pods.
        policies: the policies.
        pods: ``namespace/name`` of each pod of the stage.
    """

    def __init__(self, objects: Sequence[Body], policies: Sequence[Body], pods: Mapping[str, str]) -> None:
        self._pods = pods
        self._objects = list(objects)
        self._world = World.read([*objects, *(self._as_read(policy) for policy in policies)])
        self._both = [_One(objects, self._as_read(policy), pods) for policy in policies if _directions(policy) == BOTH]

    def connects(self, cell: Cell) -> bool:
        """Whether the connection is let through."""
        if cell.source == cell.destination:
            return True
        ends = ({"pod": self._pods[cell.source]}, {"pod": self._pods[cell.destination]})
        if connects(self._world, *ends, cell.port, cell.protocol, "core"):
            return True
        return any(policy.opens(cell) for policy in self._both)

    def _as_read(self, policy: Body) -> Body:
        """The policy itself, for the library to read, where kube-router reads what is written."""
        spec = policy["spec"]
        rewritten = {
            direction: [read for rule in spec[direction] for read in rewrite(rule, policy)]
            for direction, rewrite in (("ingress", self._ingress_rule), ("egress", self._egress_rule))
            if spec.get(direction)
        }
        if all(rules == spec[direction] for direction, rules in rewritten.items()):
            return policy
        return {**policy, "spec": {**spec, **rewritten, "policyTypes": sorted(_directions(policy))}}

    def _ingress_rule(self, rule: Body, policy: Body) -> Iterator[Body]:
        selected = self._matching({"podSelector": policy["spec"]["podSelector"]}, policy)
        yield from _split(rule, "from", lambda names: self._numbers(names, selected))

    def _egress_rule(self, rule: Body, policy: Body) -> Iterator[Body]:
        names = [port for port in rule.get("ports") or () if isinstance(port.get("port"), str)]
        others = [port for port in rule.get("ports") or () if port not in names]
        if names and not rule.get("to"):
            own = self._matching({"podSelector": {}}, policy)
            ports = others + self._numbers(names, own)
            yield from ([{"ports": ports}] if ports else [])
            return
        peers = [peer for peer in rule.get("to") or () if "ipBlock" not in peer]
        reached = [pod for peer in peers for pod in self._matching(peer, policy)]
        for read in _split(rule, "to", lambda names: self._numbers(names, reached)):
            if names and "ipBlock" in read["to"][0]:
                if others:
                    yield {**read, "ports": others}
            else:
                yield read

    def _matching(self, peer: Body, policy: Body) -> list[str]:
        """The pods of the stage that a peer is about, found by asking the library about a policy for that peer."""
        policy = {
            **policy,
            "spec": {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{"to": [peer]}]},
        }
        reach = Reach.for_labels([*self._objects, policy], policy["metadata"]["namespace"], {})
        return [
            name for name, pod in self._pods.items() if name != HOST and reach.allows("egress", {"pod": pod}, 1, "TCP")
        ]

    def _numbers(self, names: Sequence[Body], pods: Sequence[str]) -> list[Body]:
        wanted = {(port["port"], port.get("protocol", "TCP")) for port in names}
        return [
            {"protocol": protocol, "port": number}
            for role in ROLES
            if role.name in pods
            for name, (protocol, number) in role.port_names.items()
            if (name, protocol) in wanted
        ]


class _One:
    """A policy of both directions, each of which also counts for the other one among its own pods."""

    def __init__(self, objects: Sequence[Body], policy: Body, pods: Mapping[str, str]) -> None:
        self._pods = pods
        self._worlds = {
            direction: World.read([*objects, {**policy, "spec": {**policy["spec"], "policyTypes": [direction]}}])
            for direction in BOTH
        }

    def opens(self, cell: Cell) -> bool:
        source, destination = self._pods[cell.source], self._pods[cell.destination]
        reaches = {
            "Ingress": (destination, "ingress", {"pod": source}),
            "Egress": (source, "egress", {"pod": destination}),
        }
        if not all(self._selects(pod) for pod in (cell.source, cell.destination)):
            return False
        return any(
            Reach.from_objects(self._worlds[kind], pod).allows(direction, peer, cell.port, cell.protocol)
            for kind, (pod, direction, peer) in reaches.items()
        )

    def _selects(self, name: str) -> bool:
        return name != HOST and bool(self._ingress(name).isolated_by)

    def _ingress(self, name: str) -> Verdict:
        return Reach.from_objects(self._worlds["Ingress"], self._pods[name]).ingress_verdict(agent_port=1)


BOTH = frozenset({"Ingress", "Egress"})


def _directions(policy: Body) -> frozenset[str]:
    types = policy["spec"].get("policyTypes")
    if types:
        return frozenset(types)
    return BOTH if policy["spec"].get("egress") else frozenset({"Ingress"})


def _split(rule: Body, key: str, numbers: Callable[[Sequence[Body]], list[Body]]) -> Iterator[Body]:
    """A rule as one for its pods and one for its blocks, which share their exceptions."""
    if not rule.get(key):
        yield rule
        return
    pods = [peer for peer in rule[key] if "ipBlock" not in peer]
    blocks = [peer["ipBlock"] for peer in rule[key] if "ipBlock" in peer]
    shared = list(_shared(blocks))
    ports = rule.get("ports") or []
    names = [port for port in ports if isinstance(port.get("port"), str)]
    nothing_left = bool(pods and ports) and len(names) == len(ports) and not numbers(names)
    if shared == blocks and not names:
        yield rule
        return
    if pods:
        yield {key: pods, "ports": [] if nothing_left else ports}
    if blocks:
        yield {key: [{"ipBlock": block} for block in shared], "ports": ports}


def _shared(blocks: Sequence[Body]) -> Iterator[Body]:
    """One set of networks a rule: the longest prefix that holds an address decides, and of equal ones the last."""
    entries: dict[str, bool] = {}
    for block in blocks:
        entries[block["cidr"]] = True
        entries.update(dict.fromkeys(block.get("except") or (), False))
    holes = [ipaddress.ip_network(text) for text, held in entries.items() if not held]
    for text, held in entries.items():
        if held:
            network = ipaddress.ip_network(text)
            inside = [str(hole) for hole in holes if hole.subnet_of(network)]  # type: ignore[arg-type]
            yield {"cidr": text, **({"except": inside} if inside else {})}
