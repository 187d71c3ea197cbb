# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Acquire: claim or make, wait, bind, probe; or leave nothing behind trying."""

from __future__ import annotations

import contextlib
import typing as t

from ...cluster.client import Client
from ...cluster.resources import EGRESS_LABEL, Body, ObjectRef, expires_at
from ...cluster.shared_watch import SharedWatch
from ...cluster.watch import follow
from ...deadline import Cancellation, Deadline
from ...errors import ApiUnreachableError, SandboxError, UnavailableError
from ...guest.agent import Agent
from ...guest.errors import GuestTimeoutError, GuestUnreachableError
from ...guest.privileges import Privileges, probe_privileges
from ..errors import AcquireError
from ..observed.agent_address import Bound, agent_address, reach
from ..observed.diagnosis import explain, explained_by_pod, not_ready, with_pod_ending
from ..observed.pod import bind_pod
from ..verification.isolation import judge_pod
from ..verification.network_probe import places_near, probe_network
from ..verification.verify import Verification
from .cancelled import raise_if_cancelled
from .create import OwnedObject
from .egress_label import own_policy
from .request import Acquired, AcquireRequest, Verdict
from .sources import Path, path_for
from .staleness import raise_if_stale
from .unique_name import check_name_unused, name_in_use
from .wait_for_template import until_template

#: The most that the privilege probe may take: it reads one pseudo-file over a path that is up.
PROBE_SECONDS = 15.0

#: How an agent fails whose container has ended.
_SILENT = (GuestUnreachableError, GuestTimeoutError)


def acquire(client: Client, request: AcquireRequest, *, cancellation: Cancellation | None = None) -> Acquired:
    """Acquire a sandbox from a warm pool or a template, and verify that it has no privileges.

    With a name that a matching sandbox already has, that one is bound and probed anew, and ``created`` is False. Any
    failure, an interrupt included, first deletes the claim or Sandbox that this call made.

    Args:
        client: who asks; its token needs the rules of role ``claimant``.
        request: from where, under which name, for how long.
        cancellation: ends the acquire when it is cancelled, by any thread; what was created is deleted first.

    Returns:
        The sandbox, bound to a live pod and probed.

    Raises:
        AcquireError: with a reason; see its class.
        ClaimMismatchError: another claim, Sandbox or workspace has the name; it was not changed.
        StaleError: it is older than its template, and that is refused.
        PrivilegeError: the pod has a capability, or can gain one.
        IsolationError: it is less isolated from its node than was asked for.
        BoundaryError: the pod reaches, or is reached by, more than was asked for.
        PolicyError: a policy that selects the pod is malformed.
        GuestError: no agent, or none that answers, behind the port.
        ApiError: an answer of the API server that is none of the acquire reasons.
        SandboxError: with reason ``cancelled``.
    """
    deadline = Deadline(request.ready_timeout, client.clock, cancellation=cancellation)
    try:
        with Verification(client, request, deadline) as verification:
            return until_template(
                request,
                deadline,
                lambda: Acquire(client, request, path_for(client, request, deadline), deadline, verification).run(),
            )
    except SandboxError as error:
        raise_if_cancelled(error, deadline, None, "The acquire was cancelled by its caller")
        raise


class Acquire:
    """One acquire, step by step.

    Args:
        client, request: as for ``acquire``.
        path: what is made and read on the way, a claim or a Sandbox.
        deadline: bounds everything up to the bound pod; others may share it.
        verification: proves the boundary; others may share it.
        watch: a watch that follows the claims of one batch, or None for a watch of its own.
        turn: entered while requests are made, and left while the controller is waited for.
        names_in_use: what a batch has listed of the other kind, by name, or None to read before creating.
    """

    def __init__(
        self,
        client: Client,
        request: AcquireRequest,
        path: Path,
        deadline: Deadline,
        verification: Verification,
        watch: SharedWatch | None = None,
        turn: contextlib.AbstractContextManager[object] | None = None,
        names_in_use: t.Mapping[str, Body] | None = None,
    ) -> None:
        self.client = client
        self.request = request
        self.path = path
        self.deadline = deadline
        self.verification = verification
        self.watch = watch
        self.turn = turn or contextlib.nullcontext()
        self.names_in_use = names_in_use
        self.owned = self._nothing_yet()
        self.timings: dict[str, float] = {}
        self._pod_labels = request.pod_labels
        self._stage_began = 0.0

    def run(self) -> Acquired:
        """The whole of it; see ``acquire``. After a failure it may be run again."""
        self.owned = self._nothing_yet()
        self._stage_began = self.deadline.elapsed()
        try:
            with self.turn:
                self._check_name()
                self._prove_planned()
                self._expect_states()
                body = self._create()
            self.verification.begin()
            self._stage_ended("claim")
            body, sandbox = self._wait_until_bound(body)
            self._pod_labels = self._labels_asked_of(body)
            self._stage_ended("ready")
            with self.turn:
                bound = self._bind(sandbox)
                stale = self._is_stale(body, sandbox)
                self._stage_ended("bind")
                bound, privileges = self._probe(sandbox, bound)
                self._stage_ended("probe")
                verdict = self._prove(bound, privileges)
                self._stage_ended("boundary")
        except BaseException as error:
            leftover = self.owned.take_back()
            if not isinstance(error, SandboxError):
                raise
            reported = self._reported(error, leftover)
            if reported is error:
                raise
            raise reported from error
        return self._acquired(body, sandbox, bound, verdict, stale)

    def _nothing_yet(self) -> OwnedObject:
        return OwnedObject(self.client, self.path, batch=self.watch.batch if self.watch else None)

    def _check_name(self) -> None:
        """Check that no object of the other kind has the name; a fresh one is unique."""
        ref = self.path.ref
        if self.request.name is None:
            return
        if self.names_in_use is None:
            check_name_unused(self.client, ref, self.deadline)
        elif ref.name in self.names_in_use:
            raise name_in_use(ref, self.names_in_use[ref.name])

    def _create(self) -> Body:
        body = self.owned.create(self.deadline)
        if self.owned.created and self.request.name is not None:
            check_name_unused(self.client, self.path.ref, self.deadline)
        return body

    def _wait_until_bound(self, body: Body) -> tuple[Body, str]:
        latest = body
        try:
            for latest in self._states(body):
                with self._endings_said(self.path.named(latest)):
                    self.path.raise_if_decided(latest)
                sandbox = self.path.bound(latest)
                if sandbox is not None:
                    return latest, sandbox
        except (ApiUnreachableError, UnavailableError) as error:
            # The watch failed until the deadline, and the pod may show why there was nothing to see.
            explained = explained_by_pod(self.client, self.path.ref, latest, self.deadline, self.path.named(latest))
            if explained is None:
                raise
            raise explained from error
        raise not_ready(self.client, self.path.ref, latest, self.deadline, self.path.named(latest))

    def _expect_states(self) -> None:
        if self.watch is None:
            self.client.expect_watch(self.deadline)

    def _states(self, body: Body) -> t.Iterator[Body]:
        # What stood there already carries no label of this batch.
        if self.watch is not None and self.owned.created:
            return self.watch.states(self.path.ref, body, self.deadline)
        return follow(self.client, self.path.ref, self.deadline, known=body)

    def _labels_asked_of(self, body: Body) -> t.Mapping[str, str]:
        """The labels that its pod must show; which policy is its own is for what stands there to say."""
        policy = own_policy(self.path.ref, body) if self.request.per_sandbox_egress else None
        return self.request.pod_labels if policy is None else {**self.request.pod_labels, EGRESS_LABEL: policy}

    def _bind(self, sandbox: str) -> Bound:
        request = self.request
        with self._endings_said(sandbox):
            pod = bind_pod(
                self.client,
                request.namespace,
                sandbox,
                self.deadline,
                labels=self._pod_labels,
                need_ip=request.agent_address == "pod_ip",
            )
        port, mode = request.agent_port, request.agent_address
        return Bound(pod, agent_address(self.client, request.namespace, sandbox, pod, port, mode, self.deadline))

    def _is_stale(self, body: Body, sandbox: str) -> bool | None:
        if self.request.on_stale == "ignore":
            return None
        drift = self.path.drift(self.client, body, sandbox, self.deadline)
        if self.request.on_stale == "refuse":
            raise_if_stale(self.path.ref, drift)
        return bool(drift)

    def _probe(self, sandbox: str, bound: Bound) -> tuple[Bound, Privileges]:
        def probe(latest: Bound, clock: Deadline) -> Privileges:
            return probe_privileges(Agent(latest.agent), clock, f"Pod {self.request.namespace}/{latest.pod.name}")

        seconds = min(self.request.ready_timeout, PROBE_SECONDS)
        clock = Deadline(seconds, self.client.clock, cancellation=self.deadline.cancellation)
        with self._endings_said(sandbox, _SILENT):
            return reach(bound, lambda: self._bind(sandbox), probe, clock, self.deadline)

    @contextlib.contextmanager
    def _endings_said(
        self, sandbox: str | None, kinds: tuple[type[SandboxError], ...] = (AcquireError,)
    ) -> t.Iterator[None]:
        """A failure within it says how the pod's containers ended, while the pod is still there to be asked."""
        try:
            yield
        except kinds as error:
            explained = with_pod_ending(error, self.client, self.request.namespace, sandbox, self.deadline)
            if explained is error:
                raise
            raise explained from error

    def _prove_planned(self) -> None:
        """Refuse a boundary that will not hold before anything is made, where the pod is known by then."""
        planned = self.path.planned_pod()
        if planned is not None:
            self.verification.prove(planned)

    def _prove(self, bound: Bound, privileges: Privileges) -> Verdict:
        subject = f"Pod {self.request.namespace}/{bound.pod.name}"
        isolation = judge_pod(self.client, bound.pod.body, privileges, self.request.isolation, subject, self.deadline)
        boundary = self.verification.prove(bound.pod.body)
        egress = self.request.egress
        if egress is None or not self.request.network_probe:
            return Verdict(privileges, boundary, isolation=isolation)
        places = places_near(self.client, bound.pod.body, self.request.agent_port, self.deadline)
        network = probe_network(Agent(bound.agent), egress.request, self.deadline, subject, places)
        return Verdict(privileges, boundary, network, isolation)

    def _stage_ended(self, stage: str) -> None:
        now = self.deadline.elapsed()
        self.timings[stage] = round((now - self._stage_began) * 1000, 1)
        self._stage_began = now

    def _reported(self, error: SandboxError, leftover: str | None) -> SandboxError:
        reported = explain(error, self.path.ref)
        if leftover is None:
            return reported
        return reported.replace(message=f"{reported.message} {leftover}", leftover=str(self.path.ref))

    def _acquired(self, body: Body, sandbox: str, bound: Bound, verdict: Verdict, stale: bool | None) -> Acquired:
        return Acquired(
            name=self.path.ref.name,
            namespace=self.path.ref.namespace,
            uid=str(body["metadata"]["uid"]),
            sandbox=sandbox,
            pod=bound.pod.name,
            pod_ip=bound.pod.ip,
            agent=bound.agent,
            # The controller names a Sandbox that it starts for a claim like the claim; a pool's keeps its own name.
            warm=sandbox != self.path.ref.name,
            labels=dict(bound.pod.labels),
            expires_at=expires_at(body),
            timings={**self.timings, "total": round(self.deadline.elapsed() * 1000, 1)},
            verdict=verdict,
            created=self.owned.created,
            stale=stale,
        )


def would_acquire(client: Client, request: AcquireRequest) -> tuple[ObjectRef, Body | None]:
    """What an acquire would find, without changing anything (check mode).

    The server is asked whether it would take it (a dry run), so rules, schema and quota count.

    Returns:
        The reference of the claim or Sandbox, and what stands under it, or None when it would be made.

    Raises:
        As ``acquire`` does before anything is made.
    """
    deadline = Deadline(request.ready_timeout, client.clock)
    path = path_for(client, request, deadline)
    try:
        if request.name is not None:
            check_name_unused(client, path.ref, deadline)
        planned = path.planned_pod()
        if planned is not None:
            with Verification(client, request, deadline) as verification:
                verification.prove(planned)
        return path.ref, OwnedObject(client, path).preview(deadline)
    except SandboxError as error:
        raise explain(error, path.ref) from error
