# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running tasks in a real ansible-playbook, here or by way of a module, against a fake cluster."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import yaml

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE, POOL
from ...faults.fake.server import TOKEN

#: A connection to this machine that is not called local, so that the verbs run as modules.
_ELSEWHERE = """
from __future__ import annotations
from ansible.plugins.connection.local import DOCUMENTATION as LOCAL, Connection as Local
DOCUMENTATION = LOCAL.replace("name: local", "name: elsewhere")


class Connection(Local):
    transport = "elsewhere"
"""

Task = dict[str, t.Any]
Result = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Played:
    """What a play left: the results of its tasks in order, all that was printed, and the exit code."""

    results: list[Result]
    output: str
    code: int


def access(cluster: FakeCluster, **changes: t.Any) -> dict[str, t.Any]:
    """Options that lead to a fake cluster."""
    return {"host": cluster.server.url, "api_key": TOKEN, "namespace": NAMESPACE, **changes}


def present(cluster: FakeCluster, **changes: t.Any) -> dict[str, t.Any]:
    """The options of an acquire."""
    agent = {"port": cluster.agent.port, "address": "pod_ip"}
    return {**access(cluster), "warm_pool": POOL, "ready_timeout": "20s", "agent": agent, **changes}


def play(
    folder: pathlib.Path,
    tasks: list[Task],
    *,
    connection: str = "local",
    verbosity: int = 0,
) -> Played:
    """Run tasks; one that fails does not keep the others from running.

    Args:
        connection: ``local`` for the action plugin alone, ``elsewhere`` for the module.
    """
    (folder / "connection_plugins").mkdir(parents=True, exist_ok=True)
    (folder / "connection_plugins" / "elsewhere.py").write_text(_ELSEWHERE)
    names = [f"task_{number}" for number in range(len(tasks))]
    listed = ", ".join(names)
    results = folder / "results.json"
    kept = {"content": f"{{{{ [{listed}] | to_json }}}}", "dest": str(results), "mode": "0600"}
    book = {
        "hosts": "localhost",
        "gather_facts": False,
        "connection": connection,
        "vars": {
            "ansible_python_interpreter": sys.executable,
            "ansible_remote_tmp": str(folder / "tmp"),
            **async_folder(folder),
        },
        "tasks": [
            *({**task, "register": name, "ignore_errors": True} for task, name in zip(tasks, names, strict=True)),
            {"ansible.builtin.copy": kept, "no_log": True, "check_mode": False},
        ],
    }
    done = subprocess.run(
        **ansible_playbook(folder, book, verbosity=verbosity), capture_output=True, text=True, timeout=300, check=False
    )
    said = done.stdout + done.stderr
    assert results.exists(), said
    return Played(json.loads(results.read_text()), said, done.returncode)


def async_folder(folder: pathlib.Path) -> dict[str, str]:
    """The variable that keeps the results of ``async`` in one folder, also where ``HOME`` is not the home of the user.

    ansible-core 2.21 writes them below ``HOME`` (modules/async_wrapper.py) and reads them below the home in the passwd
    database (``ActionBase._remote_expand_user``), so that ``ansible.builtin.command`` with async fails there too.
    """
    return {"ansible_async_dir": str(folder / "async")}


def ansible_playbook(
    folder: pathlib.Path, book: dict[str, t.Any], *, verbosity: int = 0, **environ: str
) -> dict[str, t.Any]:
    """What subprocess needs to run a play: the command, its folder, and an environment without this machine's."""
    file = folder / "play.yml"
    file.write_text(yaml.safe_dump([book]))
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_AUTH_"))}
    return {
        "args": [
            *(sys.executable, "-m", "ansible", "playbook"),
            *(["-" + "v" * verbosity] if verbosity else []),
            str(file),
        ],
        "cwd": folder,
        "env": {
            **clean,
            "ANSIBLE_HOME": str(folder / "home"),
            "ANSIBLE_LOCALHOST_WARNING": "false",
            "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
            "ANSIBLE_NOCOLOR": "true",
            "KUBECONFIG": str(folder / "no-kubeconfig"),
            **environ,
        },
    }
