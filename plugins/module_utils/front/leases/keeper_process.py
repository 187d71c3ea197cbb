# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What the lease keeper's process runs, for leases of every backend."""

from __future__ import annotations

import typing as t

from ...lifecycle.lease import process as keeper_process
from ...lifecycle.lease.lease import Lease
from ...lifecycle.lease.protocol import Message
from ..options.backend import CONTAINER

#: Seconds for one request to an engine.
ENGINE_SECONDS = 30.0


def main(parent_death_socket: int, control_socket: int) -> None:
    """Keep leases until the other end of the parent-death socket is closed.

    Args:
        parent_death_socket, control_socket: descriptors of inherited sockets.
    """
    keeper_process.main(parent_death_socket, control_socket, read_lease, open_client)


# Each loads what the other does not need: most plays hold sandboxes of one backend, and no workspace.


def read_lease(described: Message) -> Lease:
    """The lease of a claim, a direct Sandbox, a container or a workspace."""
    if described.get("backend") == CONTAINER:
        from ..backends.engine_lease import ContainerLease

        return ContainerLease.of(described)
    if described["kind"] in ("SandboxClaim", "Sandbox"):
        return Lease.of(described)
    from ...workspace.lease import WorkspaceLease

    return WorkspaceLease.of(described)


def open_client(options: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> t.Any:
    """The client of a task for its API server or its engine; nothing is sent.

    Args:
        options: the access options of the task; ``backend`` is among them for an engine.
        environ: the environment in which they are read.

    Raises:
        AccessError, InputError: they name no usable way.
    """
    if options.get("backend") == CONTAINER:
        from ..options.engine import engine_client

        return engine_client(options, environ, ENGINE_SECONDS)
    from ...cluster.auth.access import resolve_access
    from ...cluster.client import Client

    return Client(resolve_access(options, environ))
