# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_egress``: what one acquired sandbox may reach beyond its template's boundary."""

from __future__ import annotations

import typing as t

from ...cluster.client import Client
from ...cluster.resources import Body, ObjectRef
from ...deadline import Deadline
from ...errors import InputError
from ...lifecycle.durations import length
from ...lifecycle.egress.change import EgressChange, remove_egress, set_egress
from ...lifecycle.names import check_name
from ...lifecycle.verification.spec import EgressBoundary
from ..options.specs import SANDBOX_EGRESS, Params
from ..options.target import with_target
from ..results.sandboxes import boundary_result
from ..verb import Context, Result, Verb, connect, namespace_of


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = with_target(params)
    if params.get("name") is None:
        raise InputError(
            "sandbox is a workspace, which has the boundary of its template and no policy of its own.",
            next_step="Give a sandbox that was acquired with per_sandbox_egress.",
        )
    check_name("name", params["name"])
    with connect(params, context) as client:
        change = _changed(client, params, context)
    return _result(change)


def _changed(client: Client, params: Params, context: Context) -> EgressChange:
    deadline = Deadline(length("ready_timeout", params["ready_timeout"]), client.clock)
    given: dict[str, t.Any] = {"uid": params.get("uid"), "dry_run": context.check_mode}
    namespace, name = namespace_of(params, client), params["name"]
    if params["state"] == "absent":
        return remove_egress(client, namespace, name, deadline, **given)
    return set_egress(client, namespace, name, EgressBoundary.of(params["egress"]), deadline, **given)


def _result(change: EgressChange) -> Result:
    result: Result = {
        "changed": change.changed,
        "name": change.ref.name,
        "namespace": change.ref.namespace,
        "uid": change.uid,
        "policy": str(change.policy) if change.policy else None,
        "verdict": boundary_result(change.verdict) if change.verdict else None,
    }
    if change.fence is not None:
        result["fence"] = {"policy": change.fence.policy, "held": change.fence.held}
    if change.changed:
        result["diff"] = {
            "before": _described(change.policy, change.before),
            "after": _described(change.policy, change.after),
        }
    return result


def _described(policy: ObjectRef | None, spec: Body | None) -> dict[str, t.Any]:
    return {} if spec is None else {"policy": str(policy), "spec": spec}


VERB = Verb(
    name="sandbox_egress",
    options=SANDBOX_EGRESS,
    run=run,
    constraints={
        "required_if": [("state", "present", ("egress",))],
        "required_one_of": [("name", "sandbox")],
        "mutually_exclusive": [("name", "sandbox"), ("uid", "sandbox")],
    },
)
