# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Undoing a start, however far it came and however it ended; and listing what is left."""

from __future__ import annotations

import shutil
from contextlib import suppress
from pathlib import Path

from .failures import ClusterError
from .host import cgroups, machine, mounts, network, processes
from .layout import RUN_ROOT, Layout


def tear_down(layout: Layout) -> None:
    """Remove everything of an instance. Its data is deleted, so processes are killed without a grace period."""
    _end_processes(layout)
    for folder in (layout.state, layout.run):
        mounts.unmount_below(folder)
    network.remove_interfaces(layout)
    cgroups.remove(layout.name)
    machine.remove_shared_files(layout)
    for folder in (layout.run, layout.state):
        _remove_tree(folder)
    with suppress(OSError):
        RUN_ROOT.rmdir()
    machine.restore()


def remains(layout: Layout) -> list[str]:
    """What is left of an instance, one line each; empty after `tear_down`."""
    found = [f"process {process.pid} ({process.component})" for process in processes.running(layout)]
    found += [f"container process {pid}" for pid in cgroups.members(layout.name)]
    found += [f"cgroup {group}" for group in cgroups.groups(layout.name)]
    found += [f"mount {point}" for folder in (layout.state, layout.run) for point in mounts.below(folder)]
    found += [f"interface {interface}" for interface in network.interfaces(layout)]
    found += [f"file {path}" for path in machine.shared_files(layout)]
    found += [f"folder {folder}" for folder in (layout.state, layout.run) if folder.exists()]
    if not machine.other_instances(layout):
        found += [f"setting {name}" for name in machine.changed_sysctls()]
        found += [f"folder {folder}" for folder in machine.new_folders()]
        found += [f"file {path}" for path in (machine.RECORD,) if path.exists()]
    return found


def _end_processes(layout: Layout) -> None:
    # First who could start something new, then the containers, then the shims that their end wakes up.
    left: list[int] = []
    for _attempt in range(5):
        left = processes.kill(
            [process.pid for process in processes.running(layout)],
            lambda pid: processes.identify(layout, pid) is not None,
        )
        left += cgroups.kill_members(layout.name)
        if not left and not processes.running(layout):
            return
    raise ClusterError(f"these processes do not end: {', '.join(map(str, left))}. They hold {layout.state}.")


def _remove_tree(folder: Path) -> None:
    if remaining := mounts.below(folder):
        # Deleting through a mount would delete what is mounted.
        raise ClusterError(f"still mounted, so nothing below {folder} was deleted: {', '.join(map(str, remaining))}")
    if folder.exists():
        shutil.rmtree(folder)
