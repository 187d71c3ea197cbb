# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One play on both backends: only the source of the sandbox differs, and the results have the same keys."""

from __future__ import annotations

import typing as t

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
) -> None:
    sources: dict[str, Body] = {
        "kubernetes": {"warm_pool": pool.name},
        "container": {"image": image, "ready_timeout": "120s"},
    }
    played = {}
    for backend, source in sources.items():
        # Every task has the options of the cluster, which the container backend does not use.
        access = {option: value for option, value in pool.access.items() if option != "agent"}
        defaults = {"group/namzu.sandbox.sandbox": access, "group/namzu.sandbox.agent": {"agent": pool.access["agent"]}}
        acquire = {**PLAY[0], "namzu.sandbox.sandbox": {**PLAY[0]["namzu.sandbox.sandbox"], **source}}
        played[backend] = play(
            [acquire, *PLAY[1:]],
            module_defaults=defaults,
            environment={"NAMZU_SANDBOX_BACKEND": backend, "DOCKER_HOST": docker_host},
        )
    cluster, engine = played["kubernetes"], played["container"]
    for task in (one["name"] for one in PLAY):
        assert keys(cluster[task]) == keys(engine[task]), task
    for one in (cluster, engine):
        assert one["run"]["stdout"] == "42\n"
        assert (one["fail"]["rc"], one["fail"]["stderr"]) == (3, "no\n")
        assert one["host"]["stdout"] != "0"
        assert one["acquire"]["sandbox"]["verdict"]["privileges"]["none"]
        assert one["acquire"]["sandbox"]["verdict"]["egress"]["holds"]
        assert one["list"]["sandboxes"][0]["phase"] == "ready"
        assert one["release"]["released"] == [one["acquire"]["sandbox"]["name"]]
    changed = {backend: [one[task["name"]]["changed"] for task in PLAY] for backend, one in played.items()}
    assert changed["kubernetes"] == changed["container"]


def test_the_python_api_takes_a_sandbox_out_of_a_pool(pool: Pool) -> None:
    with Sandbox.acquire(pool=pool.name, egress="no_network", **pool.access) as sandbox:
        assert sandbox.info["warm"]
        assert sandbox.run("cat", stdin="in", check=True).stdout == b"in"
        sandbox.files.write("folder/file", "text")
        with Sandbox.connect(sandbox.name, uid=sandbox.uid, **pool.access) as found:
            assert found.files.read("folder/file") == b"text"
        access = {option: value for option, value in pool.access.items() if option != "agent"}
        assert sandbox.name in {one["name"] for one in Sandbox.list(**access)}
        sandbox.extend("20m")
    assert sandbox.name not in {one["name"] for one in Sandbox.list(**access) if one["phase"] == "ready"}
