# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every row of the tables of small worlds, against the engines and against the brute-force readings."""

from __future__ import annotations

import ipaddress
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World

from .. import oracle
from ..cilium import oracle as cilium_oracle
from ..cilium.building import CLUSTER, SANDBOX
from ..objects_for_tests import Body, namespace, node, pod
from . import admin, cilium, core
from .table import Case, Row

NAMESPACES = {"red": {"team": "red"}, "blue": {"team": "blue"}, "kube-system": {}}
PODS: dict[str, tuple[dict[str, str], str, list[tuple[str, int, str]]]] = {
    "red/web": ({"app": "web"}, "10.0.1.1", [("web", 8080, "TCP"), ("names", 5353, "UDP")]),
    "red/db": ({"app": "db", "tier": "data"}, "10.0.1.2", [("web", 9090, "TCP")]),
    "blue/web": ({"app": "web"}, "10.0.2.1", []),
    "blue/db": ({"app": "db"}, "10.0.2.2", []),
    "kube-system/dns": ({"k8s-app": "kube-dns"}, "10.0.9.1", []),
}
SUBJECT = "red/web"
CORE_CLUSTER: list[Body] = [
    *(namespace(name, **labels) for name, labels in NAMESPACES.items()),
    *(pod(name, labels, ips=[ip], ports=ports) for name, (labels, ip, ports) in PODS.items()),
    node("node-1", "192.168.0.1"),
]
CORE = [(case, row) for table in (core.CASES, admin.CASES) for case in table for row in case.rows]
CILIUM = [(case, row) for case in cilium.CASES for row in case.rows]


def name_of(value: t.Any) -> str:
    if isinstance(value, Case):
        return value.name
    return f"{value.direction}-{value.peer}-{value.protocol}-{value.port}"


def test_the_tables_have_two_hundred_rows_each_with_a_rule_and_a_source() -> None:
    assert len(CORE) + len(CILIUM) >= 200
    assert all(case.rule.endswith(".") and case.source for case, _row in CORE + CILIUM)
    for table in (core.CASES, admin.CASES, cilium.CASES):
        assert len({case.name for case in table}) == len(table)


@pytest.mark.parametrize(("case", "row"), CORE, ids=name_of)
def test_a_row_of_core(case: Case, row: Row) -> None:
    peer = {"pod": row.peer} if row.peer in PODS else {"ip": row.peer}
    reach = Reach.from_objects([*CORE_CLUSTER, *case.policies], SUBJECT)
    assert reach.allows(row.direction, peer, row.port, row.protocol) is row.allowed, case.rule
    if case.brute:
        assert brute(case.policies, row) is row.allowed, case.rule


def brute(policies: list[Body], row: Row) -> bool:
    """The answer of the brute-force reading."""
    labels, _ip, ports = PODS[SUBJECT]
    subject = oracle.Subject("red", namespace_labels("red"), tuple(labels.items()), tuple(ports))
    peer = oracle.Peer(str(ipaddress.ip_address(row.peer))) if row.peer not in PODS else peer_of(row.peer)
    return oracle.allows(policies, subject, row.direction, peer, row.protocol, row.port)


def peer_of(name: str) -> oracle.Peer:
    labels, ip, ports = PODS[name]
    where = name.partition("/")[0]
    return oracle.Peer(ip, where, namespace_labels(where), tuple(labels.items()), tuple(ports))


def namespace_labels(name: str) -> tuple[tuple[str, str], ...]:
    return (("kubernetes.io/metadata.name", name), *NAMESPACES[name].items())


@pytest.mark.parametrize(("case", "row"), CILIUM, ids=name_of)
def test_a_row_of_cilium(case: Case, row: Row) -> None:
    reach = Reach.from_objects([*CLUSTER, *case.policies], SANDBOX, engine="cilium")
    peer = cilium_oracle.PEERS[row.peer][0]
    assert reach.allows(row.direction, peer, row.port, row.protocol) is row.allowed, case.rule
    if case.brute:
        found = cilium_oracle.allowed(case.policies, SANDBOX, row.direction, row.peer, row.port, row.protocol)
        assert found is row.allowed, case.rule


@pytest.mark.parametrize("case", core.CASES + admin.CASES, ids=name_of)
def test_every_policy_of_a_world_is_read_as_a_whole(case: Case) -> None:
    world = World.read([*CORE_CLUSTER, *case.policies])
    for name in world.pods:
        reach = Reach.from_objects(world, name)
        assert reach.within("allow_all").holds
        assert ("unknown" in reach.describe()) == ("planets" in str(case.policies) and name in reach.describe())
