# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Option ``sandbox``: the result of an acquire, or of opening a workspace, instead of name, namespace and uid."""

from __future__ import annotations

import typing as t

from ...errors import InputError
from .specs import Params

_NEEDED = ("name", "namespace", "uid")


def with_target(params: Params) -> Params:
    """The options with those of ``sandbox`` in their places, or the namespace of ``sandboxes``.

    Raises:
        InputError: ``sandbox`` is not such a result, or is in another namespace than the option says.
    """
    sandbox = params.get("sandbox")
    if params.get("sandboxes"):
        first = _checked("sandboxes", params["sandboxes"][0], params.get("namespace"))
        return {**params, "namespace": first["namespace"]}
    if sandbox is None:
        return params
    result = _checked("sandbox", sandbox, params.get("namespace"))
    workspace_id = result.get("workspace_id")
    named = {"name": result["name"]} if workspace_id is None else {"workspace_id": str(workspace_id)}
    return {**params, **named, "namespace": result["namespace"], "uid": result["uid"]}


def uids_of(sandboxes: t.Sequence[t.Mapping[str, t.Any]], namespace: str) -> dict[str, str]:
    """The uids by name of several results of one namespace (option ``sandboxes``).

    Raises:
        InputError: one of them is not such a result, or is in another namespace.
    """
    results = [_checked("sandboxes", one, namespace) for one in sandboxes]
    return {one["name"]: one["uid"] for one in results}


def _checked(option: str, result: t.Mapping[str, t.Any], namespace: str | None) -> t.Mapping[str, t.Any]:
    missing = [key for key in _NEEDED if not isinstance(result.get(key), str) or not result[key]]
    if missing:
        raise InputError(
            f"{option} is not a sandbox as namzu.sandbox.sandbox returns it: {', '.join(missing)} is missing.",
            next_step="Give for example acquired.sandbox, or opened.workspace.",
        )
    if namespace is not None and namespace != result["namespace"]:
        raise InputError(
            f"{option} is in namespace {result['namespace']}, and option namespace is {namespace}.",
            next_step=f"Leave out namespace, which {option} has.",
        )
    return result
