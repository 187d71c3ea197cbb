# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the object of a name is the one that a request describes: the differences, and their error."""

from __future__ import annotations

import datetime
import typing as t

from ...cluster.resources import Body, ObjectRef, expires_at
from ..errors import ClaimMismatchError
from ..timestamps import timestamp
from .egress_label import own_policy


def raise_if_mismatch(ref: ObjectRef, body: Body, differences: t.Iterable[str]) -> None:
    """Raise when the existing object has a difference.

    Raises:
        ClaimMismatchError: it has; the text has each difference, and when the object expires.
    """
    found = list(differences)
    if found:
        raise ClaimMismatchError(
            f"{ref}: already exists and does not match the request ({'; '.join(found)}). Nothing was changed. "
            f"{expiry_text(body)}",
            object=str(ref),
            next_step="Use another name, or release it first (state: absent).",
        )


def expiry_text(body: Body) -> str:
    """A sentence with the time at which an existing object expires."""
    end = expires_at(body)
    return "It does not expire." if end is None else f"Its lease ends at {timestamp(end)}."


def label_differences(what: str, have: t.Mapping[str, t.Any], want: t.Mapping[str, str]) -> t.Iterator[str]:
    """The labels of the request that the object lacks, or has with another value; it may have others."""
    for key, value in want.items():
        if have.get(key) != value:
            yield f"its {what} {key} is {have.get(key)!r}, not {value!r}"


def policy_differences(ref: ObjectRef, body: Body, *, wanted: bool) -> t.Iterator[str]:
    """Whether the pod lacks the label that its own policy needs."""
    if wanted and own_policy(ref, body) is None:
        yield "its pod lacks the label for its own policy (per_sandbox_egress)"


def life_differences(body: Body, expires: datetime.datetime | None, now: datetime.datetime) -> t.Iterator[str]:
    """Why the object is about to disappear."""
    if body.get("metadata", {}).get("deletionTimestamp"):
        yield "it is being deleted"
    if expires is not None and expires <= now:
        yield f"its lease ended at {timestamp(expires)}"
