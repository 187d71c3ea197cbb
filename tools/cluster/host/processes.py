# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Processes of an instance: started with a mark in their environment, found and ended by it.

There are no pid files that could go stale. A process belongs to an instance exactly when its environment, as the
kernel recorded it at exec, carries the instance's mark; what a component starts itself (shims, CNI plugins) inherits
it, containers do not. gVisor starts its sandboxes with an empty environment and outside of the cgroup of their pod, so
they are identified by the folder of their state in the command line. A process is ended through a pidfd that is opened
before it is identified, so that a reused pid is never hit.
"""

from __future__ import annotations

import os
import select
import signal
import subprocess
import time
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from ..layout import Layout

MARK = "NAMZU_CLUSTER_PROCESS"
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
PROC = Path("/proc")
GVISOR_SANDBOX = "runsc-sandbox"


@dataclass(frozen=True)
class Process:
    """A running process of an instance, `component` is its own or inherited mark."""

    pid: int
    component: str
    argv: tuple[str, ...]


def start(
    layout: Layout, component: str, argv: Sequence[str], network: Path | None = None, folder: Path | None = None
) -> subprocess.Popen[bytes]:
    """Start a component detached from terminal, session and file descriptors; its output goes to its log.

    `network` is the file of a network namespace to start it in; nsenter becomes the program, with its argv. `folder` is
    its working directory, the instance's own when it is left out.
    """
    enter = [] if network is None else ["nsenter", f"--net={network}", "--"]
    # containerd finds the shim of a runtime on its PATH.
    search = f"{PATH}:{layout.gvisor}"
    environment = {"PATH": search, "HOME": str(layout.state), "LANG": "C.UTF-8", MARK: f"{layout.name}/{component}"}
    with open(log_of(layout, component), "ab") as log:
        return subprocess.Popen(
            [*enter, *argv],
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=subprocess.STDOUT,
            cwd=folder or layout.state,
            env=environment,
            start_new_session=True,
        )


def log_of(layout: Layout, component: str) -> Path:
    """The file with everything that a component printed."""
    return layout.logs / f"{component}.log"


def log_tail(layout: Layout, component: str, lines: int = 15) -> str:
    """The last lines of a component's log."""
    try:
        text = log_of(layout, component).read_text(encoding="utf-8", errors="replace")
    except OSError:
        return ""
    return "\n".join(text.splitlines()[-lines:])


def running(layout: Layout) -> list[Process]:
    """Every live process that carries the mark of this instance."""
    return [process for pid in pids() if (process := identify(layout, pid))]


def identify(layout: Layout, pid: int) -> Process | None:
    """The process behind a pid when it is one of this instance, None for another or a dead process."""
    prefix = f"{MARK}={layout.name}/".encode()
    for entry in _null_separated(PROC / str(pid) / "environ"):
        if entry.startswith(prefix):
            return Process(pid, os.fsdecode(entry[len(prefix) :]), _argv(pid))
    argv = _argv(pid)
    if argv[:1] == (GVISOR_SANDBOX,) and any(one.startswith(f"--root={layout.runsc_state}/") for one in argv):
        return Process(pid, "containerd", argv)
    return None


def _argv(pid: int) -> tuple[str, ...]:
    return tuple(os.fsdecode(part) for part in _null_separated(PROC / str(pid) / "cmdline"))


def pids() -> list[int]:
    """The ids of all processes that this one can see."""
    return [int(entry) for entry in os.listdir(PROC) if entry.isdecimal()]


def is_alive(pid: int) -> bool:
    """Whether a process exists and is more than a zombie that waits for its parent."""
    try:
        state = (PROC / str(pid) / "stat").read_text(encoding="utf-8", errors="replace").rsplit(")", 1)[1]
    except (OSError, IndexError):
        return False
    return state.split()[0] not in "ZX"


def kill(candidates: Iterable[int], ours: Callable[[int], bool], timeout: float = 10.0) -> list[int]:
    """Kill those candidates that are `ours`, wait until they are gone, and return those that are not."""
    handles: dict[int, int] = {}
    try:
        for pid in candidates:
            with suppress(ProcessLookupError):
                handle = os.pidfd_open(pid)
                handles[pid] = handle
                if ours(pid):
                    signal.pidfd_send_signal(handle, signal.SIGKILL)
                else:
                    os.close(handles.pop(pid))
        return _wait_for_exit(handles, timeout)
    finally:
        for handle in handles.values():
            os.close(handle)


def _wait_for_exit(handles: dict[int, int], timeout: float) -> list[int]:
    deadline = time.monotonic() + timeout
    waiting = dict(handles)
    poll = select.poll()
    for handle in waiting.values():
        poll.register(handle, select.POLLIN)
    while waiting and (left := deadline - time.monotonic()) > 0:
        done = {handle for handle, _event in poll.poll(left * 1000)}
        for pid in [pid for pid, handle in waiting.items() if handle in done]:
            poll.unregister(waiting.pop(pid))
    return sorted(waiting)


def _null_separated(path: Path) -> list[bytes]:
    try:
        content = path.read_bytes()
    except OSError:
        return []
    return content.rstrip(b"\0").split(b"\0") if content else []
