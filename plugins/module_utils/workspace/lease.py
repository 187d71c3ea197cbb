# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The lease of a workspace: how long its pod runs on, under its holder's epoch; giving it back suspends it.

What ends with it is the pod alone, as ``shutdownPolicy`` is Retain (see ``body``), so whoever extends it late starts no
empty disk. It is extended under the resourceVersion of a read in which the holder was still the same: the condition is
that nothing at all was written in between, a newer holder's epoch included.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ..cluster.client import Client
from ..cluster.resources import Body, condition, expires_at
from ..deadline import Deadline
from ..errors import SandboxError
from ..lifecycle.lease.lease import Lease, read_held
from ..lifecycle.observed.agent_address import DEFAULT_AGENT_PORT, AddressMode
from ..lifecycle.observed.status import EXPIRED_REASONS
from .errors import WorkspaceNotFoundError, WorkspacePreconditionError, WorkspaceReplacedError, not_found
from .fencing import SUSPENDED, check_epoch, mode_of, raise_if_overtaken, stored_epoch
from .flush import suspended
from .manifest import is_settled, raise_if_unmanaged
from .names import HOLDER_EPOCH_ANNOTATION, workspace_ref
from .request import Opened, SuspendRequest, WorkspaceRequest
from .suspend import suspend_workspace

#: What its description says that it is, where other leases have the kind of their object.
WORKSPACE_KIND = "Workspace"


@dataclasses.dataclass(frozen=True)
class WorkspaceLease(Lease):
    """A workspace that somebody holds.

    Attributes:
        ref, uid, ttl, expires_at: as of every lease; ``ttl`` is 0, and ``expires_at`` None, for one without a ttl.
        workspace_id: its id.
        holder_epoch: the epoch under which it is held, or None for a workspace that nobody fences.
        flush: whether its guest must have put everything on its disk before it is given back.
        agent_port, agent_address: where its agent answers.
    """

    workspace_id: str = ""
    holder_epoch: int | None = None
    flush: bool = True
    agent_port: int = DEFAULT_AGENT_PORT
    agent_address: AddressMode = "service"

    afterwards: t.ClassVar[str] = (
        "Its disk is as it was. namzu.sandbox.workspace_info tells what became of it, and state: running starts it."
    )

    def ends(self, body: Body) -> datetime.datetime | None:
        """When its pod is stopped; None when it has none to stop, and when nobody asked for that."""
        return None if mode_of(body) == SUSPENDED else expires_at(body)

    def is_over(self, body: Body) -> bool:
        """Whether the controller has stopped its pod, and nobody has started it since."""
        return condition(body, "Ready").get("reason") in EXPIRED_REASONS and is_settled(body, "Ready")

    def raise_if_another(self, body: Body) -> None:
        """Do nothing when the Sandbox as it was read is the one that is held, and nobody has overtaken its holder.

        Raises:
            LeaseLostError: it is another one, its end has been decided, or it has passed to another holder.
            WorkspacePreconditionError: who holds it cannot be read; that may be corrected.
        """
        super().raise_if_another(body)
        stored_epoch(body)  # what cannot be read may be corrected, and is no loss yet
        try:
            raise_if_overtaken(self.ref, body, self.holder_epoch)
        except WorkspacePreconditionError as error:
            raise self.lost("overtaken", error.message.rstrip(".")) from error

    def extension(self, body: Body, until: datetime.datetime) -> Body:
        """As of every lease, and it stores the epoch, as every write of a holder does."""
        change = super().extension(body, until)
        if self.holder_epoch is not None and stored_epoch(body) != self.holder_epoch:
            change["metadata"]["annotations"] = {HOLDER_EPOCH_ANNOTATION: str(self.holder_epoch)}
        return change

    def release(self, client: t.Any, deadline: Deadline) -> SandboxError | None:
        """Suspend it after a flush, without waiting for its pod; one that is gone, or suspended already, is released.

        The flush is tried for at most half of the deadline. A guest that does not flush until then loses what is not on
        its disk: nobody is left who could decide otherwise, and its pod would run on unattended.

        Returns:
            Why the guest did not flush, or None.

        Raises:
            LeaseLostError: it has passed to another holder, and was left alone.
            SandboxError: what else kept it from being suspended.
        """
        try:
            done = suspend_workspace(client, self._suspend_request(deadline), uid=self.uid, wait=False)
        except (WorkspaceReplacedError, WorkspaceNotFoundError):
            return None
        except WorkspacePreconditionError as error:
            raise self.lost("overtaken", error.message.rstrip(".")) from error
        return done.unsettled[0] if done.unsettled else None

    def _suspend_request(self, deadline: Deadline) -> SuspendRequest:
        return SuspendRequest(
            namespace=self.ref.namespace,
            workspace_id=self.workspace_id,
            holder_epoch=self.holder_epoch,
            flush=self.flush,
            on_flush_failure="suspend",
            timeout=max(1.0, deadline.remaining()),
            agent_port=self.agent_port,
            agent_address=self.agent_address,
        )

    def described(self) -> dict[str, t.Any]:
        """The lease as plain data."""
        own = {field: getattr(self, field) for field in _OWN}
        return {**super().described(), "kind": WORKSPACE_KIND, **own}

    @classmethod
    def of(cls, described: t.Mapping[str, t.Any]) -> t.Self:
        """The lease that plain data describes."""
        base = Lease.of({**described, "kind": "Sandbox"})
        return cls(base.ref, base.uid, base.ttl, base.expires_at, **{field: described[field] for field in _OWN})


_OWN = ("workspace_id", "holder_epoch", "flush", "agent_port", "agent_address")


def workspace_lease_of(opened: Opened, request: WorkspaceRequest) -> WorkspaceLease:
    """The lease of a workspace that runs, as it was opened."""
    return WorkspaceLease(
        ref=request.ref,
        uid=opened.uid,
        ttl=request.ttl or 0.0,
        expires_at=opened.expires_at,
        workspace_id=request.workspace_id,
        holder_epoch=opened.holder_epoch,
        flush=request.flush,
        agent_port=request.agent_port,
        agent_address=request.agent_address,
    )


def find_workspace_lease(
    client: Client, namespace: str, workspace_id: str, holder_epoch: int | None, deadline: Deadline
) -> WorkspaceLease:
    """The lease of the workspace of that id, if this holder may extend it; its ``ttl`` is 0.

    Raises:
        InputError: it is no id, or no epoch; nothing was sent.
        WorkspaceNotFoundError, WorkspaceMismatchError: there is no such workspace.
        WorkspacePreconditionError: another holder has it.
        WorkspaceSuspendedError: it has no pod whose end could be put off.
    """
    check_epoch(holder_epoch)
    ref = workspace_ref(namespace, workspace_id)
    body = read_held(client, ref, deadline)
    if body is None:
        raise not_found(ref, workspace_id)
    raise_if_unmanaged(body, ref, workspace_id)
    raise_if_overtaken(ref, body, holder_epoch)
    if mode_of(body) == SUSPENDED:
        raise suspended(ref)
    uid, end = str(body["metadata"]["uid"]), expires_at(body)
    return WorkspaceLease(ref, uid, 0.0, end, workspace_id=workspace_id, holder_epoch=holder_epoch)
