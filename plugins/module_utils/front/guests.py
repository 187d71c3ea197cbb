# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""From the options that name a sandbox or a workspace to the agent in its pod."""

from __future__ import annotations

import dataclasses
import typing as t

from ..cluster.client import Client
from ..cluster.reads import read
from ..cluster.resources import ObjectRef
from ..deadline import Deadline
from ..errors import GoneError, NotServedError
from ..guest.agent import Agent
from ..lifecycle.errors import AcquireError, check_uid
from ..lifecycle.names import check_name
from ..lifecycle.observed.agent_address import check_owner
from ..workspace.names import workspace_ref
from .backends.protocol import Backend, Guest
from .options.agent import heartbeat_of
from .options.specs import Params

if t.TYPE_CHECKING:
    from ..lifecycle.observed.agent_address import AddressMode

#: Seconds for finding the agent: two or three reads.
LOCATE_SECONDS = 30.0


def check_guest(params: Params) -> None:
    """Refuse a ``name`` or ``workspace_id`` that nothing can have, before anything is asked.

    Raises:
        InputError: saying what it must be.
    """
    if params.get("workspace_id") is not None:
        workspace_ref("default", str(params["workspace_id"]))
    else:
        check_name("name", str(params["name"]))


def find_guest(params: Params, backend: Backend[t.Any], deadline: Deadline | None = None) -> Guest:
    """The guest that the options ``name`` or ``workspace_id``, ``uid``, ``namespace`` and ``agent`` describe.

    Args:
        deadline: for the reads; half a minute when not given.

    Raises:
        GoneError, WorkspaceNotFoundError: there is no such sandbox, or workspace.
        ReplacedError: another one than that of ``uid`` has the name.
        AcquireError: it is not ready.
        WorkspaceSuspendedError, WorkspaceMismatchError: the workspace is suspended, or another object has its name.
    """
    options = params.get("agent") or {}
    within, heartbeat = deadline or Deadline(LOCATE_SECONDS, backend.client.clock), heartbeat_of(options)
    if params.get("workspace_id") is None:
        return backend.find(str(params["name"]), within, uid=params.get("uid"), heartbeat=heartbeat)
    port: int = options.get("port", 1024)
    mode: AddressMode = options.get("address", "service")
    ref = workspace_ref(str(backend.namespace), str(params["workspace_id"]))
    guest = _workspace(backend.client, ref, str(params["workspace_id"]), params.get("uid"), port, mode, within)
    agent = Agent(guest.agent.address, subject=guest.agent.subject, heartbeat=heartbeat)
    return dataclasses.replace(guest, agent=agent)


def _workspace(
    client: Client,
    ref: ObjectRef,
    workspace_id: str,
    uid: str | None,
    port: int,
    mode: AddressMode,
    deadline: Deadline,
) -> Guest:
    # Most tasks name a sandbox, and the first of a play would wait for all that makes workspaces.
    from ..workspace.errors import not_found
    from ..workspace.fencing import SUSPENDED, mode_of
    from ..workspace.flush import running_guest, suspended
    from ..workspace.manifest import raise_if_unmanaged

    try:
        body = read(client, ref, deadline)
    except NotServedError:
        raise
    except GoneError:
        raise not_found(ref, workspace_id) from None
    check_uid(ref, body["metadata"]["uid"], uid)
    raise_if_unmanaged(body, ref, workspace_id)
    if mode_of(body) == SUSPENDED:
        raise suspended(ref)
    guest = running_guest(client, ref, port, mode, deadline)
    if guest is None:
        raise AcquireError(
            f"{ref} has no running pod now.",
            reason="not-ready",
            retryable=True,
            object=str(ref),
            next_step="Run namzu.sandbox.workspace with this id first; it waits and says what is missing.",
        )
    pod, agent = guest
    if uid is not None:
        check_owner(ref, pod.body, uid)
    return Guest(ref.name, pod.name, agent, f"workspace {workspace_id}")
