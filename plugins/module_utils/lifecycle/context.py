# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A sandbox for as long as a block of a Python program runs, and its lease with it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import typing as t

from ..cluster.client import Client
from ..deadline import CLEANUP_SECONDS, Cancellation, Deadline
from ..errors import SandboxError
from ..guest.agent import Agent
from .acquire.acquire import acquire
from .acquire.request import Acquired, AcquireRequest
from .lease.keeper import Keeper
from .lease.lease import Lease, lease_of
from .lease.registry import Entry


@dataclasses.dataclass(frozen=True)
class Held:
    """A sandbox that is ours while the block runs.

    Attributes:
        acquired: what the acquire found out about it.
        agent: runs programs in it.
        kept: its lease, as the keeper has it.
    """

    acquired: Acquired
    agent: Agent
    kept: Entry

    @property
    def expires_at(self) -> datetime.datetime | None:
        """When it goes away if it is not renewed any more."""
        return self.kept.lease.expires_at

    def refuse_lost(self) -> None:
        """Do nothing while the sandbox is ours.

        Raises:
            LeaseLostError: it has ended, was deleted or was replaced; what was in it is gone.
        """
        if self.kept.lost is not None:
            raise self.kept.lost


@contextlib.contextmanager
def held(
    client: Client,
    request: AcquireRequest,
    keeper: Keeper | None = None,
    *,
    cancellation: Cancellation | None = None,
) -> t.Iterator[Held]:
    """Acquire a sandbox, renew its lease while the block runs, and release it at the end, however that ends.

    The release has a clock of its own. A sandbox that stood there already under the requested name is whoever's made
    it, and stays. An error of the block is never hidden by one of the release; that becomes a note on it.

    Args:
        client, request: as for ``acquire``.
        keeper: renews the lease, beside others; None for one of its own, and a thread more.
        cancellation: ends the acquire, as for ``acquire``; the block ends itself.

    Yields:
        The sandbox and its agent.

    Raises:
        As ``acquire``; and what kept the sandbox from being released, with its ``leftover``, if the block had no error.
    """
    acquired = acquire(client, request, cancellation=cancellation)
    subject = f"sandbox {acquired.namespace}/{acquired.name}"
    lease = lease_of(acquired, request.ttl, direct_sandbox=request.template is not None)
    try:
        with _renewed(client, lease, keeper) as entry:
            yield Held(acquired, Agent(acquired.agent, subject=subject), entry)
    except BaseException as error:
        failure = _give_back(client, lease, created=acquired.created)
        if failure is not None:
            error.add_note(f"{failure.leftover} could not be released: {failure}")
        raise
    failure = _give_back(client, lease, created=acquired.created)
    if failure is not None:
        raise failure


@contextlib.contextmanager
def _renewed(client: Client, lease: Lease, keeper: Keeper | None) -> t.Iterator[Entry]:
    if keeper is None:
        with Keeper(clock=client.clock) as own:
            yield own.hold(client, lease)
        return
    try:
        yield keeper.hold(client, lease)
    finally:
        keeper.let_go(lease.uid)


def _give_back(client: Client, lease: Lease, *, created: bool) -> SandboxError | None:
    """Delete what the acquire made, and only that; None when it is gone."""
    if not created:
        return None
    deadline = Deadline(CLEANUP_SECONDS, client.clock)
    try:
        lease.give_back(client, deadline)
    except SandboxError as error:
        error.leftover = str(lease.ref)
        return error
    return None
