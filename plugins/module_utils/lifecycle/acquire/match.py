# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Whether what stands under a name is what a request describes: the differences, in words, and their refusal."""

from __future__ import annotations

import datetime
import typing as t

from ...cluster.resources import Body, ObjectRef
from ..errors import ClaimMismatchError
from ..timestamps import timestamp
from .egress_label import own_policy


def raise_if_mismatch(ref: ObjectRef, differences: t.Iterable[str]) -> None:
    """Raise when there is a difference.

    Raises:
        ClaimMismatchError: naming each.
    """
    found = list(differences)
    if found:
        raise ClaimMismatchError(
            f"{ref} stands there already and is not the one asked for: {'; '.join(found)}. It was left as it is.",
            object=str(ref),
            next_step="Use another name, or release that one first (state: absent).",
        )


def label_differences(what: str, have: t.Mapping[str, t.Any], want: t.Mapping[str, str]) -> t.Iterator[str]:
    """Labels that are asked for and are not there as asked; others may have been added."""
    for key, value in want.items():
        if have.get(key) != value:
            yield f"its {what} {key} is {have.get(key)!r}, not {value!r}"


def policy_differences(ref: ObjectRef, body: Body, *, wanted: bool) -> t.Iterator[str]:
    """Whether the pod lacks the label that a policy of its own needs."""
    if wanted and own_policy(ref, body) is None:
        yield "its pod is not labelled for a policy of its own (per_sandbox_egress)"


def life_differences(body: Body, expires: datetime.datetime | None, now: datetime.datetime) -> t.Iterator[str]:
    """Why an object is not alive any more."""
    if body.get("metadata", {}).get("deletionTimestamp"):
        yield "it is being deleted"
    if expires is not None and expires <= now:
        yield f"its lease ended at {timestamp(expires)}"
