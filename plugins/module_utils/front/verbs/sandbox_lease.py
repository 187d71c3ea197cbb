# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_lease``: make sure that a sandbox or workspace lives long enough for what comes next."""

from __future__ import annotations

import datetime
import typing as t

from ...cluster.client import Client
from ...deadline import Deadline
from ...errors import InputError
from ...lifecycle.durations import seconds
from ...lifecycle.lease.lease import Lease, Renewal, ensure_left, find_lease
from ...lifecycle.names import check_name
from ...lifecycle.timestamps import timestamp
from ...workspace.lease import find_workspace_lease
from ..options.specs import GUEST_EXCLUSIVE, GUEST_REQUIRED, SANDBOX_LEASE, Params
from ..options.target import with_target
from ..verb import Context, Result, Verb, connect, namespace_of

#: Seconds for everything, retries included.
ALL_SECONDS = 60.0


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = with_target(params)
    remaining = seconds("remaining", params["remaining"])
    if remaining <= 0:
        raise InputError("remaining is 0; it is the time that shall be left.", next_step="Give for example 15m.")
    with connect(params, context) as client:
        find = _finder(client, params)
        renewal = ensure_left(
            client,
            find,
            remaining,
            Deadline(ALL_SECONDS, client.clock),
            uid=params.get("uid"),
            dry_run=context.check_mode,
        )
        return _result(renewal, client.server_time.now().earliest)


def _finder(client: Client, params: Params) -> t.Callable[[Deadline], Lease]:
    """What reads the lease that is meant.

    Raises:
        InputError: it has no name that one can have.
    """
    namespace, name, workspace_id = namespace_of(params, client), params.get("name"), params.get("workspace_id")
    if workspace_id is None:
        check_name("name", str(name))
        return lambda limit: find_lease(client, namespace, str(name), limit)
    epoch = params.get("holder_epoch")
    return lambda limit: find_workspace_lease(client, namespace, workspace_id, epoch, limit)


def _result(renewal: Renewal, now: datetime.datetime) -> Result:
    lease, end = renewal.lease, renewal.lease.expires_at
    result: Result = {
        "changed": renewal.changed,
        "name": lease.ref.name,
        "namespace": lease.ref.namespace,
        "uid": lease.uid,
        "expires_at": timestamp(end) if end else None,
        "lease_left": int((end - now).total_seconds()) if end else None,
    }
    if renewal.changed:
        result["diff"] = {"before": _described(renewal.before), "after": _described(end)}
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
