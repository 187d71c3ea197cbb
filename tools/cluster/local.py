# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The local cluster's verbs."""

from __future__ import annotations

import errno
import os
import shlex
import shutil
import signal
import socket
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from . import preflight, startup, status, teardown
from .build import images, materials, programs, runner
from .build.images import PYTHON_IMAGE
from .failures import ClusterError, ComponentFailed, NotUp
from .layout import Layout, cache_folder, layout_from
from .progress import Progress, elapsed
from .status import Kind


@dataclass(frozen=True)
class LocalCluster:
    """One instance on this machine."""

    layout: Layout
    cache: Path
    progress: Progress

    @classmethod
    def named_by(cls, environment: Mapping[str, str], progress: Progress) -> LocalCluster:
        """The instance that the environment names."""
        return cls(layout_from(environment), cache_folder(environment), progress)

    def up(self, *, bare: bool = False, enforce: bool = True) -> None:
        """Start the instance, or report that it is up; the remains of a crashed one are removed first.

        `bare` is etcd and the API server alone, without nodes, controllers and CRDs. `enforce` is with what enforces
        NetworkPolicy, which a bare instance never is.
        """
        wanted = Kind(bare, enforce and not bare)
        began = time.monotonic()
        if self._is_up(wanted):
            print(f"already up, healthy ({elapsed(time.monotonic() - began)}): {self._summary()}")
            return
        if bare:
            preflight.check_bare(self.cache)
        else:
            preflight.check(self.layout, self.cache, enforce=wanted.enforce)
        with self._lock():
            if self._is_up(wanted):
                print(f"already up, healthy: {self._summary()}")
                return
            begin = self._gather_bare() if bare else self._gather(wanted.enforce)
            began_start = time.monotonic()
            self._start(begin)
        reached = "a ready API server" if bare else "a Ready node and a healthy controller"
        took = f"{elapsed(time.monotonic() - began_start)} to {reached}"
        print(f"up, {took} ({elapsed(time.monotonic() - began)} in all): {self._summary()}")

    def down(self) -> None:
        """Remove the instance, if it exists."""
        preflight.check_root()
        began = time.monotonic()
        with self._lock():
            if not teardown.remains(self.layout):
                print("already down")
                return
            self._tear_down()
        print(f"down in {elapsed(time.monotonic() - began)}")

    def status(self) -> None:
        """Print a line for each component; NotUp when there is none, ClusterError when one is not healthy."""
        preflight.check_root()
        found = status.settled_states(self.layout)
        if not found:
            raise NotUp("down: nothing is started. Start it: python -m tools.cluster up")
        for state in found:
            print(state.line())
        if kind := status.kind(self.layout):
            print(f"this is {kind}")
        if not status.all_healthy(found):
            raise ClusterError("local cluster: not healthy. Start it again: python -m tools.cluster up")

    def runner_image(self) -> None:
        """Load an image with ansible-core and the current collection into the cluster, and print its name."""
        preflight.check_root()
        if status.is_bare(self.layout) or not status.all_healthy(status.settled_states(self.layout)):
            raise ClusterError("local cluster: not up, or bare. Start it: python -m tools.cluster up")
        with tempfile.TemporaryDirectory(prefix="runner-", dir=self.layout.state) as folder:
            archive = runner.make(self.cache, Path(folder), self.progress)
            images.load_into(self.layout.containerd_socket, [archive])
        print(runner.RUNNER_IMAGE)

    def env(self) -> None:
        """Print shell lines that point kubectl and the tests to the cluster."""
        preflight.check_root()
        if not status.all_healthy(status.settled_states(self.layout)):
            raise ClusterError("local cluster: not up. Start it: python -m tools.cluster up")
        print(exports(self.layout, os.environ.get("PATH", os.defpath)))

    def _gather(self, enforce: bool) -> Callable[[], None]:
        made = materials.gather(self.cache, self.progress, enforce=enforce)
        return partial(startup.start, self.layout, made, self.progress)

    def _gather_bare(self) -> Callable[[], None]:
        made = programs.build(self.cache, self.progress, enforce=False)
        return partial(startup.start_bare, self.layout, made, self.progress)

    def _start(self, begin: Callable[[], None]) -> None:
        if teardown.remains(self.layout):
            self.progress.report("removing the remains of an earlier start")
            self._tear_down()
        preflight.check_ports(self.layout)
        try:
            begin()
        except BaseException as failure:
            self.progress.end()
            logs = self._save_logs()
            self.progress.report(f"removing what was started; its logs are in {logs}")
            self._tear_down()
            if isinstance(failure, ComponentFailed):
                raise failure.with_log_in(logs) from failure
            raise

    def _save_logs(self) -> Path:
        logs = self.cache / "logs-of-failed-start" / self.layout.name
        shutil.rmtree(logs, ignore_errors=True)
        with suppress(OSError):
            shutil.copytree(self.layout.logs, logs)
        return logs

    def _tear_down(self) -> None:
        with uninterrupted():
            teardown.tear_down(self.layout)
        if left := teardown.remains(self.layout):
            raise ClusterError(
                f"instance {self.layout.instance}: could not be removed completely. These remain:\n" + "\n".join(left)
            )

    @contextmanager
    def _lock(self) -> Iterator[None]:
        """Serialize starts and stops of this instance between processes, also those with another cache.

        An abstract socket leaves no file behind, and the kernel releases it when the process ends, also after a crash.
        """
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as lock:
            while not _bind(lock, f"\0{self.layout.name}"):
                self.progress.update("waiting: another process starts or stops this cluster")
                time.sleep(0.2)
            self.progress.end()
            yield

    def _is_up(self, wanted: Kind) -> bool:
        found = status.kind(self.layout)
        if found is None or not status.runs(self.layout, programs.cached(self.cache, enforce=found.enforce)):
            return False
        if found != wanted:
            raise ClusterError(
                f"instance {self.layout.instance} is up as {found}, not as {wanted}. Take it down first "
                "(python -m tools.cluster down), or take another instance: NAMZU_CLUSTER_INSTANCE."
            )
        return True

    def _summary(self) -> str:
        image = "" if status.is_bare(self.layout) else f" image {PYTHON_IMAGE}"
        return f"KUBECONFIG={self.layout.kubeconfig}{image}"


def _bind(lock: socket.socket, name: str) -> bool:
    try:
        lock.bind(name)
    except OSError as error:
        if error.errno == errno.EADDRINUSE:
            return False
        raise
    return True


@contextmanager
def uninterrupted() -> Iterator[None]:
    """Finish a clean-up; further Ctrl-C are ignored."""
    handlers = {number: signal.signal(number, signal.SIG_IGN) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield
    finally:
        for number, handler in handlers.items():
            signal.signal(number, handler)


def exports(layout: Layout, search_path: str) -> str:
    """Lines for `eval` in any POSIX shell; the search path is written in full, so that programs can parse them, too."""
    others = [folder for folder in search_path.split(os.pathsep) if folder and folder != str(layout.bin)]
    values = {"KUBECONFIG": str(layout.kubeconfig), "PATH": os.pathsep.join([str(layout.bin), *others])}
    return "\n".join(f"export {name}={shlex.quote(value)}" for name, value in values.items())
