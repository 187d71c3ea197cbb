# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Option ``sandbox``: the result of an acquire, or of opening a workspace, instead of name, namespace and uid."""

from __future__ import annotations

import typing as t

from ...errors import InputError
from .backend import CONTAINER, KUBERNETES
from .specs import Params

_NEEDED = ("name", "namespace", "uid")
_OF_A_CONTAINER = ("name", "uid")


def with_target(params: Params) -> Params:
    """The options with those of ``sandbox`` in their places, or the namespace of ``sandboxes``.

    Raises:
        InputError: ``sandbox`` is not such a result, or is in another namespace than the option says.
    """
    sandbox = params.get("sandbox")
    if params.get("sandboxes"):
        first = _checked("sandboxes", params["sandboxes"][0], params.get("namespace"))
        return {**params, **_place(params, first)}
    if sandbox is None:
        return params
    result = _checked("sandbox", sandbox, params.get("namespace"))
    workspace_id = result.get("workspace_id")
    named = {"name": result["name"]} if workspace_id is None else {"workspace_id": str(workspace_id)}
    return {**params, **named, **_place(params, result), "uid": result["uid"]}


def _place(params: Params, result: t.Mapping[str, t.Any]) -> Params:
    """The backend and the namespace of a result.

    Raises:
        InputError: the task names another backend.
    """
    backend = result.get("backend") or KUBERNETES
    if params.get("backend") not in (None, backend):
        raise InputError(
            f"sandbox is of backend {backend}, and option backend is {params['backend']}.",
            next_step="Leave out backend, which sandbox has.",
        )
    return {"backend": backend, "namespace": result.get("namespace")}


def uids_of(sandboxes: t.Sequence[t.Mapping[str, t.Any]], namespace: str | None) -> dict[str, str]:
    """The uids by name of several results of one namespace (option ``sandboxes``).

    Raises:
        InputError: one of them is not such a result, or is in another namespace.
    """
    results = [_checked("sandboxes", one, namespace) for one in sandboxes]
    return {one["name"]: one["uid"] for one in results}


def _checked(option: str, result: t.Mapping[str, t.Any], namespace: str | None) -> t.Mapping[str, t.Any]:
    needed = _OF_A_CONTAINER if result.get("backend") == CONTAINER else _NEEDED
    missing = [key for key in needed if not isinstance(result.get(key), str) or not result[key]]
    if missing:
        raise InputError(
            f"{option} is not a sandbox as namzu.sandbox.sandbox returns it: {', '.join(missing)} is missing.",
            next_step="Give for example acquired.sandbox, or opened.workspace.",
        )
    if needed is _NEEDED and namespace is not None and namespace != result["namespace"]:
        raise InputError(
            f"{option} is in namespace {result['namespace']}, and option namespace is {namespace}.",
            next_step=f"Leave out namespace, which {option} has.",
        )
    return result
