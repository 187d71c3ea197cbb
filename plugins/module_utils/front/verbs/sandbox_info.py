# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_info``: list the sandboxes of a namespace."""

from __future__ import annotations

import typing as t

from ...deadline import Deadline
from ...errors import InputError, MissingDependencyError
from ...lifecycle.observed.inventory import standing_sandboxes
from ...lifecycle.observed.prerequisites import check_namespace
from ..options.specs import SANDBOX_INFO, Params
from ..results.sandboxes import standing_result
from ..verb import Context, Result, Verb, connect, namespace_of

#: Seconds for the three lists, retries included.
READ_SECONDS = 60.0


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    select = _query(params["query"]) if params.get("query") else None
    with connect(params, context) as client:
        found = standing_sandboxes(
            client,
            namespace_of(params, client),
            Deadline(READ_SECONDS, client.clock),
            name=params.get("name"),
            label_selector=params.get("label_selector"),
        )
        if not found:
            check_namespace(client, namespace_of(params, client))
    sandboxes = [standing_result(standing) for standing in found]
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
