# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A name belongs to one claim, one direct Sandbox or one workspace.

Kubernetes keeps names unique within a kind only, and every verb finds a sandbox by its name. The other kind is read
before the object is created, so that nothing is created in vain, and again afterwards: of two callers who create
objects of both kinds at the same time, the later one sees the earlier one's object, because reads without a
resourceVersion are linearizable (Kubernetes API concepts, "Resource versions").
"""

from __future__ import annotations

import typing as t

from ...cluster.client import Client
from ...cluster.reads import read_items, read_or_none
from ...cluster.resources import ACQUIRE_ID_ANNOTATION, CLAIM, SANDBOX, WARM_POOL, Body, ObjectRef, annotation
from ...cluster.resources import workspace_id as workspace_id_of
from ...deadline import Deadline
from ...errors import NotServedError
from ..errors import ClaimMismatchError
from .match import expiry_text

#: Who owns a Sandbox that no name leads to: it is reached by the name of its claim.
_OWNERS = (CLAIM.name, WARM_POOL.name)


def check_name_unused(client: Client, ref: ObjectRef, deadline: Deadline) -> None:
    """Check that no object of the other kind has the name of a claim or Sandbox.

    Raises:
        ClaimMismatchError: one has it.
        ApiError, ApiUnreachableError: the other kind cannot be read.
    """
    other = _other(ref)
    body = _read(client, other, deadline)
    if body is not None and _uses_name(other, body):
        raise name_in_use(ref, body)


def names_in_use(client: Client, ref: ObjectRef, deadline: Deadline) -> dict[str, Body]:
    """The objects of the other kind in the namespace of a claim or Sandbox, by name; one list for many checks.

    Raises:
        ApiError, ApiUnreachableError: the other kind cannot be listed.
    """
    other = _other(ref)
    bodies = read_items(client, other.kind, ref.namespace, deadline)
    return {str(body["metadata"]["name"]): body for body in bodies if _uses_name(other, body)}


def name_in_use(ref: ObjectRef, other: Body) -> ClaimMismatchError:
    """The error for a name that an object of the other kind has."""
    existing = _other(ref)
    return ClaimMismatchError(
        f"{ref}: the name is in use by {existing} ({_described(existing, other)}). Nothing was created. "
        f"{expiry_text(other)}",
        object=str(existing),
        next_step="Use another name, or release that one first.",
    )


def _read(client: Client, ref: ObjectRef, deadline: Deadline) -> Body | None:
    """The object, or None. A 404 without a Status may come from a proxy once; twice, the kind is not served."""
    try:
        return read_or_none(client, ref, deadline)
    except NotServedError:
        return read_or_none(client, ref, deadline)


def _other(ref: ObjectRef) -> ObjectRef:
    return (SANDBOX if ref.kind is CLAIM else CLAIM).ref(ref.namespace, ref.name)


def _uses_name(ref: ObjectRef, body: Body) -> bool:
    owners: t.Sequence[Body] = body["metadata"].get("ownerReferences") or []
    return ref.kind is CLAIM or not any(owner.get("kind") in _OWNERS for owner in owners)


def _described(ref: ObjectRef, body: Body) -> str:
    if ref.kind is CLAIM:
        return "a claim from a warm pool"
    if workspace_id_of(body) is not None:
        return "a workspace"
    return "a sandbox from a template" if annotation(body, ACQUIRE_ID_ANNOTATION) else "not created by this collection"
