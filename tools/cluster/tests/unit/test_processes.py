# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A process of an instance is identified by the mark in its environment, and other processes are never ended."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path

import pytest

from tools.cluster.host import processes
from tools.cluster.host.processes import MARK
from tools.cluster.layout import Layout

LAYOUT = Layout(1)
SLEEP = [sys.executable, "-c", "import time; print('ready', flush=True); time.sleep(600)"]


@dataclass
class Sleepers:
    """Processes that wait, and end with the test."""

    started: list[subprocess.Popen[str]] = field(default_factory=list)

    def __call__(self, mark: str | None, *arguments: str, name: str = sys.executable) -> int:
        environment = {"PATH": os.environ["PATH"]} | ({} if mark is None else {MARK: mark})
        argv = [name, *SLEEP[1:], *arguments]
        sleeper = subprocess.Popen(argv, executable=SLEEP[0], env=environment, stdout=subprocess.PIPE, text=True)
        self.started.append(sleeper)
        assert sleeper.stdout is not None
        sleeper.stdout.readline()
        return sleeper.pid

    def ended(self, pid: int) -> bool:
        return next(sleeper for sleeper in self.started if sleeper.pid == pid).poll() is not None


@pytest.fixture(name="sleeper")
def running_sleepers() -> Iterator[Sleepers]:
    sleepers = Sleepers()
    yield sleepers
    for sleeper in sleepers.started:
        sleeper.kill()
        sleeper.communicate()


def is_ours(pid: int) -> bool:
    return processes.identify(LAYOUT, pid) is not None


def test_a_marked_process_is_found_with_its_component_and_command_line(sleeper: Sleepers) -> None:
    pid = sleeper("namzu-cluster-1/unit-test")
    assert processes.identify(LAYOUT, pid) == processes.Process(pid, "unit-test", tuple(SLEEP))
    assert pid in [process.pid for process in processes.running(LAYOUT)]


@pytest.mark.parametrize("mark", [None, "", "namzu-cluster-2/unit-test", "namzu-cluster-11/unit-test", "unit-test"])
def test_other_processes_are_not_of_the_instance(mark: str | None, sleeper: Sleepers) -> None:
    assert processes.identify(LAYOUT, sleeper(mark, str(LAYOUT.state / "etcd"))) is None


def test_a_sandbox_of_gvisor_is_found_by_the_folder_of_its_state(sleeper: Sleepers) -> None:
    root = "--root=/run/namzu-cluster/1/runsc/k8s.io"
    found = processes.identify(LAYOUT, sleeper(None, root, name="runsc-sandbox"))
    assert found is not None
    assert found.component == "containerd"
    others = [sleeper(None, root), sleeper(None, root.replace("/1/", "/11/"), name="runsc-sandbox")]
    assert [processes.identify(LAYOUT, pid) for pid in others] == [None, None]


def test_an_ended_process_is_not_of_the_instance() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert processes.identify(LAYOUT, gone.pid) is None
    assert not processes.is_alive(gone.pid)


def test_a_zombie_is_not_alive() -> None:
    zombie = subprocess.Popen([sys.executable, "-c", ""])
    deadline = time.monotonic() + 10
    while processes.is_alive(zombie.pid) and time.monotonic() < deadline:
        os.sched_yield()
    assert not processes.is_alive(zombie.pid)
    zombie.wait()


def test_only_processes_of_the_instance_are_killed(sleeper: Sleepers) -> None:
    ours, other = sleeper("namzu-cluster-1/unit-test"), sleeper(None)
    assert processes.kill([ours, other], is_ours) == []
    assert not processes.is_alive(ours)
    assert not sleeper.ended(other)


def test_killing_an_ended_process_succeeds() -> None:
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    assert processes.kill([gone.pid], is_ours) == []


def test_a_component_inherits_no_terminal_descriptors_or_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    layout = PrivateLayout(tmp_path)
    layout.logs.mkdir()
    monkeypatch.setenv("A_SECRET", "x")
    read, write = os.pipe()
    os.set_inheritable(write, True)
    look = "import os; print(os.getsid(0) == os.getpid(), sorted(os.listdir('/proc/self/fd')), sorted(os.environ))"
    try:
        processes.start(layout, "unit-test", [sys.executable, "-c", look]).wait()
    finally:
        os.close(read)
        os.close(write)
    tail = processes.log_tail(layout, "unit-test")
    # The fourth descriptor is the one that lists the folder.
    assert tail.startswith("True ['0', '1', '2', '3'] ")
    assert "A_SECRET" not in tail


class PrivateLayout(Layout):
    """An instance whose folders are in a test's own folder."""

    def __init__(self, folder: Path) -> None:
        super().__init__(1)
        object.__setattr__(self, "_folder", folder)

    @property
    def state(self) -> Path:
        folder: Path = object.__getattribute__(self, "_folder")
        return folder
