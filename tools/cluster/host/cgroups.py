# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cgroup that all pods of an instance live below, on cgroup v1 (each hierarchy), hybrid and v2 machines."""

from __future__ import annotations

import os
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from ..failures import ClusterError
from . import processes
from .mounts import mount_table

CGROUP_ROOT = Path("/sys/fs/cgroup")
V2_CONTROLLERS = ("cpu", "cpuset", "memory", "pids", "io")


def hierarchies() -> list[Path]:
    """Roots of the hierarchies that container programs use; the v2 part of a hybrid machine is among them."""
    return sorted({entry.point for entry in mount_table() if entry.kind in ("cgroup", "cgroup2")})


def not_writable() -> str | None:
    """The reason why cgroups of pods cannot be created here, None when they can."""
    roots = hierarchies()
    if not roots:
        return f"no cgroup hierarchy is mounted below {CGROUP_ROOT}"
    for root in roots:
        probe = root / f"namzu-probe-{os.getpid()}"
        try:
            probe.mkdir()
            probe.rmdir()
        except OSError as error:
            return f"{root} is not writable ({error.strerror})"
    return None


def create(name: str) -> None:
    """Make the instance's cgroup in every hierarchy; the kubelet insists that its cgroup root exists."""
    for root in hierarchies():
        group = root / name
        group.mkdir(exist_ok=True)
        if (root / "cgroup.subtree_control").exists():
            delegate(root)
            delegate(group)
        _inherit_cpuset(root, group)


def delegate(group: Path) -> None:
    """Let children of a v2 cgroup use its controllers."""
    available = (group / "cgroup.controllers").read_text(encoding="ascii").split()
    enabled = (group / "cgroup.subtree_control").read_text(encoding="ascii").split()
    for controller in V2_CONTROLLERS:
        if controller not in available or controller in enabled:
            continue
        try:
            (group / "cgroup.subtree_control").write_text(f"+{controller}", encoding="ascii")
        except OSError as error:
            raise ClusterError(
                f"cgroup controller {controller} cannot be enabled in {group} ({error.strerror}). In a container, "
                "run with a cgroup namespace of its own whose root has no processes."
            ) from error


def _inherit_cpuset(root: Path, group: Path) -> None:
    # A new v1 cpuset is empty and admits no process.
    for name in ("cpuset.cpus", "cpuset.mems"):
        if (group / name).exists() and not (root / "cgroup.subtree_control").exists():
            (group / name).write_text((root / name).read_text(encoding="ascii"), encoding="ascii")


def members(name: str) -> list[int]:
    """Processes in the instance's cgroup and below: the containers'."""
    found: set[int] = set()
    for group in groups(name):
        with suppress(OSError):
            found.update(int(line) for line in (group / "cgroup.procs").read_text(encoding="ascii").split())
    return sorted(found)


def groups(name: str) -> Iterator[Path]:
    """The instance's cgroups in every hierarchy, children before their parents."""
    for root in hierarchies():
        for folder, _children, _files in os.walk(root / name, topdown=False):
            yield Path(folder)


def kill_members(name: str, timeout: float = 10.0) -> list[int]:
    """Kill every process in the instance's cgroups, also processes forked during it; return the remaining pids."""
    deadline = time.monotonic() + timeout
    while living := [pid for pid in members(name) if processes.is_alive(pid)]:
        if time.monotonic() > deadline:
            return living
        processes.kill(living, lambda pid: _is_in(name, pid), timeout=2)
    return []


def _is_in(name: str, pid: int) -> bool:
    try:
        lines = (processes.PROC / str(pid) / "cgroup").read_text(encoding="utf-8").splitlines()
    except OSError:
        return False
    # Not at the start of the path: in a container without a cgroup namespace, the container's own path precedes it.
    return any(f"/{name}/" in f"{line.split(':', 2)[2]}/" for line in lines)


def remove(name: str, timeout: float = 5.0) -> None:
    """Remove the instance's cgroups; the kernel needs a moment after the last process."""
    deadline = time.monotonic() + timeout
    while list(groups(name)) and time.monotonic() < deadline:
        for group in groups(name):
            with suppress(OSError):
                group.rmdir()
        if list(groups(name)):
            time.sleep(0.05)
