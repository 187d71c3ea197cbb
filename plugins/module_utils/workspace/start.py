# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""From a Sandbox that shall run to a guest that is proven: at every start the same proof as for a sandbox."""

from __future__ import annotations

import dataclasses
import typing as t

from ..cluster.client import Client
from ..cluster.reads import read_or_none
from ..cluster.resources import POD, Body, ObjectRef
from ..deadline import Deadline
from ..lifecycle.acquire import direct
from ..lifecycle.acquire.acquire import Acquire
from ..lifecycle.acquire.request import Verdict
from ..lifecycle.acquire.sources import DirectPath
from ..lifecycle.observed.agent_address import Bound
from ..lifecycle.observed.pod import pod_has_ended
from ..lifecycle.verification.verify import Verification
from .manifest import has_ended, is_settled
from .request import WorkspaceRequest


class WorkspacePath(DirectPath):
    """A Sandbox whose conditions may still be about the time before a resume; those count for nothing."""

    def bound(self, body: Body) -> str | None:
        return super().bound(body) if is_settled(body, "Ready") else None

    def raise_if_decided(self, body: Body) -> None:
        if is_settled(body, "Ready"):
            super().raise_if_decided(body)


@dataclasses.dataclass(frozen=True)
class Proof:
    """A guest that may be handed out.

    Attributes:
        body: the Sandbox as it was when it became ready.
        bound: the pod, and where its agent answers.
        verdict: what was proven.
    """

    body: Body
    bound: Bound
    verdict: Verdict


class WorkspaceStart(Acquire):
    """An acquire without its first and its last step: the object is there already, and stays when the proof fails.

    Args:
        client: who asks.
        request: whose boundary, agent and pod labels.
        ref: the Sandbox.
        template: what its pod is made of.
        deadline: bounds it.
        verification: proves the boundary.
    """

    def __init__(
        self,
        client: Client,
        request: WorkspaceRequest,
        ref: ObjectRef,
        template: direct.Template,
        deadline: Deadline,
        verification: Verification,
    ) -> None:
        asked = request.acquire(template.name, ref)
        super().__init__(client, asked, WorkspacePath(asked, ref, template), deadline, verification)

    def _states(self, body: Body) -> t.Iterator[Body]:
        """Without those that say that a pod has ended which is on its way out since the suspend before."""
        for latest in super()._states(body):
            if not has_ended(latest) or self._pod_has_ended():
                yield latest

    def _pod_has_ended(self) -> bool:
        """Whether the pod that stands there, and stays, has ended."""
        ref = POD.ref(self.path.ref.namespace, self.path.ref.name)
        pod = read_or_none(self.client, ref, self.deadline)
        return pod is not None and pod_has_ended(pod)

    def prove_planned(self) -> None:
        """Prove the boundary of the pod that will be, before it is started."""
        self._prove_planned()

    def prove(self, body: Body) -> Proof:
        """Wait for the guest and prove it.

        Args:
            body: the Sandbox as it was written last.

        Raises:
            AcquireError, BoundaryError, PrivilegeError, PolicyError, GuestError, ApiError: as ``acquire``.
        """
        self._stage_began = self.deadline.elapsed()
        self.verification.begin()
        body, sandbox = self._wait_until_bound(body)
        self._stage_ended("ready")
        bound = self._bind(sandbox)
        self._stage_ended("bind")
        bound, privileges = self._probe(sandbox, bound)
        self._stage_ended("probe")
        verdict = self._prove(bound, privileges)
        self._stage_ended("boundary")
        return Proof(body, bound, verdict)
