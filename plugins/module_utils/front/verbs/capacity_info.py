# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``capacity_info``: whether a pool can serve more work now."""

from __future__ import annotations

import dataclasses

from ...deadline import Deadline
from ...lifecycle.names import check_name
from ...lifecycle.observed.capacity import read_capacity
from ..options.specs import CAPACITY_INFO, Params
from ..verb import Context, Result, Verb, connect, namespace_of

#: Seconds for one GET and three LISTs, retries included.
READ_SECONDS = 60.0


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    check_name("warm_pool", params["warm_pool"])
    with connect(params, context) as client:
        capacity = read_capacity(
            client, namespace_of(params, client), params["warm_pool"], Deadline(READ_SECONDS, client.clock)
        )
    shown = dataclasses.asdict(capacity)
    if capacity.problem is not None:
        message = f"{capacity.problem.words}. {capacity.problem.next_step}"
        shown["problem"] = {"reason": capacity.problem.reason, "message": message}
    return {"changed": False, "capacity": shown}


VERB = Verb(name="capacity_info", options=CAPACITY_INFO, run=run)
