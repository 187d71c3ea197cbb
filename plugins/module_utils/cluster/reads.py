# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Reads that are repeated within a deadline when the server cannot be reached or says that it cannot answer now."""

from __future__ import annotations

import concurrent.futures
import typing as t

from ..deadline import Deadline
from ..errors import GoneError
from .client import Client
from .resources import Body, Kind, ObjectRef
from .retry import retry

Read = t.TypeVar("Read")


def together(reads: t.Sequence[t.Callable[[], Read]], threads: int) -> list[Read]:
    """What some reads return, in their order, so many at a time; the first error is raised when all have ended."""
    if threads <= 1 or len(reads) <= 1:
        return [one() for one in reads]
    with concurrent.futures.ThreadPoolExecutor(min(threads, len(reads)), "namzu-reads") as pool:
        running = [pool.submit(one) for one in reads]
        return [future.result() for future in running]


def read(client: Client, ref: ObjectRef, deadline: Deadline) -> Body:
    """Read one object, again while the server cannot be reached or cannot answer now.

    Raises:
        GoneError: the object does not exist.
        NotServedError: the cluster does not serve its kind.
        SandboxError: the last failure, when the deadline would pass while waiting.
    """
    return retry(deadline, lambda: client.get(ref, deadline))


def read_or_none(client: Client, ref: ObjectRef, deadline: Deadline) -> Body | None:
    """Read one object like ``read``; None when it does not exist.

    Raises:
        NotServedError: the cluster does not serve its kind, so nothing is known about the object.
        SandboxError: the last failure, when the deadline would pass while waiting.
    """
    try:
        return read(client, ref, deadline)
    except GoneError:
        return None


def read_items(
    client: Client, kind: Kind, namespace: str, deadline: Deadline, *, label_selector: str | None = None
) -> list[Body]:
    """All objects of a kind in a namespace, or those that a selector chooses.

    Raises:
        As every request, when the deadline would pass while waiting.
    """
    items = retry(deadline, lambda: client.list(kind, namespace, label_selector=label_selector, deadline=deadline))
    return list(items.get("items") or [])
