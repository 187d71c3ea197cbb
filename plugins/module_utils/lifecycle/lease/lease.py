# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A lease: how long a claim or direct Sandbox lives on, and extending that without ever taking another one for it.

The controller (agent-sandbox v0.5.6) writes its decision that a lease has ended into the status, on the condition that
nothing else has been written, before it deletes anything. A change that names the resourceVersion of an object without
that status therefore either comes first, and the object lives on, or is refused. What was extended after its end would
come back as a new, empty sandbox, so nothing is sent any more once the end may have passed on the server's clock.
"""

from __future__ import annotations

import contextlib
import dataclasses
import datetime
import typing as t

from ...cluster.client import Client
from ...cluster.resources import (
    ACQUIRE_ID_ANNOTATION,
    CLAIM,
    SANDBOX,
    Body,
    ObjectRef,
    annotation,
    condition,
    expires_at,
)
from ...cluster.retry import retry
from ...cluster.server_time import Span
from ...deadline import Deadline
from ...errors import ConflictError, GoneError, SandboxError
from ..acquire.request import Acquired
from ..observed.status import EXPIRED_REASONS, named_sandbox
from ..timestamps import timestamp

#: Seconds before the end in which a renewal is uncertain, as clocks may differ by this much; and seconds after the end
#: until the controller has done what it would have done.
CLOCK_SKEW_GUARD_SECONDS = 2.0
AFTERWARDS = 1.0

#: A renewal that others keep getting in the way of; the controller's own writes are few.
_ATTEMPTS = 5

_KINDS = {kind.name: kind for kind in (CLAIM, SANDBOX)}


class LeaseLostError(SandboxError):
    """There is nothing to renew any more, and there never will be.

    Attributes:
        reason: ``gone`` (deleted), ``replaced`` (another object, or another sandbox behind it), ``expired``, or
            ``overtaken`` (a workspace that passed to another holder).
    """


@dataclasses.dataclass(frozen=True)
class Lease:
    """One claim or direct Sandbox that somebody holds.

    Attributes:
        ref: the object.
        uid: its uid; one of the same name and another uid is another one.
        ttl: seconds for which a renewal extends it; 0 for one that is only given back.
        expires_at: when it ends as far as we know, or None when it does not.
        sandbox: the Sandbox that a claim leads to, or None when that does not matter.
    """

    ref: ObjectRef
    uid: str
    ttl: float
    expires_at: datetime.datetime | None
    sandbox: str | None = None

    #: What there is to do when it is lost.
    afterwards: t.ClassVar[str] = "What was in the sandbox is lost: acquire another one."

    def ends(self, body: Body) -> datetime.datetime | None:
        """When the object as it was read ends by itself, or None when it does not."""
        return expires_at(body)

    def is_over(self, body: Body) -> bool:
        """Whether the controller has decided that it has ended."""
        return condition(body, "Ready").get("reason") in EXPIRED_REASONS

    def raise_if_another(self, body: Body) -> None:
        """Do nothing when the object as it was read is the one that is held.

        Raises:
            LeaseLostError: it is another one, or its end has been decided.
        """
        metadata = body["metadata"]
        if metadata["uid"] != self.uid:
            raise self.lost("replaced", "it was deleted, and another one has its name")
        if metadata.get("deletionTimestamp"):
            raise self.lost("gone", "it is being deleted")
        if self.is_over(body):
            raise self.lost("expired", "the controller says that its lease has ended")
        leads_to = named_sandbox(body) if self.ref.kind is CLAIM else None
        if self.sandbox and leads_to and leads_to != self.sandbox:
            raise self.lost("replaced", f"it leads to the sandbox {leads_to} now, no longer to {self.sandbox}")

    def extension(self, body: Body, until: datetime.datetime) -> Body:
        """The merge patch that puts off its end, and is taken only while the object is as it was read."""
        life = {"shutdownTime": timestamp(until)}
        spec: dict[str, t.Any] = {"lifecycle": life} if self.ref.kind is CLAIM else life
        # No two states of any objects have one version, so it stands for the uid that was read with it; a uid in a
        # patch is answered by 422, not by 409. Without a version nothing would be compared; the server takes none that
        # is no number.
        version = body["metadata"].get("resourceVersion") or "unknown"
        return {"metadata": {"resourceVersion": version}, "spec": spec}

    def renewed(self, client: t.Any, deadline: Deadline, bound: float) -> Renewal:
        """Make sure that it lasts ``ttl`` seconds from now by the server's clock.

        Args:
            client: who asks the server.
            deadline: bounds the whole.
            bound: seconds for each request, when that is less.

        Raises:
            LeaseLostError: there is nothing to renew any more.
            SandboxError: this attempt failed, and nothing is lost yet.
        """
        return renew(client, self, deadline, bound=bound)

    def left(self, client: t.Any) -> float | None:
        """Seconds until its end, the longest that the server's clock allows for; None when it does not end."""
        end = self.expires_at
        return None if end is None else (end - client.server_time.now().earliest) / datetime.timedelta(seconds=1)

    def lost(self, reason: str, why: str) -> LeaseLostError:
        """The error for a lease that ends here."""
        return LeaseLostError(
            f"The lease of {self.ref} cannot be renewed: {why}.",
            reason=reason,
            object=str(self.ref),
            next_step=self.afterwards,
        )

    def release(self, client: t.Any, deadline: Deadline) -> SandboxError | None:
        """Delete it; one that is gone, or whose name another one has, is given back.

        Returns:
            What was not done before, or None; a workspace whose guest did not flush has such a failure.

        Raises:
            LeaseLostError: it is another holder's, and was left alone.
            SandboxError: what kept it from being given back when the deadline had passed.
        """
        with contextlib.suppress(GoneError, ConflictError):
            retry(deadline, lambda: client.delete(self.ref, deadline, uid=self.uid))
        return None

    def described(self) -> dict[str, t.Any]:
        """The lease as plain data."""
        return {
            "kind": self.ref.kind.name,
            "namespace": self.ref.namespace,
            "name": self.ref.name,
            "uid": self.uid,
            "ttl": self.ttl,
            "expires_at": timestamp(self.expires_at) if self.expires_at else None,
            "sandbox": self.sandbox,
        }

    @classmethod
    def of(cls, described: t.Mapping[str, t.Any]) -> t.Self:
        """The lease that plain data describes."""
        end = described["expires_at"]
        return cls(
            ref=_KINDS[described["kind"]].ref(described["namespace"], described["name"]),
            uid=described["uid"],
            ttl=float(described["ttl"]),
            expires_at=datetime.datetime.fromisoformat(end) if end else None,
            sandbox=described["sandbox"],
        )


@dataclasses.dataclass(frozen=True)
class Renewal:
    """What a renewal did.

    Attributes:
        lease: the lease as it is now.
        before: when it would have ended.
        changed: whether it was, or in a dry run would be, extended; False when enough was left.
        look_again: after a close call, the seconds after which a look tells whether the lease goes on; else None.
    """

    lease: Lease
    before: datetime.datetime | None
    changed: bool
    look_again: float | None = None


def lease_of(acquired: Acquired, ttl: float, *, direct_sandbox: bool) -> Lease:
    """The lease of what an acquire handed out."""
    ref = (SANDBOX if direct_sandbox else CLAIM).ref(acquired.namespace, acquired.name)
    return Lease(ref, acquired.uid, ttl, acquired.expires_at, None if direct_sandbox else acquired.sandbox)


def find_lease(client: Client, namespace: str, name: str, deadline: Deadline) -> Lease:
    """The lease of the claim, or else of the direct Sandbox, of that name; its ``ttl`` is 0.

    Raises:
        LeaseLostError: there is none, or it is no sandbox that an acquire made.
    """
    ref = CLAIM.ref(namespace, name)
    body = read_held(client, ref, deadline)
    if body is None:
        ref = SANDBOX.ref(namespace, name)
        body = read_held(client, ref, deadline)
        if body is None or annotation(body, ACQUIRE_ID_ANNOTATION) is None:
            nothing = Lease(CLAIM.ref(namespace, name), "", 0.0, None)
            raise nothing.lost("gone", "it is not there, nor is a sandbox that was made directly")
    leads_to = named_sandbox(body) if ref.kind is CLAIM else None
    found = Lease(ref, str(body["metadata"]["uid"]), 0.0, None, leads_to)
    return dataclasses.replace(found, expires_at=found.ends(body))


def renew(
    client: Client,
    lease: Lease,
    deadline: Deadline,
    *,
    bound: float | None = None,
    at_least: float | None = None,
    dry_run: bool = False,
) -> Renewal:
    """Make sure that a lease lasts on, at least ``ttl`` seconds from now by the API server's clock.

    Args:
        deadline: bounds the whole.
        bound: seconds for each request, when that is less.
        at_least: seconds, instead of the lease's own ``ttl``.
        dry_run: let the server say whether it would take the change.

    Returns:
        What was done. A lease that lasts longer anyway is left as it is, never shortened.

    Raises:
        LeaseLostError: it has ended, or the object is gone or another one; nothing was sent.
        ConflictError: others kept changing the object.
        ApiError, ApiUnreachableError: this attempt failed, and nothing is lost yet.
    """
    attempts = 0
    while True:
        attempts += 1
        body = _held(client, lease, _step(deadline, bound))
        end, now = lease.ends(body), client.server_time.now()
        _raise_if_ended(lease, end, now.latest)
        wanted = now.earliest + datetime.timedelta(seconds=lease.ttl if at_least is None else at_least)
        if end is None or end >= wanted:
            return Renewal(dataclasses.replace(lease, expires_at=end), end, changed=False)
        try:
            changed = client.patch(lease.ref, lease.extension(body, wanted), _step(deadline, bound), dry_run=dry_run)
        except GoneError:
            raise lease.lost("gone", "it was deleted") from None
        except ConflictError:
            if attempts == _ATTEMPTS or deadline.expired:
                raise
            continue
        lease.raise_if_another(changed)
        renewed = dataclasses.replace(lease, expires_at=lease.ends(changed))
        return Renewal(renewed, end, changed=True, look_again=_look_again(end, now))


def _step(deadline: Deadline, bound: float | None) -> Deadline:
    return deadline if bound is None else deadline.child(bound)


def ensure_left(
    client: Client,
    find: t.Callable[[Deadline], Lease],
    seconds: float,
    deadline: Deadline,
    *,
    uid: str | None = None,
    dry_run: bool = False,
) -> Renewal:
    """Make sure that a sandbox lives at least so many seconds on, for a caller who was not there from the beginning.

    Args:
        find: reads what is held now, as ``find_lease`` does.
        deadline: bounds the whole, attempts that fail and the look after a close call included.
        uid: the object's, when the caller knows it.
        dry_run: as for ``renew``.

    Returns:
        What was done; ``before`` is its end when it was first looked at.

    Raises:
        LeaseLostError: it is not there, its lease has ended, or it is another one than that of ``uid``.
        ApiError, ApiUnreachableError: the last failure, when it is final or the deadline would pass.
    """
    found = retry(deadline, lambda: find(deadline))
    if uid is not None and uid != found.uid:
        raise found.lost("replaced", f"another one than that of uid {uid} has its name")
    renewal = retry(deadline, lambda: renew(client, found, deadline, at_least=seconds, dry_run=dry_run))
    if renewal.look_again is not None and not dry_run:
        deadline.sleep(renewal.look_again)
        retry(deadline, lambda: raise_if_lost(client, renewal.lease, deadline))
    # A change whose answer was lost is found in place by the next attempt.
    changed = renewal.changed or renewal.lease.expires_at != found.expires_at
    return dataclasses.replace(renewal, before=found.expires_at, changed=changed)


def raise_if_lost(client: Client, lease: Lease, deadline: Deadline) -> None:
    """Look once whether a lease goes on.

    Raises:
        LeaseLostError: it does not.
        ApiError, ApiUnreachableError: that could not be read.
    """
    end = lease.ends(_held(client, lease, deadline))
    _raise_if_ended(lease, end, client.server_time.now().latest)


def _held(client: Client, lease: Lease, deadline: Deadline) -> Body:
    body = read_held(client, lease.ref, deadline)
    if body is None:
        raise lease.lost("gone", "it was deleted")
    lease.raise_if_another(body)
    return body


def read_held(client: Client, ref: ObjectRef, deadline: Deadline) -> Body | None:
    """What stands under the name of something that is held, or None; one request, as the caller knows how often."""
    try:
        return client.get(ref, deadline)
    except GoneError:
        return None


def _raise_if_ended(lease: Lease, end: datetime.datetime | None, latest: datetime.datetime) -> None:
    if end is not None and end <= latest:
        raise lease.lost("expired", f"its lease ended at {timestamp(end)}")
    if end is not None and lease.expires_at is not None and lease.expires_at <= latest:
        # Whoever extended it may have done so after its end, and then it is a new, empty sandbox.
        known = timestamp(lease.expires_at)
        raise lease.lost("expired", f"its lease ended at {known} as far as we know, and others extended it")


def _look_again(end: datetime.datetime, now: Span) -> float | None:
    if (end - now.latest).total_seconds() >= CLOCK_SKEW_GUARD_SECONDS:
        return None
    return (end - now.earliest).total_seconds() + AFTERWARDS
