# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_lease``: make sure that a sandbox or workspace lives long enough for what comes next."""

from __future__ import annotations

import datetime
import typing as t

from ...deadline import Deadline
from ...errors import InputError
from ...lifecycle.durations import seconds
from ...lifecycle.lease.lease import Lease
from ...lifecycle.timestamps import timestamp
from ..backends.opening import open_backend
from ..backends.protocol import Backend, Renewed
from ..options.specs import GUEST_EXCLUSIVE, GUEST_REQUIRED, SANDBOX_LEASE, Params
from ..options.target import with_target
from ..verb import Context, Result, Verb

if t.TYPE_CHECKING:
    from ..backends.kubernetes import KubernetesBackend


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = with_target(params)
    remaining = seconds("remaining", params["remaining"])
    if remaining <= 0:
        raise InputError("remaining is 0; it is the time that shall be left.", next_step="Give for example 15m.")
    with open_backend(params, context) as backend:
        return _result(_renewed(backend, params, remaining, context))


def _renewed(backend: Backend[t.Any], params: Params, remaining: float, context: Context) -> Renewed:
    uid, workspace_id = params.get("uid"), params.get("workspace_id")
    if workspace_id is None:
        return backend.renew(str(params["name"]), remaining, uid=uid, dry_run=context.check_mode)
    from ...workspace.lease import find_workspace_lease

    # Another backend has refused workspace_id.
    kubernetes, epoch = t.cast("KubernetesBackend", backend), params.get("holder_epoch")

    def find(limit: Deadline) -> Lease:
        return find_workspace_lease(kubernetes.client, kubernetes.place, workspace_id, epoch, limit)

    return kubernetes.renew_lease(find, remaining, uid=uid, dry_run=context.check_mode)


def _result(renewed: Renewed) -> Result:
    end = renewed.expires_at
    result: Result = {
        "changed": renewed.changed,
        "name": renewed.name,
        "namespace": renewed.namespace,
        "uid": renewed.uid,
        "expires_at": timestamp(end) if end else None,
        "lease_left": None if renewed.left is None else int(renewed.left),
    }
    if renewed.changed:
        result["diff"] = {"before": _described(renewed.before), "after": _described(end)}
    return result


def _described(end: datetime.datetime | None) -> dict[str, t.Any]:
    return {"expires_at": timestamp(end) if end else None}


VERB = Verb(
    name="sandbox_lease",
    options=SANDBOX_LEASE,
    run=run,
    constraints={
        "required_one_of": GUEST_REQUIRED,
        "mutually_exclusive": [*GUEST_EXCLUSIVE, ("name", "holder_epoch")],
    },
)
