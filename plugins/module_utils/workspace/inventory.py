# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Which workspaces there are: one LIST of Sandboxes, claims and templates each; nothing is woken or changed."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ..cluster.client import Client
from ..cluster.reads import read_items
from ..cluster.resources import SANDBOX, TEMPLATE, VOLUME_CLAIM, Body, Kind, annotation, condition, expires_at
from ..cluster.resources import workspace_id as workspace_id_of
from ..deadline import Deadline
from ..lifecycle.acquire import direct
from ..lifecycle.observed.status import DEAD_REASONS, message_of, reason_of
from .disks import Disk, disks_of
from .errors import WorkspaceDiskError, WorkspacePreconditionError
from .fencing import SUSPENDED, mode_of, stored_epoch
from .manifest import has_expired, is_settled, template_hash, template_of
from .names import MODE_CHANGED_ANNOTATION, TEMPLATE_HASH_ANNOTATION, WORKSPACE_SELECTOR

Mode = t.Literal["running", "suspended"]
Phase = t.Literal["ready", "pending", "suspending", "suspended", "expired", "finished", "failed", "terminating"]


@dataclasses.dataclass(frozen=True)
class WorkspaceSummary:
    """A workspace as its objects tell it.

    Attributes:
        workspace_id, name, namespace, uid, resource_version: which it is, and at which state of its Sandbox.
        labels: of its Sandbox.
        mode: ``running`` or ``suspended``, as it shall be.
        phase: as it is: ``ready``, ``pending``, ``suspending``, ``suspended``, ``expired`` (its ttl has passed; a start
            brings it back on its disk), ``finished`` or ``failed`` (its pod has ended by itself), ``terminating``.
        reason, message: why it is not ready, in the controller's words; None for one that is.
        mode_since: when the mode was last changed by this collection, or None when it never was.
        created_at, expires_at: times in UTC; the latter None for one whose pod does not stop by itself.
        age, mode_for: seconds since it was made, and since its mode was changed, or it was made.
        stopped_for: seconds since its pod stopped, by a suspend, its ttl or its own end; None while it has one, and
            where no object has the time.
        template: its template's name, or None.
        template_current: whether its pod template is what the template says now; None when either is not known.
        holder_epoch: the epoch that it carries, or None.
        holder_epoch_readable: False when it carries one that is none, so that every write is refused.
        disks: its disks.
    """

    workspace_id: str
    name: str
    namespace: str
    uid: str
    resource_version: str
    labels: t.Mapping[str, str]
    mode: Mode
    phase: Phase
    reason: str | None
    message: str | None
    mode_since: datetime.datetime | None
    created_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    age: float | None
    mode_for: float | None
    stopped_for: float | None
    template: str | None
    template_current: bool | None
    holder_epoch: int | None
    holder_epoch_readable: bool
    disks: tuple[Disk, ...]


def list_workspaces(
    client: Client,
    namespace: str,
    deadline: Deadline,
    *,
    workspace_id: str | None = None,
    label_selector: str | None = None,
) -> list[WorkspaceSummary]:
    """The workspaces of a namespace, by id.

    Args:
        workspace_id: only the one of this id.
        label_selector: only those whose Sandbox matches.

    Raises:
        ApiError, ApiUnreachableError: a list could not be read.
    """

    def listed(kind: Kind, selector: str | None = None) -> list[Body]:
        return read_items(client, kind, namespace, deadline, label_selector=selector)

    chosen = WORKSPACE_SELECTOR if not label_selector else f"{WORKSPACE_SELECTOR},{label_selector}"
    bodies = [body for body in listed(SANDBOX, chosen) if workspace_id_of(body) is not None]
    if workspace_id is not None:
        bodies = [body for body in bodies if workspace_id_of(body) == workspace_id]
    if not bodies:
        return []
    claims = {str(body["metadata"]["name"]): body for body in listed(VOLUME_CLAIM)}
    hashes = {str(body["metadata"]["name"]): _hash(body) for body in listed(TEMPLATE)}
    now = client.server_time.now().latest
    found = [_summary(body, claims, hashes, now) for body in bodies]
    return sorted(found, key=lambda one: (one.workspace_id, one.name))


def _hash(template: Body) -> str | None:
    pod_template = (template.get("spec") or {}).get("podTemplate")
    if not isinstance(pod_template, dict):
        return None
    return template_hash(direct.Template(str(template["metadata"]["name"]), pod_template, None))


def _summary(
    body: Body, claims: t.Mapping[str, Body], hashes: t.Mapping[str, str | None], now: datetime.datetime
) -> WorkspaceSummary:
    metadata = body["metadata"]
    created, since = _time(metadata.get("creationTimestamp")), _time(annotation(body, MODE_CHANGED_ANNOTATION))
    phase = _phase(body, now)
    ready = condition(body, "Ready") if phase != "ready" else {}
    template = template_of(body)
    hash_now, hash_then = hashes.get(template or ""), annotation(body, TEMPLATE_HASH_ANNOTATION)
    epoch, readable = _epoch(body)
    start, stopped = since or created, _stopped_at(body, phase, since)
    return WorkspaceSummary(
        workspace_id=str(workspace_id_of(body)),
        name=str(metadata["name"]),
        namespace=str(metadata.get("namespace", "")),
        uid=str(metadata["uid"]),
        resource_version=str(metadata.get("resourceVersion", "")),
        labels=metadata.get("labels") or {},
        mode="suspended" if mode_of(body) == SUSPENDED else "running",
        phase=phase,
        reason=reason_of(ready),
        message=message_of(ready),
        mode_since=since,
        created_at=created,
        expires_at=expires_at(body),
        age=None if created is None else (now - created).total_seconds(),
        mode_for=None if start is None else (now - start).total_seconds(),
        stopped_for=None if stopped is None else (now - stopped).total_seconds(),
        template=template,
        template_current=None if hash_now is None or hash_then is None else hash_now == hash_then,
        holder_epoch=epoch,
        holder_epoch_readable=readable,
        disks=_disks(body, claims),
    )


def _phase(body: Body, now: datetime.datetime) -> Phase:
    ready = condition(body, "Ready")
    if body["metadata"].get("deletionTimestamp"):
        return "terminating"
    if mode_of(body) == SUSPENDED:
        stopped = condition(body, "Suspended")
        at_rest = stopped.get("status") == "True" and is_settled(body, "Suspended")
        return "suspended" if at_rest or has_expired(body, now) else "suspending"
    if has_expired(body, now):
        return "expired"
    if not is_settled(body, "Ready"):
        return "pending"
    if ready.get("status") == "True":
        return "ready"
    if ready.get("reason") in DEAD_REASONS:
        return "finished" if ready["reason"] == "PodSucceeded" else "failed"
    return "pending"


#: The condition whose last change is the stop of the pod, by phase.
_STOP_CONDITIONS: dict[Phase, str] = {
    "suspended": "Suspended",
    "expired": "Ready",
    "finished": "Ready",
    "failed": "Ready",
}


def _stopped_at(body: Body, phase: Phase, mode_since: datetime.datetime | None) -> datetime.datetime | None:
    """When the pod stopped: the latest of the times that the objects have, so that it is never too early."""
    if phase not in _STOP_CONDITIONS:
        return None
    times = [_time(condition(body, _STOP_CONDITIONS[phase]).get("lastTransitionTime"))]
    if phase == "suspended":
        times.append(mode_since)
    if phase == "expired":
        times.append(expires_at(body))
    return max((time for time in times if time is not None), default=None)


def _epoch(body: Body) -> tuple[int | None, bool]:
    try:
        return stored_epoch(body), True
    except WorkspacePreconditionError:
        return None, False


def _disks(body: Body, claims: t.Mapping[str, Body]) -> tuple[Disk, ...]:
    try:
        return disks_of(body, claims)
    except WorkspaceDiskError:
        return ()  # what it remembers cannot be read; a start says so


def _time(text: t.Any) -> datetime.datetime | None:
    try:
        return datetime.datetime.fromisoformat(str(text)) if text else None
    except ValueError:
        return None
