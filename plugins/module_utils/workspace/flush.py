# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What the guest does before its pod is stopped: stop its processes, and put everything on its disk."""

from __future__ import annotations

import typing as t

from ..cluster.client import Client
from ..cluster.resources import ObjectRef
from ..cluster.retry import retry
from ..deadline import Deadline
from ..errors import SandboxError
from ..guest import quiescence
from ..guest.agent import Agent
from ..guest.errors import (
    GuestError,
    GuestTimeoutError,
    GuestUnauthorizedError,
    GuestUnreachableError,
    GuestUnsupportedError,
)
from ..guest.quiescence import FlushReport, QuiesceReport
from ..lifecycle.observed.agent_address import AddressMode, agent_address
from ..lifecycle.observed.pod import BoundPod, live_pod
from .errors import NotSettledError, WorkspaceSuspendedError

Outcome = t.Literal["unsupported", "unreachable", "failed"]

_STEPS: dict[Outcome, str] = {
    "unsupported": "The agent in this pod is older than this collection. {off} suspends without it; a refresh brings a "
    "newer agent (apply role namzu.sandbox.template first).",
    "unreachable": "Check the pod, and who may reach its agent. {off} suspends without it, and loses what is not on "
    "the disk.",
    "failed": "Check the disk and its free space. {off} suspends without it, and loses what is not on the disk.",
}


def running_guest(
    client: Client, ref: ObjectRef, port: int, mode: AddressMode, deadline: Deadline
) -> tuple[BoundPod, Agent] | None:
    """The live pod of a workspace and its agent, or None when no program of it can be running."""
    pod = retry(deadline, lambda: live_pod(client, ref.namespace, ref.name, deadline))
    if pod is None or (pod.body.get("status") or {}).get("phase") != "Running":
        return None
    address = agent_address(client, ref.namespace, ref.name, pod, port, mode, deadline)
    return pod, Agent(address, subject=f"workspace {ref.namespace}/{ref.name}")


def quiesce(agent: Agent, ref: ObjectRef, deadline: Deadline, pod: BoundPod | None = None) -> QuiesceReport:
    """Stop every process of the guest.

    Args:
        pod: the pod of the agent, for the report: its other containers are named there.

    Raises:
        NotSettledError: it cannot, did not, or does not answer.
    """
    unseen = quiescence.unseen_containers(pod.body) if pod is not None else []
    return _settled("quiesce", ref, lambda: quiescence.quiesce(agent, deadline=deadline, unseen_containers=unseen))


def flush(agent: Agent, ref: ObjectRef, deadline: Deadline) -> FlushReport:
    """Have the guest put everything on its disk.

    Raises:
        NotSettledError: it cannot, did not, or does not answer.
    """
    return _settled("flush", ref, lambda: quiescence.flush(agent, deadline=deadline))


Report = t.TypeVar("Report")


def _settled(operation: str, ref: ObjectRef, call: t.Callable[[], Report]) -> Report:
    failure: GuestError
    outcome: Outcome
    try:
        return call()
    except GuestUnsupportedError as error:
        outcome, failure = "unsupported", error
    except (GuestUnreachableError, GuestTimeoutError, GuestUnauthorizedError) as error:
        outcome, failure = "unreachable", error
    except GuestError as error:
        outcome, failure = "failed", error
    raise not_settled(operation, outcome, ref, failure) from failure


def not_settled(operation: str, outcome: Outcome, ref: ObjectRef, failure: SandboxError) -> NotSettledError:
    """The error for a guest that did not do what it must before its pod is stopped.

    Args:
        operation: ``flush`` or ``quiesce``.
        outcome: which kind of failure it is.
        failure: the failure.
    """
    return NotSettledError(
        f"{ref}: the guest did not {operation}. {failure.message}",
        reason=f"{operation}-{outcome}",
        retryable=outcome == "unreachable",
        object=str(ref),
        next_step=_STEPS[outcome].format(off=f"{operation}: false or on_flush_failure: suspend"),
    )


def suspended(ref: ObjectRef) -> WorkspaceSuspendedError:
    """The error for whoever asks something of a guest that is not there."""
    return WorkspaceSuspendedError(
        f"{ref} is suspended, so nothing runs in it.",
        object=str(ref),
        next_step="Resume it: namzu.sandbox.workspace with state: running, or Workspace.resume().",
    )
