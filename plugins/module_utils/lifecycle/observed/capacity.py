# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Capacity: whether a pool can serve more work now."""

from __future__ import annotations

import dataclasses

from ...cluster.client import Client
from ...cluster.reads import read, read_items
from ...cluster.resources import CLAIM, POD, SANDBOX, WARM_POOL, condition, mapping, spec, status
from ...deadline import Deadline
from .diagnosis import Complaint, scheduling_gates
from .members import members_complaint


@dataclasses.dataclass(frozen=True)
class Capacity:
    """What a pool has, read at one moment.

    Attributes:
        warm_pool: the pool's name.
        ready: members that are ready to be handed out.
        desired: members that the pool keeps.
        active_claims: claims on this pool, bound or not.
        waiting_claims: those of them that are not Ready yet.
        pending_pods: pods in the namespace that have not started, gated ones included.
        gated_pods: those of them that a scheduling gate holds.
        headroom: claims that can be served at once from now: ready members without those that claims wait for.
        problem: why members are not ready, when some are not and one of them has a reason.
    """

    warm_pool: str
    ready: int
    desired: int
    active_claims: int
    waiting_claims: int
    pending_pods: int
    gated_pods: int
    headroom: int
    problem: Complaint | None = None


def read_capacity(client: Client, namespace: str, warm_pool: str, deadline: Deadline) -> Capacity:
    """Read what a pool has: one GET and two LISTs, and a third LIST when members are not ready.

    Raises:
        GoneError: there is no such pool.
        ApiError, ApiUnreachableError: something could not be read.
    """
    pool = read(client, WARM_POOL.ref(namespace, warm_pool), deadline)
    claims = read_items(client, CLAIM, namespace, deadline)
    pods = read_items(client, POD, namespace, deadline)
    # Counted by the field that the API requires, not by a label that a claim may lack.
    ours = [claim for claim in claims if mapping(spec(claim).get("warmPoolRef")).get("name") == warm_pool]
    waiting = [claim for claim in ours if condition(claim, "Ready").get("status") != "True"]
    ready, desired = int(status(pool).get("readyReplicas") or 0), int(spec(pool).get("replicas") or 0)
    pending = [pod for pod in pods if status(pod).get("phase") == "Pending"]
    sandboxes = read_items(client, SANDBOX, namespace, deadline) if ready < desired else []
    return Capacity(
        warm_pool=warm_pool,
        ready=ready,
        desired=desired,
        active_claims=len(ours),
        waiting_claims=len(waiting),
        pending_pods=len(pending),
        gated_pods=sum(bool(scheduling_gates(pod)) for pod in pending),
        headroom=max(0, ready - len(waiting)),
        problem=members_complaint(warm_pool, sandboxes, pods),
    )
