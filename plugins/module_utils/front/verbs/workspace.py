# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``workspace``: have a workspace run, suspend it, or delete it with its disk."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ...cluster.client import Client
from ...cluster.resources import Body
from ...lifecycle.durations import length, seconds
from ...lifecycle.observed.prerequisites import check_namespace
from ...lifecycle.verification.spec import EgressBoundary, IngressBoundary
from ...workspace.delete import DeleteRequest, delete_workspace
from ...workspace.fencing import mode_of
from ...workspace.manifest import template_of
from ...workspace.open import Opening, open_workspace
from ...workspace.request import Suspended, SuspendRequest, WorkspaceRequest
from ...workspace.suspend import refresh_suspended, suspend_workspace
from ..leases.sandboxes import Keeping, keeping
from ..leases.workspaces import hold, releasing
from ..options.labels import labels_of
from ..options.refused import check_refused_options
from ..options.specs import WORKSPACE, Params
from ..results.host_vars import host_vars
from ..results.workspaces import opened_result, suspended_result, unsettled_warnings
from ..verb import Context, Result, Verb, connect, namespace_of


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    check_refused_options(params)
    act = {"running": _running, "suspended": _suspended, "absent": _absent}[params["state"]]
    with connect(params, context) as client, _keeping(params, context) as keeper:
        return keeper.result(act(client, params, context, keeper))


def _keeping(params: Params, context: Context) -> contextlib.AbstractContextManager[Keeping]:
    """The keeper's side of a task; for a workspace that runs on for ever nobody needs to be asked."""
    endless = params["state"] == "running" and params.get("ttl") is None and not params["release_on_end"]
    return keeping(params, dataclasses.replace(context, keeper=None) if endless else context, "running")


def _running(client: Client, params: Params, context: Context, keeper: Keeping) -> Result:
    request = _request(client, params)
    if context.check_mode:
        opening = Opening(client, request, params.get("uid"))
        body, origin, changed = opening.preview()
        result = _changed(_described(request, body), {**_described(request, body), "mode": "running"}, changed=changed)
        return {**result, **_warnings(_stale_warnings(opening.stale, request)), "origin": origin}
    opened = open_workspace(client, request, uid=params.get("uid"))
    hold(keeper, client, request, opened)
    workspace = opened_result(opened)
    workspace["host_vars"] = host_vars(workspace, params, context.environ)
    before = {"workspace_id": opened.workspace_id, "mode": _BEFORE[opened.origin]}
    after = {**before, "mode": "running", "name": opened.name, "template": opened.template}
    result = _changed(before, after, changed=opened.changed)
    warnings = [*_stale_warnings(opened.stale, request), *unsettled_warnings(opened.unsettled)]
    return {**result, **_warnings(warnings), "origin": opened.origin, "workspace": workspace}


#: What a workspace was before, by how it came to run.
_BEFORE = {"created": "absent", "adopted": "running", "resumed": "suspended", "recovered": "ended"}


def _suspended(client: Client, params: Params, context: Context, keeper: Keeping) -> Result:
    agent = params.get("agent") or {}
    asked = SuspendRequest(
        namespace=namespace_of(params, client),
        workspace_id=params["workspace_id"],
        holder_epoch=params.get("holder_epoch"),
        flush=params["flush"],
        quiesce=params["quiesce"],
        on_flush_failure=params["on_flush_failure"],
        timeout=length("wait_timeout", params["wait_timeout"]),
        resource_version=params.get("resource_version"),
        agent_port=agent.get("port", 1024),
        agent_address=agent.get("address", "service"),
    )
    with releasing(keeper, asked.namespace, asked.workspace_id):
        done = suspend_workspace(client, asked, uid=params.get("uid"), dry_run=context.check_mode)
    if params["refresh"]:
        refreshed = refresh_suspended(client, _request(client, params), uid=done.uid, dry_run=context.check_mode)
        done = dataclasses.replace(done, refreshed=refreshed, changed=done.changed or refreshed)
    return {**_suspension(done), **_warnings(unsettled_warnings(done.unsettled)), "workspace": suspended_result(done)}


def _suspension(done: Suspended) -> Result:
    after = {"workspace_id": done.workspace_id, "name": done.name, "mode": "suspended"}
    return _changed({**after, "mode": "running"}, after, changed=done.changed)


def _absent(client: Client, params: Params, context: Context, keeper: Keeping) -> Result:
    asked = DeleteRequest(
        namespace=namespace_of(params, client),
        workspace_id=params["workspace_id"],
        delete_disk=params["delete_disk"],
        holder_epoch=params.get("holder_epoch"),
        wait=params["wait"],
        timeout=length("wait_timeout", params["wait_timeout"]),
        resource_version=params.get("resource_version"),
    )
    with releasing(keeper, asked.namespace, asked.workspace_id):
        existed = delete_workspace(client, asked, uid=params.get("uid"), dry_run=context.check_mode)
    if existed:
        return _changed({"workspace_id": asked.workspace_id, "name": asked.ref.name}, {}, changed=True)
    check_namespace(client, asked.namespace)
    message = f"Namespace {asked.namespace}: no workspace {asked.workspace_id} exists. Nothing was deleted."
    return {"changed": False, "msg": message}


def _request(client: Client, params: Params) -> WorkspaceRequest:
    agent = params.get("agent") or {}
    return WorkspaceRequest(
        namespace=namespace_of(params, client),
        workspace_id=params["workspace_id"],
        template=params.get("template"),
        holder_epoch=params.get("holder_epoch"),
        runtime_class=params.get("runtime_class"),
        refresh=params["refresh"],
        carry_over=params["carry_over"],
        on_stale=params["on_stale"],
        flush=params["flush"],
        on_flush_failure=params["on_flush_failure"],
        ttl=None if params.get("ttl") is None else seconds("ttl", params["ttl"]),
        labels=labels_of("labels", params),
        pod_labels=labels_of("pod_labels", params),
        ready_timeout=seconds("ready_timeout", params["ready_timeout"]),
        agent_port=agent.get("port", 1024),
        agent_address=agent.get("address", "service"),
        egress=EgressBoundary.of(params["egress"]) if params.get("egress") else None,
        ingress=IngressBoundary.of(params.get("ingress")),
        network_probe=params["network_probe"],
        isolation=params["isolation"],
    )


def _stale_warnings(stale: t.Sequence[str], request: WorkspaceRequest) -> list[str]:
    if not stale or request.refresh:
        return []
    return [f"Workspace {request.workspace_id} is older than its template: {', '.join(stale)} differ."]


def _warnings(warnings: list[str]) -> Result:
    return {"warnings": warnings} if warnings else {}


def _described(request: WorkspaceRequest, body: Body | None) -> dict[str, t.Any]:
    """A workspace as a diff shows it before anything was done."""
    if body is None:
        return {"workspace_id": request.workspace_id, "name": request.ref.name, "mode": "absent"}
    mode = mode_of(body).lower()
    return {
        "workspace_id": request.workspace_id,
        "name": request.ref.name,
        "mode": mode,
        "template": template_of(body),
    }


def _changed(before: dict[str, t.Any], after: dict[str, t.Any], *, changed: bool) -> Result:
    diff = {"diff": {"before": {"workspace": before}, "after": {"workspace": after}}}
    return {"changed": changed, **(diff if changed else {})}


VERB = Verb(
    name="workspace",
    options=WORKSPACE,
    run=run,
)
