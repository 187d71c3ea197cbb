# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the boundary library says of pods, ports and the node is what real connections do.

For each set of policies every pod tries every other pod and the node, and the node every pod, on TCP and UDP ports, and
all answers must become those that the library gives. Where the firewall is known to deviate from the API's
specification (see kube_router.py), its own answer is expected, so that each other difference is a fault.
"""

from __future__ import annotations

import ipaddress
import json
import os
from collections.abc import Iterable, Mapping, Sequence

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import World, connects
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Deadline
from tests.truth.kube_router import DEVIATIONS, Deviation, KubeRouter
from tests.truth.policies import policy_set
from tests.truth.stage import CELLS, CONVERGE_SECONDS, PEERS, Body, Cell, Stage

pytestmark = pytest.mark.cluster

#: NAMZU_TRUTH_SETS tries more of them, by hand.
SETS = int(os.environ.get("NAMZU_TRUTH_SETS") or 64)
#: Deviations must not explain away what the library says: of all answers of all sets at most this share may be theirs.
MOST_DEVIATING = 0.05

Answers = dict[Cell, bool]


class Tally:
    """What all sets together were about."""

    def __init__(self) -> None:
        self.sets = self.open = self.closed = self.deviating = 0

    def add(self, specified: Answers, enforced: Answers) -> None:
        """Count one set's answers."""
        self.sets += 1
        self.open += sum(specified.values())
        self.closed += len(specified) - sum(specified.values())
        self.deviating += sum(specified[cell] != enforced[cell] for cell in CELLS)


TALLY = Tally()


@pytest.mark.parametrize("number", range(SETS))
def test_connections_are_as_computed(stage: Stage, number: int) -> None:
    policies = policy_set(number, {name: stage.namespace(name) for name in ("red", "blue")}, stage.addresses)
    specified, enforced = answers(stage, policies)
    stage.apply(policies)
    assert_seen(stage, policies, enforced)
    TALLY.add(specified, enforced)


def test_without_policies_everything_is_open(stage: Stage) -> None:
    specified, _enforced = answers(stage, [])
    assert all(specified.values())
    stage.apply([])
    assert_seen(stage, [], specified)


@pytest.mark.parametrize("deviation", DEVIATIONS, ids=lambda deviation: deviation.name)
def test_kube_router_deviates_as_described(stage: Stage, deviation: Deviation) -> None:
    policy = {
        "apiVersion": "networking.k8s.io/v1",
        "kind": "NetworkPolicy",
        "metadata": {"name": "deviation", "namespace": stage.namespace("red")},
        "spec": rendered(deviation.spec, stage.addresses),
    }
    specified, enforced = answers(stage, [policy])
    assert {cell: enforced[cell] for cell in deviation.cells} == deviation.cells
    assert {cell: not specified[cell] for cell in deviation.cells} == deviation.cells
    stage.apply([policy])
    assert_seen(stage, [policy], enforced)


def test_the_sets_close_and_open_and_deviations_explain_little() -> None:
    if TALLY.sets < SETS:
        pytest.skip("judges a run of all sets")
    asked = TALLY.open + TALLY.closed
    assert min(TALLY.open, TALLY.closed) > asked / 5
    assert TALLY.deviating < asked * MOST_DEVIATING


def answers(stage: Stage, policies: Sequence[Body]) -> tuple[Answers, Answers]:
    """What the library says of every cell, and what kube-router makes of the policies."""
    pods = {name: stage.pod(name) for name in PEERS}
    world = World.read([*stage.objects, *policies])
    specified = {
        cell: connects(
            world, {"pod": pods[cell.source]}, {"pod": pods[cell.destination]}, cell.port, cell.protocol, "core"
        )
        for cell in CELLS
    }
    firewall = KubeRouter(stage.objects, policies, pods)
    return specified, {cell: firewall.connects(cell) for cell in CELLS}


def assert_seen(stage: Stage, policies: Sequence[Body], expected: Mapping[Cell, bool]) -> None:
    """Connections become as expected, or the test fails with each that did not."""
    deadline = Deadline(CONVERGE_SECONDS, SYSTEM_CLOCK)
    while wrong := [cell for cell, seen in stage.connections().items() if seen != expected[cell]]:
        if deadline.expired:
            pytest.fail(f"{mismatches(wrong, expected)}\n{yaml.safe_dump_all(policies)}{stage.addresses}")


def mismatches(wrong: Iterable[Cell], expected: Mapping[Cell, bool]) -> str:
    """One line a cell."""
    word = {True: "open", False: "closed"}
    return "\n".join(f"{cell}: expected {word[expected[cell]]}, seen {word[not expected[cell]]}" for cell in wrong)


def rendered(spec: Body, addresses: Mapping[str, str]) -> Body:
    """The policy with addresses in the place of names, and blocks that begin where their length says."""

    def block(text: str) -> str:
        return str(ipaddress.ip_network(text.format(**addresses), strict=False))

    def walk(value: object) -> object:
        if isinstance(value, dict):
            return {key: walk(item) for key, item in value.items()}
        if isinstance(value, list):
            return [walk(item) for item in value]
        return block(value) if isinstance(value, str) and "/" in value else value

    return json.loads(json.dumps(walk(spec)))
