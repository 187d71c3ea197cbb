# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox``: acquire sandboxes, or release them."""

from __future__ import annotations

import typing as t

from ...deadline import Deadline
from ...errors import InputError, SandboxError
from ...lifecycle.durations import length
from ...lifecycle.names import check_name
from ...lifecycle.timestamps import timestamp
from ..backends.opening import open_backend
from ..backends.protocol import Acquisition, Backend
from ..leases.sandboxes import Keeping, keeping
from ..options.specs import SANDBOX, Params
from ..options.target import uids_of, with_target
from ..verb import Context, Result, Verb, failure


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = _checked(params)
    with open_backend(params, context) as backend, keeping(params, context) as keeper:
        act = _absent if params["state"] == "absent" else _present
        result = act(backend, params, context, keeper)
        for sandbox in result.get("sandboxes", []):
            sandbox["host_vars"] = backend.host_vars(sandbox)
        return keeper.result(result)


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


def _present(backend: Backend[t.Any], params: Params, context: Context, keeper: Keeping) -> Result:
    request, count = backend.request(params), params.get("count")
    if context.check_mode:
        made = [_described(name, backend, request) for name, exists in backend.planned(request, count) if not exists]
        result: Result = {"changed": bool(made), "sandboxes": []}
        return {**result, "diff": _diff([], made)} if made else result
    if count is None:
        acquired = [backend.acquire(request)]
        keeper.hold(backend, request, acquired)
        result = _acquired(backend, request, acquired)
        return {**result, "sandbox": result["sandboxes"][0]}
    batch = backend.acquire_many(request, count, params["on_failure"])
    keeper.hold(backend, request, batch.acquired)
    result = _acquired(backend, request, batch.acquired)
    if batch.error is None:
        return result
    return {**failure(batch.error), **result, "failures": _failures(batch.failures)}


def _acquired(backend: Backend[t.Any], request: t.Any, acquired: t.Sequence[Acquisition]) -> Result:
    made = [_described(one.name, backend, request, one) for one in acquired if one.created]
    result: Result = {"changed": bool(made), "sandboxes": [dict(one.result) for one in acquired]}
    stale = [f"Sandbox {one.name} is older than its template." for one in acquired if one.stale]
    return {**result, **({"diff": _diff([], made)} if made else {}), **({"warnings": stale} if stale else {})}


def _failures(errors: t.Mapping[str, SandboxError]) -> list[dict[str, t.Any]]:
    return [{"name": name, "reason": error.reason, "msg": str(error)} for name, error in errors.items()]


def _absent(backend: Backend[t.Any], params: Params, context: Context, keeper: Keeping) -> Result:
    deadline = Deadline(length("wait_timeout", params["wait_timeout"]), backend.client.clock)
    names = _chosen(backend, params, deadline)
    with keeper.releasing(backend.namespace or "", names) as failed:
        gone, failures = backend.release(names, deadline, wait=params["wait"], dry_run=context.check_mode)
        if params.get("label_selector") is not None:
            # The one that was chosen is gone; the one that has its name now was not.
            failures = {name: error for name, error in failures.items() if error.reason != "replaced"}
        failed.intersection_update(failures)
    result: Result = {"changed": bool(gone), "released": gone}
    selector = params.get("label_selector")
    if not gone and not failures and (names or selector is not None):
        backend.check_exists()
        chosen = f"matches {selector}" if selector is not None else f"has the name {' or '.join(names)}"
        result["msg"] = f"No sandbox in {backend.place} {chosen}. Nothing was released."
    if gone:
        result["diff"] = _diff([{"name": name} for name in gone], [])
    if not failures:
        return result
    return {**failure(next(iter(failures.values()))), "failures": _failures(failures), **result}


def _chosen(backend: Backend[t.Any], params: Params, deadline: Deadline) -> t.Mapping[str, str | None]:
    """The sandboxes to release: each name with its uid, or None for whichever has the name."""
    if params.get("label_selector") is not None:
        return backend.names_matching(params["label_selector"], deadline)
    if params.get("sandboxes") is not None:
        names: dict[str, str | None] = {**uids_of(params["sandboxes"], backend.namespace)}
    elif params.get("name") is not None:
        names = {params["name"]: params.get("uid")}
    else:
        names = dict.fromkeys(params["names"])
    for name in names:
        check_name("name", name)
    return names


def _described(
    name: str, backend: Backend[t.Any], request: t.Any, acquired: Acquisition | None = None
) -> dict[str, t.Any]:
    """A sandbox as a diff shows it."""
    described = backend.described(request)
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
            ("state", "present", ("warm_pool", "template", "image"), True),
            ("state", "absent", ("name", "names", "label_selector", "sandbox", "sandboxes"), True),
        ],
        "mutually_exclusive": [
            ("warm_pool", "template", "image"),
            ("warm_pool", "runtime_class"),
            ("name", "names", "label_selector", "sandbox", "sandboxes"),
            *(("uid", option) for option in ("names", "label_selector", "sandbox", "sandboxes")),
            *(("count", option) for option in ("names", "label_selector", "sandbox", "sandboxes")),
        ],
    },
)
