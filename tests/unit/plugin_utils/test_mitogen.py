# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Under a strategy of mitogen the connection local has another name; the verbs run on the controller all the same."""

from __future__ import annotations

import importlib.util
import pathlib

import pytest

from ...faults.fake.cluster import FakeCluster
from ..front.kept_plays import ran
from ..front.playing import Task, present

pytestmark = pytest.mark.skipif(
    importlib.util.find_spec("ansible_mitogen") is None, reason="mitogen is installed with the newest Ansible only"
)


def environ() -> dict[str, str]:
    spec = importlib.util.find_spec("ansible_mitogen")
    assert spec is not None
    assert spec.origin is not None
    plugins = pathlib.Path(spec.origin).parent / "plugins" / "strategy"
    return {"ANSIBLE_STRATEGY": "mitogen_linear", "ANSIBLE_STRATEGY_PLUGINS": str(plugins)}


def acquire(cluster: FakeCluster, name: str, **options: object) -> Task:
    return {"namzu.sandbox.sandbox": present(cluster, name=name, ingress="unverified", **options)}


def test_verb_runs_on_the_controller_and_the_keeper_releases_at_the_end(tmp_path: pathlib.Path) -> None:
    with FakeCluster() as cluster:
        tasks = [
            {**acquire(cluster, "marked", release_on_end=True), "register": "made"},
            acquire(cluster, "plain"),
            {"ansible.builtin.assert": {"that": ["'invocation' not in made"]}},
        ]
        over = ran(tmp_path, cluster, tasks, environ())
    assert over.code == 0, over.output + over.errors
    assert over.claims == ["plain"]
