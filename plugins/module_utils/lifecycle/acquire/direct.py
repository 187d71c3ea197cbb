# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A Sandbox made directly from a SandboxTemplate, without a pool.

Source: agent-sandbox v0.5.6, Sandbox v1beta1. A Sandbox has no reference to a template, only a pool consumes one; so
the pod template is copied into it here.
"""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ...cluster.client import Client
from ...cluster.reads import read
from ...cluster.resources import ACQUIRE_ID_ANNOTATION, POD, TEMPLATE, TEMPLATE_LABEL, Body, ObjectRef, expires_at
from ...deadline import Deadline
from ...errors import GoneError, SandboxError
from .manifest import ManifestBuilder
from .match import label_differences, life_differences, policy_differences, raise_if_mismatch
from .request import AcquireRequest

#: On a pod: the hash of its Sandbox's name.
NAME_HASH_LABEL = "agents.x-k8s.io/sandbox-name-hash"


class TemplateError(SandboxError):
    """A SandboxTemplate from which no Sandbox can be made."""

    reason = "template"


@dataclasses.dataclass(frozen=True)
class Template:
    """What a Sandbox takes from its template.

    Attributes:
        name: the template's name.
        pod_template: ``spec.podTemplate``.
        volume_claim_templates: ``spec.volumeClaimTemplates`` to the letter, or None when there are none.
    """

    name: str
    pod_template: Body
    volume_claim_templates: list[Body] | None


def read_template(client: Client, namespace: str, name: str, deadline: Deadline) -> Template:
    """Read a template; it is read for every acquire, so that an edit counts from the next one on.

    Raises:
        TemplateError: it has no pod template.
        GoneError: there is no such template.
    """
    ref = TEMPLATE.ref(namespace, name)
    try:
        spec = read(client, ref, deadline).get("spec")
    except GoneError as error:
        step = error.next_step or (
            f"Create the template (role namzu.sandbox.template), name another, or another namespace than {namespace}: "
            "one that does not exist answers like this too."
        )
        raise error.replace(next_step=step) from error
    pod_template = spec.get("podTemplate") if isinstance(spec, dict) else None
    if not isinstance(spec, dict) or not isinstance(pod_template, dict) or not _is_pod_template(pod_template):
        raise TemplateError(
            f"{ref} has no spec.podTemplate.spec to make a Sandbox from.",
            object=str(ref),
            next_step="Correct the template (role namzu.sandbox.template makes one).",
        )
    return Template(name, pod_template, spec.get("volumeClaimTemplates"))


def _is_pod_template(body: Body) -> bool:
    metadata = body.get("metadata") or {}
    labelled = isinstance(metadata, dict) and isinstance(metadata.get("labels") or {}, dict)
    return labelled and isinstance(body.get("spec"), dict)


def sandbox_body(builder: ManifestBuilder, template: Template) -> Body:
    """The Sandbox to make. ``service`` is on, as without it only an address that changes on a resume is left."""
    spec: Body = {
        "operatingMode": "Running",
        "service": True,
        **builder.lease,
        "podTemplate": pod_template(template, builder.request, builder.pod_labels),
    }
    if template.volume_claim_templates is not None:
        spec["volumeClaimTemplates"] = template.volume_claim_templates
    return builder.body(spec)


def pod_template(template: Template, request: AcquireRequest, pod_labels: t.Mapping[str, str] | None = None) -> Body:
    """The template's, with our template label and the requested labels (or these), by which policies select the pod."""
    metadata = template.pod_template.get("metadata") or {}
    wanted = request.pod_labels if pod_labels is None else pod_labels
    labels = {**(metadata.get("labels") or {}), **wanted, TEMPLATE_LABEL: template.name}
    spec = dict(template.pod_template["spec"])
    if request.runtime_class is not None:
        spec["runtimeClassName"] = request.runtime_class
    return {**template.pod_template, "metadata": {**metadata, "labels": labels}, "spec": spec}


def planned_pod(template: Template, request: AcquireRequest, ref: ObjectRef) -> Body:
    """The pod that the controller will make, as far as policies can see it; it is named like its Sandbox."""
    planned = pod_template(template, request)
    labels = {**planned["metadata"]["labels"], NAME_HASH_LABEL: name_hash(ref.name)}
    metadata = {"name": ref.name, "namespace": ref.namespace, "labels": labels}
    return {"apiVersion": POD.api_version, "kind": POD.name, "metadata": metadata, "spec": planned["spec"]}


def name_hash(name: str) -> str:
    """A Sandbox's name as its pod's label has it: FNV-1a of 32 bits (agent-sandbox v0.5.6, ``NameHash``)."""
    value = 0x811C9DC5
    for byte in name.encode():
        value = (value ^ byte) * 0x01000193 % (1 << 32)
    return f"{value:08x}"


def raise_if_other(sandbox: Body, ref: ObjectRef, request: AcquireRequest, now: datetime.datetime) -> None:
    """Raise when the existing Sandbox is not the one that the request describes.

    Raises:
        ClaimMismatchError: naming each difference.
    """
    raise_if_mismatch(ref, sandbox, _differences(sandbox, ref, request, now))


def _differences(sandbox: Body, ref: ObjectRef, request: AcquireRequest, now: datetime.datetime) -> t.Iterator[str]:
    metadata, spec = sandbox.get("metadata", {}), sandbox.get("spec") or {}
    if ACQUIRE_ID_ANNOTATION not in (metadata.get("annotations") or {}):
        yield "it was not acquired as a sandbox"
    pod_template = spec.get("podTemplate") or {}
    pod_labels = (pod_template.get("metadata") or {}).get("labels") or {}
    yield from label_differences("label", metadata.get("labels") or {}, request.labels)
    wanted = {**request.pod_labels, TEMPLATE_LABEL: str(request.template)}
    yield from label_differences("pod label", pod_labels, wanted)
    yield from policy_differences(ref, sandbox, wanted=request.per_sandbox_egress)
    runtime_class = (pod_template.get("spec") or {}).get("runtimeClassName")
    if request.runtime_class is not None and runtime_class != request.runtime_class:
        yield f"its runtime class is {runtime_class}, not {request.runtime_class}"
    yield from life_differences(sandbox, expires_at(sandbox), now)
