# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every core and administrators' case of the public suites, row by row."""

from __future__ import annotations

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World, connects
from ansible_collections.namzu.sandbox.tests.unit.boundary import cases

if cases.folder() is None:
    pytest.skip(f"no policy cases: set {cases.SHARED} to their folder", allow_module_level=True)

CASES = [case for family in ("core", "admin") for case in cases.load(family)]


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_of_a_public_suite_is_answered_as_its_source_says(case: cases.Case) -> None:
    world = World.read(case.objects)
    wrong = []
    for row in case.checks:
        reach = Reach.from_objects(world, pod=row["pod"], engine="core")
        if reach.allows(row["direction"], row["peer"], row["port"], row["protocol"]) != row["allowed"]:
            wrong.append(row)
    wrong += [
        row
        for row in case.connections
        if connects(world, row["from"], row["to"], row["port"], row["protocol"], "core") != row["allowed"]
    ]
    assert wrong == []


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.id)
def test_a_case_of_a_public_suite_holds_no_policy_that_is_refused_or_misread(case: cases.Case) -> None:
    world = World.read(case.objects)
    for name in world.pods:
        reach = Reach.from_objects(world, pod=name)
        assert reach.within("allow_all").holds
        assert "unknown" not in reach.describe()
