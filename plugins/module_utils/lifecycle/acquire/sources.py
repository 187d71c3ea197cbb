# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The two ways to a sandbox: a claim on a warm pool, or a Sandbox made from a template. Each is one kind of object."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

from ...cluster.client import Client
from ...cluster.resources import CLAIM, SANDBOX, TEMPLATE, TEMPLATE_LABEL, Body, ObjectRef
from ...deadline import Deadline
from ...errors import InputError, SandboxError
from ..names import fresh_name
from ..observed import status
from ..observed.diagnosis import explain
from ..verification.isolation import check_planned_isolation, check_pool_isolation
from . import claim as claims
from . import direct, staleness
from .manifest import ManifestBuilder
from .request import AcquireRequest


class Path(t.Protocol):
    """What an acquire makes, and how it reads what became of it."""

    @property
    def ref(self) -> ObjectRef:
        """The object that is made."""

    def body(self, acquire_id: str, now: datetime.datetime, batch: str | None) -> Body:
        """The object as it is sent."""

    def named(self, body: Body) -> str | None:
        """The Sandbox that it leads to, ready or not."""

    def bound(self, body: Body) -> str | None:
        """The Sandbox that it leads to, or None while that is not ready."""

    def raise_if_decided(self, body: Body) -> None:
        """Raise AcquireError when waiting is in vain."""

    def raise_if_other(self, body: Body, now: datetime.datetime) -> None:
        """Raise ClaimMismatchError when this is not what the request describes."""

    def drift(self, client: Client, body: Body, sandbox: str, deadline: Deadline) -> list[str]:
        """The fields in which it differs from its template as that is now."""

    def planned_pod(self) -> Body | None:
        """The pod that it will have, or None when the controller alone knows that."""


@dataclasses.dataclass(frozen=True)
class WarmPath:
    """A SandboxClaim on a SandboxWarmPool."""

    request: AcquireRequest
    ref: ObjectRef

    def body(self, acquire_id: str, now: datetime.datetime, batch: str | None) -> Body:
        return claims.claim_body(ManifestBuilder(self.request, self.ref, acquire_id, now, batch))

    def named(self, body: Body) -> str | None:
        return status.named_sandbox(body)

    def bound(self, body: Body) -> str | None:
        return status.bound_sandbox(body, self.ref)

    def raise_if_decided(self, body: Body) -> None:
        status.raise_if_decided(body, self.ref)

    def raise_if_other(self, body: Body, now: datetime.datetime) -> None:
        claims.raise_if_other(body, self.ref, self.request, now)

    def drift(self, client: Client, body: Body, sandbox: str, deadline: Deadline) -> list[str]:  # noqa: ARG002
        return staleness.drift_of_member(client, self.ref.namespace, sandbox, deadline)

    def planned_pod(self) -> Body | None:
        return None


@dataclasses.dataclass(frozen=True)
class DirectPath:
    """A Sandbox of our own, with the pod template of a SandboxTemplate."""

    request: AcquireRequest
    ref: ObjectRef
    template: direct.Template

    def body(self, acquire_id: str, now: datetime.datetime, batch: str | None) -> Body:
        return direct.sandbox_body(ManifestBuilder(self.request, self.ref, acquire_id, now, batch), self.template)

    def named(self, body: Body) -> str | None:  # noqa: ARG002 - a Sandbox leads to itself
        return self.ref.name

    def bound(self, body: Body) -> str | None:
        return status.bound_sandbox(body, self.ref)

    def raise_if_decided(self, body: Body) -> None:
        status.raise_if_decided(body, self.ref)

    def raise_if_other(self, body: Body, now: datetime.datetime) -> None:
        direct.raise_if_other(body, self.ref, self.request, now)

    def drift(self, client: Client, body: Body, sandbox: str, deadline: Deadline) -> list[str]:  # noqa: ARG002
        # The template has been read for this very acquire.
        now = datetime.datetime.fromtimestamp(0, datetime.UTC)
        return staleness.drift(body.get("spec") or {}, self.body("", now, None)["spec"])

    def planned_pod(self) -> Body | None:
        return direct.planned_pod(self.template, self.request, self.ref)


def path_for(client: Client, request: AcquireRequest, deadline: Deadline) -> Path:
    """The way that a request names; for a direct Sandbox its template is read, before anything is made."""
    return paths_for(client, [request], deadline)[0]


def paths_for(client: Client, requests: t.Sequence[AcquireRequest], deadline: Deadline) -> list[Path]:
    """The ways of several requests that differ in their names only; a template is read once for all.

    Raises:
        InputError: a pod label would replace the template's own, by which policies select the pod; or the runtime class
            does not exist.
        AcquireError, GoneError, ApiError: the template cannot be read, or there is none.
        TemplateError: it has no pod template.
        IsolationError: it shows that its pods are less isolated than was asked for.
    """
    namespace, template = requests[0].namespace, requests[0].template
    if template is None:
        # Only a demand costs these reads; the member itself is judged before it is handed out.
        if requests[0].isolation != "any":
            check_pool_isolation(client, namespace, str(requests[0].warm_pool), requests[0].isolation, deadline)
        return [WarmPath(one, CLAIM.ref(namespace, one.name or fresh_name())) for one in requests]
    if requests[0].pod_labels.get(TEMPLATE_LABEL, template) != template:
        raise InputError(
            f"pod_labels has {TEMPLATE_LABEL}, by which policies select the pods of a template: it is {template} here.",
            next_step="Leave it out.",
        )
    try:
        read = direct.read_template(client, namespace, template, deadline)
    except SandboxError as error:
        raise explain(error, TEMPLATE.ref(namespace, template)) from error
    planned = direct.pod_template(read, requests[0])["spec"]
    check_planned_isolation(client, planned, requests[0].isolation, str(TEMPLATE.ref(namespace, template)), deadline)
    return [DirectPath(one, SANDBOX.ref(namespace, one.name or fresh_name()), read) for one in requests]
