# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Running: create, adopt, resume or recover a workspace, and prove its guest; or leave it suspended, with its disk."""

from __future__ import annotations

import dataclasses
import typing as t
import uuid

from ..cluster.client import Client
from ..cluster.resources import TEMPLATE, Body, annotation, expires_at
from ..cluster.retry import retry, wait_or_raise
from ..deadline import CLEANUP_SECONDS, Backoff, Cancellation, Deadline, poll
from ..errors import ApiUnreachableError, ConflictError, GoneError, NotServedError, SandboxError, UnavailableError
from ..lifecycle.acquire import direct
from ..lifecycle.acquire.cancelled import raise_if_cancelled
from ..lifecycle.acquire.create import LATE_POST_SECONDS
from ..lifecycle.acquire.unique_name import check_name_unused
from ..lifecycle.errors import AcquireError, ClaimMismatchError
from ..lifecycle.observed.diagnosis import DIAGNOSIS_SECONDS, explain
from ..lifecycle.verification.isolation import check_planned_isolation
from ..lifecycle.verification.verify import Verification
from .disks import Disk, raise_if_diskless, raise_if_lost, raise_if_unbound, read_disks, record
from .errors import NotSettledError, WorkspaceError, not_found
from .fencing import RUNNING, SUSPENDED, Change, Fence, mode_of, stored_epoch
from .identity import identity_of
from .manifest import (
    drift,
    has_ended,
    has_expired,
    is_current,
    lags,
    raise_if_mismatch,
    raise_if_other,
    raise_if_unmanaged,
    shutdown_time,
    template_of,
    workspace_body,
)
from .names import CREATE_ID_ANNOTATION, DISKS_ANNOTATION, OPENED_WITH_ANNOTATION
from .opened_with import carried_over, record_of
from .request import Opened, Origin, SuspendRequest, WorkspaceRequest
from .start import Proof, WorkspaceStart
from .suspend import read_existing, suspend_workspace, to_suspended, to_template


def open_workspace(
    client: Client, request: WorkspaceRequest, *, uid: str | None = None, cancellation: Cancellation | None = None
) -> Opened:
    """Have a workspace run: make it, take it as it runs, or start its pod on its disk; the result says which.

    Boundary and privileges are proven every time. When what this call has started is refused, or does not become ready,
    it is suspended, never deleted. A workspace that ran before is refused, and runs on.

    Args:
        client: who asks; its token needs the rules of role ``claimant`` with ``claimant_workspaces``.
        request: which, and what it must be.
        uid: only the Sandbox of this uid; nothing is made then.
        cancellation: ends the call when it is cancelled, by any thread; what it has started is suspended first.

    Returns:
        The workspace, bound to a live pod and proven.

    Raises:
        WorkspaceNotFoundError: it is not there, and there is no template to make it from.
        ClaimMismatchError: a claim has the name of its Sandbox.
        WorkspaceMismatchError: what is there is another one, or of an older template and ``refresh`` was not asked for.
        WorkspacePreconditionError: another holder has it.
        WorkspaceReplacedError: it is not the Sandbox of that uid, or is being deleted.
        WorkspaceDiskError: a disk is missing, is another one, or cannot be bound.
        WorkspaceSuspendTimeoutError, NotSettledError: the restart for a refresh or a recovery did not get that far.
        AcquireError, BoundaryError, PrivilegeError, PolicyError, GuestError, ApiError: as ``acquire``.
    """
    return Opening(client, request, uid, cancellation).run()


class Opening:
    """One call of ``open_workspace``, step by step.

    Args:
        client, request, uid, cancellation: as for ``open_workspace``.
    """

    def __init__(
        self,
        client: Client,
        request: WorkspaceRequest,
        uid: str | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        self.client = client
        self.request = request
        self.deadline = Deadline(request.ready_timeout, client.clock, cancellation=cancellation)
        self.fence = Fence(client, request.ref, request.holder_epoch, uid)
        self.template: direct.Template | None = None
        self.origin: Origin = "adopted"
        self.changed = False
        self.refreshed = False
        self.stale: tuple[str, ...] = ()
        self.unsettled: tuple[NotSettledError, ...] = ()
        self._create_id = str(uuid.uuid4())
        #: Whether this call has sent, or is about to send, what starts a pod.
        self._started = False

    def run(self) -> Opened:
        """The whole of it."""
        try:
            return self._run()
        except SandboxError as error:
            raise_if_cancelled(error, self.deadline, self.request.ref, "it was cancelled by its caller")
            raise

    def _run(self) -> Opened:
        body = self.find()
        asked = self.request.acquire(self._pod_source(body).name, self.request.ref)
        with Verification(self.client, asked, self.deadline) as verification:
            try:
                body = self._create(verification) if body is None else self._bring_up(body, verification)
                start = self._start(body, verification)
                proof, disks = self._prove(start, body)
                body = self._remember(proof.body, disks)
            except BaseException as error:
                words = self._suspend_again() if self._started else ""
                if not isinstance(error, SandboxError):
                    raise
                raise self._reported(error, words) from error
        return self._opened(body, proof, disks, start.timings)

    def find(self) -> Body | None:
        """What stands there, checked; None when it is to be made. Nothing is changed.

        Raises:
            WorkspaceError: it cannot become what was asked for.
        """
        body = self.fence.read(self.deadline)
        if body is not None:
            body = self._checked(body)
            self._check_isolation(body)
            return body
        if self.request.template is None:
            raise not_found(self.request.ref, self.request.workspace_id)
        check_name_unused(self.client, self.request.ref, self.deadline)
        self.template = self._read_template(self.request.template)
        self._check_isolation(None)
        return None

    def _check_isolation(self, body: Body | None) -> None:
        """Refuse a pod template that shows too weak an isolation, before anything is changed."""
        source = self._pod_source(body)
        planned = direct.pod_template(source, self.request.acquire(source.name, self.request.ref))
        subject = str(TEMPLATE.ref(self.request.namespace, source.name) if body is None else self.request.ref)
        check_planned_isolation(self.client, planned["spec"], self.request.isolation, subject, self.deadline)

    def preview(self) -> tuple[Body | None, Origin, bool]:
        """What stands there, how it would come to run, and if that is a change; the server is asked in a dry run."""
        body = self.find()
        if body is None:
            self.client.create(self.request.ref, self._new_body(), self.deadline, dry_run=True)
            return None, "created", True
        if self._runs(body) and not has_ended(body) and not self._is_to_refresh(body):
            return body, "adopted", self.fence.change(body, self._wanted, self.deadline, dry_run=True)[1]
        raise_if_lost(self.request.ref, read_disks(self.client, body, self.deadline))
        if self._runs(body):
            self.fence.change(body, to_suspended, self.deadline, dry_run=True)
        else:
            self.fence.change(body, self._wanted, self.deadline, dry_run=True)
        return body, "recovered" if has_ended(body) else "resumed", True

    def _checked(self, body: Body) -> Body:
        """Whose it is, and what, before anything is changed; what it was opened with completes the request."""
        raise_if_unmanaged(body, self.request.ref, self.request.workspace_id)
        self.fence.refuse(body)
        self.request = request = carried_over(self.request, body)
        name = request.template or template_of(body)
        if self.template is None and name is not None:
            self.template = self._read_template(name)
        raise_if_other(body, request.ref, request, self.template)
        if self.template is None or request.on_stale == "ignore":
            return body
        self.stale = tuple(drift(body, self.template))
        if self.stale and request.on_stale == "refuse" and not request.refresh:
            raise_if_mismatch(
                request.ref,
                [f"its template was edited since it was made ({', '.join(self.stale)})"],
                "refresh: true takes the template as it is now, and restarts the pod on its disk. on_stale: report "
                "goes on with the older one.",
            )
        return body

    def _read_template(self, name: str) -> direct.Template | None:
        ref = TEMPLATE.ref(self.request.namespace, name)
        try:
            template = direct.read_template(self.client, self.request.namespace, name, self.deadline)
        except NotServedError:
            raise
        except GoneError:
            if self.request.template is not None:
                raise
            return None  # the workspace lives on without its template
        except SandboxError as error:
            raise explain(error, ref) from error
        raise_if_diskless(template, str(ref))
        return template

    def _create(self, verification: Verification) -> Body:
        """POST it once. After a lost answer its name is read, and a workspace that is there is taken as it is."""
        self._start(None, verification).prove_planned()
        backoff = Backoff()
        while True:
            self._started = True
            try:
                existing: Body | None = self.client.create(self.request.ref, self._new_body(), self.deadline)
            except ConflictError:
                existing = self.fence.read(self.deadline)
                if existing is None and not backoff.wait(self.deadline):
                    raise
            except (ApiUnreachableError, UnavailableError) as error:
                wait_or_raise(self.deadline, error, backoff)
                existing = self.fence.read(self.deadline)
            if existing is not None:
                return self._taken(existing, verification)

    def _new_body(self) -> Body:
        now = self.client.server_time.now().earliest
        return workspace_body(self.request, self.request.ref, self._pod_source(None), self._create_id, now)

    def _taken(self, existing: Body, verification: Verification) -> Body:
        """What stands there after a POST: ours, or another holder's, who came first."""
        if annotation(existing, CREATE_ID_ANNOTATION) == self._create_id:
            self._check_name_again(existing)
            self.origin, self.changed = "created", True
            return existing
        self._started = False
        return self._bring_up(self._checked(existing), verification)

    def _check_name_again(self, created: Body) -> None:
        """Delete what this call has created when a claim got its name at the same time; its disks are still empty."""
        try:
            check_name_unused(self.client, self.request.ref, self.deadline)
        except ClaimMismatchError as error:
            self._started = False
            limit = Deadline(CLEANUP_SECONDS, self.client.clock)
            try:
                retry(limit, lambda: self.client.delete(self.request.ref, limit, uid=str(created["metadata"]["uid"])))
            except (GoneError, ConflictError):
                raise error from None
            except SandboxError:
                raise error.replace(leftover=str(self.request.ref)) from error
            raise

    def _bring_up(self, body: Body, verification: Verification) -> Body:
        """Have it run, on the disks that it had."""
        ended = has_ended(body)
        if self._runs(body) and (ended or self._is_to_refresh(body)):
            body = self._stop(body)
        if not self._runs(body):
            raise_if_lost(self.request.ref, read_disks(self.client, body, self.deadline))
            self._start(body, verification).prove_planned()
            self.origin = "recovered" if ended else "resumed"
        body, changed = self.fence.change(body, self._wanted, self.deadline)
        self.changed = self.changed or changed
        return body

    def _runs(self, body: Body) -> bool:
        return mode_of(body) != SUSPENDED and not has_expired(body, self.client.server_time.now().latest)

    def _is_to_refresh(self, body: Body) -> bool:
        return self.request.refresh and self.template is not None and lags(body, self.request, self.template)

    def _stop(self, body: Body) -> Body:
        """Suspend it on the way to a new pod."""
        request, uid = self.request, str(body["metadata"]["uid"])
        suspend = SuspendRequest(
            namespace=request.namespace,
            workspace_id=request.workspace_id,
            holder_epoch=request.holder_epoch,
            flush=request.flush,
            on_flush_failure=request.on_flush_failure,
            timeout=max(1.0, self.deadline.remaining()),
            agent_port=request.agent_port,
            agent_address=request.agent_address,
        )
        done = suspend_workspace(self.client, suspend, uid=uid)
        self.changed, self.unsettled = done.changed or self.changed, done.unsettled
        return read_existing(dataclasses.replace(self.fence, uid=uid), request.workspace_id, self.deadline)

    def _wanted(self, body: Body) -> Change:
        """What it lacks to run as asked for."""
        now, ttl = self.client.server_time.now(), self.request.ttl
        until = None if ttl is None else shutdown_time(now.earliest, ttl)
        if self._runs(body):
            end = expires_at(body)
            # One that has no end is held by somebody who wants it so.
            is_short = ttl is not None and end is not None and (end - now.latest).total_seconds() < ttl / 2
            return Change(spec={"shutdownTime": until} if is_short else {})
        self._started = True
        spec: dict[str, t.Any] = {"shutdownTime": until}
        if mode_of(body) != RUNNING:
            spec["operatingMode"] = RUNNING
        if self.template is None or not self._is_to_refresh(body):
            return Change(spec=spec)
        self.refreshed, self.stale = True, ()
        renewed = to_template(self.request, self.template)
        return Change(spec={**renewed.spec, **spec}, annotations=renewed.annotations)

    def _pod_source(self, body: Body | None) -> direct.Template:
        """What its next pod is made of: the template, or its own copy of it, which outlives edits."""
        if self.template is not None and (body is None or self._is_to_refresh(body)):
            return self.template
        spec = (body or {})["spec"]
        name = template_of(body or {}) or str(self.request.template)
        return direct.Template(name, spec["podTemplate"], spec.get("volumeClaimTemplates"))

    def _start(self, body: Body | None, verification: Verification) -> WorkspaceStart:
        source = self._pod_source(body)
        return WorkspaceStart(self.client, self.request, self.request.ref, source, self.deadline, verification)

    def _prove(self, start: WorkspaceStart, body: Body) -> tuple[Proof, tuple[Disk, ...]]:
        try:
            proof = start.prove(body)
        except AcquireError as error:
            self._explain_by_disks(body, error)
            raise
        disks = read_disks(self.client, proof.body, self.deadline)
        # One that is being deleted is kept by the pod: who runs on can still save what is on it.
        raise_if_lost(self.request.ref, [disk for disk in disks if disk.replaced])
        return proof, disks

    def _explain_by_disks(self, body: Body, error: AcquireError) -> None:
        if error.reason not in ("capacity", "not-ready", "quota"):
            return
        limit = Deadline(DIAGNOSIS_SECONDS, self.client.clock, cancellation=self.deadline.cancellation)
        try:
            disks = read_disks(self.client, body, limit)
        except SandboxError:
            return  # the failure that is being explained stays the one that is reported
        raise_if_unbound(self.request.ref, disks, error)

    def _remember(self, body: Body, disks: t.Sequence[Disk]) -> Body:
        """Record which disks it has, once, and what it was opened with."""
        known, asked = record(disks), record_of(self.request)

        def decide(latest: Body) -> Change:
            missing = {} if annotation(latest, DISKS_ANNOTATION) else known
            same = annotation(latest, OPENED_WITH_ANNOTATION) == asked[OPENED_WITH_ANNOTATION]
            return Change(annotations={**missing, **({} if same else asked)})

        body, changed = self.fence.change(body, decide, self.deadline)
        self.changed = self.changed or changed
        return body

    def _suspend_again(self) -> str:
        """Suspend what this call has started; in words, what became of it."""
        limit, late = Deadline(CLEANUP_SECONDS, self.client.clock), Deadline(LATE_POST_SECONDS, self.client.clock)
        try:
            body = poll(late, lambda: self.fence.read(limit))
            if body is None:
                return ""  # the POST was never applied
            self.fence.change(body, to_suspended, limit)
        except WorkspaceError as error:
            return f"It was not suspended: {error.message}"
        except SandboxError as error:
            return f"It could not be suspended and may be running: {error.message}"
        return "It was suspended, and its disks are as they were."

    def _reported(self, error: SandboxError, words: str) -> SandboxError:
        reported = explain(error, self.request.ref)
        return reported.replace(message=f"{reported.message} {words}") if words else reported

    def _opened(self, body: Body, proof: Proof, disks: tuple[Disk, ...], timings: t.Mapping[str, float]) -> Opened:
        metadata, pod = body["metadata"], proof.bound.pod
        return Opened(
            workspace_id=self.request.workspace_id,
            name=str(metadata["name"]),
            namespace=str(metadata["namespace"]),
            uid=str(metadata["uid"]),
            origin=self.origin,
            changed=self.changed,
            refreshed=self.refreshed,
            identity=identity_of(str(metadata["uid"]), pod),
            pod_ip=pod.ip,
            agent=proof.bound.agent,
            template=template_of(body),
            template_current=None if self.template is None else is_current(body, self.template),
            stale=self.stale,
            holder_epoch=stored_epoch(body),
            disks=disks,
            labels=dict(pod.labels),
            expires_at=expires_at(body),
            timings={**timings, "total": round(self.deadline.elapsed() * 1000, 1)},
            verdict=proof.verdict,
            unsettled=self.unsettled,
        )
