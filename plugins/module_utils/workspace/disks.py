# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The disks of a workspace: which they are, whether they are still the same ones, and what keeps them from being bound.

Sources: agent-sandbox v0.5.6 (``reconcilePVCs``): a claim is named ``<entry>-<sandbox>`` and owned by its Sandbox, and
one that is gone is made anew, empty. Kubernetes: a claim that is in use goes only when its pod has stopped.
"""

from __future__ import annotations

import dataclasses
import json
import re
import typing as t

from ..cluster.client import Client
from ..cluster.reads import read_or_none
from ..cluster.resources import VOLUME_CLAIM, Body, ObjectRef, annotation
from ..deadline import Deadline
from ..lifecycle.acquire.direct import Template
from ..lifecycle.errors import AcquireError
from .errors import WorkspaceDiskError
from .names import DISKS_ANNOTATION

#: The scheduler's messages about volumes (Kubernetes v1.36, ``pkg/scheduler/framework/plugins``).
_ABOUT_VOLUMES = re.compile("persistent *volume|volume node affinity|storage *class|max volume count", re.IGNORECASE)


@dataclasses.dataclass(frozen=True)
class Disk:
    """One disk of a workspace.

    Attributes:
        name: of its entry in the template, and of the volume in the pod.
        claim: name of the PersistentVolumeClaim.
        uid: of that claim, or None when there is none.
        phase: ``Pending``, ``Bound`` or ``Lost``; None when there is no claim.
        size: what the volume has, or what was asked for while there is none (``10Gi``), or None.
        storage_class: its StorageClass, or None.
        volume: the bound PersistentVolume, or None.
        deleting: whether somebody has deleted the claim, and only the running pod still keeps it.
        replaced: whether it is another one than the workspace had before.
    """

    name: str
    claim: str
    uid: str | None
    phase: str | None
    size: str | None
    storage_class: str | None
    volume: str | None
    deleting: bool
    replaced: bool


def claim_names(body: Body) -> dict[str, str]:
    """Entry to claim, of a Sandbox."""
    entries = (body.get("spec") or {}).get("volumeClaimTemplates") or []
    names = [str((entry.get("metadata") or {}).get("name")) for entry in entries]
    return {name: f"{name}-{body['metadata']['name']}" for name in names}


def disks_of(body: Body, claims: t.Mapping[str, Body]) -> tuple[Disk, ...]:
    """The disks of a Sandbox, with its namespace's claims by name."""
    known = recorded(body)
    return tuple(_disk(name, claim, claims.get(claim), known.get(name)) for name, claim in claim_names(body).items())


def read_disks(client: Client, body: Body, deadline: Deadline) -> tuple[Disk, ...]:
    """The same, one read a disk."""
    claims = {}
    for name in claim_names(body).values():
        ref = VOLUME_CLAIM.ref(body["metadata"]["namespace"], name)
        claim = read_or_none(client, ref, deadline)
        if claim is not None:
            claims[name] = claim
    return disks_of(body, claims)


def _disk(name: str, claim: str, body: Body | None, known: str | None) -> Disk:
    metadata, spec, status = (((body or {}).get(part) or {}) for part in ("metadata", "spec", "status"))
    asked = ((spec.get("resources") or {}).get("requests") or {}).get("storage")
    uid = metadata.get("uid")
    return Disk(
        name=name,
        claim=claim,
        uid=uid,
        phase=None if body is None else str(status.get("phase") or "Pending"),
        size=(status.get("capacity") or {}).get("storage") or asked,
        storage_class=spec.get("storageClassName"),
        volume=spec.get("volumeName"),
        deleting=bool(metadata.get("deletionTimestamp")),
        replaced=known is not None and uid != known,
    )


def recorded(body: Body) -> dict[str, str]:
    """Entry to the uid of its claim, as the workspace remembers them; empty before its first start has succeeded."""
    try:
        known = json.loads(annotation(body, DISKS_ANNOTATION) or "{}")
    except ValueError:
        known = None
    if not isinstance(known, dict):
        name = f"{body['metadata'].get('namespace')}/{body['metadata'].get('name')}"
        raise WorkspaceDiskError(
            f"Sandbox {name} has an annotation {DISKS_ANNOTATION} that cannot be read, so its disks are not known.",
            object=f"Sandbox {name}",
            next_step="Remove the annotation to take the disks as they are.",
        )
    return {str(name): str(uid) for name, uid in known.items()}


def record(disks: t.Iterable[Disk]) -> dict[str, str]:
    """The annotation that remembers these disks; empty unless all are bound."""
    found = {disk.name: disk.uid for disk in disks if disk.phase == "Bound" and not disk.deleting}
    complete = bool(found) and all(disk.name in found for disk in disks)
    return {DISKS_ANNOTATION: json.dumps(found, sort_keys=True)} if complete else {}


def raise_if_lost(ref: ObjectRef, disks: t.Iterable[Disk]) -> None:
    """Raise when a start would run on an empty disk instead of the one that the workspace had, or on a dead one.

    Raises:
        WorkspaceDiskError: naming the first such disk.
    """
    for disk in disks:
        if disk.replaced:
            state = "is gone" if disk.uid is None else "was deleted, and a new, empty one has its name"
        elif disk.phase == "Lost":
            state = f"has lost its volume {disk.volume}"
        elif disk.deleting:
            state = "is being deleted"
        else:
            continue
        raise _disk_error(
            ref,
            disk,
            f"its claim {state}. The workspace is not started, so that nobody takes an empty disk for it.",
            "If the volume is left, bind it again under this name. To go on with the disk as it is, remove the "
            f"annotation {DISKS_ANNOTATION} from the Sandbox; to give it up, delete the workspace with delete_disk.",
        )


def raise_if_vanishing(ref: ObjectRef, disks: t.Iterable[Disk]) -> None:
    """Raise when the running pod is all that keeps a disk.

    Raises:
        WorkspaceDiskError: naming the first such disk.
    """
    for disk in disks:
        if disk.deleting and not disk.replaced:
            raise _disk_error(
                ref,
                disk,
                "its claim was deleted by somebody and goes as soon as the pod stops. The workspace was not suspended.",
                "Copy out what is needed while it runs; then delete the workspace with delete_disk.",
            )


def raise_if_unbound(ref: ObjectRef, disks: t.Iterable[Disk], error: AcquireError) -> None:
    """Raise when it is a disk for which the pod waits; ``error`` has the scheduler's own words.

    Raises:
        WorkspaceDiskError: naming the first such disk.
    """
    # A claim of a StorageClass with WaitForFirstConsumer is Pending until its pod is scheduled, whatever the reason.
    about_volumes = error.reason == "not-ready" or (error.reason == "capacity" and _ABOUT_VOLUMES.search(error.message))
    for disk in disks:
        if disk.phase == "Bound" or (disk.phase != "Lost" and not about_volumes):
            continue
        of = f" of the StorageClass {disk.storage_class}" if disk.storage_class else " without a StorageClass"
        state = "was not made" if disk.phase is None else f"is {disk.phase}"
        raise _disk_error(
            ref,
            disk,
            f"its claim{of} {state}. {error.message}",
            "Check that the StorageClass is there and has a provisioner or free volumes, and the namespace's quota.",
            retryable=True,
        )


def raise_if_diskless(template: Template, object_name: str) -> None:
    """Raise when a template cannot carry a workspace: it has no disk, or no container mounts it.

    Raises:
        WorkspaceDiskError: saying which.
    """
    entries = [str((one.get("metadata") or {}).get("name")) for one in template.volume_claim_templates or []]
    spec = template.pod_template.get("spec") or {}
    mounted = {
        mount.get("name") for container in spec.get("containers") or [] for mount in container.get("volumeMounts") or []
    }
    unused = [entry for entry in entries if entry not in mounted]
    if entries and not unused:
        return
    what = f"no container mounts its disk {unused[0]}" if entries else "it has no volumeClaimTemplates"
    raise WorkspaceDiskError(
        f"{object_name} cannot make a workspace: {what}, so nothing would survive a suspend.",
        object=object_name,
        next_step="Give role namzu.sandbox.template a template_volume_claim_templates entry called workspace.",
    )


def _disk_error(ref: ObjectRef, disk: Disk, what: str, step: str, *, retryable: bool = False) -> WorkspaceDiskError:
    claim = str(VOLUME_CLAIM.ref(ref.namespace, disk.claim))
    return WorkspaceDiskError(
        f"The disk {disk.name} of {ref} ({claim}): {what}",
        claim=claim,
        object=str(ref),
        next_step=step,
        retryable=retryable,
    )
