# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``workspace_info``: list the workspaces of a namespace."""

from __future__ import annotations

from ...deadline import Deadline
from ...lifecycle.observed.prerequisites import check_namespace
from ...workspace.inventory import list_workspaces
from ..options.specs import WORKSPACE_INFO, Params
from ..results.workspaces import summary_result
from ..verb import Context, Result, Verb, connect, namespace_of

#: Seconds for the three lists, retries included.
READ_SECONDS = 60.0


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    with connect(params, context) as client:
        found = list_workspaces(
            client,
            namespace_of(params, client),
            Deadline(READ_SECONDS, client.clock),
            workspace_id=params.get("workspace_id"),
            label_selector=params.get("label_selector"),
        )
        if not found:
            check_namespace(client, namespace_of(params, client))
    return {"changed": False, "workspaces": [summary_result(one) for one in found]}


VERB = Verb(name="workspace_info", options=WORKSPACE_INFO, run=run)
