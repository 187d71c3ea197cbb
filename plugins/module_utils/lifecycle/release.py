# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Release: give a sandbox back by deleting its claim, and wait, when asked, until it is really gone."""

from __future__ import annotations

import dataclasses

from ..cluster.client import Client
from ..cluster.deadline import Deadline
from ..cluster.errors import ConflictError, GoneError, SandboxError
from ..cluster.resources import CLAIM, POD, SANDBOX, Body, ObjectRef
from ..cluster.retry import retry
from .claim import named_sandbox

#: Seconds between two looks while waiting for a pod to end: pods take from 0.1 s up to their grace period.
POLL = 0.1


@dataclasses.dataclass(frozen=True)
class Released:
    """What a release did.

    Attributes:
        name: the claim's name.
        existed: whether there was such a claim; False when it was gone already.
        claim: the claim as it was last seen, when it was read; for a diff.
    """

    name: str
    existed: bool
    claim: Body | None = None


def release(
    client: Client, namespace: str, name: str, deadline: Deadline, *, wait: bool = False, dry_run: bool = False
) -> Released:
    """Delete the claim of that name; one that is gone already is success.

    Args:
        deadline: bounds the whole, the waiting included.
        wait: also wait until claim, Sandbox and pod are gone.
        dry_run: only say whether there is something to delete.

    Raises:
        ReleaseTimeoutError: something still stands at the deadline; the claim itself has been deleted.
        ApiError, ApiUnreachableError: the delete failed, and the claim is still ours.
    """
    ref = CLAIM.ref(namespace, name)
    claim = _read(client, ref, deadline) if wait or dry_run else None
    if (wait or dry_run) and (claim is None or dry_run):
        return Released(name, existed=claim is not None, claim=claim)
    remains = _remains(client, ref, claim, deadline) if claim else []
    existed = _delete(client, ref, claim, deadline)
    for left, uid in remains:
        _wait_until_gone(client, left, uid, deadline)
    return Released(name, existed=existed, claim=claim)


class ReleaseTimeoutError(SandboxError):
    """The claim has been deleted, and what belonged to it is not gone yet."""

    reason = "not-gone"
    retryable = True


def _read(client: Client, ref: ObjectRef, deadline: Deadline) -> Body | None:
    try:
        return retry(deadline, lambda: client.get(ref, deadline))
    except GoneError as error:
        _raise_unless_the_object(error)
        return None


def _delete(client: Client, ref: ObjectRef, claim: Body | None, deadline: Deadline) -> bool:
    uid = _uid(claim) if claim else None
    try:
        retry(deadline, lambda: client.delete(ref, deadline, uid=uid))
    except GoneError as error:
        _raise_unless_the_object(error)
        return False
    except ConflictError:
        return False  # another claim took the name between the read and the delete: not ours to delete
    return True


def _raise_unless_the_object(error: GoneError) -> None:
    # A kind that is not served (no CRDs, wrong cluster) answers 404 too; that is no success.
    if error.next_step is not None:
        raise error


def _remains(client: Client, ref: ObjectRef, claim: Body, deadline: Deadline) -> list[tuple[ObjectRef, str]]:
    """What goes with the claim, each with its uid: the same name may soon belong to somebody else's object."""
    remains = [(ref, _uid(claim))]
    sandbox = named_sandbox(claim)
    for kind in (SANDBOX, POD) if sandbox else ():
        body = _read(client, kind.ref(ref.namespace, str(sandbox)), deadline)
        if body is not None:
            remains.append((kind.ref(ref.namespace, str(sandbox)), _uid(body)))
    return remains


def _uid(body: Body) -> str:
    return str(body["metadata"]["uid"])


def _wait_until_gone(client: Client, ref: ObjectRef, uid: str, deadline: Deadline) -> None:
    while (body := _read(client, ref, deadline)) is not None and _uid(body) == uid:
        if deadline.expired:
            raise ReleaseTimeoutError(
                f"{ref} still stands {deadline.seconds:g} s after its claim was released.",
                object=str(ref),
                next_step="Look at its finalizers and at the node's kubelet; the lease does not run any more.",
            )
        deadline.sleep(POLL)
