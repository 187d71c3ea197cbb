# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A sandbox for as long as a block of a Python program runs, and its lease with it."""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import socket
import typing as t

from ..cluster.client import Client
from ..deadline import CLEANUP_SECONDS, Cancellation, Deadline
from ..errors import SandboxError
from ..guest.agent import Agent
from ..guest.errors import GuestTimeoutError
from ..guest.protocol.call import Caller
from ..guest.protocol.connection import Peer, dial
from .acquire.acquire import acquire
from .acquire.request import Acquired, AcquireRequest
from .errors import ReplacedError
from .lease.keeper import Keeper
from .lease.lease import Lease, lease_of
from .lease.registry import Entry
from .observed.agent_address import locate


class HeldAgent(Agent):
    """The agent of a held sandbox: no call is made once the lease was lost or released, nor to another pod.

    Where the pod's address is dialed, an address that does not connect is read again: a pod keeps its uid when its
    node gives it another address.
    """

    def __init__(self, client: Client, request: AcquireRequest, acquired: Acquired, entry: Entry) -> None:
        super().__init__(acquired.agent, subject=f"sandbox {acquired.namespace}/{acquired.name}")
        self._client, self._request, self._acquired, self._entry = client, request, acquired, entry
        self.released = False
        if request.agent_address == "pod_ip":
            self.address = dataclasses.replace(acquired.agent, dial=self._dial)

    @property
    def caller(self) -> Caller:
        self.raise_if_lost()
        return super().caller

    def raise_if_lost(self) -> None:
        """Raise LeaseLostError when the lease was lost or released."""
        if self._entry.lost is not None:
            raise self._entry.lost
        if self.released:
            raise self._entry.lease.lost("gone", "it was released at the end of its block")

    def _dial(self, deadline: Deadline) -> socket.socket:
        try:
            return self._connect(deadline)
        except (OSError, GuestTimeoutError):
            if not self._has_moved(deadline):
                raise
        return self._connect(deadline)

    def _connect(self, deadline: Deadline) -> socket.socket:
        return dial(Peer(self.address.host, self.address.port, self.subject), "connect", deadline)

    def _has_moved(self, deadline: Deadline) -> bool:
        """Whether the pod has another address than the one that was dialed, which is dialed from now on."""
        acquired = self._acquired
        try:
            found = locate(
                self._client,
                acquired.namespace,
                acquired.name,
                port=self.address.port,
                mode="pod_ip",
                deadline=deadline,
                uid=acquired.uid,
            )
        except ReplacedError:
            raise
        except SandboxError:
            return False  # the address that does not connect is the failure to report
        if found.agent.token != self.address.token:
            raise ReplacedError(
                f"Pod {acquired.namespace}/{acquired.pod}: was replaced by Pod {found.pod}. What it held is lost, and "
                "nothing was run in the new one.",
                object=f"Pod {acquired.namespace}/{acquired.pod}",
                next_step="Acquire another sandbox.",
            )
        moved = found.agent.host != self.address.host
        self.address = dataclasses.replace(self.address, host=found.agent.host)
        return moved


@dataclasses.dataclass(frozen=True)
class Held:
    """A sandbox that is ours while the block runs.

    Attributes:
        acquired: what the acquire found out about it.
        agent: runs programs in it.
        kept: its lease, as the keeper has it.
    """

    acquired: Acquired
    agent: HeldAgent
    kept: Entry

    @property
    def expires_at(self) -> datetime.datetime | None:
        """When it goes away if it is not renewed any more."""
        return self.kept.lease.expires_at

    def raise_if_lost(self) -> None:
        """Do nothing while the sandbox is ours.

        Raises:
            LeaseLostError: it has ended, was deleted, replaced or released; what was in it is gone.
        """
        self.agent.raise_if_lost()


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
    lease = lease_of(acquired, request.ttl, direct_sandbox=request.template is not None)
    try:
        with _renewed(client, lease, keeper) as entry:
            agent = HeldAgent(client, request, acquired, entry)
            try:
                yield Held(acquired, agent, entry)
            finally:
                agent.released = True
    except BaseException as error:
        failure = _release_created(client, lease, created=acquired.created)
        if failure is not None:
            error.add_note(f"{failure.leftover} could not be released: {failure}")
        raise
    failure = _release_created(client, lease, created=acquired.created)
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


def _release_created(client: Client, lease: Lease, *, created: bool) -> SandboxError | None:
    """Delete what the acquire made, and only that; None when it is gone."""
    if not created:
        return None
    deadline = Deadline(CLEANUP_SECONDS, client.clock)
    try:
        lease.release(client, deadline)
    except SandboxError as error:
        return error.replace(leftover=str(lease.ref))
    return None
