# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Start an instance: a graph of steps, each run as soon as the steps that it needs are done."""

from __future__ import annotations

import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterable
from concurrent.futures import FIRST_COMPLETED, Future, ThreadPoolExecutor, wait
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from .api import ApiError, administrator_api
from .build import images, packages
from .build.materials import Materials
from .build.programs import Programs
from .components import health, installation
from .components.configuration import write_configuration
from .components.credentials import write_credentials
from .components.table import START_TIMEOUT_SECONDS, Component, components
from .failures import ClusterError, ComponentFailed
from .host import cgroups, machine, network, processes
from .layout import Layout
from .progress import Progress


@dataclass(frozen=True)
class Step:
    """An action that runs once the steps that it needs are done."""

    name: str
    action: Callable[[], None]
    needs: tuple[str, ...] = ()


def start(layout: Layout, materials: Materials, progress: Progress) -> None:
    """Start every component of an instance that does not exist, and wait until all are healthy."""
    prepare(layout, materials.programs)
    layout.gvisor.symlink_to(materials.gvisor)
    prepare_node(layout, enforce=materials.programs.enforce)
    stop = threading.Event()
    run_steps(steps(layout, materials, stop), stop, progress)


def start_bare(layout: Layout, programs: Programs, progress: Progress) -> None:
    """Start etcd and the API server alone."""
    prepare(layout, programs, bare=True)
    stop = threading.Event()
    run_steps(component_steps(layout, components(layout, programs, bare=True), stop), stop, progress)


def prepare(layout: Layout, programs: Programs, *, bare: bool = False) -> None:
    """Create folders and credentials, and record the programs that are started."""
    machine.record()
    for folder in (layout.state, layout.run):
        folder.parent.mkdir(mode=0o755, exist_ok=True)
        folder.mkdir(mode=0o700)
    for folder in (layout.certificates, layout.configuration, layout.kubelet_root, layout.bin):
        folder.mkdir(mode=0o700)
    layout.logs.mkdir(mode=0o700, parents=True, exist_ok=True)
    write_credentials(layout)
    if bare:
        layout.bare_marker.touch()
    programs.write(layout.programs_record)
    (layout.bin / "kubectl").symlink_to(programs.path("kubectl"))


def prepare_node(layout: Layout, *, enforce: bool) -> None:
    """Create configuration, cgroup and network for pods."""
    plugins = packages.cni_folder()
    if plugins is None:
        raise ClusterError("CNI plugins: not installed. Install the package containernetworking-plugins.")
    write_configuration(layout)
    layout.volumes.mkdir(mode=0o700)
    layout.python.symlink_to(Path(sys.executable).resolve())
    cgroups.create(layout.name)
    network.write_cni_plugins(layout, plugins)
    network.create(layout, enforce=enforce)


def steps(layout: Layout, materials: Materials, stop: threading.Event) -> list[Step]:
    """Every step of the start."""
    api = administrator_api(layout.kubeconfig)
    return [
        *component_steps(layout, components(layout, materials.programs), stop),
        Step(
            "images",
            partial(images.load_into, layout.containerd_socket, images.archives(materials.images)),
            ("containerd",),
        ),
        Step("crds", partial(installation.install_crds, api, materials.objects.crds), ("kube-apiserver",)),
        # The API server handles CRDs one by one: the controller does not wait for CRDs that it does not use.
        Step("policy-crds", partial(installation.install_crds, api, materials.objects.policy_crds), ("crds",)),
        Step(
            "controller-objects",
            partial(installation.install_controller_objects, api, materials.objects),
            ("kube-apiserver",),
        ),
        Step("dns-permissions", partial(installation.install_dns_permissions, api), ("kube-apiserver",)),
        Step("storage", partial(installation.install_storage, api), ("kube-apiserver",)),
        Step("runtime-class", partial(installation.install_runtime_class, api), ("kube-apiserver",)),
        Step("firewall-permissions", partial(installation.install_firewall_permissions, api), ("kube-apiserver",)),
        # kube-router ends at once when its node does not exist.
        Step("node-registered", partial(wait_until, health.node_registered(layout), stop), ("kube-apiserver",)),
    ]


def component_steps(layout: Layout, wanted: Iterable[Component], stop: threading.Event) -> list[Step]:
    """The steps that start each component."""
    return [
        Step(component.name, partial(start_component, layout, component, stop), component.needs) for component in wanted
    ]


def run_steps(wanted: list[Step], stop: threading.Event, progress: Progress) -> None:
    """Run steps in threads in the order of their needs; the first failure, or Ctrl-C, stops the others."""
    waiting = {step.name: step for step in wanted}
    done: set[str] = set()
    running: dict[Future[None], str] = {}
    progress.begin()
    with ThreadPoolExecutor(max_workers=len(wanted)) as workers:
        try:
            while waiting or running:
                for step in [step for step in waiting.values() if done.issuperset(step.needs)]:
                    running[workers.submit(step.action)] = waiting.pop(step.name).name
                progress.update(f"starting: {', '.join(sorted(running.values()))}")
                finished, _unused = wait(running, timeout=0.1, return_when=FIRST_COMPLETED)
                for future in finished:
                    name = running.pop(future)
                    _raise_failure(name, future)
                    done.add(name)
        finally:
            stop.set()
    progress.end()


def _raise_failure(step: str, future: Future[None]) -> None:
    try:
        future.result()
    except (ApiError, OSError) as error:
        raise ClusterError(f"{step}: {error}") from error


def start_component(layout: Layout, component: Component, stop: threading.Event) -> None:
    """Start a process and wait until it is healthy; ComponentFailed with its log when it ends or is too slow."""
    if stop.is_set():
        return
    process = processes.start(layout, component.name, component.argv, component.network, component.folder)
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    pause = 0.02
    while (reason := component.healthy()) is not None:
        if stop.wait(pause):
            return
        if process.poll() is not None:
            raise _failed(layout, component, f"ended with code {process.returncode} while starting")
        if time.monotonic() > deadline:
            raise _failed(layout, component, f"is not healthy after {START_TIMEOUT_SECONDS:.0f} s ({reason})")
        pause = min(0.2, pause * 1.5)
    _forget(process)


def wait_until(check: health.Check, stop: threading.Event) -> None:
    """Wait until a check passes; ClusterError with the reason of the check after START_TIMEOUT_SECONDS seconds."""
    deadline = time.monotonic() + START_TIMEOUT_SECONDS
    while (reason := check()) is not None:
        if stop.wait(0.1):
            return
        if time.monotonic() > deadline:
            raise ClusterError(f"after {START_TIMEOUT_SECONDS:.0f} s: {reason}")


def _forget(process: subprocess.Popen[bytes]) -> None:
    # The component continues after this program; without this line, the interpreter warns that it still runs.
    process.returncode = 0


def _failed(layout: Layout, component: Component, what: str) -> ComponentFailed:
    log = processes.log_of(layout, component.name)
    return ComponentFailed(component.name, what, log, processes.log_tail(layout, component.name))
