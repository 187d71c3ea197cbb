# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What Cilium's public suites say is allowed, against the Cilium engine."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, connects
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import World
from ansible_collections.namzu.sandbox.tests.unit.boundary import cases

CASES = [case for family in ("cilium", "core", "admin") for case in cases.load(family) if case.semantics == "cilium"]

if not CASES:
    pytest.skip(f"no policy cases: set {cases.SHARED} to their folder", allow_module_level=True)


def rows() -> t.Iterator[t.Any]:
    for case in CASES:
        world = World.read(case.objects)
        for number, row in enumerate(case.checks):
            yield pytest.param(world, row, id=f"{case.id}-check-{number}")
        for number, row in enumerate(case.connections):
            yield pytest.param(world, row, id=f"{case.id}-connection-{number}")


@pytest.mark.parametrize(("world", "row"), list(rows()))
def test_every_row_of_the_public_suites(world: World, row: dict[str, t.Any]) -> None:
    port = row.get("icmp_type") if row["port"] is None else row["port"]
    if "pod" in row:
        reach = Reach.from_objects(world, row["pod"], engine="cilium")
        allowed = reach.allows(row["direction"], row["peer"], port, row["protocol"], row.get("l7"))
    else:
        allowed = connects(world, row["from"], row["to"], port, row["protocol"], "cilium", row.get("l7"))
    assert allowed is row["allowed"], row
