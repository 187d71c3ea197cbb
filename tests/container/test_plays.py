# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Verbs, connection and demo on a real engine, in real plays."""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t
import uuid

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient

from .conftest import IMAGE, Way

Results = dict[str, t.Any]


class Play:
    """Runs plays with the engine in the environment."""

    def __init__(self, folder: pathlib.Path, docker: EngineClient) -> None:
        self.folder = folder
        self.engine = Way(docker, None, "auto")
        self._docker_host = docker.access.docker_host

    def __call__(self, *plays: t.Any, code: int = 0) -> Results:
        """The results of all tasks by host and name."""
        (self.folder / "play.yml").write_text(yaml.safe_dump(list(plays)))
        done = self.command(str(self.folder / "play.yml"), ANSIBLE_STDOUT_CALLBACK="ansible.posix.json")
        assert done.returncode == code, done.stdout + done.stderr
        found: Results = {}
        for play in json.loads(done.stdout[done.stdout.index("{") :])["plays"]:
            for task in play["tasks"]:
                for host, result in task["hosts"].items():
                    found[task["task"]["name"] if host == "localhost" else f"{host}: {task['task']['name']}"] = result
        return found

    def command(self, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
        kept = {name: value for name, value in os.environ.items() if not name.startswith("ANSIBLE_")}
        ours = {
            "ANSIBLE_HOME": str(self.folder / "home"),
            "ANSIBLE_NOCOLOR": "true",
            "DOCKER_HOST": self._docker_host,
            "NAMZU_TEST_IMAGE": IMAGE,
            "NAMZU_SANDBOX_BACKEND": "container",
            **environ,
        }
        return subprocess.run(
            [str(pathlib.Path(sys.executable).parent / "ansible-playbook"), *arguments],
            capture_output=True, text=True, env={**kept, **ours}, cwd=self.folder, timeout=300, check=False,
        )  # fmt: skip


@pytest.fixture
def play(docker: EngineClient, tmp_path: pathlib.Path) -> Play:
    return Play(tmp_path, docker)


def here(*tasks: t.Any) -> dict[str, t.Any]:
    return {"hosts": "localhost", "gather_facts": False, "tasks": list(tasks)}


def test_sandboxes_from_acquire_to_release(play: Play) -> None:
    name, job = f"play-{uuid.uuid4().hex[:8]}", uuid.uuid4().hex[:8]
    asked = {
        "image": IMAGE, "name": name, "count": 2, "labels": {"job": job}, "env": {"GIVEN": "1"}, "memory": "512m",
        "pids": 64, "cpus": 1, "ttl": "5m", "ready_timeout": "120s",
    }  # fmt: skip
    one = "{{ made.sandboxes[0] }}"
    results = play(
        here(
            {"name": "planned", "namzu.sandbox.sandbox": asked, "check_mode": True, "diff": True},
            {"name": "made", "namzu.sandbox.sandbox": asked, "register": "made"},
            {"name": "again", "namzu.sandbox.sandbox": asked},
            {
                "name": "host", "loop": "{{ made.sandboxes }}",
                "ansible.builtin.add_host": "{{ {'name': item.name, 'groups': 'boxes'} | combine(item.host_vars) }}",
            },
        ),
        {
            "hosts": "boxes",
            "tasks": [
                {"name": "env", "ansible.builtin.command": "env"},
                {"name": "copy", "ansible.builtin.copy": {"content": "hello", "dest": "file", "mode": "0600"}},
                {"name": "read", "ansible.builtin.slurp": {"src": "file"}},
            ],
        },
        here(
            {"name": "ran", "namzu.sandbox.sandbox_exec": {"sandbox": one, "command": "echo $GIVEN"}},
            {"name": "session",
             "namzu.sandbox.sandbox_session": {"sandbox": one, "session": "s", "command": "sleep 99"}},
            {"name": "sessions", "namzu.sandbox.sandbox_session_info": {"sandbox": one}},
            {"name": "planned lease", "namzu.sandbox.sandbox_lease": {"sandbox": one, "remaining": "1h"},
             "check_mode": True},
            {"name": "lease", "namzu.sandbox.sandbox_lease": {"sandbox": one, "remaining": "1h"}},
            {"name": "lease again", "namzu.sandbox.sandbox_lease": {"sandbox": one, "remaining": "30m"}},
            {"name": "listed", "namzu.sandbox.sandbox_info": {"label_selector": f"job={job}"}},
            {"name": "planned release", "namzu.sandbox.sandbox": {"sandbox": one, "state": "absent"},
             "check_mode": True},
            {"name": "released", "namzu.sandbox.sandbox": {"label_selector": f"job={job}", "state": "absent"}},
            {"name": "released again", "namzu.sandbox.sandbox": {"sandbox": one, "state": "absent"}},
        ),
    )  # fmt: skip
    names = [f"{name}-0", f"{name}-1"]
    assert results["planned"]["changed"]
    assert [one["name"] for one in results["planned"]["diff"]["after"]["sandboxes"]] == names
    assert (results["made"]["changed"], results["again"]["changed"]) == (True, False)
    assert [one["name"] for one in results["made"]["sandboxes"]] == names
    first = results["made"]["sandboxes"][0]
    assert first["verdict"]["confinement"]["limits"] == {"cpus": 1.0, "memory": 512 * 1024**2, "pids": 64}
    assert first["verdict"]["egress"]["holds"]
    assert first["uid"] == results["again"]["sandboxes"][0]["uid"]
    for each in names:
        assert "GIVEN=1" in results[f"{each}: env"]["stdout"]
        assert results[f"{each}: copy"]["changed"]
        assert results[f"{each}: read"]["content"] == "aGVsbG8="
    assert results["ran"]["stdout"] == "1\n"
    assert [one["name"] for one in results["sessions"]["sessions"]] == ["s"]
    changes = [results[task]["changed"] for task in ("planned lease", "lease", "lease again")]
    assert changes == [True, True, False]
    assert [one["name"] for one in results["listed"]["sandboxes"]] == names
    assert results["listed"]["sandboxes"][0]["lease_left"] > 3000
    assert results["planned release"]["changed"]
    assert results["released"]["released"] == names
    assert not results["released again"]["changed"]
    assert not {*names} & play.engine.names()


def test_one_that_fails_releases_all_or_keeps_the_others(play: Play) -> None:
    name = f"play-{uuid.uuid4().hex[:8]}"
    asked = {"image": IMAGE, "name": name, "count": 3, "ttl": "5m", "ready_timeout": "120s"}
    other = {"image": IMAGE, "name": f"{name}-1", "ttl": "5m", "pids": 99, "ready_timeout": "120s"}
    results = play(
        here(
            {"name": "other", "namzu.sandbox.sandbox": other},
            {"name": "all", "namzu.sandbox.sandbox": asked, "ignore_errors": True},
            {"name": "left", "namzu.sandbox.sandbox_info": {}},
            {"name": "kept", "namzu.sandbox.sandbox": {**asked, "on_failure": "keep"}, "ignore_errors": True},
            {"name": "end", "namzu.sandbox.sandbox": {"state": "absent", "names": [f"{name}-{n}" for n in range(3)]}},
        )
    )
    assert results["all"]["failed"]
    assert {one["name"]: one["reason"] for one in results["all"]["failures"]}[f"{name}-1"] == "conflict"
    assert [one["name"] for one in results["left"]["sandboxes"] if one["name"].startswith(name)] == [f"{name}-1"]
    assert [one["name"] for one in results["kept"]["sandboxes"]] == [f"{name}-0", f"{name}-2"]
    assert [one["name"] for one in results["kept"]["failures"]] == [f"{name}-1"]
    assert sorted(results["end"]["released"]) == [f"{name}-{n}" for n in range(3)]


def test_another_sandbox_of_the_name_is_left_alone(play: Play) -> None:
    name = f"play-{uuid.uuid4().hex[:8]}"
    asked = {"image": IMAGE, "name": name, "ttl": "5m", "ready_timeout": "120s"}
    first = "{{ first.sandbox }}"
    results = play(
        here(
            {"name": "first", "namzu.sandbox.sandbox": asked, "register": "first"},
            {"name": "gone", "namzu.sandbox.sandbox": {"state": "absent", "sandbox": first}},
            {"name": "second", "namzu.sandbox.sandbox": asked, "register": "second"},
            {"name": "release", "namzu.sandbox.sandbox": {"state": "absent", "sandbox": first}, "ignore_errors": True},
            {"name": "exec", "namzu.sandbox.sandbox_exec": {"sandbox": first, "command": "id"}, "ignore_errors": True},
            {"name": "lease", "namzu.sandbox.sandbox_lease": {"sandbox": first, "remaining": "1h"},
             "ignore_errors": True},
            {"name": "end", "namzu.sandbox.sandbox": {"state": "absent", "sandbox": "{{ second.sandbox }}"}},
        )
    )  # fmt: skip
    for task in ("release", "exec", "lease"):
        assert results[task]["failed"], task
    assert results["release"]["reason"] == "replaced"
    assert results["end"]["changed"]


def test_inventory_and_lookup_find_the_sandboxes_of_the_engine(play: Play) -> None:
    with play.engine.sandbox(labels={"team": "search"}) as sandbox:
        (play.folder / "engine.sandboxes.yml").write_text(
            yaml.safe_dump({"plugin": "namzu.sandbox.sandboxes", "label_selector": "team=search"})
        )
        (play.folder / "hosts.yml").write_text(
            yaml.safe_dump([
                {"hosts": "all", "gather_facts": False, "tasks": [
                    {"name": "id", "ansible.builtin.command": "id -u"},
                    {"name": "looked up", "ansible.builtin.assert": {"that": [
                        "found.uid == sandbox_uid",
                        "found is namzu.sandbox.ready",
                        "found is namzu.sandbox.expiring(9999)",
                    ]}, "vars": {"found": "{{ lookup('namzu.sandbox.sandbox', inventory_hostname) }}"}},
                ]}
            ])
        )  # fmt: skip
        inventory, book = str(play.folder / "engine.sandboxes.yml"), str(play.folder / "hosts.yml")
        done = play.command("-i", inventory, book)
        assert done.returncode == 0, done.stdout + done.stderr
        assert f"changed: [{sandbox.name}]" in done.stdout


def test_the_demo_shows_a_sandbox_and_leaves_none(play: Play) -> None:
    before = play.engine.names()
    done = play.command("namzu.sandbox.demo")
    assert done.returncode == 0, done.stdout + done.stderr
    assert "Egress stays within: no_network (no network is attached)" in done.stdout
    last = done.stdout.partition("PLAY RECAP")[0].rpartition("TASK [")[2]
    assert "uid 1000" in last
    assert "May I become root?                 no" in last
    assert "78498" in last
    assert play.engine.names() == before


def test_workspaces_are_refused_on_this_backend(play: Play) -> None:
    results = play(
        here(
            {"name": "workspace", "namzu.sandbox.workspace": {"workspace_id": "a", "template": "t"},
             "ignore_errors": True},
            {"name": "pool", "namzu.sandbox.sandbox": {"warm_pool": "python"}, "ignore_errors": True},
        )
    )  # fmt: skip
    assert "backend is container" in results["workspace"]["msg"]
    assert results["pool"]["msg"].startswith("warm_pool cannot be set on backend container")
