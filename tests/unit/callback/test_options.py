# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the lease keeper: each by ansible.cfg, by the environment and by a variable of a play."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ...faults.fake.cluster import FakeCluster
from ..front.kept_plays import book, started
from ..front.playing import Task, present

#: Loads the callback as ansible-playbook does, lets it see a play, and prints its options and what the keeper was told.
PROGRAM = """
import json, sys
from ansible.inventory.manager import InventoryManager
from ansible.parsing.dataloader import DataLoader
from ansible.playbook.play import Play
from ansible.plugins.loader import callback_loader, init_plugin_loader
from ansible.vars.manager import VariableManager

init_plugin_loader()
callback = callback_loader.get("namzu.sandbox.lease_keeper")
callback.set_options()
callback.v2_playbook_on_start(None)
loader = DataLoader()
variables = VariableManager(loader, InventoryManager(loader, sources="localhost,"))
play = {"hosts": "localhost", "gather_facts": False, "vars": json.loads(sys.argv[1]), "tasks": []}
callback.v2_playbook_on_play_start(Play.load(play, variable_manager=variables, loader=loader))
found = {name: callback.get_option(name) for name in ("renew", "report", "end_timeout")}
link, end = callback._link, callback._link.end
link.end = lambda seconds: found.update(waits=seconds) or end(seconds)
callback.v2_playbook_on_stats(None)
print(json.dumps({**found, "renews": link.renew}))
"""

GIVEN = {"renew": False, "report": "problems", "end_timeout": 0.5}
OTHER = {"renew": True, "report": "nothing", "end_timeout": 4.0}


def seen(
    folder: pathlib.Path,
    config: dict[str, t.Any] | None = None,
    environment: dict[str, t.Any] | None = None,
    variables: dict[str, t.Any] | None = None,
) -> dict[str, t.Any]:
    lines = ["[namzu_lease_keeper]", *(f"{name} = {value}" for name, value in (config or {}).items())]
    (folder / "ansible.cfg").write_text("\n".join(lines))
    environ = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "NAMZU_"))}
    environ |= {f"NAMZU_LEASE_KEEPER_{name.upper()}": str(value) for name, value in (environment or {}).items()}
    environ |= {"ANSIBLE_CONFIG": str(folder / "ansible.cfg"), "ANSIBLE_HOME": str(folder / "home")}
    named = json.dumps({f"namzu_lease_keeper_{name}": value for name, value in (variables or {}).items()})
    command = [sys.executable, "-c", PROGRAM, named]
    done = subprocess.run(command, env=environ, cwd=folder, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, done.stderr
    found: dict[str, t.Any] = json.loads(done.stdout)
    assert found.pop("renews") == found["renew"], "the keeper is told what the option says"
    assert ("end_timeout is 0 to 5 s; 60 counts as 5." in done.stderr) == (found["end_timeout"] == 60.0)
    assert found.pop("waits") == min(found["end_timeout"], 5.0), "nothing holds up the end for longer than 5 s"
    return found


@pytest.mark.parametrize(
    "given",
    [{"config": GIVEN}, {"config": OTHER, "environment": GIVEN}, {"environment": OTHER, "variables": GIVEN}],
    ids=["ansible.cfg", "environment", "variables of a play"],
)
def test_each_option_comes_by_each_way_and_the_nearer_one_counts(
    tmp_path: pathlib.Path, given: dict[str, dict[str, t.Any]]
) -> None:
    assert seen(tmp_path, **given) == GIVEN


def test_without_a_word_all_is_renewed_and_said_and_a_longer_end_is_none(tmp_path: pathlib.Path) -> None:
    assert seen(tmp_path, environment={"end_timeout": 60}) == {"renew": True, "report": "all", "end_timeout": 60.0}


def end_of(cluster: FakeCluster, name: str) -> str:
    return str(cluster.store.get(cluster.key("sandboxclaims", name))["spec"]["lifecycle"]["shutdownTime"])


def renewed(cluster: FakeCluster, name: str) -> None:
    """Wait until the end of a lease has been put off."""
    with cluster.store.changed:
        there = cluster.store.changed.wait_for(lambda: name in cluster.claims(), 60.0)
        assert there, f"{name} was not acquired"
        before = end_of(cluster, name)
        assert cluster.store.changed.wait_for(lambda: end_of(cluster, name) != before, 60.0), f"{name} was not renewed"


def test_variable_of_a_play_decides_what_that_play_acquires_is_renewed(tmp_path: pathlib.Path) -> None:
    """The first lease would be due before the second one is, which is renewed."""

    def acquire(name: str, ttl: str) -> Task:
        return {"namzu.sandbox.sandbox": present(cluster, name=name, ttl=ttl, ingress="unverified")}

    with FakeCluster() as cluster:
        earlier = book([acquire("left-alone", "10s")], namzu_lease_keeper_renew=False)
        with started(tmp_path, [acquire("kept", "13s")], earlier=[earlier], namzu_lease_keeper_renew=True):
            with cluster.store.changed:
                assert cluster.store.changed.wait_for(lambda: "left-alone" in cluster.claims(), 60.0)
                before = end_of(cluster, "left-alone")
            renewed(cluster, "kept")
            assert end_of(cluster, "left-alone") == before
