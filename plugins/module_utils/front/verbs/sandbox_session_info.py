# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_session_info``: which sessions there are, and what one has said."""

from __future__ import annotations

from ...deadline import Deadline
from ...errors import InputError
from ...guest.errors import GuestRefusedError
from ...guest.sessions.services import check_session_name
from ...guest.sessions.sessions import LARGEST_READ, Sessions
from ..backends.opening import open_backend
from ..guests import check_guest, find_guest
from ..options.specs import GUEST_EXCLUSIVE, GUEST_REQUIRED, SANDBOX_SESSION_INFO, Params
from ..options.target import with_target
from ..results.sessions import output_result, session_result
from ..verb import Context, Result, Verb

#: Seconds for what the agent answers at once.
ANSWER_SECONDS = 30.0


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = with_target(params)
    check_guest(params)
    _check(params)
    with open_backend(params, context) as backend:
        guest = find_guest(params, backend)
        sessions = Sessions(guest.agent)
        result = _one(sessions, params) if params.get("session") is not None else _all(sessions)
        return {"changed": False, **result, "sandbox": guest.name, "pod": guest.pod}


def _check(params: Params) -> None:
    if params.get("session") is not None:
        check_session_name("session", params["session"])
    if params["offset"] < 0:
        raise InputError(f"offset is {params['offset']}; it must be at least 0.")
    if not 1 <= params["max_output"] <= LARGEST_READ:
        raise InputError(f"max_output is {params['max_output']}; it must be between 1 and {LARGEST_READ} bytes.")


def _all(sessions: Sessions) -> Result:
    return {"sessions": [session_result(one) for one in sessions.list(Deadline(ANSWER_SECONDS))]}


def _one(sessions: Sessions, params: Params) -> Result:
    """One session and its output; none when the agent knows no such name."""
    offset = params["offset"]
    try:
        output = sessions.read(
            params["session"], offset=offset, limit=params["max_output"], deadline=Deadline(ANSWER_SECONDS)
        )
    except GuestRefusedError as error:
        if error.kind == "not-found":
            return {"sessions": []}
        raise
    return {"sessions": [session_result(output.session)], **output_result(output, offset)}


VERB = Verb(
    name="sandbox_session_info",
    options=SANDBOX_SESSION_INFO,
    run=run,
    constraints={
        "mutually_exclusive": GUEST_EXCLUSIVE,
        "required_one_of": GUEST_REQUIRED,
    },
)
