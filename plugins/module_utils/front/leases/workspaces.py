# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What verb ``workspace`` tells the lease keeper of the play, when there is one."""

from __future__ import annotations

import contextlib
import typing as t

from ...cluster.client import Client
from ...deadline import CLEANUP_SECONDS, Deadline
from ...errors import SandboxError
from ...workspace.lease import workspace_lease_of
from ...workspace.names import workspace_ref
from ...workspace.request import Opened, WorkspaceRequest
from .sandboxes import Keeping

STAYS = "Workspace {} ran before this play: it is not suspended at the end."


def hold(keeper: Keeping, client: Client, request: WorkspaceRequest, opened: Opened) -> None:
    """Let the keeper put off the end of a workspace, and suspend it at the end if this task has started it.

    Raises:
        SandboxError: it shall be suspended at the end and the keeper has not taken it; it was suspended at once.
    """
    lease = workspace_lease_of(opened, request)
    started = opened.origin != "adopted"

    def release_now() -> list[str]:
        try:
            if started:
                lease.release(client, Deadline(CLEANUP_SECONDS, client.clock))
        except SandboxError:
            return [str(lease.ref)]
        return []

    keeper.hand_over({opened.workspace_id: lease}, [opened.workspace_id] if started else [], release_now, STAYS)


@contextlib.contextmanager
def releasing(keeper: Keeping, namespace: str, workspace_id: str) -> t.Iterator[None]:
    """While the block suspends or deletes a workspace, its end is no loss; if it cannot be, the keeper goes on."""
    with keeper.releasing(namespace, [workspace_ref(namespace, workspace_id).name]) as failed:
        yield
        failed.clear()
