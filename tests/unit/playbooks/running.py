# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a playbook of the collection, or another one, against a fake cluster."""

from __future__ import annotations

import dataclasses
import json
import os
import pathlib
import subprocess
import sys
import typing as t

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.server import TOKEN

Result = dict[str, t.Any]


@dataclasses.dataclass(frozen=True)
class Ran:
    """How a playbook ended.

    Attributes:
        code: the exit code of ansible-playbook.
        tasks: name and result of each task, in order.
        output: standard error, and standard output where it is not the report of the tasks.
    """

    code: int
    tasks: list[tuple[str, Result]]
    output: str

    def __getitem__(self, name: str) -> Result:
        found = [result for task, result in self.tasks if name in (task, task.partition(" : ")[2])]
        assert found, f"no task {name!r} ran; there were: {[task for task, _result in self.tasks]}\n{self.output}"
        return found[-1]

    @property
    def names(self) -> list[str]:
        """The names of all tasks that ran."""
        return [name for name, _result in self.tasks]

    @property
    def failure(self) -> str:
        """The message of the task that failed the play."""
        (message,) = [str(result.get("msg")) for _name, result in self.tasks if result.get("failed")]
        return message


def command(name: str, variables: t.Mapping[str, t.Any]) -> list[str]:
    """The arguments of a program that runs a playbook."""
    return [sys.executable, "-m", "ansible", "playbook", name, "--extra-vars", json.dumps(variables)]


def environment(folder: pathlib.Path, cluster: FakeCluster | None, **environ: str) -> dict[str, str]:
    """An environment without the settings of this machine, and with the way to a fake cluster."""
    (folder / "ansible.cfg").touch()
    clean = {name: value for name, value in os.environ.items() if not name.startswith(("ANSIBLE_", "K8S_AUTH_"))}
    access = {"K8S_AUTH_HOST": cluster.server.url, "K8S_AUTH_API_KEY": TOKEN} if cluster else {}
    return {
        **clean,
        "ANSIBLE_CONFIG": str(folder / "ansible.cfg"),
        "ANSIBLE_HOME": str(folder / "home"),
        "ANSIBLE_LOCALHOST_WARNING": "false",
        "ANSIBLE_INVENTORY_UNPARSED_WARNING": "false",
        "ANSIBLE_NOCOLOR": "true",
        "KUBECONFIG": str(folder / "no-kubeconfig"),
        **access,
        **environ,
    }


def run(
    name: str,
    folder: pathlib.Path,
    cluster: FakeCluster | None = None,
    *,
    check: bool = False,
    **variables: t.Any,
) -> Ran:
    """Run a playbook to its end, in a folder.

    Args:
        name: ``namzu.sandbox.<name>``, or a path.
        check: whether nothing may change.
    """
    done = subprocess.run(
        [*command(name, variables), *(["--check"] if check else [])],
        cwd=folder,
        env=environment(folder, cluster, ANSIBLE_STDOUT_CALLBACK="ansible.posix.json"),
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    begin = done.stdout.find("{")
    assert begin >= 0, done.stdout + done.stderr
    report, _end = json.JSONDecoder().raw_decode(done.stdout[begin:])
    tasks = [
        (task["task"]["name"], result)
        for play in report["plays"]
        for task in play["tasks"]
        for result in task["hosts"].values()
    ]
    return Ran(done.returncode, tasks, done.stderr)
