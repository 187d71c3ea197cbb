# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Work grows with the number of policies and no faster, and the work of one pod serves the next."""

from __future__ import annotations

import sys
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.engines import core, flow
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import cnp, ports
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    block,
    cluster_policy,
    labelled,
    named,
    pod,
    policy,
)

DNS = {"namespaceSelector": named("kube-system"), "podSelector": labelled(**{"k8s-app": "kube-dns"})}


def policies(count: int, selector: t.Callable[[int], Body]) -> list[Body]:
    return [
        policy(
            f"agents/p-{number}",
            podSelector=selector(number),
            policyTypes=["Ingress", "Egress"],
            ingress=[{"from": [{"podSelector": labelled(role=f"r{number}")}], "ports": [{"port": 1024}]}],
            egress=[
                {"to": [DNS], "ports": [{"port": 53, "protocol": "UDP"}]},
                {"to": [block(f"93.{number % 250}.0.0/16", f"93.{number % 250}.1.0/24")], "ports": [{"port": 443}]},
            ],
        )
        for number in range(count)
    ]


def administrators_mix(count: int) -> list[Body]:
    """NetworkPolicies, and one ClusterNetworkPolicy for 50 of them."""
    above = [
        cluster_policy(
            f"c-{number}",
            priority=number,
            egress=[
                {"action": "Deny", "to": [{"networks": [f"10.{number % 250}.0.0/16"]}]},
                {"action": "Accept", "to": [{"networks": [f"93.{number % 250}.2.0/24"]}]},
            ],
            ingress=[{"action": "Deny", "from": [{"namespaces": labelled(team=f"t-{number}")}]}],
        )
        for number in range(count // 50)
    ]
    return [*policies(count - len(above), lambda _: labelled(app="sandbox")), *above]


def cilium_mix(count: int) -> list[Body]:
    """Half NetworkPolicies, half Cilium's."""
    own = [
        cnp(
            f"q-{number}",
            selector=labelled(app="sandbox"),
            egress=[
                {
                    "toCIDRSet": [{"cidr": f"93.{number % 250}.0.0/16", "except": [f"93.{number % 250}.1.0/24"]}],
                    "toPorts": ports("443/TCP"),
                }
            ],
            egressDeny=[{"toCIDR": [f"10.{number % 250}.0.0/16"]}],
            ingress=[{"fromEndpoints": [labelled(role=f"r{number}")], "toPorts": ports("1024/TCP")}],
        )
        for number in range(count // 2)
    ]
    return [*policies(count - len(own), lambda _: labelled(app="sandbox")), *own]


def sandboxes(count: int) -> list[Body]:
    return [pod(f"agents/s-{n}", {"app": "sandbox", "n": str(n)}, ips=[f"10.0.0.{n + 1}"]) for n in range(count)]


def verify(objects: list[Body], pods: int, engine: str = "core") -> World:
    world = World.read(objects)
    for number in range(pods):
        reach = Reach.from_objects(world, f"agents/s-{number}", engine)
        assert reach.within("public_internet").holds
        assert reach.ingress_verdict(1024).holds
    return world


def calls_of(work: t.Callable[[], object]) -> int:
    """How many function calls the work takes: a measure of time that no other process disturbs."""
    count = 0

    def tally(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        if event in {"call", "c_call"}:
            count += 1

    sys.setprofile(tally)
    try:
        work()
    finally:
        sys.setprofile(None)
    return count


@pytest.mark.parametrize(
    "selector",
    [
        lambda _: labelled(app="sandbox"),
        lambda number: labelled(n=str(number % 5)),
        lambda number: {"matchExpressions": [{"key": "n", "operator": "NotIn", "values": [str(number % 5)]}]},
    ],
    ids=["all select all", "each selects one", "each selects all but one"],
)
def test_work_is_linear_in_the_number_of_policies(selector: t.Callable[[int], Body]) -> None:
    half = [*sandboxes(5), *policies(400, selector)]
    full = [*sandboxes(5), *policies(800, selector)]
    assert calls_of(lambda: verify(full, 5)) / calls_of(lambda: verify(half, 5)) < 2.3


def test_work_is_linear_up_to_five_thousand_policies() -> None:
    def select(number: int) -> Body:
        return labelled(app="sandbox") if number % 10 == 0 else labelled(app=f"other-{number % 7}")

    half, full = [*sandboxes(2), *policies(2500, select)], [*sandboxes(2), *policies(5000, select)]
    assert calls_of(lambda: verify(full, 2)) / calls_of(lambda: verify(half, 2)) < 2.3


#: Mixes of policies, and the engine that judges them.
MIXES = {
    "NetworkPolicy": (lambda count: policies(count, lambda _: labelled(app="sandbox")), "core"),
    "ClusterNetworkPolicy": (administrators_mix, "core"),
    "Cilium": (cilium_mix, "cilium"),
}


@pytest.mark.parametrize("mix", MIXES)
def test_fifty_pods_under_the_same_policies_cost_little_more_than_one(mix: str) -> None:
    make, engine = MIXES[mix]
    objects = [*sandboxes(50), *make(400)]
    assert calls_of(lambda: verify(objects, 50, engine)) / calls_of(lambda: verify(objects, 1, engine)) < 2


@pytest.mark.parametrize("mix", MIXES)
def test_work_on_a_mix_is_linear_in_the_number_of_policies(mix: str) -> None:
    make, engine = MIXES[mix]
    half, full = [*sandboxes(5), *make(1000)], [*sandboxes(5), *make(2000)]
    assert calls_of(lambda: verify(full, 5, engine)) / calls_of(lambda: verify(half, 5, engine)) < 2.3


def test_each_policy_is_read_once_for_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    read: list[object] = []
    plain = core._rule

    def counted(*arguments: t.Any) -> t.Any:
        read.append(arguments[1])
        return plain(*arguments)

    monkeypatch.setattr(core, "_rule", counted)
    verify([*sandboxes(20), *policies(30, lambda _: {})], 20)
    assert len(read) == 30 * 3


def test_each_rule_is_judged_once_for_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    judged: list[object] = []
    plain = flow._allowed

    def counted(*arguments: t.Any) -> t.Any:
        judged.append(arguments[0])
        return plain(*arguments)

    monkeypatch.setattr(flow, "_allowed", counted)

    def all_but_one(number: int) -> Body:
        return {"matchExpressions": [{"key": "n", "operator": "NotIn", "values": [str(number % 20)]}]}

    verify([*sandboxes(20), *policies(30, all_but_one)], 20)
    assert len(judged) == 30 * 3


def test_policies_of_other_namespaces_cost_nothing() -> None:
    def work(others: int) -> int:
        elsewhere = [{**body, "metadata": {"name": body["metadata"]["name"], "namespace": "elsewhere"}}
                     for body in policies(others, lambda _: {})]  # fmt: skip
        world = World.read([*sandboxes(1), *policies(20, lambda _: {}), *elsewhere])
        return calls_of(lambda: Reach.from_objects(world, "agents/s-0").within("public_internet"))

    assert work(1000) < work(10) * 2 + 4000


def test_the_administrators_tiers_are_judged_once_for_all_pods(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where policies share a priority, which makes rules of its own for the order that is worse."""
    judged: list[object] = []
    plain = flow._ordered

    def counted(*arguments: t.Any) -> t.Any:
        judged.append(arguments[0])
        return plain(*arguments)

    monkeypatch.setattr(flow, "_ordered", counted)
    rules = [{"action": "Deny", "to": [{"networks": ["10.0.0.0/8"]}]}, {"action": "Accept", "to": [{"namespaces": {}}]}]
    inward = [{"action": "Deny", "from": [{"namespaces": {"matchLabels": {"team": "blue"}}}]}]
    shared = [cluster_policy(f"c-{number}", priority=7, egress=rules, ingress=inward) for number in range(3)]
    world = World.read([*sandboxes(20), *policies(30, lambda number: labelled(n=str(number % 20))), *shared])
    for number in range(20):
        reach = Reach.from_objects(world, f"agents/s-{number}")
        reach.within("public_internet")
        reach.ingress_verdict(1024)
    assert len(judged) == 2
