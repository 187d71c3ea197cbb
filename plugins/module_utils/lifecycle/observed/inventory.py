# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Inventory: what stands in a namespace, from one LIST a kind, without waking or changing anything.

With a label selector there is a second one of Sandboxes: those of claims are needed whatever labels they have.
"""

from __future__ import annotations

import dataclasses
import datetime
import functools
import typing as t

from ...cluster.client import Client
from ...cluster.reads import read_items, together
from ...cluster.resources import (
    ACQUIRE_ID_ANNOTATION,
    CLAIM,
    LAUNCH_TYPE_LABEL,
    POD,
    SANDBOX,
    TEMPLATE_LABEL,
    WARM_POOL,
    Body,
    Kind,
    annotation,
    condition,
    workspace_id,
)
from ...deadline import Deadline
from .diagnosis import pod_complaint
from .status import DEAD_REASONS, EXPIRED_REASONS, SUSPENDED_REASON, is_rejected, message_of, named_sandbox, reason_of

SandboxKind = t.Literal["claim", "direct", "unmanaged"]
Phase = t.Literal["ready", "pending", "rejected", "suspended", "expired", "finished", "failed", "terminating"]


@dataclasses.dataclass(frozen=True)
class SandboxInfo:
    """A sandbox that somebody holds: by a claim, made directly, or made by something else than an acquire.

    Attributes:
        name: of the claim, or of the direct Sandbox; with it the sandbox is used and released.
        namespace: where it is.
        kind: ``claim``, ``direct`` for a Sandbox that an acquire made from a template, or ``unmanaged`` for one that
            neither an acquire nor a pool made, such as a workspace; the latter cannot be released by its name.
        uid: the uid of that object.
        labels: its labels.
        warm_pool, template: what it came from, as far as the objects say; None otherwise.
        workspace_id: of the workspace that it is, or None.
        sandbox, pod: the bound Sandbox and its pod, or None.
        service: DNS name of the sandbox's service, or None.
        pod_ip, node: where the pod runs, or None.
        warm: whether it came out of a pool; None while that is not known.
        phase: ``ready``, ``pending``, ``rejected`` (the controller has decided against it), ``suspended``, ``expired``,
            ``finished`` (its container ended with 0), ``failed`` (otherwise, or a second pod is there) or
            ``terminating``.
        reason, message: why it is not ready, in the words of the controller or of the pod; None for a ready one.
        created_at, expires_at: times in UTC; the latter None for one that does not expire.
        age, lease_left: the same in seconds from now; lease_left is 0 for an expired one and None without an expiry.
    """

    name: str
    namespace: str
    kind: SandboxKind
    uid: str
    labels: t.Mapping[str, str]
    warm_pool: str | None
    template: str | None
    workspace_id: str | None
    sandbox: str | None
    pod: str | None
    service: str | None
    pod_ip: str | None
    node: str | None
    warm: bool | None
    phase: Phase
    reason: str | None
    message: str | None
    created_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    age: float | None
    lease_left: float | None


def list_sandboxes(
    client: Client,
    namespace: str,
    deadline: Deadline,
    *,
    name: str | None = None,
    label_selector: str | None = None,
) -> list[SandboxInfo]:
    """All sandboxes that are held in a namespace, by name; members that wait in a pool are not among them.

    Args:
        name: only the one of this name.
        label_selector: only those whose claim, or whose direct Sandbox, matches.

    Raises:
        ApiError, ApiUnreachableError: a list could not be read.
    """

    def listed(kind: Kind, selector: str | None = None) -> t.Callable[[], list[Body]]:
        return functools.partial(read_items, client, kind, namespace, deadline, label_selector=selector)

    wanted = [listed(CLAIM, label_selector), listed(SANDBOX), listed(POD)]
    if label_selector is not None:
        wanted.append(listed(SANDBOX, label_selector))
    claims, *others = together(wanted, len(wanted))
    sandboxes, pods = ({_name(body): body for body in bodies} for bodies in others[:2])
    chosen = sandboxes if label_selector is None else {_name(body): body for body in others[2]}
    now = client.clock.now()
    found = [_from_claim(claim, sandboxes, pods, now) for claim in claims]
    found += [_direct(body, pods, now) for body in chosen.values() if not _is_owned(body)]
    return sorted((one for one in found if name in (None, one.name)), key=lambda one: one.name)


def _from_claim(
    claim: Body, sandboxes: t.Mapping[str, Body], pods: t.Mapping[str, Body], now: datetime.datetime
) -> SandboxInfo:
    bound = named_sandbox(claim)
    sandbox = sandboxes.get(bound or "", {})
    launch = (sandbox.get("metadata", {}).get("labels") or {}).get(LAUNCH_TYPE_LABEL)
    spec = claim.get("spec") or {}
    return _info(
        claim,
        "claim",
        bound,
        pods.get(bound or ""),
        sandbox,
        now,
        warm_pool=(spec.get("warmPoolRef") or {}).get("name"),
        template=None,
        warm=None if launch is None else launch == "warm",
        expiry=(spec.get("lifecycle") or {}).get("shutdownTime"),
        complaining=(claim, sandbox),
    )


def _direct(sandbox: Body, pods: t.Mapping[str, Body], now: datetime.datetime) -> SandboxInfo:
    spec = sandbox.get("spec") or {}
    pod_labels = ((spec.get("podTemplate") or {}).get("metadata") or {}).get("labels") or {}
    return _info(
        sandbox,
        "direct" if annotation(sandbox, ACQUIRE_ID_ANNOTATION) else "unmanaged",
        _name(sandbox),
        pods.get(_name(sandbox)),
        sandbox,
        now,
        warm_pool=None,
        template=pod_labels.get(TEMPLATE_LABEL),
        warm=False,
        expiry=spec.get("shutdownTime"),
        complaining=(sandbox,),
    )


def _info(
    body: Body,
    kind: SandboxKind,
    sandbox: str | None,
    pod: Body | None,
    serving: Body,
    now: datetime.datetime,
    *,
    warm_pool: str | None,
    template: str | None,
    warm: bool | None,
    expiry: str | None,
    complaining: tuple[Body, ...],
) -> SandboxInfo:
    metadata = body.get("metadata", {})
    created, expires = _time(metadata.get("creationTimestamp")), _time(expiry)
    phase, reason, message = _phase(complaining, pod, expires, now)
    status = (pod or {}).get("status") or {}
    return SandboxInfo(
        name=_name(body),
        namespace=str(metadata.get("namespace", "")),
        kind=kind,
        uid=str(metadata.get("uid", "")),
        labels=metadata.get("labels") or {},
        warm_pool=warm_pool,
        template=template,
        workspace_id=workspace_id(body),
        sandbox=sandbox,
        pod=_name(pod) if pod else None,
        service=(serving.get("status") or {}).get("serviceFQDN"),
        pod_ip=status.get("podIP"),
        node=((pod or {}).get("spec") or {}).get("nodeName"),
        warm=warm,
        phase=phase,
        reason=reason,
        message=message,
        created_at=created,
        expires_at=expires,
        age=None if created is None else (now - created).total_seconds(),
        lease_left=None if expires is None else max(0.0, (expires - now).total_seconds()),
    )


def _phase(
    complaining: tuple[Body, ...], pod: Body | None, expires: datetime.datetime | None, now: datetime.datetime
) -> tuple[Phase, str | None, str | None]:
    """The phase, and in whose words it is not ready: the pod's own before the controller's."""
    ready = condition(complaining[0], "Ready")
    reason, message = (reason_of(ready), message_of(ready)) if ready.get("status") != "True" else (None, None)
    if any(body.get("metadata", {}).get("deletionTimestamp") for body in complaining):
        return "terminating", reason, message
    if (expires is not None and expires <= now) or reason in EXPIRED_REASONS:
        return "expired", reason, message
    if ready.get("status") == "True":
        return "ready", None, None
    if reason == SUSPENDED_REASON:
        return "suspended", reason, message
    if is_rejected(ready):
        return "rejected", reason, message
    if reason in DEAD_REASONS:
        return ("finished" if reason == "PodSucceeded" else "failed"), reason, message
    complaint = pod_complaint(pod) if pod else None
    if complaint is not None:
        return "pending", complaint.reason, complaint.words
    return "pending", reason, message


def _is_owned(sandbox: Body) -> bool:
    """Whether a claim or a pool made it; those of claims are listed with their claim."""
    owners = sandbox.get("metadata", {}).get("ownerReferences") or []
    return any(owner.get("kind") in (CLAIM.name, WARM_POOL.name) for owner in owners)


def _name(body: Body) -> str:
    return str(body.get("metadata", {}).get("name", ""))


def _time(text: t.Any) -> datetime.datetime | None:
    return datetime.datetime.fromisoformat(str(text)) if text else None
