# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Which guest answers for a workspace, so that another one in its place is noticed."""

from __future__ import annotations

import dataclasses
import hashlib
import typing as t

from ..lifecycle.observed.pod import BoundPod

RestartReason = t.Literal["pod-replaced", "container-restarted"]


@dataclasses.dataclass(frozen=True)
class Identity:
    """The guest of a workspace.

    Attributes:
        uid: the uid of the workspace's Sandbox; another one is another workspace, on another disk.
        pod: its pod's name.
        guest: tells one pod from the next of the same name. A hash, as the pod's uid is the agent's bind token.
        restarts: how often its containers were started again in that pod.
        node: where it runs, or None.
    """

    uid: str
    pod: str
    guest: str
    restarts: int
    node: str | None

    def as_dict(self) -> dict[str, t.Any]:
        """The guest as plain data."""
        return dataclasses.asdict(self)


@dataclasses.dataclass(frozen=True)
class GuestRestart:
    """Notice that another guest answers than before: what ran in the former one is gone, its disk is there.

    Attributes:
        reason: ``pod-replaced``, or ``container-restarted`` in the same pod.
        before, after: the two guests.
    """

    reason: RestartReason
    before: Identity
    after: Identity


def identity_of(uid: str, pod: BoundPod) -> Identity:
    """The guest in a live pod."""
    status = pod.body.get("status") or {}
    counts = [int(one.get("restartCount") or 0) for one in status.get("containerStatuses") or []]
    digest = hashlib.sha256(f"guest of a namzu.sandbox workspace {pod.uid}".encode()).hexdigest()
    return Identity(uid, pod.name, digest[:16], sum(counts), (pod.body.get("spec") or {}).get("nodeName"))


def restart_between(before: Identity, after: Identity) -> GuestRestart | None:
    """The notice for two sightings of one workspace's guest; None when it is the same one."""
    if before.guest != after.guest:
        return GuestRestart("pod-replaced", before, after)
    if before.restarts != after.restarts:
        return GuestRestart("container-restarted", before, after)
    return None
