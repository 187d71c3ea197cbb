# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_info``: list the sandboxes of a namespace."""

from __future__ import annotations

import typing as t

from ...errors import InputError, MissingDependencyError
from ..backends.opening import open_backend
from ..options.specs import SANDBOX_INFO, Params
from ..verb import Context, Result, Verb


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    select = _query(params["query"]) if params.get("query") else None
    with open_backend(params, context) as backend:
        sandboxes = backend.list(name=params.get("name"), label_selector=params.get("label_selector"))
        if not sandboxes:
            backend.check_exists()
    result: Result = {"changed": False, "sandboxes": sandboxes}
    if select is not None:
        result["queried"] = select(sandboxes)
    return result


def _query(text: str) -> t.Callable[[t.Any], t.Any]:
    try:
        import jmespath
    except ImportError:
        raise MissingDependencyError(
            "The option query needs the Python library jmespath.", next_step="Install jmespath where this runs."
        ) from None
    try:
        compiled = jmespath.compile(text)
    except jmespath.exceptions.JMESPathError as error:
        raise InputError(f"query is no JMESPath expression: {error}") from None

    def select(sandboxes: t.Any) -> t.Any:
        try:
            return compiled.search(sandboxes)
        except jmespath.exceptions.JMESPathError as error:
            # What a function is given is known only now.
            raise InputError(f"query cannot be applied to the sandboxes: {error}") from None

    return select


VERB = Verb(name="sandbox_info", options=SANDBOX_INFO, run=run)
