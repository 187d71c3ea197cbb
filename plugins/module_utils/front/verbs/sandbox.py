# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox``: acquire one out of a warm pool, or give it back."""

from __future__ import annotations

import typing as t

from ...cluster.client import Client
from ...cluster.deadline import Deadline
from ...cluster.errors import InputError
from ...lifecycle.acquire import acquire, would_acquire
from ...lifecycle.claim import timestamp
from ...lifecycle.release import release
from ...lifecycle.request import AcquireRequest, check_name
from ..durations import seconds
from ..options import SANDBOX
from ..results import sandbox_result
from ..verb import Context, Params, Result, Verb, connect, namespace_of


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    with connect(params, context) as client:
        if params["state"] == "absent":
            return _absent(client, params, context)
        return _present(client, params, context)


def _present(client: Client, params: Params, context: Context) -> Result:
    request = _request(client, params)
    if context.check_mode:
        return _would_be_present(client, request)
    acquired = acquire(client, request)
    sandbox = sandbox_result(acquired)
    result: Result = {"changed": acquired.created, "sandbox": sandbox, "sandboxes": [sandbox]}
    if acquired.created:
        expires = timestamp(acquired.expires_at) if acquired.expires_at else None
        result["diff"] = _diff(before={}, after=_described(acquired.name, request, expires))
    return result


def _would_be_present(client: Client, request: AcquireRequest) -> Result:
    ref, standing = would_acquire(client, request)
    result: Result = {"changed": standing is None, "sandboxes": []}
    if standing is None:
        result["diff"] = _diff(before={}, after=_described(ref.name, request, None))
    return result


def _absent(client: Client, params: Params, context: Context) -> Result:
    name = str(params["name"])
    check_name("name", name)
    deadline = Deadline(seconds("wait_timeout", params["wait_timeout"]), client.clock)
    released = release(
        client, namespace_of(params, client), name, deadline, wait=params["wait"], dry_run=context.check_mode
    )
    result: Result = {"changed": released.existed, "released": [name] if released.existed else []}
    if released.existed:
        result["diff"] = _diff(before={"name": name}, after={})
    return result


def _request(client: Client, params: Params) -> AcquireRequest:
    agent = params.get("agent") or {}
    return AcquireRequest(
        namespace=namespace_of(params, client),
        warm_pool=str(params["warm_pool"]),
        name=params.get("name"),
        labels=_labels("labels", params),
        pod_labels=_labels("pod_labels", params),
        ttl=seconds("ttl", params["ttl"]),
        ready_timeout=seconds("ready_timeout", params["ready_timeout"]),
        agent_port=agent.get("port", 1024),
        agent_address=agent.get("address", "service"),
    )


def _labels(option: str, params: Params) -> dict[str, str]:
    labels = params.get(option) or {}
    for key, value in labels.items():
        if not isinstance(value, (str, int, float)) or isinstance(value, bool):
            raise InputError(f"{option} has {key!r}: {value!r}; a label's value is a string.", next_step="Quote it.")
    return {str(key): str(value) for key, value in labels.items()}


def _described(name: str, request: AcquireRequest, expires_at: str | None) -> dict[str, t.Any]:
    described: dict[str, t.Any] = {"name": name, "namespace": request.namespace, "warm_pool": request.warm_pool}
    if request.labels:
        described["labels"] = dict(request.labels)
    if request.pod_labels:
        described["pod_labels"] = dict(request.pod_labels)
    if expires_at is not None:
        described["expires_at"] = expires_at
    return described


def _diff(before: dict[str, t.Any], after: dict[str, t.Any]) -> dict[str, t.Any]:
    return {"before": before, "after": after, "before_header": "SandboxClaim", "after_header": "SandboxClaim"}


VERB = Verb(
    name="sandbox",
    options=SANDBOX,
    run=run,
    constraints={"required_if": [("state", "present", ("warm_pool",)), ("state", "absent", ("name",))]},
)
