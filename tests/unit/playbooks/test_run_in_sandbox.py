# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook ``run_in_sandbox``: its checks, and what becomes of the sandbox when it is interrupted."""

from __future__ import annotations

import os
import pathlib
import signal
import subprocess

import pytest
import yaml

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE, POOL
from ..front.kept_plays import APPEAR, ENABLED, descendants, read, until
from .running import command, environment, run

BOOK = "namzu.sandbox.run_in_sandbox"
CHECK = "Check the variables"


def test_a_relative_file_of_tasks_is_found_where_ansible_playbook_was_started(tmp_path: pathlib.Path) -> None:
    (tmp_path / "tasks.yml").write_text("[]")
    # It cannot acquire anything here: no cluster.
    ran = run(BOOK, tmp_path, run_warm_pool="python", run_tasks="tasks.yml")
    assert ran.names == [CHECK, "Acquire a sandbox"]


@pytest.mark.parametrize(
    "given",
    [
        {"run_tasks": "missing.yml", "run_warm_pool": "python"},
        {"run_role": "a.b.c", "run_tasks": "/dev/null", "run_warm_pool": "python"},
        {"run_role": "a.b.c"},
        {"run_warm_pool": "python"},
    ],
    ids=["no such file", "two kinds of work", "no pool", "no work"],
)
def test_what_cannot_run_is_refused_before_anything_is_acquired(tmp_path: pathlib.Path, given: dict[str, str]) -> None:
    ran = run(BOOK, tmp_path, **given)
    assert (ran.code, ran.names) == (2, [CHECK])


@pytest.mark.parametrize("callback", [True, False], ids=["with lease_keeper", "without"])
def test_an_interrupted_run_releases_its_sandbox_where_the_lease_keeper_is_active(
    tmp_path: pathlib.Path, callback: bool
) -> None:
    wait = {"ansible.builtin.command": {"argv": ["sleep", "600"]}, "delegate_to": "localhost", "connection": "local"}
    (tmp_path / "tasks.yml").write_text(yaml.safe_dump([wait]))
    with FakeCluster() as cluster:
        variables = {
            "run_namespace": NAMESPACE,
            "run_warm_pool": POOL,
            "run_agent_address": "pod_ip",
            "run_agent_port": cluster.agent.port,
            "run_tasks": "tasks.yml",
        }
        process = subprocess.Popen(
            command(BOOK, variables),
            cwd=tmp_path,
            env=environment(tmp_path, cluster, **(ENABLED if callback else {})),
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
            start_new_session=True,
        )
        try:
            until(lambda: any(b"sleep" in read(pid, "cmdline") for pid in descendants(process.pid)))
            (claim,) = cluster.claims()
            os.killpg(process.pid, signal.SIGINT)
            _output, errors = process.communicate(timeout=APPEAR)
        finally:
            process.kill()
            process.wait()
        lines = [line for line in errors.splitlines() if line.startswith("lease_keeper:")]
        if callback:
            until(lambda: cluster.claims() == [], 5.0)
            assert lines == ["lease_keeper: 1 sandbox held, 0 renewals, 1 released at the end"]
        else:
            assert (cluster.claims(), lines) == ([claim], [])
