# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Background programs that shall run, or not run, under a name: asked for again, nothing happens twice."""

from __future__ import annotations

import hashlib
import hmac
import json
import os
import re
import typing as t

from ...deadline import Deadline
from ...errors import InputError
from ..agent import Agent
from ..errors import GuestError, GuestRefusedError, GuestUnreachableError, SessionMismatchError
from ..execution.request import command_body
from .sessions import Session, Sessions

_MARK = 32

#: What the agent takes for a name or an id.
_NAME = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


def check_session_name(option: str, value: str) -> None:
    """Refuse what cannot be the name of a session, before anything is sent; raises InputError."""
    if not _NAME.fullmatch(value):
        raise InputError(
            f"{option} is {value[:80]!r}, which cannot name a session.",
            next_step="Use 1 to 64 letters, digits, dots, dashes and underscores, with a letter or digit first.",
        )


def running_session(agent: Agent, name: str, deadline: Deadline) -> Session | None:
    """The session that runs under a name, or None."""
    found = [session for session in Sessions(agent).list(deadline) if session.name == name and session.running]
    return found[0] if found else None


def find_session(
    agent: Agent, argv: t.Sequence[str], *, name: str, deadline: Deadline, **options: t.Any
) -> Session | None:
    """The session that runs under a name, when it is the one that ``start_session`` with these arguments would make.

    Raises SessionMismatchError when it is another one.
    """
    return _same(agent, running_session(agent, name, deadline), _mark(agent, argv, options))


def start_session(
    agent: Agent, argv: t.Sequence[str], *, name: str, deadline: Deadline, **options: t.Any
) -> tuple[Session, bool]:
    """Have a background program run under a name; one that runs already is left as it is.

    Args:
        argv: program and arguments.
        name: 1 to 64 letters, digits, dots, dashes and underscores. One whose program has ended is free again.
        options: ``stdin``, ``cwd``, ``env`` and ``timeout`` of ``Agent.execute``.

    Returns the session, and whether it was started by this call. Raises SessionMismatchError when another command, or
    the same one with other options, runs under the name, and what ``Sessions.start`` raises.
    """
    if "stdin" in options and not isinstance(options["stdin"], (bytes, str, type(None))):
        # It is read twice: for the mark, and for the request.
        options["stdin"] = b"".join(options["stdin"])
    mark = _mark(agent, argv, options)
    existing = _same(agent, running_session(agent, name, deadline), mark)
    if existing is not None:
        return existing, False
    key = f"{mark}-{os.urandom(6).hex()}"
    failure: GuestError
    try:
        return Sessions(agent).start(argv, name=name, key=key, deadline=deadline, **options), True
    except GuestRefusedError as error:
        if error.kind != "exists":
            raise
        failure = error
    except GuestUnreachableError as error:
        if not error.sent:
            raise
        failure = error
    # Another client was faster, or the answer was lost: the list of sessions shows which.
    ours = [session for session in Sessions(agent).list(deadline) if session.id == key]
    if ours:
        return ours[0], True
    existing = _same(agent, running_session(agent, name, deadline), mark)
    if existing is None:
        raise failure
    return existing, False


def end_session(
    agent: Agent, name: str, *, deadline: Deadline, grace: float | None = None
) -> tuple[Session | None, bool]:
    """End the session that runs under a name, and wait until it has ended.

    Args:
        grace: seconds (0 to 60) between SIGTERM and SIGKILL for its process group; its own, 2, when None.

    Returns the session as it ended, None when none ran, and whether it ran. Raises the errors of ``Sessions``.
    """
    sessions = Sessions(agent)
    existing = running_session(agent, name, deadline)
    if existing is None:
        return None, False
    with sessions.attach(existing.id, offset=existing.next, deadline=deadline) as following:
        ran = sessions.kill(existing.id, deadline=deadline, grace=grace)
        while following.read(deadline) is not None:
            pass
    return sessions.read(existing.id, deadline=deadline, limit=1).session, ran


def _same(agent: Agent, existing: Session | None, mark: str) -> Session | None:
    if existing is not None and not existing.id.startswith(f"{mark}-"):
        raise SessionMismatchError(
            f"session-start at {agent.peer.name}: another program ({existing.program}, process {existing.pid}) runs "
            f"under the name {existing.name}. It was left as it is.",
            object=agent.peer.name,
            next_step="Stop it first, ask for the same command and options, or use another name.",
        )
    return existing


def _mark(agent: Agent, argv: t.Sequence[str], options: t.Mapping[str, t.Any]) -> str:
    """What tells one command with its options from another; it becomes a part of the session's id.

    The agent shows only the first word of a command, because the rest may be secret. The mark shows no more: to guess
    the command from it, one needs the pod's token, which already gives access to the process itself.
    """
    body, _following = command_body(argv, inline=True, **options)
    message = json.dumps(body, sort_keys=True).encode()
    return hmac.new(agent.address.token.encode(), message, hashlib.sha256).hexdigest()[:_MARK]
