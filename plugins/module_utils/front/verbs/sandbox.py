# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox``: acquire sandboxes out of a warm pool or from a template, or give them back."""

from __future__ import annotations

import dataclasses
import typing as t

from ...cluster.client import Client
from ...deadline import Deadline
from ...errors import InputError, SandboxError
from ...lifecycle.acquire.acquire import acquire, would_acquire
from ...lifecycle.acquire.request import Acquired, AcquireRequest
from ...lifecycle.batch import PartialAcquireError, acquire_many, numbered
from ...lifecycle.durations import length, seconds
from ...lifecycle.errors import ReplacedError
from ...lifecycle.names import check_name
from ...lifecycle.observed.prerequisites import check_namespace
from ...lifecycle.release.many import names_matching, release_many
from ...lifecycle.timestamps import timestamp
from ...lifecycle.verification.spec import EgressBoundary, IngressBoundary
from ..leases.sandboxes import Keeping, keeping
from ..options.labels import labels_of
from ..options.refused import check_refused_options
from ..options.specs import SANDBOX, Params
from ..options.target import uids_of, with_target
from ..results.host_vars import add_host_vars
from ..results.sandboxes import sandbox_result
from ..verb import Context, Result, Verb, connect, failure, namespace_of


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    check_refused_options(params)
    params = _checked(params)
    with connect(params, context) as client, keeping(params, context) as keeper:
        act = _absent if params["state"] == "absent" else _present
        result = act(client, params, context, keeper)
        return keeper.result(add_host_vars(result, params, context.environ))


def _checked(params: Params) -> Params:
    """The options, with those of ``sandbox`` in their places; which object is meant is asked of a release alone."""
    given = [option for option in ("uid", "sandbox", "sandboxes") if params.get(option) is not None]
    if given and params["state"] == "present":
        raise InputError(
            f"{given[0]} says which sandbox is released, and state is present.",
            next_step="Leave it out, or set state: absent.",
        )
    params = with_target(params)
    if params.get("workspace_id") is not None:
        raise InputError(
            "sandbox is a workspace, which a release does not delete.",
            next_step="Use namzu.sandbox.workspace with state: suspended or absent.",
        )
    return params


def _present(client: Client, params: Params, context: Context, keeper: Keeping) -> Result:
    request = _request(client, params)
    if context.check_mode:
        return _would_be_present(client, request, params.get("count"))
    if params.get("count") is None:
        acquired = [acquire(client, request)]
        keeper.hold(client, request, acquired)
        return {**_acquired(request, acquired), "sandbox": sandbox_result(acquired[0])}
    try:
        acquired = acquire_many(client, request, params["count"], params["on_failure"])
    except PartialAcquireError as error:
        keeper.hold(client, request, _kept(error))
        return _partial(request, error)
    keeper.hold(client, request, acquired)
    return _acquired(request, acquired)


def _acquired(request: AcquireRequest, acquired: list[Acquired]) -> Result:
    made = [_described(one.name, request, one) for one in acquired if one.created]
    result: Result = {"changed": bool(made), "sandboxes": [sandbox_result(one) for one in acquired]}
    stale = [f"Sandbox {one.name} is older than its template." for one in acquired if one.stale]
    return {**result, **({"diff": _diff([], made)} if made else {}), **({"warnings": stale} if stale else {})}


def _kept(error: PartialAcquireError) -> list[Acquired]:
    return [outcome.acquired for outcome in error.outcomes if outcome.acquired is not None]


def _partial(request: AcquireRequest, error: PartialAcquireError) -> Result:
    failures = [
        {"name": outcome.name, "reason": outcome.error.reason, "msg": str(outcome.error)}
        for outcome in error.outcomes
        if outcome.error is not None
    ]
    return {**failure(error), **_acquired(request, _kept(error)), "failures": failures}


def _would_be_present(client: Client, request: AcquireRequest, count: int | None) -> Result:
    requests = [request] if count is None else numbered(request, count)
    found = [would_acquire(client, one) for one in requests]
    made = [_described(ref.name, request, None) for ref, standing in found if standing is None]
    result: Result = {"changed": bool(made), "sandboxes": []}
    return {**result, "diff": _diff([], made)} if made else result


def _absent(client: Client, params: Params, context: Context, keeper: Keeping) -> Result:
    namespace = namespace_of(params, client)
    deadline = Deadline(length("wait_timeout", params["wait_timeout"]), client.clock)
    names = _chosen(client, namespace, params, deadline)
    with keeper.releasing(namespace, names) as failed:
        released, failures = release_many(
            client, namespace, names, deadline, wait=params["wait"], dry_run=context.check_mode
        )
        if params.get("label_selector") is not None:
            # The one that was chosen is gone; the one that has its name now was not.
            failures = {name: error for name, error in failures.items() if not isinstance(error, ReplacedError)}
        failed.intersection_update(failures)
    gone = [one.name for one in released if one.existed]
    result: Result = {"changed": bool(gone), "released": gone}
    selector = params.get("label_selector")
    if not gone and not failures and (names or selector is not None):
        check_namespace(client, namespace)
        chosen = f"matches {selector}" if selector is not None else f"has the name {' or '.join(names)}"
        result["msg"] = f"No sandbox in {namespace} {chosen}. Nothing was released."
    if gone:
        result["diff"] = _diff([{"name": name} for name in gone], [])
    return {**_unreleased(failures), **result} if failures else result


def _chosen(client: Client, namespace: str, params: Params, deadline: Deadline) -> t.Mapping[str, str | None]:
    """The sandboxes to release: each name with its uid, or None for whichever has the name."""
    if params.get("label_selector") is not None:
        return names_matching(client, namespace, params["label_selector"], deadline)
    if params.get("sandboxes") is not None:
        names: dict[str, str | None] = {**uids_of(params["sandboxes"], namespace)}
    elif params.get("name") is not None:
        names = {params["name"]: params.get("uid")}
    else:
        names = dict.fromkeys(params["names"])
    for name in names:
        check_name("name", name)
    return names


def _unreleased(failures: t.Mapping[str, SandboxError]) -> Result:
    first = next(iter(failures.values()))
    words = [{"name": name, "reason": error.reason, "msg": str(error)} for name, error in failures.items()]
    return {**failure(first), "failures": words}


def _request(client: Client, params: Params) -> AcquireRequest:
    agent = params.get("agent") or {}
    return AcquireRequest(
        namespace=namespace_of(params, client),
        warm_pool=params.get("warm_pool"),
        template=params.get("template"),
        runtime_class=params.get("runtime_class"),
        name=params.get("name"),
        labels=labels_of("labels", params),
        pod_labels=labels_of("pod_labels", params),
        ttl=seconds("ttl", params["ttl"]),
        ready_timeout=seconds("ready_timeout", params["ready_timeout"]),
        agent_port=agent.get("port", 1024),
        agent_address=agent.get("address", "service"),
        wait_for_template=params["wait_for_template"],
        on_stale=params["on_stale"],
        egress=EgressBoundary.of(params["egress"]) if params.get("egress") else None,
        ingress=IngressBoundary.of(params.get("ingress")),
        network_probe=params["network_probe"],
        per_sandbox_egress=params["per_sandbox_egress"],
    )


_SHOWN = ("namespace", "warm_pool", "template", "runtime_class", "labels", "pod_labels", "per_sandbox_egress")


def _described(name: str, request: AcquireRequest, acquired: Acquired | None) -> dict[str, t.Any]:
    """A sandbox as a diff shows it."""
    asked = dataclasses.asdict(request)
    described = {key: asked[key] for key in _SHOWN if asked[key]}
    if acquired is not None and acquired.expires_at is not None:
        described["expires_at"] = timestamp(acquired.expires_at)
    return {"name": name, **described}


def _diff(before: list[dict[str, t.Any]], after: list[dict[str, t.Any]]) -> dict[str, t.Any]:
    return {
        "before": {"sandboxes": before},
        "after": {"sandboxes": after},
    }


VERB = Verb(
    name="sandbox",
    options=SANDBOX,
    run=run,
    constraints={
        "required_if": [
            ("state", "present", ("warm_pool", "template"), True),
            ("state", "absent", ("name", "names", "label_selector", "sandbox", "sandboxes"), True),
        ],
        "mutually_exclusive": [
            ("warm_pool", "template"),
            ("warm_pool", "runtime_class"),
            ("name", "names", "label_selector", "sandbox", "sandboxes"),
            *(("uid", option) for option in ("names", "label_selector", "sandbox", "sandboxes")),
            *(("count", option) for option in ("names", "label_selector", "sandbox", "sandboxes")),
        ],
    },
)
