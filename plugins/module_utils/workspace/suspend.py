# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Suspend: flush, patch the mode, and wait until the pod has stopped; only then is the disk at rest."""

from __future__ import annotations

import dataclasses
import typing as t

from ..cluster.client import Client
from ..cluster.reads import read
from ..cluster.resources import POD, Body, ObjectRef, status
from ..deadline import LONGEST_LOOK_SECONDS, Backoff, Deadline
from ..errors import ApiUnreachableError, GoneError
from ..guest.quiescence import FlushReport, QuiesceReport
from ..lifecycle.acquire import direct
from ..lifecycle.errors import AcquireError
from ..lifecycle.observed.pod import FINAL_PHASES
from .disks import raise_if_vanishing, read_disks
from .errors import NotSettledError, WorkspaceSuspendTimeoutError, not_found
from .fencing import SUSPENDED, Change, Fence, mode_of, stored_epoch
from .flush import flush, not_settled, quiesce, running_guest
from .manifest import lags, raise_if_mismatch, raise_if_other, raise_if_unmanaged, template_hash, template_of
from .names import TEMPLATE_HASH_ANNOTATION
from .opened_with import carried_over, record_of
from .request import Suspended, SuspendRequest, WorkspaceRequest


def suspend_workspace(
    client: Client, request: SuspendRequest, *, uid: str | None = None, wait: bool = True, dry_run: bool = False
) -> Suspended:
    """Suspend a workspace by its id; one that is suspended already is left as it is.

    Args:
        client: who asks; its token needs the rules of role ``claimant`` with ``claimant_workspaces``.
        request: which, and what its guest does before.
        uid: suspend only the Sandbox of this uid.
        wait: whether to wait until its pod has stopped; its disk is not at rest before.
        dry_run: let the server say whether it would take the change; the guest is not asked anything.

    Returns:
        What was done. The pod has stopped, if that was waited for.

    Raises:
        WorkspaceNotFoundError, WorkspaceMismatchError, WorkspaceReplacedError: there is no such workspace.
        WorkspacePreconditionError: another holder has it; neither it nor its guest was touched.
        NotSettledError: the guest did not flush or quiesce, and the request refuses that; it runs on.
        WorkspaceDiskError: the pod is all that keeps a disk that somebody has deleted; it runs on.
        WorkspaceSuspendTimeoutError: the pod has not stopped in time; the workspace stays patched.
        ApiError, ApiUnreachableError: the API server's no, or silence.
    """
    deadline = Deadline(request.timeout, client.clock)
    fence = Fence(client, request.ref, request.holder_epoch, uid, request.resource_version)
    body = read_existing(fence, request.workspace_id, deadline)
    settled = _Settled()
    if mode_of(body) != SUSPENDED and not dry_run:
        settled = _settle(client, request, body, deadline)
    body, changed = fence.change(body, to_suspended, deadline, dry_run=dry_run)
    if wait and not dry_run:
        wait_until_stopped(client, request.ref, deadline)
    metadata = body["metadata"]
    return Suspended(
        workspace_id=request.workspace_id,
        name=str(metadata["name"]),
        namespace=str(metadata["namespace"]),
        uid=str(metadata["uid"]),
        changed=changed,
        flushed=settled.flushed,
        quiesced=settled.quiesced,
        holder_epoch=stored_epoch(body),
        unsettled=tuple(settled.problems),
    )


def read_existing(fence: Fence, workspace_id: str, deadline: Deadline) -> Body:
    """The workspace's Sandbox, if this caller may change it.

    Raises:
        WorkspaceNotFoundError, WorkspaceMismatchError, WorkspaceReplacedError, WorkspacePreconditionError: it may not.
    """
    body = fence.read(deadline)
    if body is None:
        raise not_found(fence.ref, workspace_id)
    raise_if_unmanaged(body, fence.ref, workspace_id)
    fence.refuse(body)
    return body


def to_suspended(body: Body) -> Change:
    """What a workspace lacks to be suspended. It has no shutdownTime then: that would take its service away."""
    mode = {"operatingMode": SUSPENDED} if mode_of(body) != SUSPENDED else {}
    ending = {"shutdownTime": None} if (body.get("spec") or {}).get("shutdownTime") else {}
    return Change(spec={**mode, **ending})


@dataclasses.dataclass
class _Settled:
    """What the guest did before its pod is stopped, and what it did not do."""

    quiesced: QuiesceReport | None = None
    flushed: FlushReport | None = None
    problems: list[NotSettledError] = dataclasses.field(default_factory=list)


def _settle(client: Client, request: SuspendRequest, body: Body, deadline: Deadline) -> _Settled:
    """Quiesce and flush; a failure is raised, or collected where the workspace is suspended all the same."""
    settled, limit = _Settled(), deadline
    if request.on_flush_failure == "suspend":
        limit = deadline.child(deadline.remaining() / 2)
    try:
        guest = running_guest(client, request.ref, request.agent_port, request.agent_address, deadline)
    except AcquireError as error:
        if request.on_flush_failure == "refuse" or not (request.flush or request.quiesce):
            raise
        settled.problems.append(not_settled("flush", "unreachable", request.ref, error))
        return settled
    if guest is None:
        return settled
    raise_if_vanishing(request.ref, read_disks(client, body, deadline))
    pod, agent = guest
    if request.quiesce:
        settled.quiesced = _attempt(settled, request, limit, lambda: quiesce(agent, request.ref, limit, pod))
    if request.flush:
        settled.flushed = _attempt(settled, request, limit, lambda: flush(agent, request.ref, limit))
    return settled


Report = t.TypeVar("Report")


def _attempt(
    settled: _Settled, request: SuspendRequest, limit: Deadline, call: t.Callable[[], Report]
) -> Report | None:
    """Ask the guest; where its failure is not refused, again while that may help and time is left."""
    backoff = Backoff()
    while True:
        try:
            return call()
        except NotSettledError as error:
            if request.on_flush_failure == "refuse":
                raise
            if not error.retryable or not backoff.wait(limit):
                settled.problems.append(error)
                return None


def wait_until_stopped(client: Client, ref: ObjectRef, deadline: Deadline) -> None:
    """Wait until the pod of the workspace is gone; one that has ended and cannot go counts when the time is over.

    A pod that has ended is told from one that will be started by its going, so it is not enough for a quick resume.

    Raises:
        WorkspaceSuspendTimeoutError: it still does when the deadline has passed.
        ApiError, ApiUnreachableError: it was never read.
    """
    pod, backoff = POD.ref(ref.namespace, ref.name), Backoff(longest=LONGEST_LOOK_SECONDS)
    phase: str | None = None
    while True:
        try:
            phase = str(status(read(client, pod, deadline)).get("phase"))
        except GoneError:
            return
        except ApiUnreachableError:
            # The deadline cut this read: the last one counts.
            if phase is None or not deadline.expired:
                raise
        if backoff.wait(deadline):
            continue
        if phase not in FINAL_PHASES:
            raise WorkspaceSuspendTimeoutError(
                f"{ref} was told to suspend, and its pod is {phase} still after {deadline.seconds:g} s.",
                object=str(ref),
                next_step="It stays suspended and stops when the pod can: look at its node's kubelet, at the pod's "
                "grace period, and whether the controller runs. The same task again waits on.",
            )
        return


def refresh_suspended(
    client: Client, request: WorkspaceRequest, *, uid: str | None = None, dry_run: bool = False
) -> bool:
    """Replace the whole pod template of a suspended workspace by its template's, for its next start.

    Returns:
        Whether it was, or in a dry run would be, replaced; False when it was the same.

    Raises:
        WorkspaceError: as ``suspend_workspace``; a mismatch when it runs, or when its disks are others.
    """
    deadline = Deadline(request.ready_timeout, client.clock)
    fence = Fence(client, request.ref, request.holder_epoch, uid)
    body = read_existing(fence, request.workspace_id, deadline)
    request = carried_over(request, body)
    name = request.template or template_of(body)
    if name is None:
        raise_if_mismatch(request.ref, ["it does not say of which template it is"], "Name the template.")
    template = direct.read_template(client, request.namespace, str(name), deadline)
    raise_if_other(body, request.ref, request, template)

    def decide(latest: Body) -> Change:
        if mode_of(latest) != SUSPENDED and not dry_run:
            raise_if_mismatch(request.ref, ["it runs"], "Suspend it first, or refresh it with state: running.")
        return to_template(request, template) if lags(latest, request, template) else Change()

    return fence.change(body, decide, deadline, dry_run=dry_run)[1]


def to_template(request: WorkspaceRequest, template: direct.Template) -> Change:
    """The template's pod template instead of the workspace's, whole."""
    whole = direct.pod_template(template, request.acquire(template.name, request.ref))
    annotations = {TEMPLATE_HASH_ANNOTATION: template_hash(template), **record_of(request)}
    return Change(spec={"podTemplate": whole}, annotations=annotations)
