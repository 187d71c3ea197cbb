# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Acquire: claim or make, wait, bind, probe; or leave nothing behind trying."""

from __future__ import annotations

import typing as t

from ..cluster.client import Client
from ..cluster.deadline import Deadline
from ..cluster.errors import SandboxError
from ..cluster.resources import Body, ObjectRef
from ..cluster.shared_watch import SharedWatch
from ..cluster.watch import follow
from ..guest.agent import Agent, AgentAddress
from ..guest.privileges import Privileges, probe_privileges
from .address import agent_address
from .binding import BoundPod, bind_pod
from .diagnosis import explain, not_ready
from .ownership import OwnedObject
from .paths import Path, path_for
from .request import Acquired, AcquireRequest, Verdict

#: The most that the privilege probe may take: it reads one pseudo-file over a path that is up.
PROBE_SECONDS = 15.0


def acquire(client: Client, request: AcquireRequest) -> Acquired:
    """Take a sandbox out of a warm pool, or make one from a template, and prove that it is without privileges.

    With a name that a matching sandbox already has, that one is bound and probed anew, and ``created`` is False. Any
    failure, an interrupt included, first deletes the claim or Sandbox that this call made.

    Args:
        client: who asks; its token needs the rules of role ``claimant``.
        request: from where, under which name, for how long.

    Returns:
        The sandbox, bound to a live pod and probed.

    Raises:
        AcquireError: with a reason; see its class.
        ClaimMismatchError: another one has the name; nothing was changed.
        PrivilegeError: the pod has a capability, or can gain one.
        GuestError: no agent, or none that answers, behind the port.
        ApiError: an answer of the API server that is none of the acquire reasons.
    """
    deadline = Deadline(request.ready_timeout, client.clock)
    return Acquire(client, request, path_for(client, request, deadline), deadline).run()


class Acquire:
    """One acquire, step by step.

    Args:
        client, request: as for ``acquire``.
        path: what is made and read on the way, a claim or a Sandbox.
        deadline: bounds everything up to the bound pod; others may share it.
        watch: a watch that follows the claims of one batch, or None for a watch of its own.
    """

    def __init__(
        self,
        client: Client,
        request: AcquireRequest,
        path: Path,
        deadline: Deadline,
        watch: SharedWatch | None = None,
    ) -> None:
        self.client = client
        self.request = request
        self.path = path
        self.deadline = deadline
        self.watch = watch
        self.owned = OwnedObject(client, path, batch=watch.batch if watch else None)
        self.timings: dict[str, float] = {}
        self._stage_began = 0.0

    def run(self) -> Acquired:
        """The whole of it; see ``acquire``."""
        self._stage_began = self.deadline.elapsed()
        try:
            body = self.owned.create(self.deadline)
            self._stage_ended("claim")
            body, sandbox = self._wait_until_bound(body)
            self._stage_ended("ready")
            pod = self._bind(sandbox)
            address = self._address(sandbox, pod)
            self._stage_ended("bind")
            privileges = self._probe(address, pod)
            self._stage_ended("probe")
        except BaseException as error:
            leftover = self.owned.take_back()
            if not isinstance(error, SandboxError):
                raise
            raise self._reported(error, leftover) from error
        return self._acquired(body, sandbox, pod, address, privileges)

    def _wait_until_bound(self, body: Body) -> tuple[Body, str]:
        latest = body
        for latest in self._states(body):
            self.path.refuse_decided(latest)
            sandbox = self.path.bound(latest)
            if sandbox is not None:
                return latest, sandbox
        raise not_ready(self.client, self.path.ref, latest, self.deadline, self.path.named(latest))

    def _states(self, body: Body) -> t.Iterator[Body]:
        # What stood there already carries no label of this batch.
        if self.watch is not None and self.owned.created:
            return self.watch.states(self.path.ref, body, self.deadline)
        return follow(self.client, self.path.ref, self.deadline, known=body)

    def _bind(self, sandbox: str) -> BoundPod:
        return bind_pod(
            self.client,
            self.request.namespace,
            sandbox,
            self.deadline,
            labels=self.request.pod_labels,
            need_ip=self.request.agent_address == "pod_ip",
        )

    def _address(self, sandbox: str, pod: BoundPod) -> AgentAddress:
        port, mode = self.request.agent_port, self.request.agent_address
        return agent_address(self.client, self.request.namespace, sandbox, pod, port, mode, self.deadline)

    def _probe(self, address: AgentAddress, pod: BoundPod) -> Privileges:
        clock = Deadline(min(self.request.ready_timeout, PROBE_SECONDS), self.client.clock)
        return probe_privileges(Agent(address), clock, f"Pod {self.request.namespace}/{pod.name}")

    def _stage_ended(self, stage: str) -> None:
        now = self.deadline.elapsed()
        self.timings[stage] = round((now - self._stage_began) * 1000, 1)
        self._stage_began = now

    def _reported(self, error: SandboxError, leftover: str | None) -> SandboxError:
        reported = explain(error, self.path.ref)
        if leftover is not None:
            reported.message = f"{reported.message} {leftover}"
            reported.leftover = str(self.path.ref)
        return reported

    def _acquired(
        self, body: Body, sandbox: str, pod: BoundPod, address: AgentAddress, privileges: Privileges
    ) -> Acquired:
        return Acquired(
            name=self.path.ref.name,
            namespace=self.path.ref.namespace,
            uid=str(body["metadata"]["uid"]),
            sandbox=sandbox,
            pod=pod.name,
            pod_ip=pod.ip,
            agent=address,
            # The controller names a Sandbox that it starts for a claim like the claim; a pool's keeps its own name.
            warm=sandbox != self.path.ref.name,
            labels=dict(pod.labels),
            expires_at=self.path.expires_at(body),
            timings={**self.timings, "total": round(self.deadline.elapsed() * 1000, 1)},
            verdict=Verdict(privileges=privileges),
            created=self.owned.created,
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
        return path.ref, OwnedObject(client, path).preview(deadline)
    except SandboxError as error:
        raise explain(error, path.ref) from error
