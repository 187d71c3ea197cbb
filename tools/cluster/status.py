# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The state of each component of an instance."""

from __future__ import annotations

import time
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

from .build.programs import Programs
from .components.table import Component, components
from .failures import ClusterError
from .host import processes
from .layout import Layout

#: A busy component may take this long until it is healthy again.
SETTLE_SECONDS = 10.0
INTERVAL = 0.5


@dataclass(frozen=True)
class State:
    """A component's process, and the reason why it is not healthy (None when it is)."""

    component: str
    pid: int | None
    reason: str | None

    def line(self) -> str:
        pid = f"pid {self.pid}" if self.pid is not None else "no process"
        return f"{self.component:<26} {pid:<12} {self.reason or 'healthy'}"


@dataclass(frozen=True)
class Kind:
    """The parts that an instance is started with."""

    bare: bool
    enforce: bool

    def __str__(self) -> str:
        if self.bare:
            return "a bare cluster"
        return "a whole cluster that enforces NetworkPolicy" if self.enforce else "a whole cluster without enforcement"


def kind(layout: Layout) -> Kind | None:
    """What the instance was started with; None when no start was recorded."""
    try:
        return Kind(is_bare(layout), Programs.read(layout.programs_record).enforce)
    except ClusterError:
        return None


def is_present(layout: Layout) -> bool:
    """Whether anything of the instance exists."""
    return layout.state.exists() or layout.run.exists()


def is_bare(layout: Layout) -> bool:
    """Whether only etcd and the API server were started."""
    return layout.bare_marker.exists()


def states(layout: Layout) -> list[State]:
    """The state of every component, asked at the same time; empty when nothing was started."""
    if not is_present(layout):
        return []
    try:
        expected = components(layout, Programs.read(layout.programs_record), bare=is_bare(layout))
    except ClusterError as error:
        return [State("cluster", None, str(error))]
    running = processes.running(layout)
    with ThreadPoolExecutor(max_workers=len(expected)) as workers:
        return list(workers.map(lambda component: _state(component, running), expected))


def settled_states(layout: Layout) -> list[State]:
    """The same, but a running component that is not healthy is checked again for SETTLE_SECONDS seconds."""
    end = time.monotonic() + SETTLE_SECONDS
    while True:
        found = states(layout)
        busy = bool(found) and all(state.pid is not None for state in found) and not all_healthy(found)
        if not busy or time.monotonic() > end:
            return found
        time.sleep(INTERVAL)


def runs(layout: Layout, wanted: Programs) -> bool:
    """Whether every component is healthy and built from the wanted sources."""
    if not all_healthy(settled_states(layout)):
        return False
    return Programs.read(layout.programs_record).same_sources(wanted)


def all_healthy(found: Sequence[State]) -> bool:
    """Whether there are components and all are healthy."""
    return bool(found) and all(state.reason is None for state in found)


def _state(component: Component, running: Sequence[processes.Process]) -> State:
    for process in running:
        if process.component == component.name and process.argv == component.argv:
            return State(component.name, process.pid, component.healthy())
    return State(component.name, None, "is not running")
