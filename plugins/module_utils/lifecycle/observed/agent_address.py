# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Where the agent of a sandbox answers: by the sandbox's own name, or at its pod's address."""

from __future__ import annotations

import dataclasses
import typing as t

from ...cluster.client import Client
from ...cluster.portforward import open_port
from ...cluster.reads import read
from ...cluster.resources import CLAIM, POD, SANDBOX, Body, ObjectRef, condition, status, workspace_id
from ...cluster.watch import LAST_READ_MARGIN_SECONDS
from ...deadline import Backoff, Deadline
from ...errors import GoneError
from ...guest.agent import AgentAddress
from ...guest.errors import GuestTimeoutError, GuestUnauthorizedError, GuestUnreachableError
from ..errors import AcquireError, check_uid
from .pod import BoundPod, bind_pod
from .status import SUSPENDED_REASON, bound_sandbox, named_sandbox, raise_if_decided

#: How the agent is reached: the DNS name of the sandbox, the address of its pod, or through the API server.
AddressMode = t.Literal["service", "pod_ip", "port_forward"]
DEFAULT_AGENT_PORT = 1024

#: The fraction of the probe's time after which a pod that has not replied is looked up again: a packet to an address
#: that has no pod any more may get no reply at all.
FIRST_PROBE_FRACTION = 1 / 3

#: Seconds for which a sandbox that has a pod may be not Ready, as when a readiness probe of it was late once.
FLAP_SECONDS = 1.0

#: What to do about a name that neither a claim nor a Sandbox has.
_NOT_HELD = (
    "It was given back, its lease has ended, or the namespace is another one: sandbox_info lists what is held. Acquire "
    "it with namzu.sandbox.sandbox, or namzu.sandbox.workspace for a workspace."
)

Result = t.TypeVar("Result")


@dataclasses.dataclass(frozen=True)
class Bound:
    """A live pod, and its agent's address as it was when the pod was read."""

    pod: BoundPod
    agent: AgentAddress


@dataclasses.dataclass(frozen=True)
class Located:
    """A sandbox that is held already, and where its agent answers now; ``uid`` is the claim's or the Sandbox's."""

    name: str
    uid: str
    sandbox: str
    pod: str
    agent: AgentAddress


def locate(
    client: Client,
    namespace: str,
    name: str,
    *,
    port: int,
    mode: AddressMode,
    deadline: Deadline,
    uid: str | None = None,
) -> Located:
    """Find the agent of the sandbox that a claim of this name holds, or of the direct Sandbox of this name.

    Args:
        uid: of the claim or Sandbox that is meant, or None for whichever has the name.

    Raises:
        GoneError: there is neither.
        ReplacedError: another one than that of ``uid`` has the name.
        AcquireError: it is not ready, has expired, or has no live pod.
    """
    ref, body, sandbox = _find_ready(client, namespace, name, deadline, uid)
    pod = bind_pod(client, namespace, sandbox, deadline, labels={}, need_ip=mode == "pod_ip")
    if ref.kind is SANDBOX and uid is not None:
        check_owner(ref, pod.body, uid)
    agent = agent_address(client, namespace, sandbox, pod, port, mode, deadline)
    return Located(name, body["metadata"]["uid"], sandbox, pod.name, agent)


def _find_ready(
    client: Client, namespace: str, name: str, deadline: Deadline, uid: str | None
) -> tuple[ObjectRef, Body, str]:
    """What is held under the name, and its ready Sandbox; Ready may be False for a moment while its pod runs."""
    limit, backoff = deadline.child(FLAP_SECONDS), Backoff()
    while True:
        try:
            ref, body = find_held(client, namespace, name, deadline, uid=uid)
        except GoneError as error:
            raise error.replace(next_step=error.next_step or _NOT_HELD) from error
        raise_if_decided(body, ref)
        sandbox = bound_sandbox(body, ref)
        if sandbox is not None:
            return ref, body, sandbox
        if not _has_pod(ref, body) or not backoff.wait(limit):
            raise unbound(ref, body)


def _has_pod(ref: ObjectRef, body: Body) -> bool:
    if condition(body, "Ready").get("reason") == SUSPENDED_REASON:
        return False
    return named_sandbox(body) is not None if ref.kind is CLAIM else bool(status(body).get("podIPs"))


def unbound(ref: ObjectRef, body: Body) -> AcquireError:
    """The error for a claim or direct Sandbox that has no ready sandbox now."""
    workspace = workspace_id(body)
    next_step = "Run namzu.sandbox.sandbox with this name first: it waits until the sandbox is ready."
    if workspace is not None:
        next_step = "Run namzu.sandbox.workspace with its workspace_id first: it waits until the workspace is ready."
    if condition(body, "Ready").get("reason") == SUSPENDED_REASON:
        next_step = "It is suspended: run namzu.sandbox.workspace with state: running first."
    return AcquireError(
        f"{ref} is bound to no ready sandbox now.",
        reason="not-ready",
        retryable=True,
        object=str(ref),
        next_step=next_step,
    )


def find_held(
    client: Client, namespace: str, name: str, deadline: Deadline, *, uid: str | None = None
) -> tuple[ObjectRef, Body]:
    """The claim of that name, or else the Sandbox; with a uid, the one of the two that has it.

    Raises:
        GoneError: there is neither.
        ReplacedError: none of that name has the uid.
    """
    refs = (CLAIM.ref(namespace, name), SANDBOX.ref(namespace, name))
    found: list[tuple[ObjectRef, Body]] = []
    missing: list[GoneError] = []
    for ref in refs:
        try:
            body = read(client, ref, deadline)
        except GoneError as error:
            missing.append(error)
            continue
        if uid is None or body["metadata"]["uid"] == uid:
            return ref, body
        found.append((ref, body))
    for ref, body in found:
        check_uid(ref, body["metadata"]["uid"], uid)
    raise missing[0]


def check_owner(ref: ObjectRef, pod: Body, uid: str) -> None:
    """Check that a pod belongs to the Sandbox of that uid, in case it was replaced after it was read.

    Raises:
        ReplacedError: it belongs to another one.
    """
    for owner in (pod.get("metadata") or {}).get("ownerReferences") or []:
        if owner.get("kind") == SANDBOX.name:
            check_uid(ref, owner.get("uid"), uid)


def agent_address(
    client: Client, namespace: str, sandbox: str, pod: BoundPod, port: int, mode: AddressMode, deadline: Deadline
) -> AgentAddress:
    """The address and bind token of the agent in a live pod.

    A service name outlives its pod and needs the cluster's DNS here; a pod's IP needs a route here and nothing else;
    a port-forward needs neither, only the right to it.
    The IP is the one of the very pod that the token was read from, never the Sandbox's, which may name another.
    """
    if mode == "port_forward":
        ref = POD.ref(namespace, pod.name)
        return AgentAddress(
            f"{namespace}/{pod.name}", port, pod.uid, dial=lambda limit: open_port(client, ref, port, limit)
        )
    host = pod.ip if mode == "pod_ip" else _service_name(client, namespace, sandbox, deadline)
    return AgentAddress(str(host), port, pod.uid)


def reach(
    bound: Bound,
    bind: t.Callable[[], Bound],
    probe: t.Callable[[Bound, Deadline], Result],
    clock: Deadline,
    deadline: Deadline,
) -> tuple[Bound, Result]:
    """Probe the agent of a pod; when it cannot be reached there, look where the pod is now, and probe again.

    A pod may be replaced after it was read, its name may not be in the DNS yet, and its agent may not listen yet. For
    use before a sandbox is handed out: another pod is bound anew here, and after that it would be another sandbox.

    Args:
        bound: the pod as it was read.
        bind: reads it anew.
        probe: is given a pod and the time that it may take; fit to be repeated.
        clock: bounds the probes.
        deadline: bounds the reads.

    Returns:
        The pod that has answered, and what the probe returned.

    Raises:
        What the last probe raised, or what kept the pod from being read.
    """
    backoff = Backoff()
    while True:
        limit = clock if backoff.attempts else clock.child(clock.remaining() * FIRST_PROBE_FRACTION)
        try:
            return bound, probe(bound, limit)
        except (GuestUnreachableError, GuestTimeoutError, GuestUnauthorizedError) as error:
            if backoff.seconds >= deadline.remaining() - LAST_READ_MARGIN_SECONDS or not backoff.wait(clock):
                raise
            latest = bind()
            if isinstance(error, GuestUnauthorizedError) and latest.pod.uid == bound.pod.uid:
                raise
            bound = latest


def _service_name(client: Client, namespace: str, sandbox: str, deadline: Deadline) -> str:
    ref = SANDBOX.ref(namespace, sandbox)
    name = status(read(client, ref, deadline)).get("serviceFQDN")
    if not name:
        raise AcquireError(
            f"{ref} has no service name, so its agent cannot be reached by one.",
            reason="not-ready",
            retryable=False,
            object=str(ref),
            next_step="Set service: true in the template, or agent.address: pod_ip in the task.",
        )
    return str(name)
