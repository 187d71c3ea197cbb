# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection against ``kubernetes.core.kubectl``, on the same pod with the same tasks; and copies of folders."""

from __future__ import annotations

import contextlib
import os
import pathlib
import tempfile
import typing as t

import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import Acquired, AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release

from .measure import command, side_by_side
from .rows import Ratio
from .stage import BIN, Stage

ITEMS = 20
MEGABYTES = 100
FILES = 50

#: The pod's own Python, so that no candidate looks for it; and a folder that kubectl's user may write to.
_BOTH = {"ansible_python_interpreter": "/usr/bin/python3", "ansible_remote_tmp": "/tmp/ansible"}

Candidates = dict[str, dict[str, t.Any]]


def items(stage: Stage, rounds: int = 3) -> list[Ratio]:
    """Twenty items of ``command`` in one task."""
    task = {"ansible.builtin.command": "true", "loop": list(range(ITEMS))}
    return _against_kubectl(stage, "20 items", task, {"as it comes": 0.35, "with pipelining": 0.6}, rounds)


def tasks(stage: Stage, rounds: int = 3) -> list[Ratio]:
    """Twenty tasks, each of which Ansible runs in a process of its own."""
    task = {"ansible.builtin.include_tasks": "twenty.yml"}
    return _against_kubectl(stage, "20 tasks", task, {"as it comes": 0.6, "with pipelining": 1.0}, rounds)


def large_copy(stage: Stage, rounds: int = 3) -> list[Ratio]:
    """A copy of a large file that is not there yet."""
    task = {"ansible.builtin.copy": {"src": "large", "dest": "/tmp/large", "mode": "0600", "force": True}}
    return _against_kubectl(stage, f"copy of {MEGABYTES} MB", task, {"as it comes": 0.5}, rounds)


def many_files(stage: Stage, rounds: int = 3) -> list[Ratio]:
    """An upload of 50 files by ``sandbox_files`` against one of a single file."""
    with _held(stage) as acquired, tempfile.TemporaryDirectory() as name:
        runs = {}
        for count in (FILES, 1):
            source = pathlib.Path(name) / f"of-{count}"
            source.mkdir()
            for number in range(count):
                (source / str(number)).write_bytes(os.urandom(4096))
            upload = {"namespace": stage.namespace, "name": acquired.name, "agent": {"address": "pod_ip"}}
            task = {"namzu.sandbox.sandbox_files": {**upload, "src": str(source), "dest": "/tmp/large"}}
            play = pathlib.Path(name) / f"{count}.yml"
            _write(play, [{"hosts": "localhost", "gather_facts": False, "tasks": [task]}])
            runs[f"{count} files"] = command(
                [str(BIN / "ansible-playbook"), "-i", "localhost,", "-c", "local", str(play)]
            )
        measured = side_by_side(runs, rounds, lambda: _clear(acquired))
    detail = ", ".join(f"{key} {one.median:.2f} s" for key, one in measured.items())
    value = measured[f"{FILES} files"].median / measured["1 files"].median
    return [Ratio(f"sandbox_files: {FILES} files / 1 file", value, 1.5, detail)]


def _against_kubectl(
    stage: Stage, what: str, task: dict[str, t.Any], budgets: dict[str, float], rounds: int
) -> list[Ratio]:
    with _held(stage) as acquired, tempfile.TemporaryDirectory() as name:
        folder = pathlib.Path(name)
        _write(folder / "twenty.yml", [{"ansible.builtin.command": "true"}] * ITEMS)
        _write(folder / "play.yml", [{"hosts": "box", "gather_facts": False, "tasks": [task]}])
        if "copy" in what:
            with (folder / "large").open("wb") as file:
                for _megabyte in range(MEGABYTES):
                    file.write(os.urandom(1 << 20))
        candidates = {"ours": _ours(stage, acquired)}
        for other in budgets:
            candidates[other] = {**_kubectl(stage, acquired), "ansible_pipelining": other == "with pipelining"}
        runs = {key: _run(folder, key, host_vars) for key, host_vars in candidates.items()}
        measured = side_by_side(runs, rounds, lambda: _clear(acquired))
    detail = ", ".join(f"{key} {one.median:.2f} s" for key, one in measured.items())
    ours = measured["ours"].median
    return [
        Ratio(f"{what}: ours / kubectl {other}", ours / measured[other].median, budget, detail)
        for other, budget in budgets.items()
    ]


@contextlib.contextmanager
def _held(stage: Stage) -> t.Iterator[Acquired]:
    stage.settle()
    wanted = AcquireRequest(namespace=stage.namespace, warm_pool=stage.pool, ttl=3600, agent_address="pod_ip")
    acquired = acquire(stage.client, wanted)
    try:
        yield acquired
    finally:
        release(stage.client, stage.namespace, acquired.name, Deadline(60))


def _clear(acquired: Acquired) -> None:
    """No candidate finds what another one has copied."""
    from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent

    Agent(acquired.agent).execute(["rm", "-rf", "/tmp/large", "/tmp/ansible"], deadline=Deadline(60))


def _ours(stage: Stage, acquired: Acquired) -> dict[str, t.Any]:
    return {
        "ansible_connection": "namzu.sandbox.sandbox",
        "ansible_sandbox_namespace": stage.namespace,
        "ansible_sandbox_name": acquired.name,
        "ansible_sandbox_agent_address": "pod_ip",
    }


def _kubectl(stage: Stage, acquired: Acquired) -> dict[str, t.Any]:
    return {
        "ansible_connection": "kubernetes.core.kubectl",
        "ansible_kubectl_namespace": stage.namespace,
        "ansible_kubectl_pod": acquired.pod,
    }


def _run(folder: pathlib.Path, key: str, host_vars: dict[str, t.Any]) -> t.Callable[[], None]:
    inventory = folder / f"{key.replace(' ', '-')}.yml"
    _write(inventory, {"all": {"hosts": {"box": {**_BOTH, **host_vars}}}})
    return command([str(BIN / "ansible-playbook"), "-i", str(inventory), str(folder / "play.yml")])


def _write(file: pathlib.Path, content: t.Any) -> None:
    file.write_text(yaml.safe_dump(content), encoding="utf-8")


CONNECTION_ROWS: dict[str, t.Callable[..., list[Ratio]]] = {
    "connection_items": items,
    "connection_tasks": tasks,
    "connection_copy": large_copy,
    "files": many_files,
}
