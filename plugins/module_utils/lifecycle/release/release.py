# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Release: give a sandbox back by deleting its claim, or the Sandbox itself when it was made directly."""

from __future__ import annotations

import dataclasses
import typing as t

from ...cluster.client import Client
from ...cluster.reads import read_or_none
from ...cluster.resources import ACQUIRE_ID_ANNOTATION, CLAIM, POD, SANDBOX, Body, ObjectRef, annotation
from ...cluster.retry import retry
from ...deadline import Deadline
from ...errors import ApiUnreachableError, ConflictError, GoneError, SandboxError, UnavailableError
from ..errors import ReplacedError, check_uid
from ..observed.status import named_sandbox

#: Seconds between two looks while waiting for a pod to end: pods take from 0.1 s up to their grace period.
POLL = 0.1


_Deleted = t.Literal["deleted", "presumed", "not-there"]


@dataclasses.dataclass(frozen=True)
class Released:
    """What a release did.

    Attributes:
        name: the name of the claim or direct Sandbox.
        existed: whether there was one; False when it was gone already.
    """

    name: str
    existed: bool


def release(
    client: Client,
    namespace: str,
    name: str,
    deadline: Deadline,
    *,
    uid: str | None = None,
    wait: bool = False,
    dry_run: bool = False,
) -> Released:
    """Delete the claim of that name, or the direct Sandbox; one that is gone already is success.

    A Sandbox that no acquire made (a member of a pool, a workspace) is never touched.

    Args:
        deadline: bounds the whole, the waiting included.
        uid: of the claim or Sandbox that is meant, or None for whichever has the name.
        wait: also wait until claim, Sandbox and pod are gone.
        dry_run: only say whether there is something to delete.

    Raises:
        ReplacedError: another object than that of ``uid`` has the name; it was not changed.
        ReleaseTimeoutError: something still stands at the deadline; the object itself has been deleted.
        ApiError, ApiUnreachableError: the delete failed, and the sandbox is still ours.
    """
    claim = CLAIM.ref(namespace, name)
    presumed = False
    sandbox = SANDBOX.ref(namespace, name)
    refs = [claim, sandbox]
    if not (wait or dry_run):
        ended = _delete(client, claim, uid, deadline)
        if ended == "deleted":
            return Released(name, existed=True)
        # A lost answer is no proof: there may have been no claim, and the direct Sandbox still exists.
        presumed = ended == "presumed"
        refs = [claim, sandbox] if uid is not None else [sandbox]
    try:
        ref, body = _find(client, refs, uid, deadline)
    except ReplacedError:
        if presumed:
            return Released(name, existed=True)
        raise
    if body is None or dry_run:
        return Released(name, existed=presumed or body is not None)
    remains = _remains(client, ref, body, deadline) if wait else []
    _delete(client, ref, _uid(body), deadline)
    for left, known in remains:
        _wait_until_gone(client, left, known, deadline)
    return Released(name, existed=True)


class ReleaseTimeoutError(SandboxError):
    """It has been deleted, and what belonged to it is not gone yet."""

    reason = "not-gone"
    retryable = True


def _find(
    client: Client, refs: t.Sequence[ObjectRef], uid: str | None, deadline: Deadline
) -> tuple[ObjectRef, Body | None]:
    """The first of these that exists, a Sandbox only if an acquire created it; with a uid, the one that has it.

    Raises:
        ReplacedError: none of that name has the uid.
    """
    found: list[tuple[ObjectRef, Body]] = []
    for ref in refs:
        body = read_or_none(client, ref, deadline)
        if body is None:
            continue
        if uid is None or _uid(body) == uid:
            acquired = ref.kind is CLAIM or bool(annotation(body, ACQUIRE_ID_ANNOTATION))
            return ref, body if acquired else None
        found.append((ref, body))
    for ref, body in found:
        check_uid(ref, _uid(body), uid)
    return refs[-1], None


def _delete(client: Client, ref: ObjectRef, uid: str | None, deadline: Deadline) -> _Deleted:
    unanswered = False

    def delete() -> None:
        nonlocal unanswered
        try:
            client.delete(ref, deadline, uid=uid)
        except (ApiUnreachableError, UnavailableError) as error:
            unanswered = unanswered or not isinstance(error, UnavailableError) or error.status >= 500
            raise

    try:
        retry(deadline, delete)
    except GoneError:
        # After an attempt whose answer was lost, it is most likely that one that has deleted it.
        return "presumed" if unanswered else "not-there"
    except ConflictError:
        if uid is None:
            raise
        return "presumed" if unanswered else "not-there"  # another object has the name
    return "deleted"


def _remains(client: Client, ref: ObjectRef, claim: Body, deadline: Deadline) -> list[tuple[ObjectRef, str]]:
    """What goes with the claim, each with its uid: the same name may soon belong to somebody else's object."""
    remains = [(ref, _uid(claim))]
    sandbox = named_sandbox(claim) if ref.kind is CLAIM else ref.name
    kinds = (SANDBOX, POD) if ref.kind is CLAIM else (POD,)
    for kind in kinds if sandbox else ():
        body = read_or_none(client, kind.ref(ref.namespace, str(sandbox)), deadline)
        if body is not None:
            remains.append((kind.ref(ref.namespace, str(sandbox)), _uid(body)))
    return remains


def _uid(body: Body) -> str:
    return str(body["metadata"]["uid"])


def _wait_until_gone(client: Client, ref: ObjectRef, uid: str, deadline: Deadline) -> None:
    while (body := read_or_none(client, ref, deadline)) is not None and _uid(body) == uid:
        if deadline.remaining() <= 2 * POLL:
            raise ReleaseTimeoutError(
                f"{ref} still stands {deadline.seconds:g} s after it was released.",
                object=str(ref),
                next_step="Look at its finalizers and at the node's kubelet; the lease does not run any more.",
            )
        deadline.sleep(POLL)
