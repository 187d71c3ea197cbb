# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A disk that nobody is writing to: stop everything in a sandbox, and have what was written put on the disk."""

from __future__ import annotations

import dataclasses
import typing as t

from ..deadline import Deadline
from .agent import Agent
from .errors import QuiesceUnconfirmedError
from .protocol.call import Call, printable


@dataclasses.dataclass(frozen=True)
class StoppedProcess:
    """A process that was stopped.

    Attributes:
        pid: in the pod.
        name: of its program, as the kernel keeps it.
        signal: the number of the last one that it was sent.
        id, kind: of the execution or session that it belonged to, or None.
    """

    pid: int
    name: str
    signal: int
    id: str | None
    kind: str | None


@dataclasses.dataclass(frozen=True)
class QuiesceReport:
    """What was stopped.

    Attributes:
        stopped: the processes, at most 500 of them.
        count: how many they were.
        duration: seconds that it took.
    """

    stopped: tuple[StoppedProcess, ...]
    count: int
    duration: float


@dataclasses.dataclass(frozen=True)
class FlushReport:
    """What was written to the disk.

    Attributes:
        path: the folder whose file system it was.
        scope: ``file-system``; ``machine`` where the image lets the agent ask only for everything.
        duration: seconds that it took.
    """

    path: str
    scope: str
    duration: float


def quiesce(agent: Agent, *, deadline: Deadline, grace: float | None = None) -> QuiesceReport:
    """Stop every process of the sandbox; the agent goes on. Nothing can be started meanwhile, but can afterwards.

    Args:
        deadline: for all of it; it should leave room for the grace and five seconds.
        grace: seconds (0 to 60; the agent's default is 2) between SIGTERM and SIGKILL.

    Raises QuiesceUnconfirmedError when some processes could not be stopped, GuestUnsupportedError for an agent without
    the feature ``quiesce``, and the errors of ``Agent``.
    """
    body = {} if grace is None else {"grace": grace}
    with agent.caller.call("quiesce", body, deadline, feature="quiesce") as call:
        said = call.part("quiesced", stopped=list, stopped_count=int, left=list, left_count=int, duration_ms=int)
        left = [call.checked("left", process, pid=int, name=str) for process in said["left"]]
        if said["left_count"]:
            names = ", ".join(f"{process['pid']} ({printable(process['name'], 40)})" for process in left[:5])
            raise QuiesceUnconfirmedError(
                f"quiesce at {agent.peer.name}: {said['left_count']} processes still run: {names}.",
                left=left,
                object=agent.peer.name,
                next_step="A process that the kernel does not let go waits for a disk or a network file system.",
            )
        stopped = tuple(_stopped(call, process) for process in said["stopped"])
        return QuiesceReport(stopped, said["stopped_count"], said["duration_ms"] / 1000)


def flush(agent: Agent, *, deadline: Deadline) -> FlushReport:
    """Have the kernel write everything in the workspace to its disk, and wait for that.

    Raises GuestRefusedError ``io-error`` or ``no-space`` when the disk did not take it all, GuestUnsupportedError for
    an agent without the feature ``flush``, and the errors of ``Agent``.
    """
    with agent.caller.call("flush", {}, deadline, feature="flush") as call:
        said = call.part("flushed", path=str, scope=str, duration_ms=int)
        return FlushReport(said["path"], said["scope"], said["duration_ms"] / 1000)


def _stopped(call: Call, found: t.Any) -> StoppedProcess:
    said = call.checked("stopped", found, pid=int, name=str, signal=int)
    return StoppedProcess(said["pid"], printable(said["name"], 40), said["signal"], said.get("id"), said.get("kind"))
