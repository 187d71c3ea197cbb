# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Plays with the lease keeper, under way or over."""

from __future__ import annotations

import contextlib
import os
import pathlib
import subprocess
import threading
import time
import typing as t

import yaml

from ...faults.fake.cluster import FakeCluster
from .playing import Task, ansible_playbook, async_folder

ENABLED = {"ANSIBLE_CALLBACKS_ENABLED": "namzu.sandbox.lease_keeper"}
#: Seconds for a play to get to where a test waits for it, on a machine that is busy.
APPEAR = 60.0


def book(tasks: list[Task], **variables: t.Any) -> dict[str, t.Any]:
    return {"hosts": "localhost", "gather_facts": False, "connection": "local", "vars": variables, "tasks": tasks}


class Running:
    """A play under way, with the keeper beside it."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self.process = process

    @property
    def keeper(self) -> int:
        """The keeper's process: the one child that leads a session and runs the core's program."""
        (found,) = [pid for pid in children(self.process.pid) if b"keeper_process" in read(pid, "cmdline")]
        return found


def read(pid: int, what: str) -> bytes:
    try:
        return pathlib.Path(f"/proc/{pid}/{what}").read_bytes()
    except OSError:
        return b""


def children(parent: int) -> list[int]:
    pids = [int(name) for name in os.listdir("/proc") if name.isdigit()]
    return [pid for pid in pids if read(pid, "stat").rpartition(b") ")[2].split()[1:2] == [str(parent).encode()]]


def until(condition: t.Callable[[], t.Any], seconds: float = APPEAR) -> float:
    """Wait for something in real time; the seconds that it took."""
    began = time.monotonic()
    while not condition():
        assert time.monotonic() - began < seconds, "it did not come true in time"
        threading.Event().wait(0.02)
    return time.monotonic() - began


def waits(running: Running) -> bool:
    """Whether the play has come to its last task."""
    return any(b"cat" in read(pid, "cmdline") for pid in descendants(running.process.pid))


def descendants(pid: int) -> list[int]:
    found = children(pid)
    return found + [below for child in found for below in descendants(child)]


@contextlib.contextmanager
def started(
    folder: pathlib.Path, tasks: list[Task], *, earlier: t.Sequence[dict[str, t.Any]] = (), **variables: t.Any
) -> t.Iterator[Running]:
    """A play under way, after ``earlier`` ones: ``tasks``, and then it waits for the end of the block, in a task."""
    gate = folder / "gate"
    os.mkfifo(gate)
    waiting = {"ansible.builtin.command": {"argv": ["cat", str(gate)]}}
    last = book([*tasks, waiting], **variables)
    options = ansible_playbook(folder, last, **ENABLED)
    pathlib.Path(options["args"][-1]).write_text(yaml.safe_dump([*earlier, last]), encoding="utf-8")
    process = subprocess.Popen(
        **options, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE, text=True, start_new_session=True
    )
    try:
        yield Running(process)
    finally:
        # Whoever waits at the gate, also a worker that has outlived its play, goes on.
        with contextlib.suppress(OSError):
            os.close(os.open(gate, os.O_WRONLY | os.O_NONBLOCK))
        process.kill()
        process.wait()
        if process.stderr is not None:
            process.stderr.close()


class Over(t.NamedTuple):
    """A play that has ended by itself: what it left and said."""

    claims: list[str]
    code: int
    output: str
    errors: str


def ran(folder: pathlib.Path, cluster: FakeCluster, tasks: list[Task], environ: dict[str, str], **more: t.Any) -> Over:
    verbosity = more.pop("verbosity", 0)
    variables = {**async_folder(folder), **more}
    options = ansible_playbook(folder, book(tasks, **variables), verbosity=verbosity, **{**ENABLED, **environ})
    done = subprocess.run(**options, capture_output=True, text=True, timeout=2 * APPEAR, check=False)
    return Over(cluster.claims(), done.returncode, done.stdout, done.stderr)
