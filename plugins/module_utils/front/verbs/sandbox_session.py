# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``sandbox_session``: a background program that outlives the play."""

from __future__ import annotations

import typing as t

from ...deadline import Deadline
from ...errors import InputError
from ...guest.sessions.services import check_session_name, end_session, find_session, running_session, start_session
from ...guest.sessions.sessions import Session
from ...lifecycle.durations import seconds
from ..backends.opening import open_backend
from ..backends.protocol import Guest
from ..guests import check_guest, find_guest
from ..options.commands import command_options, shown, timeout_of, words_of
from ..options.specs import GUEST_EXCLUSIVE, GUEST_REQUIRED, SANDBOX_SESSION, Params
from ..options.target import with_target
from ..results.sessions import session_result
from ..verb import Context, Result, Verb

#: Seconds for what the agent answers at once.
ANSWER_SECONDS = 30.0

#: Seconds between SIGTERM and SIGKILL that the agent allows.
LONGEST_GRACE = 60.0


def run(params: Params, context: Context) -> Result:
    """The task's parameters to its result."""
    params = with_target(params)
    check_guest(params)
    check_session_name("session", params["session"])
    act = (_starting if params["state"] == "started" else _stopping)(params, context.check_mode)
    with open_backend(params, context) as backend:
        guest = find_guest(params, backend)
        return {**act(guest), "sandbox": guest.name, "pod": guest.pod}


def _starting(params: Params, check_mode: bool) -> t.Callable[[Guest], Result]:
    name, argv = params["session"], words_of(params)
    options = command_options(params, timeout_of(params))

    def start(guest: Guest) -> Result:
        deadline = Deadline(ANSWER_SECONDS)
        session: Session | None
        if check_mode:
            session = find_session(guest.agent, argv, name=name, deadline=deadline, **options)
            changed = session is None
        else:
            session, changed = start_session(guest.agent, argv, name=name, deadline=deadline, **options)
        after = {"state": "started", "cmd": shown(params, argv)}
        return _result(name, session, {"state": "stopped"}, after, changed=changed)

    return start


def _stopping(params: Params, check_mode: bool) -> t.Callable[[Guest], Result]:
    name, grace = params["session"], seconds("grace", params["grace"])
    if grace > LONGEST_GRACE:
        raise InputError(f"grace is {grace:g} s; it must be at most {LONGEST_GRACE:g} s.")

    def stop(guest: Guest) -> Result:
        deadline = Deadline(grace + ANSWER_SECONDS)
        if check_mode:
            session = running_session(guest.agent, name, deadline)
            changed = session is not None
        else:
            session, changed = end_session(guest.agent, name, deadline=deadline, grace=grace)
        return _result(name, session, {"state": "started"}, {"state": "stopped"}, changed=changed)

    return stop


def _result(
    name: str, session: Session | None, before: dict[str, t.Any], after: dict[str, t.Any], *, changed: bool
) -> Result:
    sides = {side: {"session": name, **state} for side, state in (("before", before), ("after", after))}
    return {
        "changed": changed,
        "session": None if session is None else session_result(session),
        **({"diff": sides} if changed else {}),
    }


VERB = Verb(
    name="sandbox_session",
    options=SANDBOX_SESSION,
    run=run,
    constraints={
        "mutually_exclusive": [*GUEST_EXCLUSIVE, ("argv", "command")],
        "required_one_of": GUEST_REQUIRED,
        "required_if": [("state", "started", ("argv", "command"), True)],
    },
)
