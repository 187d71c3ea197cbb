# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox_egress``: the same as a module and as an action, and what check mode and diff say."""

from __future__ import annotations

import re
import typing as t

import pytest

from ....faults import bounded
from ....faults.egress import ground as egress_ground
from ....faults.fake.cluster import FakeCluster
from ..playing import Result, Task, access, play

#: What no two runs have in common, and what Ansible adds to the result of a module.
OF_THE_RUN = {"uid", "invocation"}
INTERNET = {"kind": "public_internet"}


def sequence(cluster: FakeCluster) -> dict[str, Task]:
    def egress(**options: t.Any) -> Task:
        return {
            "namzu.sandbox.sandbox_egress": {**access(cluster), "name": egress_ground.HELD, **options},
            "diff": True,
        }

    return {
        "would set": {**egress(egress=INTERNET), "check_mode": True},
        "set": egress(egress=INTERNET),
        "set again": egress(egress=INTERNET),
        "change": egress(egress={**INTERNET, "except_cidrs": ["203.0.113.0/24"]}),
        "narrower than the template": egress(egress={"kind": "no_network"}),
        "without a request": egress(),
        "take away": egress(state="absent"),
    }


FAILED = {
    "narrower than the template": "boundary", "without a request": None,
}  # fmt: skip
CHANGED = {"would set", "set", "change", "take away"}


def comparable(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: comparable(inner) for key, inner in value.items() if key not in OF_THE_RUN}
    if isinstance(value, str):
        return re.sub("namzu-egress-[-0-9a-f]+", "namzu-egress-ID", value)
    return [comparable(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Result]]:
    found = {}
    for connection in ("local", "elsewhere"):
        with FakeCluster() as cluster:
            egress_ground.fence(bounded.set_up(cluster))
            with cluster.client() as client:
                egress_ground.hold(cluster, client)
            tasks = sequence(cluster)
            played = play(tmp_path_factory.mktemp(connection), list(tasks.values()), connection=connection)
            found[connection] = dict(zip(tasks, played.results, strict=True))
    return found


def test_module_and_action_return_the_same(results: dict[str, dict[str, Result]]) -> None:
    assert comparable(results["elsewhere"]) == comparable(results["local"])
    assert all("invocation" not in result for result in results["local"].values())


def test_tasks_say_whether_they_changed_and_why_they_failed(results: dict[str, dict[str, Result]]) -> None:
    here = results["local"]
    assert {name for name, result in here.items() if result["changed"]} == CHANGED
    assert {name: result.get("reason") for name, result in here.items() if result["failed"]} == FAILED


def test_diff_shows_the_policy_before_and_after(results: dict[str, dict[str, Result]]) -> None:
    here = results["local"]
    assert here["set"]["diff"]["before"] == {}
    assert (
        here["set"]["diff"]["after"]
        == here["change"]["diff"]["before"]
        == {
            "policy": here["set"]["policy"],
            "spec": here["set"]["diff"]["after"]["spec"],
        }
    )
    assert here["would set"]["diff"] == here["set"]["diff"]
    assert here["take away"]["diff"] == {"before": here["change"]["diff"]["after"], "after": {}}
    assert "diff" not in here["set again"]


def test_verdict_and_fence_are_told(results: dict[str, dict[str, Result]]) -> None:
    given = results["local"]["set"]
    assert given["verdict"]["holds"]
    assert given["policy"] in given["verdict"]["policies"]
    assert given["fence"] == {"policy": "ValidatingAdmissionPolicy namzu-fence-egress", "held": True}
