# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Why a claim or Sandbox did not become ready: one read of its pod, and its own Ready condition."""

from __future__ import annotations

import contextlib
import dataclasses

from ...cluster.client import Client
from ...cluster.resources import POD, Body, ObjectRef, condition, entries, spec
from ...deadline import Deadline
from ...errors import ApiUnreachableError, CredentialError, SandboxError, UnavailableError
from ...text import clean_text
from ..errors import AcquireError
from .pod import FINAL_PHASES
from .status import ENDED_STEP, message_of, named_sandbox, reason_of

#: Seconds for the one read of the pod; it must not delay the failure that it explains for longer.
DIAGNOSIS_SECONDS = 1.0

#: Container states of the kubelet in which the image is what is missing (Kubernetes v1.36, ``pkg/kubelet/images``).
IMAGE_REASONS = frozenset(
    {"ErrImagePull", "ImagePullBackOff", "ErrImageNeverPull", "ImageInspectError", "InvalidImageName",
     "RegistryUnavailable"}
)  # fmt: skip

#: Characters of a name: an image with a digest fits.
_NAME = 300

#: How the API server words a refusal by a ResourceQuota (Kubernetes v1.36, ``plugin/pkg/admission/resourcequota``).
_QUOTA_WORDS = ("exceeded quota", "failed quota")


def not_ready(
    client: Client, ref: ObjectRef, body: Body, deadline: Deadline, sandbox: str | None = None
) -> AcquireError:
    """The error for a claim or Sandbox that was not Ready when its deadline passed; the pod's own message comes first.

    ``sandbox`` names the Sandbox whose pod is read; without it the claim's status does.
    """
    ready = condition(body, "Ready")
    text = f"{reason_of(ready)}: {message_of(ready)}" if ready else "the controller has not answered (no status)"
    complaint = quota_complaint(body) or _ask_pod(client, ref.namespace, sandbox or named_sandbox(body), deadline)
    return _not_ready(ref, body, deadline, complaint or Complaint("not-ready", text, True, _NOT_READY_STEP))


def explained_by_pod(
    client: Client, ref: ObjectRef, body: Body, deadline: Deadline, sandbox: str | None = None
) -> AcquireError | None:
    """The error of a claim or Sandbox that a quota or its pod explains, for a wait that API failures ended.

    Args:
        body: the claim or Sandbox as it was read last; it is read again, since those failures hid what came after.
        deadline, sandbox: as for ``not_ready``.

    Returns:
        The same error as without API failures, or None when nothing but those is known.
    """
    limit = Deadline(DIAGNOSIS_SECONDS, client.clock, cancellation=deadline.cancellation)
    with contextlib.suppress(SandboxError):
        body = client.get(ref, limit)
    complaint = quota_complaint(body) or _ask_pod(client, ref.namespace, sandbox or named_sandbox(body), deadline)
    return None if complaint is None else _not_ready(ref, body, deadline, complaint)


def _not_ready(ref: ObjectRef, body: Body, deadline: Deadline, complaint: Complaint) -> AcquireError:
    ready = condition(body, "Ready")
    return AcquireError(
        f"{ref} was not ready within {deadline.seconds:g} s: {complaint.words.removesuffix('.')}.",
        reason=complaint.reason,
        retryable=complaint.retryable,
        controller_reason=reason_of(ready),
        controller_message=message_of(ready),
        object=str(ref),
        next_step=complaint.next_step,
    )


_QUOTA_STEP = "Raise the namespace's ResourceQuota, or release what uses it up."
_NOT_READY_STEP = "Look at the warm pool, the sandbox's pod and the controller's log; is the controller running?"


@dataclasses.dataclass(frozen=True)
class Complaint:
    """Why a pod does not run.

    Attributes:
        reason: ``capacity``, ``image-pull``, ``quota``, or ``not-ready`` for a container that ended.
        words: the message of the scheduler or the kubelet, cleaned.
        retryable: whether waiting may help.
        next_step: what a person can do.
    """

    reason: str
    words: str
    retryable: bool
    next_step: str


def quota_complaint(body: Body) -> Complaint | None:
    """The ResourceQuota that keeps a claim or Sandbox from having a pod, or None."""
    ready = condition(body, "Ready")
    if not any(quota in str(ready.get("message") or "") for quota in _QUOTA_WORDS):
        return None
    return Complaint("quota", f"{reason_of(ready)}: {message_of(ready)}", True, _QUOTA_STEP)


def pod_complaint(pod: Body) -> Complaint | None:
    """Why a pod does not run, from its conditions and container states; None when they show no cause."""
    scheduled = condition(pod, "PodScheduled")
    gates = scheduling_gates(pod)
    if gates and scheduled.get("status") != "True":
        words = f"its pod is held by the scheduling gate {clean_text(', '.join(gates), _NAME)}"
        return Complaint("capacity", words, True, "Find the controller that removes the gate, such as a queue of jobs.")
    if scheduled.get("status") == "False" and scheduled.get("reason") == "Unschedulable":
        words = f"its pod cannot be scheduled: {clean_text(scheduled.get('message'))}"
        return Complaint("capacity", words, True, "Free or add nodes, or lower the template's requests.")
    status = pod.get("status") or {}
    containers = [*(status.get("initContainerStatuses") or []), *(status.get("containerStatuses") or [])]
    for container in containers:
        waiting = (container.get("state") or {}).get("waiting") or {}
        if waiting.get("reason") in IMAGE_REASONS:
            image, message = clean_text(container.get("image"), _NAME), clean_text(waiting.get("message"))
            words = f"the image {image} cannot be pulled: {message}"
            step = "Correct the template's image, or make it available to the node."
            return Complaint("image-pull", words, False, step)
    endings = "; ".join(words for words in map(_ending, containers) if words)
    if endings:
        return Complaint("not-ready", endings, status.get("phase") not in FINAL_PHASES, ENDED_STEP)
    return None


def scheduling_gates(pod: Body) -> list[str]:
    """The names of the gates that keep a pod from being scheduled (``spec.schedulingGates``)."""
    return [str(gate.get("name")) for gate in entries(spec(pod).get("schedulingGates"))]


def _ending(container: Body) -> str:
    """How a container that is not ready ended, now or the last time; nothing for one that has never ended."""
    state = container.get("state") or {}
    ended = state.get("terminated") or (container.get("lastState") or {}).get("terminated")
    if not ended or container.get("ready"):
        return ""
    why = ": ".join(clean_text(ended[field]) for field in ("reason", "message") if ended.get(field))
    restarts = container.get("restartCount") or 0
    return (
        f"its container {clean_text(container.get('name'), _NAME)} ended with exit code {ended.get('exitCode')}"
        + (f" ({why})" if why else "")
        + (f", restarted {restarts} times" if restarts else "")
    )


def with_pod_ending(
    error: SandboxError, client: Client, namespace: str, sandbox: str | None, deadline: Deadline
) -> SandboxError:
    """The error with how the containers of its pod ended, when one has; else the error itself."""
    complaint = _ask_pod(client, namespace, sandbox, deadline)
    if complaint is None:
        return error
    ending = complaint.words.removesuffix(".")
    return error.replace(message=f"{error.message} {ending[0].upper()}{ending[1:]}.", next_step=complaint.next_step)


def _ask_pod(client: Client, namespace: str, sandbox: str | None, deadline: Deadline) -> Complaint | None:
    if sandbox is None:
        return None
    limit = Deadline(DIAGNOSIS_SECONDS, client.clock, cancellation=deadline.cancellation)
    try:
        return pod_complaint(client.get(POD.ref(namespace, sandbox), limit))
    except SandboxError:
        return None  # the failure that is being explained stays the one that is reported


def explain(error: SandboxError, ref: ObjectRef) -> SandboxError:
    """A failed request as the reason of a failed acquire; any other error is returned unchanged."""
    if isinstance(error, CredentialError):
        quota = any(words in str(error.api_message) for words in _QUOTA_WORDS)
        return AcquireError(
            error.message,
            reason="quota" if quota else "forbidden",
            retryable=quota,
            object=str(ref),
            next_step=_QUOTA_STEP if quota else error.next_step,
        )
    if isinstance(error, (ApiUnreachableError, UnavailableError)):
        return AcquireError(
            error.message,
            reason=error.reason,
            retryable=error.retryable,
            object=str(ref),
            next_step=error.next_step,
        )
    return error
