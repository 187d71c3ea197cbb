# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What holds for every set of Cilium's policies: the engine against a second reading, and what must never widen."""

from __future__ import annotations

import copy
import typing as t

from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import World
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium import oracle
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import (
    CLUSTER,
    SANDBOX,
    Body,
    ccnp,
    cnp,
    ports,
)

DIRECTIONS = ("egress", "ingress")
SOME = settings(max_examples=80, deadline=None)


def points() -> t.Iterator[tuple[str, str, int, str]]:
    for direction in DIRECTIONS:
        for peer in oracle.PEERS:
            for port, protocol in oracle.PORTS:
                if protocol != "ICMP" or ":" not in peer:
                    yield direction, peer, port, protocol


def open_points(policies: list[Body], pod: str = SANDBOX) -> set[tuple[str, str, int, str]]:
    reach = Reach.from_objects([*CLUSTER, *policies], pod, engine="cilium")
    return {
        point
        for point in points()
        if point[1] != pod and reach.allows(point[0], oracle.PEERS[point[1]][0], point[2], point[3])
    }


@SOME
@given(policies=oracle.POLICIES)
def test_the_engine_agrees_with_a_reading_identity_by_identity(policies: list[Body]) -> None:
    world = World.read([*CLUSTER, *policies])
    for pod in oracle.PODS:
        reach = Reach.from_objects(world, pod, engine="cilium")
        for direction, peer, port, protocol in points():
            if peer != pod:
                expected = oracle.allowed(policies, pod, direction, peer, port, protocol)
                found = reach.allows(direction, oracle.PEERS[peer][0], port, protocol)
                assert found is expected, (pod, direction, peer, port, protocol)


@SOME
@given(policies=oracle.POLICIES)
def test_a_verdict_agrees_with_single_decisions(policies: list[Body]) -> None:
    reach = Reach.from_objects([*CLUSTER, *policies], SANDBOX, engine="cilium")
    verdict = reach.within("no_network")
    some = any(
        oracle.allowed(policies, SANDBOX, "egress", peer, port, protocol)
        for direction, peer, port, protocol in points()
        if direction == "egress" and peer != SANDBOX
    )
    assert not (some and verdict.holds)
    for finding in verdict.findings:
        # An example may be a node's address, and which node is the pod's own is no part of it.
        if finding.address is not None and not finding.address.startswith("192.168.") and "node" not in finding.example:
            assert reach.allows("egress", {"ip": finding.address}, finding.port, finding.protocol), finding
    assert reach.describe()


@SOME
@given(policies=oracle.POLICIES, more=oracle.POLICIES)
def test_a_deny_never_widens(policies: list[Body], more: list[Body]) -> None:
    denying = [copy.deepcopy(policy) for policy in more]
    for number, policy in enumerate(denying):
        policy["metadata"]["name"] = f"deny{number}"
        for name in ("egress", "ingress"):
            rules = policy["spec"].pop(name, [])
            policy["spec"].setdefault(name + "Deny", []).extend(rules)
    assert open_points([*policies, *denying]) <= open_points(policies)


@SOME
@given(policies=oracle.POLICIES, more=oracle.POLICIES)
def test_more_allows_never_close_what_allows_had_opened(policies: list[Body], more: list[Body]) -> None:
    added = [copy.deepcopy(policy) for policy in more]
    for number, policy in enumerate(added):
        policy["metadata"]["name"] = f"more{number}"
        policy["spec"].pop("egressDeny", None)
        policy["spec"].pop("ingressDeny", None)
        policy["spec"].setdefault("egress", [{}])
    close = cnp("close", egress=[{}], ingress=[{}])
    assert open_points([close, *policies]) <= open_points([close, *policies, *added])


LIMITS = st.sampled_from(
    [
        {"rules": {"http": [{"method": "GET", "path": "/public"}]}},
        {"rules": {"http": [{}]}},
        {"serverNames": ["pypi.org"]},
    ]
)


@SOME
@given(policies=oracle.POLICIES, limit=LIMITS, port=st.sampled_from(["80/TCP", "443/TCP"]))
def test_a_rule_above_the_port_never_widens_the_port(policies: list[Body], limit: Body, port: str) -> None:
    plain = ccnp("limited", egress=[{"toPorts": ports(port)}], ingress=[{"toPorts": ports(port)}])
    limited = ccnp("limited", egress=[{"toPorts": ports(port, **limit)}], ingress=[{"toPorts": ports(port)}])
    assert open_points([*policies, limited]) == open_points([*policies, plain])
    both = Reach.from_objects([*CLUSTER, *policies, limited], SANDBOX, engine="cilium")
    alone = Reach.from_objects([*CLUSTER, *policies, plain], SANDBOX, engine="cilium")
    for peer, _unused in oracle.PEERS.values():
        for l7 in ({"http": {"method": "GET", "path": "/x"}}, {"sni": "evil.example"}):
            if both.allows("egress", peer, 443, "TCP", l7):
                assert alone.allows("egress", peer, 443, "TCP", l7)


@SOME
@given(policies=oracle.POLICIES)
def test_the_order_of_policies_does_not_count(policies: list[Body]) -> None:
    assert open_points(policies) == open_points(policies[::-1])
