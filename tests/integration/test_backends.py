# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One play on both backends: only the source of the sandbox differs, and the results have the same keys."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.api import Sandbox

from ..container.conftest import docker_host  # noqa: F401 - a fixture  # pylint: disable=unused-import
from .conftest import Body, Play, Pool

PLAY: list[Body] = [
    {"name": "acquire", "namzu.sandbox.sandbox": {"ttl": "10m", "egress": "no_network"}, "register": "acquired"},
    {
        "name": "run",
        "namzu.sandbox.sandbox_exec": {"sandbox": "{{ acquired.sandbox }}", "argv": ["python3", "-c", "print(6 * 7)"]},
    },
    {
        "name": "fail",
        "namzu.sandbox.sandbox_exec": {"sandbox": "{{ acquired.sandbox }}", "command": "echo no >&2; exit 3"},
        "ignore_errors": True,
    },
    {
        "name": "lease",
        "namzu.sandbox.sandbox_lease": {"sandbox": "{{ acquired.sandbox }}", "remaining": "20m"},
    },
    {
        "name": "session",
        "namzu.sandbox.sandbox_session": {"sandbox": "{{ acquired.sandbox }}", "session": "s", "command": "sleep 99"},
    },
    {"name": "sessions", "namzu.sandbox.sandbox_session_info": {"sandbox": "{{ acquired.sandbox }}"}},
    {"name": "list", "namzu.sandbox.sandbox_info": {"name": "{{ acquired.sandbox.name }}"}},
    {
        "name": "add",
        "ansible.builtin.add_host": "{{ {'name': 'box'} | combine(acquired.sandbox.host_vars) }}",
        "changed_when": False,
    },
    {"name": "host", "ansible.builtin.command": "id -u", "delegate_to": "box"},
    {
        "name": "release",
        "namzu.sandbox.sandbox": {"sandbox": "{{ acquired.sandbox }}", "state": "absent", "wait": True},
    },
]


def transfers(folder: pathlib.Path) -> list[Body]:
    """Copies of a folder of 50 files into the sandbox and back."""
    box = {"sandbox": "{{ acquired.sandbox }}"}
    upload = {**box, "src": str(folder / "source"), "dest": "tree", "delete": True}
    count = {**box, "argv": ["python3", "-c", "import os; print(len(os.listdir('tree')))"]}
    back = {**box, "direction": "download", "src": "tree", "dest": str(folder / "back")}
    return [
        {"name": "planned upload", "namzu.sandbox.sandbox_files": upload, "check_mode": True, "diff": True},
        {"name": "upload", "namzu.sandbox.sandbox_files": upload},
        {"name": "upload again", "namzu.sandbox.sandbox_files": upload},
        {"name": "count", "namzu.sandbox.sandbox_exec": count},
        {"name": "download", "namzu.sandbox.sandbox_files": back},
        {"name": "download again", "namzu.sandbox.sandbox_files": back},
    ]


#: Keys whose values have keys of their own on each backend.
OPEN = {"host_vars", "labels", "diff", "invocation", "limits", "add_host", "address"}
#: What the container backend reports beyond the verdict of Kubernetes.
MORE = {"sandbox.verdict.confinement", "sandboxes[].verdict.confinement"}


def keys(value: t.Any, path: str = "") -> set[str]:
    """The paths of all keys in a result."""
    if isinstance(value, list):
        return {found for one in value for found in keys(one, f"{path}[]")}
    if not isinstance(value, dict):
        return set()
    found = set()
    for key, one in value.items():
        here = f"{path}.{key}".lstrip(".")
        if here not in MORE and not key.startswith("_"):
            found |= {here} | (set() if key in OPEN else keys(one, here))
    return found


def test_one_play_gives_the_same_on_both_backends(
    play: Play,
    pool: Pool,
    image: str,
    docker_host: str,  # noqa: F811
    tmp_path: pathlib.Path,
) -> None:
    sources: dict[str, Body] = {
        "kubernetes": {"warm_pool": pool.name},
        "container": {"image": image, "ready_timeout": "120s"},
    }
    played = {}
    for backend, source in sources.items():
        (tmp_path / backend / "source").mkdir(parents=True)
        for number in range(50):
            (tmp_path / backend / "source" / str(number)).write_text(str(number))
        tasks = [*PLAY[1:-1], *transfers(tmp_path / backend), PLAY[-1]]
        # Every task has the options of the cluster, which the container backend does not use.
        access = {option: value for option, value in pool.access.items() if option != "agent"}
        defaults = {"group/namzu.sandbox.sandbox": access, "group/namzu.sandbox.agent": {"agent": pool.access["agent"]}}
        acquire = {**PLAY[0], "namzu.sandbox.sandbox": {**PLAY[0]["namzu.sandbox.sandbox"], **source}}
        played[backend] = play(
            [acquire, *tasks],
            module_defaults=defaults,
            environment={"NAMZU_SANDBOX_BACKEND": backend, "DOCKER_HOST": docker_host},
        )
    cluster, engine = played["kubernetes"], played["container"]
    for task in (one["name"] for one in [*PLAY, *transfers(tmp_path)]):
        assert keys(cluster[task]) == keys(engine[task]), task
    for one in (cluster, engine):
        assert one["run"]["stdout"] == "42\n"
        assert (one["fail"]["rc"], one["fail"]["stderr"]) == (3, "no\n")
        assert one["host"]["stdout"] != "0"
        assert one["acquire"]["sandbox"]["verdict"]["privileges"]["none"]
        assert one["acquire"]["sandbox"]["verdict"]["egress"]["holds"]
        assert one["list"]["sandboxes"][0]["phase"] == "ready"
        assert one["release"]["released"] == [one["acquire"]["sandbox"]["name"]]
        copies = [one[task["name"]] for task in transfers(tmp_path)]
        assert [copy["changed"] for copy in copies] == [True, True, False, True, True, False]
        assert [copy.get("count") for copy in copies] == [50, 50, 0, None, 50, 0]
        assert one["count"]["stdout"] == "50\n"
    for backend in sources:
        copied = {path.name: path.read_text() for path in (tmp_path / backend / "back").iterdir()}
        assert copied == {str(number): str(number) for number in range(50)}
    changed = {backend: [one[task["name"]]["changed"] for task in PLAY] for backend, one in played.items()}
    assert changed["kubernetes"] == changed["container"]


def test_the_python_api_takes_a_sandbox_out_of_a_pool(pool: Pool, tmp_path: pathlib.Path) -> None:
    with Sandbox.acquire(pool=pool.name, egress="no_network", **pool.access) as sandbox:
        assert sandbox.info["warm"]
        assert sandbox.run("cat", stdin="in", check=True).stdout == b"in"
        sandbox.files.write("folder/file", "text")
        with Sandbox.connect(sandbox.name, uid=sandbox.uid, **pool.access) as found:
            assert found.files.read("folder/file") == b"text"
            assert [entry.path for entry in found.files.list("folder")] == ["file"]
        (tmp_path / "source").mkdir()
        (tmp_path / "source" / "one").write_text("1")
        sandbox.files.upload_tree(tmp_path / "source", "tree")
        with sandbox.files.watch("tree", interval=0.1) as changes:
            sandbox.run("mv tree/one tree/two", check=True)
            assert {next(changes).change, next(changes).change} == {"created", "deleted"}
        assert sandbox.files.download_tree("tree", tmp_path / "back").count == 1
        assert (tmp_path / "back" / "two").read_text() == "1"
        with pytest.raises(FileNotFoundError):
            sandbox.files.remove("tree/one")
        access = {option: value for option, value in pool.access.items() if option != "agent"}
        assert sandbox.name in {one["name"] for one in Sandbox.list(**access)}
        sandbox.extend("20m")
    assert sandbox.name not in {one["name"] for one in Sandbox.list(**access) if one["phase"] == "ready"}
