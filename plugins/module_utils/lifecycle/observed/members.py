# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Why the members of a warm pool do not become ready: the first of them that has a reason."""

from __future__ import annotations

import collections.abc as c

from ...cluster.resources import WARM_POOL, Body, condition
from .diagnosis import Complaint, pod_complaint, quota_complaint


def members_complaint(warm_pool: str, sandboxes: c.Iterable[Body], pods: c.Iterable[Body]) -> Complaint | None:
    """The reason of the first member, by name, that is not ready and has one; None when no member has one.

    Args:
        warm_pool: the name of the pool.
        sandboxes, pods: all Sandboxes and pods of its namespace. A pod has the name of its Sandbox.
    """
    members = {
        _name(body): body
        for body in sandboxes
        if _is_member(body, warm_pool) and condition(body, "Ready").get("status") != "True"
    }
    by_name = {_name(pod): pod for pod in pods}
    for name, body in sorted(members.items()):
        found = quota_complaint(body) or (pod_complaint(by_name[name]) if name in by_name else None)
        if found is not None:
            return found
    return None


def _is_member(body: Body, warm_pool: str) -> bool:
    owners = (body.get("metadata") or {}).get("ownerReferences") or []
    return any((owner.get("kind"), owner.get("name")) == (WARM_POOL.name, warm_pool) for owner in owners)


def _name(body: Body) -> str:
    return str((body.get("metadata") or {}).get("name"))
