# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook ``recover``: it releases what matches, and its last line has the right numbers."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE
from .running import run


@pytest.mark.parametrize(
    ("count", "check", "line"),
    [
        (0, False, "No sandbox in team-a matches host=worker-7."),
        (1, False, "1 of 1 sandbox was released."),
        (2, False, "2 of 2 sandboxes were released."),
        (2, True, "2 of 2 sandboxes would be released."),
    ],
)
def test_what_matches_is_released_and_counted(tmp_path: pathlib.Path, count: int, check: bool, line: str) -> None:
    with FakeCluster() as cluster, cluster.client() as client:
        for number in range(count):
            acquire(client, cluster.request(name=f"lost-{number}", labels={"host": "worker-7"}))
        acquire(client, cluster.request(name="other"))
        given = {"recover_namespace": NAMESPACE, "recover_selector": "host=worker-7"}
        ran = run("namzu.sandbox.recover", tmp_path, cluster, check=check, **given)
        assert ran.code == 0, ran.output
        assert ran["Show what was released"]["msg"] == line
        left = [f"lost-{number}" for number in range(count)] if check else []
        assert cluster.claims() == [*left, "other"]


def test_a_selector_that_is_missing_is_refused(tmp_path: pathlib.Path) -> None:
    ran = run("namzu.sandbox.recover", tmp_path, recover_namespace=NAMESPACE, recover_selector=" ")
    assert (ran.code, len(ran.tasks)) == (2, 1)
