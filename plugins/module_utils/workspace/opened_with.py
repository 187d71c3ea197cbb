# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a workspace was opened with, recorded on its Sandbox, so that a later task need not repeat it.

A refresh replaces the pod template. Without the record it would drop the pod labels by which policies select the pod,
the runtime class that isolates it, and the boundary that was verified.
"""

from __future__ import annotations

import dataclasses
import json
import typing as t

from ..cluster.resources import Body, annotation
from ..errors import SandboxError
from ..lifecycle.verification.spec import UNVERIFIED, EgressBoundary, IngressBoundary, Unverified
from .errors import WorkspaceMismatchError
from .names import OPENED_WITH_ANNOTATION
from .request import WorkspaceRequest


@dataclasses.dataclass(frozen=True)
class OpenedWith:
    """What tasks asked of the pod of a workspace.

    Attributes:
        pod_labels: labels of the pod, those of an egress profile included.
        runtime_class: the RuntimeClass of the pod, or None for the template's.
        egress: the egress boundary, or None.
        ingress: the ingress boundary. ``unverified`` is never recorded: it would switch off the default check.
    """

    pod_labels: t.Mapping[str, str] = dataclasses.field(default_factory=dict)
    runtime_class: str | None = None
    egress: EgressBoundary | None = None
    ingress: IngressBoundary = dataclasses.field(default_factory=IngressBoundary)


def opened_with(body: Body) -> OpenedWith:
    """The record of a workspace; an empty one when it has none.

    Raises:
        WorkspaceMismatchError: the annotation cannot be read.
    """
    text = annotation(body, OPENED_WITH_ANNOTATION)
    if text is None:
        return OpenedWith()
    try:
        known = json.loads(text)
        egress, ingress = known.get("egress"), IngressBoundary.of(known.get("ingress"))
        return OpenedWith(
            {str(key): str(value) for key, value in (known.get("pod_labels") or {}).items()},
            known.get("runtime_class"),
            None if egress is None else EgressBoundary.of(egress),
            IngressBoundary() if ingress == UNVERIFIED else ingress,
        )
    except (ValueError, AttributeError, SandboxError) as error:
        name = f"Sandbox {body['metadata'].get('namespace')}/{body['metadata'].get('name')}"
        raise WorkspaceMismatchError(
            f"{name}: the annotation {OPENED_WITH_ANNOTATION} cannot be read ({error}). Nothing was changed.",
            differences=["what it was opened with cannot be read"],
            object=name,
            next_step="Correct or remove the annotation. With carry_over: false only the options of the task count.",
        ) from error


def record_of(request: WorkspaceRequest) -> dict[str, str]:
    """The annotation for a request that was completed by ``carried_over``."""
    profile = request.egress.pod_labels if request.egress else {}
    ingress = request.ingress if isinstance(request.ingress, IngressBoundary) else IngressBoundary()
    known = {
        "pod_labels": {**request.pod_labels, **profile},
        "runtime_class": request.runtime_class,
        "egress": None if request.egress is None else request.egress.as_dict(),
        "ingress": None if ingress == IngressBoundary() else ingress.as_dict(),
    }
    return {OPENED_WITH_ANNOTATION: json.dumps({key: item for key, item in known.items() if item}, sort_keys=True)}


def carried_over(request: WorkspaceRequest, body: Body) -> WorkspaceRequest:
    """The request, completed by what the workspace was opened with before; the request's own values win.

    Raises:
        WorkspaceMismatchError: the record cannot be read.
    """
    if not request.carry_over:
        return request
    known = opened_with(body)
    labels = dict(known.pod_labels)
    if request.egress is not None and known.egress is not None:
        # Another egress replaces the recorded one, and with it the label of its profile.
        for key in known.egress.pod_labels:
            labels.pop(key, None)
    ingress: IngressBoundary | Unverified = request.ingress
    return dataclasses.replace(
        request,
        pod_labels={**labels, **request.pod_labels},
        runtime_class=request.runtime_class or known.runtime_class,
        egress=request.egress or known.egress,
        ingress=known.ingress if ingress == IngressBoundary() else ingress,
    )


def dropped_labels(body: Body, request: WorkspaceRequest) -> set[str]:
    """Keys of recorded pod labels that a refresh with this completed request removes."""
    profile = request.egress.pod_labels if request.egress else {}
    return readable(body).pod_labels.keys() - request.pod_labels.keys() - profile.keys()


def readable(body: Body) -> OpenedWith:
    """The record of a workspace as far as it can be read; ``carried_over`` reports one that cannot."""
    try:
        return opened_with(body)
    except WorkspaceMismatchError:
        return OpenedWith()
