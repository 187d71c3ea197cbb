# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Acquire: claim, wait, bind, probe; or leave nothing behind trying."""

from __future__ import annotations

from ..cluster.client import Client
from ..cluster.deadline import Deadline
from ..cluster.errors import SandboxError
from ..cluster.resources import CLAIM, Body, ObjectRef
from ..cluster.watch import follow
from ..guest.agent import Agent, AgentAddress
from ..guest.privileges import Privileges, probe_privileges
from .address import agent_address
from .binding import BoundPod, bind_pod
from .claim import bound_sandbox, expires_at, refuse_decided
from .diagnosis import explain, not_ready
from .ownership import OwnedClaim
from .request import Acquired, AcquireRequest, Verdict, fresh_name

#: The most that the privilege probe may take: it reads one pseudo-file over a path that is up.
PROBE_SECONDS = 15.0


def acquire(client: Client, request: AcquireRequest) -> Acquired:
    """Take a sandbox out of a warm pool and prove that it is without privileges.

    With a name that a matching claim already has, that sandbox is bound and probed anew, and ``created`` is False. Any
    failure, an interrupt included, first deletes the claim that this call made.

    Args:
        client: who asks; its token needs the rules of role ``claimant``.
        request: which pool, under which name, for how long.

    Returns:
        The sandbox, bound to a live pod and probed.

    Raises:
        AcquireError: with a reason; see its class.
        ClaimMismatchError: another claim has the name; nothing was changed.
        PrivilegeError: the pod has a capability, or can gain one.
        GuestError: no agent, or none that answers, behind the port.
        ApiError: an answer of the API server that is none of the acquire reasons.
    """
    return _Acquire(client, request).run()


class _Acquire:
    def __init__(self, client: Client, request: AcquireRequest) -> None:
        self.client = client
        self.request = request
        self.deadline = Deadline(request.ready_timeout, client.clock)
        self.ref = CLAIM.ref(request.namespace, request.name or fresh_name())
        self.owned = OwnedClaim(client, request, self.ref)
        self.timings: dict[str, float] = {}
        self._stage_began = 0.0

    def run(self) -> Acquired:
        try:
            claim = self.owned.create(self.deadline)
            self._stage_ended("claim")
            claim, sandbox = self._wait_until_bound(claim)
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
        return self._acquired(claim, sandbox, pod, address, privileges)

    def _wait_until_bound(self, claim: Body) -> tuple[Body, str]:
        latest = claim
        for latest in follow(self.client, self.ref, self.deadline, known=claim):
            refuse_decided(latest, self.ref)
            sandbox = bound_sandbox(latest)
            if sandbox is not None:
                return latest, sandbox
        raise not_ready(self.client, self.ref, latest, self.deadline)

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
        reported = explain(error, self.ref)
        if leftover is not None:
            reported.message = f"{reported.message} {leftover}"
        return reported

    def _acquired(
        self, claim: Body, sandbox: str, pod: BoundPod, address: AgentAddress, privileges: Privileges
    ) -> Acquired:
        return Acquired(
            name=self.ref.name,
            namespace=self.ref.namespace,
            uid=str(claim["metadata"]["uid"]),
            sandbox=sandbox,
            pod=pod.name,
            pod_ip=pod.ip,
            agent=address,
            # The controller names a Sandbox that it starts for a claim like the claim; a pool's keeps its own name.
            warm=sandbox != self.ref.name,
            labels=dict(pod.labels),
            expires_at=expires_at(claim),
            timings={**self.timings, "total": round(self.deadline.elapsed() * 1000, 1)},
            verdict=Verdict(privileges=privileges),
            created=self.owned.created,
        )


def would_acquire(client: Client, request: AcquireRequest) -> tuple[ObjectRef, Body | None]:
    """What an acquire would find, without changing anything (check mode).

    The server is asked whether it would take the claim (a dry run), so rules, schema and quota count.

    Returns:
        The claim's reference, and the claim that stands under it, or None when it would be made.

    Raises:
        As ``acquire`` does before anything is made.
    """
    ref = CLAIM.ref(request.namespace, request.name or fresh_name())
    owned = OwnedClaim(client, request, ref)
    try:
        return ref, owned.preview(Deadline(request.ready_timeout, client.clock))
    except SandboxError as error:
        raise explain(error, ref) from error

