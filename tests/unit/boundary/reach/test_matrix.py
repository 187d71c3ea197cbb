# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The matrix says of every two pods what single questions say, and groups only pods that no policy tells apart."""

from __future__ import annotations

import itertools
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.matrix import Matrix, matrix
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import connects
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import World
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    block,
    cluster_policy,
    labelled,
    named,
    namespace,
    node,
    pod,
    policy,
)

NODE = node("worker", "192.168.1.1")
PODS = [
    *(
        pod(f"agents/s-{n}", {"app": "sandbox", "made-up": str(n)}, ips=[f"10.0.0.{n}"], node="worker")
        for n in (1, 2, 3)
    ),
    pod("agents/s-far", {"app": "sandbox"}, ips=["10.9.0.1"]),
    pod("agents/db", {"app": "db"}, ips=["10.0.1.1"], ports=[("pg", 5432, "TCP")]),
    pod("agents/other", {"app": "other"}, ips=["10.0.1.2"], ports=[("pg", 6543, "TCP")]),
    pod("kube-system/dns", {"k8s-app": "kube-dns"}, ips=["10.0.2.1"]),
    pod("kube-system/agent", {}, ips=["192.168.1.1"], node="worker", host_network=True),
]
WORLD = [namespace("agents"), namespace("kube-system"), NODE, *PODS]
PORTS = (("TCP", 5432), ("TCP", 6543), ("TCP", 443), ("UDP", 53), ("SCTP", 5432))

POLICIES: dict[str, list[Body]] = {
    "none": [],
    "closed": [policy("agents/closed", policyTypes=["Ingress", "Egress"])],
    "names and blocks": [
        policy(
            "agents/out",
            podSelector=labelled(app="sandbox"),
            policyTypes=["Egress"],
            egress=[
                {"to": [{"podSelector": {}}], "ports": [{"port": "pg"}]},
                {"to": [block("10.0.0.0/16", "10.0.2.0/24")], "ports": [{"port": 443}]},
                {"to": [{"namespaceSelector": named("kube-system")}], "ports": [{"port": 53, "protocol": "UDP"}]},
            ],
        ),
        policy(
            "agents/in",
            podSelector=labelled(app="db"),
            ingress=[
                {"from": [{"podSelector": labelled(app="sandbox")}, block("10.9.0.0/16")], "ports": [{"port": "pg"}]}
            ],
        ),
    ],
    "administrators": [
        cluster_policy(
            "no-db",
            egress=[
                {"name": "a", "action": "Deny", "to": [{"networks": ["10.0.1.0/24"]}], "protocols": [{"tcp": {}}]},
                {"name": "b", "action": "Accept", "to": [{"namespaces": {}}]},
            ],
        ),
        policy("agents/closed", policyTypes=["Ingress", "Egress"]),
    ],
}


def seen(policies: list[Body], engine: str = "core") -> tuple[World, Matrix]:
    world = World.read([*WORLD, *policies])
    return world, matrix(world, [one for one in world.pods.values() if one.namespace == "agents"], engine)


@pytest.mark.parametrize("engine", ["core", "cilium"])
@pytest.mark.parametrize("case", POLICIES)
def test_a_cell_is_what_a_question_about_each_port_says(case: str, engine: str) -> None:
    world, found = seen(POLICIES[case], engine)
    cells = {(cell.row, cell.peer): cell for cell in found.cells}
    members = {name: group for group, names in places(found, world).items() for name in names}
    for here, there in itertools.product([one for one in members if one.startswith("agents/")], members):
        if here == there:
            continue
        cell = cells[members[here], members[there]]
        for side, ends in ((cell.egress, (here, there)), (cell.ingress, (there, here))):
            for protocol, port in PORTS:
                source, target = ({"pod": end} for end in ends)
                said = connects(world, source, target, port, protocol, engine)
                if opens(side.ports, protocol, port):
                    assert said, (ends, protocol, port, side)
                elif not opens(side.perhaps, protocol, port):
                    assert not said, (ends, protocol, port, side)


def places(found: Matrix, world: World) -> dict[str, list[str]]:
    """The pods behind each column, by what the rows say and, for other pods, by name."""
    known = {row.name: [str(one) for one in row.pods] for row in found.rows}
    others = [column.name for column in found.peers if column.kind == "pods" and column.name not in known]
    outside = sorted(str(one) for one in world.pods.values() if one.namespace != "agents")
    pairs = {
        "kube-system: k8s-app=kube-dns": ["kube-system/dns"],
        "kube-system: pods without labels": ["kube-system/agent"],
    }
    assert sorted(itertools.chain.from_iterable(pairs[name] for name in others)) == outside
    return {**known, **{name: pairs[name] for name in others}}


def opens(ports: str, protocol: str, port: int) -> bool:
    """Whether a port stands in the words about a set of ports."""
    if ports == "every port and protocol":
        return True
    for part in ports.split(", "):
        name, _unused, numbers = part.partition(" ")
        if name == protocol and not numbers:
            return True
        for span in numbers.split("/") if name == protocol else ():
            low, _unused, high = span.partition("-")
            if int(low) <= port <= int(high or low):
                return True
    return False


def test_pods_that_no_policy_tells_apart_are_one_group() -> None:
    _world, found = seen(POLICIES["closed"])
    assert sorted(len(row.pods) for row in found.rows) == [1, 1, 4]
    _world, found = seen([*POLICIES["closed"], policy("agents/a", podSelector=labelled(**{"made-up": "2"}))])
    # One of the four is under one policy more.
    assert sorted(len(row.pods) for row in found.rows) == [1, 1, 1, 3]


def test_addresses_tell_pods_apart_where_a_block_does() -> None:
    rule = {"from": [block("10.9.0.0/16")]}
    _world, found = seen([policy("agents/db", podSelector=labelled(app="db"), ingress=[rule])])
    assert sorted(len(row.pods) for row in found.rows) == [1, 1, 1, 3]
    assert len({row.name for row in found.rows}) == len(found.rows)


def test_evidence_names_policy_rule_peers_and_ports() -> None:
    _world, found = seen(POLICIES["names and blocks"])
    cell = next(one for one in found.cells if one.row == "agents: app=sandbox" and one.peer == "agents: app=db")
    assert (cell.egress.state, cell.egress.ports) == ("open", "TCP 5432")
    assert {(one.policy, one.rule, one.direction) for one in cell.egress.evidence} == {
        ("NetworkPolicy agents/out", 0, "egress"),
        ("NetworkPolicy agents/out", 1, "egress"),
        ("NetworkPolicy agents/in", 0, "ingress"),
    }
    assert "pods in namespace agents labelled app=sandbox" in {one.peers.split(";")[0] for one in cell.egress.evidence}
    assert cell.egress.closed_by == ("NetworkPolicy agents/out", "NetworkPolicy agents/in")


def test_what_no_policy_closes_says_so() -> None:
    _world, found = seen([])
    cell = next(one for one in found.cells if one.peer == "The internet")
    assert cell.egress.state == "open"
    assert [(one.policy, one.peers) for one in cell.egress.evidence] == [(None, "anything")]


def test_a_field_that_nobody_knows_is_perhaps() -> None:
    odd: dict[str, t.Any] = {"to": [{"planets": {}}]}
    _world, found = seen([policy("agents/odd", policyTypes=["Egress"], egress=[odd])])
    cell = next(one for one in found.cells if one.peer == "The internet")
    assert (cell.egress.state, cell.egress.ports, cell.egress.perhaps) == (
        "perhaps",
        "no port",
        "every port and protocol",
    )
    assert "unknown peer field" in str(cell.egress.evidence[0].reason)


def test_every_row_has_every_column_and_the_data_is_plain() -> None:
    _world, found = seen(POLICIES["names and blocks"])
    data = found.as_dict()
    names = [peer["name"] for peer in data["peers"]]
    assert [(cell["row"], cell["peer"]) for cell in data["cells"]] == [
        (row["name"], name) for row in data["rows"] for name in names
    ]
    assert {"The internet", "Private and special addresses", "Cloud metadata services"} < set(names)
