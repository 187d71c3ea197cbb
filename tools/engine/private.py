# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Docker engine of its own: Debian's dockerd on a Unix socket, with folders and a cgroup that nothing else uses."""

from __future__ import annotations

import json
import os
import platform
import shlex
import shutil
import signal
import subprocess
import time
from collections.abc import Iterable, Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import ClassVar

from tools.cluster.build import packages
from tools.cluster.failures import CannotRun, ClusterError, ComponentFailed, NotUp
from tools.cluster.host import cgroups, mounts, processes
from tools.cluster.layout import cache_folder
from tools.cluster.progress import Progress, elapsed

from .requests import IMAGE, is_ready, load_image

PACKAGE = "docker.io"
#: With what the names of the engine's own programs begin.
PROGRAMS = (b"dockerd", b"containerd", b"docker-", b"runc", b"runsc")
START_SECONDS = 60.0
STOP_SECONDS = 30.0
#: Networks of Docker's own that clash with nothing: the engine makes no rules of the machine's firewall.
FLAGS = ("--iptables=false", "--ip-masq=false", "--bridge=none", "--storage-driver=overlay2")


@dataclass(frozen=True)
class Instance:
    """Every path and name of one engine; two instances share none of them."""

    number: int = 1

    NUMBERS: ClassVar[range] = range(1, 10)

    @classmethod
    def named_by(cls, environment: Mapping[str, str]) -> Instance:
        """The instance of NAMZU_ENGINE_INSTANCE, 1 when it is not set."""
        wanted = environment.get("NAMZU_ENGINE_INSTANCE") or "1"
        if not wanted.isdecimal() or int(wanted) not in cls.NUMBERS:
            raise CannotRun(f"NAMZU_ENGINE_INSTANCE={wanted!r} is not a number from 1 to {cls.NUMBERS[-1]}.")
        return cls(int(wanted))

    @property
    def name(self) -> str:
        """Name of the cgroup."""
        return f"namzu-engine-{self.number}"

    @property
    def state(self) -> Path:
        return Path("/var/lib/namzu-engine", str(self.number))

    @property
    def run(self) -> Path:
        return Path("/run/namzu-engine", str(self.number))

    @property
    def docker_host(self) -> str:
        return f"unix://{self.run}/docker.sock"


class PrivateEngine:
    """Starts and removes one instance."""

    def __init__(self, instance: Instance, progress: Progress, flags: Sequence[str] = ()) -> None:
        """See ``up``; ``flags`` are added to those of dockerd."""
        self._instance = instance
        self._progress = progress
        self._flags = flags
        #: dockerd, where this object started it.
        self._daemon: subprocess.Popen[bytes] | None = None
        self._log = instance.state / "dockerd.log"

    def up(self) -> None:
        """Start it, or report that it runs; what a crash left is removed first."""
        self._check()
        began = time.monotonic()
        if not is_ready(self._instance.docker_host):
            if self._instance.state.exists() or self._instance.run.exists():
                self.down()
            if packages.find("dockerd") is None:
                packages.apt_install([PACKAGE], self._progress)
            self._start()
        load_image(self._instance.docker_host, cache_folder(os.environ), self._progress)
        self._progress.report(f"the engine is up after {elapsed(time.monotonic() - began)}")

    def down(self) -> None:
        """End the engine and its containers, and remove everything of it."""
        instance = self._instance
        self._end(self._processes(), signal.SIGTERM, STOP_SECONDS)
        self._end(self._processes(), signal.SIGKILL, 10.0)
        cgroups.kill_members(instance.name)
        self._end(self._processes(), signal.SIGKILL, 10.0)
        self._reap()
        if left := self._processes():
            raise ClusterError(f"these processes do not end: {', '.join(map(str, left))}.")
        for folder in (instance.state, instance.run):
            mounts.unmount_below(folder)
            if remaining := mounts.below(folder):
                raise ClusterError(f"still mounted below {folder}: {', '.join(map(str, remaining))}")
            if folder.exists():
                shutil.rmtree(folder)
            with suppress(OSError):
                folder.parent.rmdir()
        cgroups.remove(instance.name)

    def is_running(self) -> bool:
        """Whether it answers."""
        return is_ready(self._instance.docker_host)

    def kill_daemon(self) -> None:
        """End dockerd and its containerd, which the kernel ends with it, by SIGKILL; containers continue."""
        files = [self._instance.run / "docker.pid", self._instance.run / "exec/containerd/containerd.pid"]
        pids = [int(file.read_text(encoding="ascii")) for file in files]
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, signal.SIGKILL)
        until = time.monotonic() + STOP_SECONDS
        while any(processes.is_alive(pid) for pid in pids):
            if time.monotonic() >= until:
                raise ClusterError(f"dockerd does not end: {pids}.")
            time.sleep(0.02)
        self._reap()
        # A new dockerd takes a zombie that nobody has waited for yet for a containerd that runs.
        for file in files:
            file.unlink(missing_ok=True)

    def crash(self) -> None:
        """End everything of the engine by SIGKILL, containers included, as a machine that loses its power."""
        self._end(self._processes(), signal.SIGKILL, 10.0)
        cgroups.kill_members(self._instance.name)
        self._end(self._processes(), signal.SIGKILL, 10.0)
        self._reap()
        mounts.unmount_below(self._instance.state)
        mounts.unmount_below(self._instance.run)
        # A machine that has restarted has an empty /run.
        shutil.rmtree(self._instance.run)

    def start_again(self) -> None:
        """Start dockerd with the containers and images that it had."""
        self._start()

    def status(self) -> None:
        """Report whether it runs; NotUp when it does not."""
        self._require()
        print(f"running at {self._instance.docker_host}")

    def env(self) -> None:
        """Print shell lines for it."""
        self._require()
        print(f"export DOCKER_HOST={shlex.quote(self._instance.docker_host)}")
        print(f"export NAMZU_TEST_IMAGE={shlex.quote(IMAGE)}")

    def _require(self) -> None:
        if not is_ready(self._instance.docker_host):
            raise NotUp("no engine of this instance runs. Start it: python -m tools.engine up")

    def _check(self) -> None:
        if platform.system() != "Linux" or os.geteuid() != 0:
            raise CannotRun(
                "a private engine needs root on Linux. Set DOCKER_HOST to an engine that this user may use instead."
            )
        if packages.find("dockerd") is None and not packages.has_apt():
            raise CannotRun("dockerd is missing, and this system has no apt-get. Install Docker, or set DOCKER_HOST.")
        if reason := cgroups.not_writable():
            raise CannotRun(f"containers cannot run here: {reason}")

    def _start(self) -> None:
        instance = self._instance
        for folder in (instance.state, instance.run):
            folder.mkdir(parents=True, exist_ok=True)
        configuration = instance.state / "daemon.json"
        configuration.write_text(json.dumps({"runtimes": runtimes()}), encoding="utf-8")
        cgroups.create(instance.name)
        argv = ["dockerd", f"--config-file={configuration}", f"--data-root={instance.state}/data", *FLAGS]
        argv += [f"--exec-root={instance.run}/exec", f"--pidfile={instance.run}/docker.pid"]
        argv += [f"--cgroup-parent=/{instance.name}", f"--host={instance.docker_host}", *self._flags]
        with open(self._log, "ab") as log:
            process = self._daemon = subprocess.Popen(
                argv,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=subprocess.STDOUT,
                cwd=instance.state,
                env={"PATH": processes.PATH, "HOME": str(instance.state), "LANG": "C.UTF-8"},
                start_new_session=True,
            )
        until = time.monotonic() + START_SECONDS
        while not is_ready(instance.docker_host):
            if process.poll() is not None or time.monotonic() >= until:
                tail = "\n".join(self._log.read_text(encoding="utf-8", errors="replace").splitlines()[-15:])
                raise ComponentFailed("dockerd", "did not start", self._log, tail)
            self._progress.update("waiting for dockerd")
            time.sleep(0.1)

    def _processes(self) -> list[int]:
        """dockerd, containerd and shims: those whose command line names a folder of this instance."""
        marks = tuple(os.fsencode(f"{folder}/") for folder in (self._instance.state, self._instance.run))
        found = []
        for pid in processes.pids():
            with suppress(OSError):
                command = (processes.PROC / str(pid) / "cmdline").read_bytes()
                program = os.path.basename(command.partition(b"\0")[0])
                if program.startswith(PROGRAMS) and any(mark in command for mark in marks):
                    found.append(pid)
        return [pid for pid in found if processes.is_alive(pid)]

    def _reap(self) -> None:
        if self._daemon is not None:
            self._daemon.wait(STOP_SECONDS)
            self._daemon = None

    def _end(self, pids: Iterable[int], number: int, patience: float) -> None:
        for pid in pids:
            with suppress(ProcessLookupError):
                os.kill(pid, number)
        until = time.monotonic() + patience
        while self._processes() and time.monotonic() < until:
            time.sleep(0.1)


def runtimes() -> dict[str, object]:
    """gVisor, where its program is installed or NAMZU_RUNSC names it; without networks, as sandboxes have none."""
    named = os.environ.get("NAMZU_RUNSC")
    program = named or packages.find("runsc")
    if program is None:
        return {}
    # The newer program makes sockets of the container visible to the machine, and needs no ptrace.
    newer = ["--platform=systrap", "--host-uds=all"]
    arguments = newer if named else ["--platform=ptrace"]
    return {"runsc": {"path": program, "runtimeArgs": [*arguments, "--network=none", "--ignore-cgroups"]}}
