# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Following one object until it is what somebody waits for."""

from __future__ import annotations

import typing as t

from ..deadline import LONGEST_WAIT_SECONDS, Backoff, Deadline
from ..errors import ApiUnreachableError, GoneError, SandboxError, UnavailableError
from .client import Client
from .reads import read
from .resources import Body, ObjectRef
from .retry import wait_or_raise

#: Seconds before the deadline in which no read begins: a read that times out so soon proves nothing.
LAST_READ_MARGIN_SECONDS = 0.1


def follow(client: Client, ref: ObjectRef, deadline: Deadline, known: Body | None = None) -> t.Iterator[Body]:
    """The states of one object, newest last, until the deadline has passed.

    One watch from the known state's resourceVersion; a watch that is cut, refused, out of date (410) or at its end is
    answered by reading the object and watching again, with growing waits while the watches do not last.

    Args:
        client: who asks.
        ref: the object.
        deadline: when to stop; the iterator then simply ends.
        known: the object as just created or read; it is yielded first. None reads it.

    Raises:
        GoneError: the object has been deleted, or another one has taken its name.
        CredentialError and others that repeating does not help.
        ApiUnreachableError, UnavailableError: the last failure, when the deadline passed while it was still met.
    """
    backoff = Backoff()
    uid: str | None = None
    while not deadline.expired:
        start = known or read(client, ref, deadline)
        known = None
        uid = uid or str(start["metadata"]["uid"])
        began = deadline.elapsed()
        failure: SandboxError | None = None
        try:
            yield from _watched(client, ref, start, uid, deadline)
        except (ApiUnreachableError, UnavailableError) as error:
            failure = error
        if deadline.elapsed() - began > LONGEST_WAIT_SECONDS:
            backoff.reset()
        if not _may_go_on(deadline, failure, backoff):
            return


def _may_go_on(deadline: Deadline, failure: SandboxError | None, backoff: Backoff) -> bool:
    """Wait before the next watch; False when the deadline leaves no time for one, then a failure is raised."""
    if deadline.expired:
        return False
    if failure is None:
        deadline.sleep(backoff.seconds)
        backoff.attempts += 1
    else:
        wait_or_raise(deadline, failure, backoff)
    if deadline.remaining() > LAST_READ_MARGIN_SECONDS:
        return True
    if failure is not None:
        raise failure
    return False


def _watched(client: Client, ref: ObjectRef, start: Body, uid: str, deadline: Deadline) -> t.Iterator[Body]:
    """A state, and those after it for as long as a watch lasts."""
    for state in _states(client, ref, start, deadline):
        if state["metadata"].get("uid") != uid:
            raise deleted(ref)
        yield state


def _states(client: Client, ref: ObjectRef, start: Body, deadline: Deadline) -> t.Iterator[Body]:
    yield start
    try:
        for event in client.watch(ref, str(start["metadata"].get("resourceVersion", "")), deadline):
            if event.get("type") == "ERROR" or deadline.expired:
                return
            body = event.get("object")
            metadata = body.get("metadata") if isinstance(body, dict) else None
            if not isinstance(body, dict) or not isinstance(metadata, dict) or metadata.get("name") != ref.name:
                continue
            if event.get("type") == "DELETED":
                raise deleted(ref)
            if event.get("type") in ("ADDED", "MODIFIED"):
                yield body
    except GoneError as error:
        if error.status != 410:
            raise


def deleted(ref: ObjectRef) -> GoneError:
    """The error for an object that went away while it was followed."""
    return GoneError(f"{ref} has been deleted by somebody else.", status=404, api_reason="NotFound", object=str(ref))
