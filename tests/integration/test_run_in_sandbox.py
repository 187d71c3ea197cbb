# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The playbook that runs somebody's tasks in a sandbox of its own, and the inventory that would have shown it."""

from __future__ import annotations

import pathlib

import pytest
import yaml

from .conftest import ADDRESS, Body, Kube, Play, Pool

pytestmark = pytest.mark.each_ansible

CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"


def variables(pool: Pool, tasks: pathlib.Path) -> Body:
    return {
        "run_namespace": pool.namespace,
        "run_warm_pool": pool.name,
        "run_agent_address": ADDRESS,
        "run_tasks": str(tasks),
    }


@pytest.mark.parametrize(("command", "code"), [("echo 42", 0), ("exit 7", 2)], ids=["work succeeds", "work fails"])
def test_tasks_run_in_a_sandbox_that_is_given_back_however_they_end(
    play: Play, pool: Pool, kube: Kube, tmp_path: pathlib.Path, command: str, code: int
) -> None:
    tasks = tmp_path / "tasks.yml"
    tasks.write_text(yaml.safe_dump([{"name": "work", "ansible.builtin.raw": command}]))
    done = play.playbook("namzu.sandbox.run_in_sandbox", variables=variables(pool, tasks), may_fail=True)
    assert done.rc == code, done.output
    assert done["work"]["rc"] == (0 if code == 0 else 7)
    name = done["Acquire a sandbox"]["sandbox"]["name"]
    assert done["Release the sandbox"]["released"] == [name]
    kube.until_gone(f"{CLAIMS.format(pool.namespace)}/{name}")


def test_tasks_that_are_not_there_are_refused_before_anything_is_acquired(
    play: Play, pool: Pool, tmp_path: pathlib.Path
) -> None:
    missing = variables(pool, tmp_path / "missing.yml")
    done = play.playbook("namzu.sandbox.run_in_sandbox", variables=missing, may_fail=True)
    assert done.rc == 2, done.output
    assert [name for name, _result in done.tasks] == ["Check the variables"]
    assert "path of an existing file" in done["Check the variables"]["msg"]


def test_a_sandbox_that_is_lost_in_the_middle_is_given_back_and_the_run_fails(
    play: Play, pool: Pool, kube: Kube, tmp_path: pathlib.Path
) -> None:
    lost = {"name": "lose it", "ansible.builtin.raw": "true", "vars": {"ansible_sandbox_uid": "another"}}
    tasks = tmp_path / "tasks.yml"
    tasks.write_text(yaml.safe_dump([lost]))
    done = play.playbook("namzu.sandbox.run_in_sandbox", variables=variables(pool, tasks), may_fail=True)
    assert done.rc == 4, done.output
    name = done["Acquire a sandbox"]["sandbox"]["name"]
    kube.until_gone(f"{CLAIMS.format(pool.namespace)}/{name}")


def test_a_host_of_the_inventory_can_be_worked_on(play: Play, pool: Pool, tmp_path: pathlib.Path) -> None:
    options = {"warm_pool": pool.name, "name": "listed", "ttl": "10m", "labels": {"job": "listed"}, **pool.access}
    play([{"namzu.sandbox.sandbox": options}])
    try:
        inventory = tmp_path / "job.sandboxes.yml"
        config = {"plugin": "namzu.sandbox.sandboxes", "label_selector": "job=listed", **pool.access}
        inventory.write_text(yaml.safe_dump(config))
        book = tmp_path / "play.yml"
        task = {"name": "work", "ansible.builtin.raw": "echo {{ sandbox_warm_pool }}"}
        book.write_text(yaml.safe_dump([{"hosts": "listed", "gather_facts": False, "tasks": [task]}]))
        done = play.playbook(str(book), environment={"ANSIBLE_INVENTORY": str(inventory)})
        assert done["work"]["stdout"].strip() == pool.name
    finally:
        play([{"namzu.sandbox.sandbox": {"name": "listed", "state": "absent", "namespace": pool.namespace}}])
