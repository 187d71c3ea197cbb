# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The Sandbox of a workspace: as it is made, and in what an existing one differs from what is asked for.

``shutdownPolicy`` is Retain, always: when a shutdownTime passes, the controller (agent-sandbox v0.5.6, measured) then
takes pod and service away and leaves the disks, in either mode; with Delete the disks would go with the Sandbox.
"""

from __future__ import annotations

import datetime
import hashlib
import json
import typing as t

from ..cluster.resources import (
    SANDBOX,
    TEMPLATE_LABEL,
    WORKSPACE_ID_ANNOTATION,
    WORKSPACE_LABEL,
    Body,
    ObjectRef,
    annotation,
    condition,
    expires_at,
)
from ..cluster.resources import workspace_id as workspace_id_of
from ..lifecycle.acquire import direct, staleness
from ..lifecycle.acquire.match import label_differences
from ..lifecycle.observed.status import EXPIRED_REASONS
from ..lifecycle.timestamps import timestamp
from .errors import WorkspaceMismatchError
from .fencing import RUNNING, SUSPENDED, mode_of
from .names import CREATE_ID_ANNOTATION, HOLDER_EPOCH_ANNOTATION, TEMPLATE_HASH_ANNOTATION
from .opened_with import dropped_labels, readable, record_of
from .request import WorkspaceRequest

#: Ready reasons of a Sandbox whose pod has ended and is not started again by itself.
ENDED_REASONS = frozenset({"PodSucceeded", "PodFailed"})


def workspace_body(
    request: WorkspaceRequest, ref: ObjectRef, template: direct.Template, create_id: str, now: datetime.datetime
) -> Body:
    """The Sandbox to make."""
    annotations = {
        WORKSPACE_ID_ANNOTATION: request.workspace_id,
        CREATE_ID_ANNOTATION: create_id,
        TEMPLATE_HASH_ANNOTATION: template_hash(template),
        **record_of(request),
    }
    if request.holder_epoch is not None:
        annotations[HOLDER_EPOCH_ANNOTATION] = str(request.holder_epoch)
    spec: Body = {
        "operatingMode": RUNNING,
        "service": True,
        "shutdownPolicy": "Retain",
        "podTemplate": direct.pod_template(template, request.acquire(template.name, ref)),
        "volumeClaimTemplates": template.volume_claim_templates,
    }
    if request.ttl is not None:
        spec["shutdownTime"] = shutdown_time(now, request.ttl)
    metadata: Body = {
        "name": ref.name,
        "namespace": ref.namespace,
        "labels": {**request.labels, WORKSPACE_LABEL: "true"},
        "annotations": annotations,
    }
    return {"apiVersion": SANDBOX.api_version, "kind": SANDBOX.name, "metadata": metadata, "spec": spec}


def shutdown_time(now: datetime.datetime, ttl: float) -> str:
    """When a pod that starts now is stopped by the controller."""
    return timestamp(now + datetime.timedelta(seconds=ttl))


def template_hash(template: direct.Template) -> str:
    """An identity of a template's pod template, the same wherever it is computed; without labels of one workspace."""
    metadata = template.pod_template.get("metadata") or {}
    labels = {**(metadata.get("labels") or {}), TEMPLATE_LABEL: template.name}
    whole = {**template.pod_template, "metadata": {**metadata, "labels": labels}}
    return "sha256:" + hashlib.sha256(json.dumps(whole, sort_keys=True).encode()).hexdigest()


def template_of(body: Body) -> str | None:
    """The name of the template that a workspace was made from."""
    labels = ((body["spec"].get("podTemplate") or {}).get("metadata") or {}).get("labels") or {}
    name = labels.get(TEMPLATE_LABEL)
    return None if name is None else str(name)


def is_current(body: Body, template: direct.Template) -> bool | None:
    """Whether the workspace's pod template is what its template says now; None when nobody wrote down what it was."""
    known = annotation(body, TEMPLATE_HASH_ANNOTATION)
    return None if known is None else known == template_hash(template)


def drift(body: Body, template: direct.Template) -> list[str]:
    """The parts of the pod template that differ from the template as that is now; empty for none."""
    if is_current(body, template):
        return []
    wanted = {"podTemplate": template.pod_template, "volumeClaimTemplates": template.volume_claim_templates}
    fields = staleness.drift(body["spec"], {**wanted, "service": True})
    # A runtime class that a task asked for is not the template's.
    asked = {"podTemplate.spec.runtimeClassName"} if readable(body).runtime_class else set()
    found = [field for field in fields if field.startswith("podTemplate") and field not in asked]
    known = annotation(body, TEMPLATE_HASH_ANNOTATION) is not None
    return found or (["podTemplate.metadata"] if known else [])


def lags(body: Body, request: WorkspaceRequest, template: direct.Template) -> bool:
    """Whether a refresh would change the workspace's pod template."""
    own = template.pod_template["spec"].get("runtimeClassName")
    differs = runtime_class_of(body) != (request.runtime_class or own) or any(
        _pod_label_differences(body, request, template)
    )
    return bool(drift(body, template) or differs or dropped_labels(body, request))


def runtime_class_of(body: Body) -> str | None:
    """The RuntimeClass that the workspace's pod is started with."""
    return ((body["spec"].get("podTemplate") or {}).get("spec") or {}).get("runtimeClassName")


def _pod_label_differences(body: Body, request: WorkspaceRequest, template: direct.Template) -> t.Iterator[str]:
    labels = ((body["spec"].get("podTemplate") or {}).get("metadata") or {}).get("labels") or {}
    return label_differences("pod label", labels, request.acquire(template.name, request.ref).pod_labels)


def raise_if_other(body: Body, ref: ObjectRef, request: WorkspaceRequest, template: direct.Template | None) -> None:
    """Raise when what stands under the name is not the workspace that was asked for, and cannot become it.

    Raises:
        WorkspaceMismatchError: naming each difference.
    """
    raise_if_mismatch(ref, list(_differences(body, request, template)))


def raise_if_unmanaged(body: Body, ref: ObjectRef, workspace_id: str) -> None:
    """Raise when what stands under the name is not the workspace of that id; nothing else may be done to it.

    Raises:
        WorkspaceMismatchError: saying what it is.
    """
    if workspace_id_of(body) is None:
        raise_if_mismatch(ref, ["it is no workspace"])
    elif workspace_id_of(body) != workspace_id:
        raise_if_mismatch(ref, [f"its id is {workspace_id_of(body)!r}, not {workspace_id!r}"])


def raise_if_mismatch(ref: ObjectRef, differences: list[str], step: str | None = None) -> None:
    """Raise when there is a difference."""
    if differences:
        raise WorkspaceMismatchError(
            f"{ref} is not the workspace that was asked for: {'; '.join(differences)}. It was left as it is.",
            differences=differences,
            object=str(ref),
            next_step=step or "Ask for what is there, or use another workspace_id.",
        )


def _differences(body: Body, request: WorkspaceRequest, template: direct.Template | None) -> t.Iterator[str]:
    spec = body["spec"]
    yield from label_differences("label", body["metadata"].get("labels") or {}, request.labels)
    if spec.get("shutdownPolicy") == "Delete" and spec.get("shutdownTime"):
        yield "its disks would be deleted when its shutdownTime comes (shutdownPolicy is Delete)"
    if template is None:
        return
    if not request.refresh:
        if template_of(body) != template.name:
            yield f"its template is {template_of(body)}, not {template.name}"
        if request.runtime_class is not None and runtime_class_of(body) != request.runtime_class:
            yield f"its runtime class is {runtime_class_of(body)}, not {request.runtime_class}"
        yield from _pod_label_differences(body, request, template)
    wanted_disks = {**spec, "volumeClaimTemplates": template.volume_claim_templates}
    if "volumeClaimTemplates" in staleness.drift(spec, wanted_disks):
        yield "the disks of its template have changed, and those of a workspace cannot be"


def is_settled(body: Body, condition_type: str) -> bool:
    """Whether the controller wrote that condition about the object as it is now, and not about an earlier one."""
    observed = condition(body, condition_type).get("observedGeneration")
    generation = body["metadata"].get("generation")
    return observed is None or generation is None or observed >= generation


def has_ended(body: Body) -> bool:
    """Whether it should run and its pod has ended by itself; the controller makes no other before the mode changes."""
    reason = condition(body, "Ready").get("reason")
    return mode_of(body) != SUSPENDED and reason in ENDED_REASONS and is_settled(body, "Ready")


def has_expired(body: Body, latest: datetime.datetime) -> bool:
    """Whether its shutdownTime has passed, or may have, so that its pod is gone or going."""
    end = expires_at(body)
    marked = condition(body, "Ready").get("reason") in EXPIRED_REASONS and is_settled(body, "Ready")
    return marked or (end is not None and end <= latest)
