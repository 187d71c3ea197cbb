# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The pod behind a Sandbox: the live one, its bind token and its address, from one read."""

from __future__ import annotations

import dataclasses
import typing as t

from ...cluster.client import Client
from ...cluster.resources import POD, SANDBOX, Body
from ...cluster.retry import retry
from ...deadline import Deadline
from ...errors import GoneError
from ..errors import AcquireError
from .status import ENDED_STEP

#: Seconds between two looks at a pod that lacks its address or a label yet.
POLL = 0.05

#: Phases of a pod that has ended and is not started again.
FINAL_PHASES = ("Succeeded", "Failed")


@dataclasses.dataclass(frozen=True)
class BoundPod:
    """A live pod. Its uid is the agent's bind token, so no text form shows it, nor the object that has it."""

    name: str
    uid: str = dataclasses.field(repr=False)
    ip: str | None
    labels: t.Mapping[str, str]
    body: Body = dataclasses.field(default_factory=dict, repr=False, compare=False)


def bind_pod(
    client: Client,
    namespace: str,
    sandbox: str,
    deadline: Deadline,
    *,
    labels: t.Mapping[str, str],
    need_ip: bool,
) -> BoundPod:
    """Read the live pod of a Sandbox, and wait until it shows the requested labels and, if needed, an address.

    Args:
        labels: pod labels that the controller was asked for; the controller patches them onto a bound pod.
        need_ip: whether the pod's IP is how the agent will be reached.

    Raises:
        AcquireError: its pod has ended, or no live pod, a label or the address has come before the deadline
            (``not-ready``).
    """
    while True:
        body = retry(deadline, lambda: _find_pod(client, namespace, sandbox, deadline))
        if body is not None and pod_has_ended(body):
            raise AcquireError(
                f"Pod of Sandbox {namespace}/{sandbox} has ended ({body['status']['phase']}).",
                reason="not-ready",
                retryable=False,
                object=f"Sandbox {namespace}/{sandbox}",
                next_step=ENDED_STEP,
            )
        pod = _live(body)
        lacking = _lacking(pod, labels, need_ip)
        if pod is not None and not lacking:
            return pod
        if deadline.remaining() <= 2 * POLL:
            # Not one more read in the last moment: its timeout would hide what is lacking.
            raise AcquireError(
                f"Pod of Sandbox {namespace}/{sandbox}: {lacking} within {deadline.seconds:g} s.",
                reason="not-ready",
                retryable=True,
                object=f"Sandbox {namespace}/{sandbox}",
                next_step="Look at the pod and at the controller's log; a longer ready_timeout may be enough.",
            )
        deadline.sleep(POLL)


def live_pod(client: Client, namespace: str, sandbox: str, deadline: Deadline) -> BoundPod | None:
    """The pod of a Sandbox that is neither being deleted nor finished, or None.

    The controller names the pod like the Sandbox; should that change, ``status.selector`` finds it.
    """
    return _live(_find_pod(client, namespace, sandbox, deadline))


def _find_pod(client: Client, namespace: str, sandbox: str, deadline: Deadline) -> Body | None:
    try:
        return client.get(POD.ref(namespace, sandbox), deadline)
    except GoneError:
        return _live_pod_by_selector(client, namespace, sandbox, deadline)


def _live_pod_by_selector(client: Client, namespace: str, sandbox: str, deadline: Deadline) -> Body | None:
    try:
        selector = (client.get(SANDBOX.ref(namespace, sandbox), deadline).get("status") or {}).get("selector")
    except GoneError:
        return None
    if not selector:
        return None
    pods = client.list(POD, namespace, label_selector=str(selector), deadline=deadline).get("items") or []
    return next((pod for pod in pods if _is_live(pod)), None)


def _live(pod: Body | None) -> BoundPod | None:
    return _bound(pod) if pod is not None and _is_live(pod) else None


def _is_live(pod: Body) -> bool:
    metadata = pod.get("metadata") or {}
    return bool(metadata.get("uid")) and not _is_finished(pod) and not metadata.get("deletionTimestamp")


def pod_has_ended(pod: Body) -> bool:
    """Whether it has ended and stays; one that is being deleted may make room for another."""
    return _is_finished(pod) and not (pod.get("metadata") or {}).get("deletionTimestamp")


def _is_finished(pod: Body) -> bool:
    return (pod.get("status") or {}).get("phase") in FINAL_PHASES


def _bound(pod: Body) -> BoundPod:
    metadata = pod["metadata"]
    return BoundPod(
        name=str(metadata["name"]),
        uid=str(metadata["uid"]),
        ip=(pod.get("status") or {}).get("podIP") or None,
        labels=metadata.get("labels") or {},
        body=pod,
    )


def _lacking(pod: BoundPod | None, labels: t.Mapping[str, str], need_ip: bool) -> str:
    if pod is None:
        return "no live pod appeared"
    missing = [f"{key}={value}" for key, value in labels.items() if pod.labels.get(key) != value]
    if missing:
        return f"the requested labels {', '.join(missing)} did not appear on it"
    return "it got no IP" if need_ip and pod.ip is None else ""
