# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Sessions: programs in a terminal or in the background that outlive the connection which started them."""

from __future__ import annotations

import dataclasses
import typing as t

from ...deadline import Deadline
from ..agent import Agent
from ..errors import GuestProtocolError
from ..execution.request import command_body
from ..execution.running import explained
from ..execution.stream import Execution, StreamReader, execution_of
from ..protocol.call import Call
from .attachment import Attachment

_FEATURE = "sessions"
#: Bytes of one read, at most: what the agent retains.
LARGEST_READ = 1024 * 1024


@dataclasses.dataclass(frozen=True)
class Session:
    """One session, or detached execution, as the agent lists it.

    Attributes:
        id: by which it is found.
        name: by which it is found as well, or None.
        kind: ``terminal``, ``background`` or ``execution``.
        program: the first word of its command.
        pid: in the pod.
        terminal: rows and columns, or None.
        started, ended: seconds since 1970 on the pod's clock; ended is None while it runs.
        result: how it ended, without output, or None.
        attached: how many connections follow it.
        first, next: offsets of the first byte of its output that is kept, and of the one that will come next.
    """

    id: str
    name: str | None
    kind: str
    program: str
    pid: int
    terminal: tuple[int, int] | None
    started: float
    ended: float | None
    result: Execution | None
    attached: int
    first: int
    next: int

    @property
    def running(self) -> bool:
        """Whether it has not ended."""
        return self.result is None


@dataclasses.dataclass(frozen=True)
class SessionOutput:
    """A part of a session's output.

    Attributes:
        pieces: ``("stdout" or "stderr", bytes)`` in the order in which they were written.
        offset: of its first byte; larger than what was asked for when the bytes before are no longer kept.
        next: where to read on.
        session: as it was at that moment.
    """

    pieces: tuple[tuple[str, bytes], ...]
    offset: int
    next: int
    session: Session

    @property
    def data(self) -> bytes:
        """Both streams together."""
        return b"".join(data for _name, data in self.pieces)


class Sessions:
    """The sessions of one agent.

    Every method raises GuestUnsupportedError for an agent without the feature ``sessions``, GuestRefusedError
    ``not-found`` for a session that is not there, and the errors of ``Agent``.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def start(
        self,
        argv: t.Sequence[str],
        *,
        deadline: Deadline,
        name: str | None = None,
        key: str | None = None,
        terminal: tuple[int, int] | None = None,
        keep_input_open: bool = False,
        **options: t.Any,
    ) -> Session:
        """Start a session.

        Args:
            argv: program and arguments.
            name, key: its name and its id, 1 to 64 letters, digits, dots, dashes and underscores each. A name is unique
                among what runs, an id for ever.
            terminal: rows and columns of its terminal; None for one in the background.
            keep_input_open: whether a background program gets an input that attached clients write to; otherwise it
                is ``/dev/null``, or ``stdin``.
            options: ``stdin``, ``cwd``, ``env``, ``timeout`` and ``grace`` of ``Agent.execute``.

        Raises GuestRefusedError ``exists`` for a name or an id that is taken, ``busy`` when 64 run already.
        """
        body, _following = command_body(argv, inline=True, **options)
        if keep_input_open:
            body["stdin"] = {"encoding": "frames"}
        if terminal is not None:
            body["terminal"] = {"rows": terminal[0], "columns": terminal[1]}
        body |= {field: value for field, value in (("name", name), ("id", key)) if value is not None}
        with self._call("session-start", body, deadline) as call:
            return _session(call, call.part("session"))

    def list(self, deadline: Deadline) -> list[Session]:
        """All that run, and those that ended within the last hour (at most 64), oldest first."""
        with self._call("session-list", {}, deadline) as call:
            found = call.answer.get("sessions")
            if not isinstance(found, list):
                raise call.protocol_error("the answer has no sessions")
            return [_session(call, one) for one in found]

    def read(self, key: str, *, deadline: Deadline, offset: int = 0, limit: int = LARGEST_READ) -> SessionOutput:
        """What there is of a session's output, without waiting for more.

        Args:
            key: its id or name.
            offset: of the first byte that is wanted.
            limit: bytes, 1 to 1 MiB.
        """
        with self._call("session-read", {"id": key, "offset": offset, "limit": limit}, deadline) as call:
            fields = call.part("output", next=int)
            reader = StreamReader(limit)
            pieces: list[tuple[str, bytes]] = []
            with explained(call):
                while not reader.ended:
                    piece = reader.take(call.connection.receive())
                    pieces += [piece] if piece else []
            begin = fields.get("offset")
            start = begin if isinstance(begin, int) else offset
            return SessionOutput(tuple(pieces), start, int(fields["next"]), _session(call, fields.get("session")))

    def attach(self, key: str, *, deadline: Deadline, offset: int | None = None) -> Attachment:
        """Follow a session, and write to it. Leaving changes nothing.

        Args:
            key: its id or name.
            deadline: for attaching alone.
            offset: of the first byte that is wanted; None for the first that is kept.
        """
        body = {"id": key} | ({} if offset is None else {"offset": offset})
        call = self._call("session-attach", body, deadline, self._agent.heartbeat)
        fields = call.part("attached", id=str, offset=int)
        return Attachment(call, str(fields["id"]), int(fields["offset"]) if offset is None else offset)

    def kill(self, key: str, *, deadline: Deadline, signal: int | None = None, grace: float | None = None) -> bool:
        """End a session, or send it a signal; whether it was still running.

        Args:
            key: its id or name.
            signal: a number for its process group; None ends it (SIGTERM, in a terminal SIGHUP; then SIGKILL).
            grace: seconds (0 to 60) until SIGKILL; its own when None.

        Raises GuestRefusedError ``ended`` for a signal to one that has.
        """
        body = {"id": key} | {
            name: value for name, value in (("signal", signal), ("grace", grace)) if value is not None
        }
        with self._call("session-kill", body, deadline) as call:
            return bool(call.part("killed", was_running=bool)["was_running"])

    def _call(self, operation: str, body: t.Mapping[str, t.Any], deadline: Deadline, heartbeat: float = 0.0) -> Call:
        return self._agent.caller.call(operation, body, deadline, feature=_FEATURE, heartbeat=heartbeat)


def _session(call: Call, found: t.Any) -> Session:
    fields = call.checked(
        "session",
        found,
        id=str,
        kind=str,
        program=str,
        pid=int,
        started=(int, float),
        attached=int,
        first=int,
        next=int,
    )
    size, end = fields.get("terminal"), fields.get("end")
    if size is not None:
        call.checked("terminal", size, rows=int, columns=int)
    try:
        result = None if end is None else execution_of(call.checked("end", end))
    except GuestProtocolError as error:
        raise call.protocol_error(error.message) from None
    ended = fields.get("ended")
    return Session(
        id=fields["id"],
        name=str(fields["name"]) if fields.get("name") is not None else None,
        kind=fields["kind"],
        program=fields["program"],
        pid=fields["pid"],
        terminal=(size["rows"], size["columns"]) if size is not None else None,
        started=float(fields["started"]),
        ended=float(ended) if isinstance(ended, (int, float)) else None,
        result=result,
        attached=fields["attached"],
        first=fields["first"],
        next=fields["next"],
    )
