# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Reasons why this machine cannot run a local cluster: checked before anything is changed, reported in one line."""

from __future__ import annotations

import errno
import os
import platform
import re
import shutil
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from .build import images, materials, packages, programs
from .failures import CannotRun
from .host import cgroups, network, processes
from .host.processes import PROC
from .layout import DNS_PORT, INSTANCES, PORT_OFFSETS, Layout

IP_FREEBIND = 15  # <linux/in.h>; the socket module has no name for it
OTHER_CLUSTER = "Or use a cluster of your own: set KUBECONFIG."


def check_bare(cache_folder: Path) -> None:
    """Check for a bare instance; CannotRun with the first reason."""
    check_system()
    check_root()
    if programs.is_missing(cache_folder):
        check_go(programs.lowest_go())


def check(layout: Layout, cache_folder: Path, *, enforce: bool) -> None:
    """Check for a whole instance; CannotRun with the first reason."""
    check_system()
    check_root()
    check_packages(cache_folder)
    if materials.needs_go(cache_folder):
        check_go(programs.lowest_go())
    if reason := cgroups.not_writable():
        raise CannotRun(f"pods need cgroups of their own: {reason}. {OTHER_CLUSTER}")
    if enforce:
        network.check_bridge_filter()
    check_other_kubelet()
    if route := network.overlapping_route(layout) if packages.find("ip") else None:
        raise CannotRun(
            f"addresses of pods and services ({layout.pod_subnet}, {layout.service_subnet}) are in use here: {route}. "
            "Take another instance: NAMZU_CLUSTER_INSTANCE=2."
        )


def check_system(system: str | None = None, machine: str | None = None) -> None:
    """Require Linux on an architecture that the images support."""
    system, machine = system or platform.system(), machine or platform.machine()
    if system != "Linux":
        raise CannotRun(f"the local cluster needs Linux, this is {system}. {OTHER_CLUSTER}")
    if machine not in images.ARCHITECTURES:
        raise CannotRun(
            f"the local cluster runs on {', '.join(images.ARCHITECTURES)}, this is {machine}. {OTHER_CLUSTER}"
        )


def check_root(user: int | None = None) -> None:
    """Require root, for containers, cgroups and network interfaces."""
    if (os.geteuid() if user is None else user) != 0:
        raise CannotRun(f"the local cluster needs root: sudo {sys.executable} -m tools.cluster up. {OTHER_CLUSTER}")


def check_packages(cache_folder: Path) -> None:
    """Require apt, unless nothing has to be installed."""
    if packages.has_apt():
        return
    lacking = list(packages.missing().programs)
    if images.is_missing(cache_folder):
        lacking.append("apt-get (the images are made from Debian packages)")
    if lacking:
        raise CannotRun(f"missing on this system: {'; '.join(lacking)}. {OTHER_CLUSTER}")


def check_go(least: tuple[int, int]) -> None:
    """Require a Go that builds the programs, or that may fetch one that does."""
    wanted = f"{least[0]}.{least[1]}"
    if shutil.which("go") is None:
        raise CannotRun(
            f"Go {wanted} or newer is missing: the cluster's programs are built from source. {OTHER_CLUSTER}"
        )
    output = subprocess.run(
        ["go", "env", "GOVERSION", "GOTOOLCHAIN"], capture_output=True, text=True, check=False
    ).stdout
    if not go_suffices(output, least):
        version = output.split()[0].removeprefix("go") if output.split() else "unknown"
        raise CannotRun(f"Go {wanted} or newer is needed, this is {version}. Install it from https://go.dev/dl/.")


def go_suffices(output: str, least: tuple[int, int]) -> bool:
    """Whether the answer of `go env GOVERSION GOTOOLCHAIN` is new enough, or a Go that fetches a newer one (1.21)."""
    fields = output.split()
    found = re.match(r"go(\d+)\.(\d+)", fields[0]) if fields else None
    if found is None:
        return False
    version = int(found[1]), int(found[2])
    fetches = version >= (1, 21) and len(fields) > 1 and fields[1] != "local"
    return version >= least or fetches


def check_other_kubelet() -> None:
    """Two kubelets cannot run on one machine: /var/lib/kubelet/device-plugins is a fixed path."""
    for pid, program in _programs():
        if program == "kubelet" and processes.is_alive(pid) and not _is_ours(pid):
            raise CannotRun(
                f"another kubelet runs on this machine (pid {pid}); two would disturb each other. Use its cluster: "
                "set KUBECONFIG."
            )


def check_ports(layout: Layout) -> None:
    """Require that every port is free; the error has its number, its use and its process."""
    for kind in (socket.SOCK_STREAM, socket.SOCK_DGRAM):
        if port_is_taken(DNS_PORT, layout.node_address, kind):
            raise CannotRun(
                f"port {DNS_PORT} (DNS) is taken by {_listener(DNS_PORT) or 'another process'} on every address. "
                "Let it listen on its own addresses only."
            )
    for use in PORT_OFFSETS:
        port = layout.port(use)
        if port_is_taken(port):
            raise CannotRun(
                f"port {port} ({use}) is taken by {_listener(port) or 'another process'}. End it, or take another "
                "instance: NAMZU_CLUSTER_INSTANCE=2."
            )


def port_is_taken(port: int, address: str = "", kind: int = socket.SOCK_STREAM) -> bool:
    """Whether something has the port on the address or on all; without an address, on any that exists.

    The address need not exist yet.
    """
    with socket.socket(socket.AF_INET, kind) as probe:
        if kind == socket.SOCK_STREAM:
            probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        probe.setsockopt(socket.SOL_IP, IP_FREEBIND, 1)
        try:
            probe.bind((address, port))
        except OSError as error:
            return error.errno == errno.EADDRINUSE
    return False


def _listener(port: int) -> str | None:
    inodes = {f"socket:[{inode}]" for inode in _listening_inodes(port)}
    for pid, program in _programs():
        if inodes.intersection(_descriptors(pid)):
            return f"{program} (pid {pid})"
    return None


def _descriptors(pid: int) -> Iterator[str]:
    with suppress(OSError):
        for entry in os.listdir(PROC / str(pid) / "fd"):
            with suppress(OSError):  # closed in the meantime
                yield os.readlink(PROC / str(pid) / "fd" / entry)


def _listening_inodes(port: int) -> Iterator[str]:
    for table in ("tcp", "tcp6"):
        try:
            lines = (PROC / "net" / table).read_text(encoding="ascii").splitlines()[1:]
        except OSError:
            continue
        for fields in (line.split() for line in lines):
            if fields[3] == "0A" and int(fields[1].rsplit(":", 1)[1], 16) == port:
                yield fields[9]


def _programs() -> Iterator[tuple[int, str]]:
    for pid in processes.pids():
        try:
            yield pid, (PROC / str(pid) / "comm").read_text(encoding="utf-8", errors="replace").strip()
        except OSError:
            continue


def _is_ours(pid: int) -> bool:
    return any(processes.identify(Layout(instance), pid) for instance in INSTANCES)
