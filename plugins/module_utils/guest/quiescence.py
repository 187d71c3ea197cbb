# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A disk without writers: stop every process of a sandbox, and flush its file system."""

from __future__ import annotations

import dataclasses
import typing as t

from ..deadline import Deadline
from ..text import clean_text
from .agent import Agent
from .errors import QuiesceUnconfirmedError
from .protocol.call import Call


@dataclasses.dataclass(frozen=True)
class StoppedProcess:
    """A process that was stopped.

    Attributes:
        pid: in the pod.
        name: of its program, as the kernel shows it.
        signal: the number of the last one that it was sent.
        id, kind: of the execution or session that it belonged to, or None.
    """

    pid: int
    name: str
    signal: int
    id: str | None
    kind: str | None


@dataclasses.dataclass(frozen=True)
class VisibleProcess:
    """A process that was not stopped: its number in the pod, and the name of its program."""

    pid: int
    name: str


@dataclasses.dataclass(frozen=True)
class QuiesceReport:
    """What was stopped, and what was not.

    Attributes:
        stopped: the processes, at most 500 of them.
        count: the number of processes that were stopped.
        duration: seconds that it took.
        scope: ``container`` when every process of the agent's container was stopped; ``descendants`` when the agent is
            not PID 1 and only the processes that it started, directly or not, were; None from an older agent.
        outside: processes that the agent can see and did not stop because they are not in its scope, at most 500.
        outside_count: the number of those processes.
        unseen_containers: containers of the pod whose processes the agent cannot see, as the caller named them.
    """

    stopped: tuple[StoppedProcess, ...]
    count: int
    duration: float
    scope: str | None = None
    outside: tuple[VisibleProcess, ...] = ()
    outside_count: int = 0
    unseen_containers: tuple[str, ...] = ()


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


def quiesce(
    agent: Agent, *, deadline: Deadline, grace: float | None = None, unseen_containers: t.Iterable[str] = ()
) -> QuiesceReport:
    """Stop every process of the sandbox; the agent goes on. Nothing can be started meanwhile, but can afterwards.

    Args:
        deadline: for all of it; it should leave room for the grace and five seconds.
        grace: seconds (0 to 60; the agent's default is 2) between SIGTERM and SIGKILL.
        unseen_containers: for the report: containers of the pod that the agent cannot see (``unseen_containers``).

    Raises QuiesceUnconfirmedError when some processes could not be stopped, GuestUnsupportedError for an agent without
    the feature ``quiesce``, and the errors of ``Agent``.
    """
    body = {} if grace is None else {"grace": grace}
    with agent.caller.call("quiesce", body, deadline, feature="quiesce") as call:
        report = call.part("quiesced", stopped=list, stopped_count=int, left=list, left_count=int, duration_ms=int)
        if report["left_count"]:
            raise _unconfirmed(agent, call, report)
        outside = report.get("outside", [])
        if not isinstance(outside, list):
            raise call.protocol_error("outside in the answer is not a list")
        scope, outside_count = report.get("scope"), report.get("outside_count", 0)
        return QuiesceReport(
            stopped=tuple(_stopped(call, process) for process in report["stopped"]),
            count=report["stopped_count"],
            duration=report["duration_ms"] / 1000,
            scope=scope if scope in ("container", "descendants") else None,
            outside=tuple(_visible(call, process) for process in outside),
            outside_count=outside_count if isinstance(outside_count, int) else len(outside),
            unseen_containers=tuple(unseen_containers),
        )


def unseen_containers(pod: t.Mapping[str, t.Any]) -> list[str]:
    """The containers of a pod whose processes its agent cannot see.

    Args:
        pod: the Pod object. The agent's container is the one with the variable NAMZU_AGENT_BIND_TOKEN.

    Returns the names of the other containers, native sidecars included; none when the pod shares its process namespace.
    """
    spec = pod.get("spec") or {}
    if spec.get("shareProcessNamespace"):
        return []
    sidecars = [one for one in spec.get("initContainers") or [] if one.get("restartPolicy") == "Always"]
    containers = [*(spec.get("containers") or []), *sidecars]
    return [str(one.get("name")) for one in containers if not _runs_agent(one)]


def _runs_agent(container: t.Mapping[str, t.Any]) -> bool:
    return any(variable.get("name") == "NAMZU_AGENT_BIND_TOKEN" for variable in container.get("env") or [])


def _unconfirmed(agent: Agent, call: Call, report: t.Mapping[str, t.Any]) -> QuiesceUnconfirmedError:
    left = [call.checked("left", process, pid=int, name=str) for process in report["left"]]
    names = ", ".join(f"{process['pid']} ({clean_text(process['name'], 40)})" for process in left[:5])
    return QuiesceUnconfirmedError(
        f"quiesce at {agent.peer.name}: {report['left_count']} processes still run: {names}.",
        left=left,
        object=agent.peer.name,
        next_step="A process that cannot be killed waits for a disk or a network file system: check its storage.",
    )


def _visible(call: Call, process: t.Any) -> VisibleProcess:
    fields = call.checked("outside", process, pid=int, name=str)
    return VisibleProcess(fields["pid"], clean_text(fields["name"], 40))


def flush(agent: Agent, *, deadline: Deadline) -> FlushReport:
    """Have the kernel write everything in the workspace to its disk, and wait for that.

    Raises GuestRefusedError ``io-error`` or ``no-space`` when the disk did not take it all, GuestUnsupportedError for
    an agent without the feature ``flush``, and the errors of ``Agent``.
    """
    with agent.caller.call("flush", {}, deadline, feature="flush") as call:
        fields = call.part("flushed", path=str, scope=str, duration_ms=int)
        return FlushReport(fields["path"], fields["scope"], fields["duration_ms"] / 1000)


def _stopped(call: Call, found: t.Any) -> StoppedProcess:
    fields = call.checked("stopped", found, pid=int, name=str, signal=int)
    name = clean_text(fields["name"], 40)
    return StoppedProcess(fields["pid"], name, fields["signal"], fields.get("id"), fields.get("kind"))
