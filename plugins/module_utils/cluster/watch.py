# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Following one object until it is what somebody waits for."""

from __future__ import annotations

import typing as t

from .client import Client
from .deadline import Deadline
from .errors import ApiUnreachableError, GoneError, UnavailableError
from .resources import Body, ObjectRef
from .retry import retry, wait_before_retry


def follow(client: Client, ref: ObjectRef, deadline: Deadline, known: Body | None = None) -> t.Iterator[Body]:
    """The states of one object, newest last, until the deadline has passed.

    One watch from the known state's resourceVersion; a watch that is cut, refused, or out of date (410) is answered
    by reading the object and watching again.

    Args:
        client: who asks.
        ref: the object.
        deadline: when to stop; the iterator then simply ends.
        known: the object as just created or read; it is yielded first. None reads it.

    Raises:
        GoneError: the object has been deleted.
        CredentialError and others that repeating does not help.
        ApiUnreachableError, UnavailableError: the last failure, when the deadline passed while it was still met.
    """
    attempt = 0
    while not deadline.expired:
        start = known or retry(deadline, lambda: client.get(ref, deadline))
        known = None
        yield start
        try:
            for state in _watched(client, ref, start, deadline):
                attempt = 0
                yield state
        except (ApiUnreachableError, UnavailableError) as error:
            if deadline.remaining() <= 0.0:
                return
            wait = wait_before_retry(error, attempt) or 0.0
            if wait >= deadline.remaining():
                raise
            deadline.sleep(wait)
            attempt += 1
        except GoneError as error:
            if error.status != 410:
                raise


def _watched(client: Client, ref: ObjectRef, state: Body, deadline: Deadline) -> t.Iterator[Body]:
    version = str(state.get("metadata", {}).get("resourceVersion", ""))
    for event in client.watch(ref, version, deadline):
        body = event.get("object")
        if not isinstance(body, dict) or body.get("metadata", {}).get("name", ref.name) != ref.name:
            continue
        if event.get("type") == "DELETED":
            raise GoneError(
                f"{ref} has been deleted by somebody else.", status=404, api_reason="NotFound", object=str(ref)
            )
        if event.get("type") == "ERROR":
            return
        if event.get("type") in ("ADDED", "MODIFIED"):
            yield body
        if deadline.expired:
            return
