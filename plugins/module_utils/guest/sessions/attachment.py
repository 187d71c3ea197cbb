# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A program that is seen and written to over a connection: in a terminal of its own, or a session."""

from __future__ import annotations

import typing as t

from ...deadline import Deadline
from ..agent import Agent
from ..errors import GuestUnreachableError
from ..execution.request import command_body
from ..execution.running import explained
from ..execution.stream import Execution, StreamReader, execution_of
from ..protocol.call import Call
from ..protocol.wire import CHANNEL_STDIN, END_OF_STREAM, encode_channel, encode_event

_PART = 64 * 1024


class Attachment:
    """Both ways to one program. A context manager; one thread may read while another writes.

    Attributes:
        id: of the program.
        offset: of the byte of its output that comes next.
        lost: bytes of its output that the agent no longer had when they were asked for.
    """

    def __init__(self, call: Call, key: str, offset: int) -> None:
        self._call = call
        self._reader = StreamReader(on_event=self._on_event)
        self.id = key
        self.offset = offset
        self.lost = 0

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """Leave. A session goes on; a terminal of ``open_terminal`` hangs up, and its program is ended."""
        self._call.close()

    def read(self, deadline: Deadline) -> tuple[str, bytes] | None:
        """The next output, as ``("stdout" or "stderr", bytes)`` cut anywhere; None at its end.

        Raises GuestTimeoutError when there was none in time, after which one may read again; GuestUnreachableError
        when the connection or its heartbeat is lost.
        """
        with explained(self._call):
            while not self._reader.ended:
                piece = self._reader.take(self._call.connection.receive(deadline))
                if piece is not None:
                    self.offset += len(piece[1])
                    return piece
        return None

    @property
    def result(self) -> Execution | None:
        """How the program ended, without its output; None before ``read`` has come to its end."""
        if not self._reader.ended:
            return None
        with explained(self._call):
            return execution_of(self._reader.end)

    def write(self, data: bytes, deadline: Deadline) -> None:
        """Input for the program, waiting while it takes none. Raises as ``read`` does."""
        for start in range(0, len(data), _PART):
            self._send(encode_channel(CHANNEL_STDIN, data[start : start + _PART]), deadline)

    def end_input(self, deadline: Deadline) -> None:
        """Close the program's standard input. A terminal has no end of input: write b"\\x04" there."""
        self._send(END_OF_STREAM, deadline)

    def resize(self, rows: int, columns: int, deadline: Deadline) -> None:
        """Give the terminal another size (1 to 65535 each)."""
        self._send(encode_event({"resize": {"rows": rows, "columns": columns}}), deadline)

    def send_signal(self, number: int, deadline: Deadline) -> None:
        """Signal the program's process group; in a terminal, whatever runs in front."""
        self._send(encode_event({"signal": number}), deadline)

    def _send(self, frame: bytes, deadline: Deadline) -> None:
        if not self._call.connection.write(frame, deadline):
            peer = self._call.caller.peer
            raise GuestUnreachableError(
                f"{self._call.operation} at {peer.name}: the connection was closed during a write.",
                sent=True,
                object=peer.name,
                next_step="Read the last output of the program; it may have ended.",
            )

    def _on_event(self, event: dict[str, t.Any]) -> None:
        if "refused" in event:
            raise self._call.caller.refused(self._call.operation, event["refused"])
        lost = event.get("lost")
        if lost is not None:
            gone = int(self._call.checked("lost", lost, bytes=int)["bytes"])
            self.offset += gone
            self.lost += gone


def open_terminal(
    agent: Agent,
    argv: t.Sequence[str],
    *,
    deadline: Deadline,
    rows: int = 24,
    columns: int = 80,
    **options: t.Any,
) -> Attachment:
    """Start a program in a terminal that lives as long as its connection.

    Args:
        argv: program and arguments, for example ``["/bin/bash", "-l"]``; no shell is involved unless it is one.
        deadline: for the start alone.
        options: ``cwd``, ``env``, ``timeout`` and ``grace`` of ``Agent.execute``. ``TERM`` is xterm-256color unless
            ``env`` has another one.

    Raises GuestUnsupportedError for an agent without the feature ``open-terminal``, and what ``Agent.execute`` raises.
    """
    body, _following = command_body(argv, **options)
    body["terminal"] = {"rows": rows, "columns": columns}
    call = agent.caller.call("open-terminal", body, deadline, feature="open-terminal", heartbeat=agent.heartbeat)
    return Attachment(call, str(call.part("started", id=str)["id"]), 0)
