# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The keeper's process (``lifecycle/lease/process``), with workspaces among what it keeps."""

from __future__ import annotations

from ..lifecycle.lease import process as keeper_process
from ..lifecycle.lease.lease import Lease
from ..lifecycle.lease.protocol import Message


def main(lifeline: int, door: int) -> None:
    """Keep leases until the other end of the lifeline is closed.

    Args:
        lifeline, door: descriptors of inherited sockets.
    """
    keeper_process.main(lifeline, door, read_lease)


def read_lease(described: Message) -> Lease:
    """The lease of a claim, a direct Sandbox or a workspace."""
    if described["kind"] in ("SandboxClaim", "Sandbox"):
        return Lease.of(described)
    # Most plays hold none, and it brings the guest's part of the core along.
    from .lease import WorkspaceLease

    return WorkspaceLease.of(described)
