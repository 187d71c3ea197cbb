# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""session-start, session-list, session-read, session-kill; and cancel, which is the last for an execution."""

from __future__ import annotations

from attach import parse_signal, parse_size, pid_of
from command import GRACE_LIMIT, Command
from fields import check_fields, parse_name, parse_number, parse_seconds, require
from program import BACKGROUND, TERMINAL
from stream import CHUNK
from wire import END_OF_STREAM, encode_channel, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from program import Program
    from wire import Peer

#: Bytes that one read answers with, at most.
READ_LIMIT = 1024 * 1024
#: Seconds that a slow client may take over them.
READ_TIME = 60.0

_START = frozenset(("id", "name", "terminal"))
_KILL = frozenset(("id", "grace", "signal"))
_READ = frozenset(("id", "offset", "limit"))


def start(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """Start a session, in a terminal of a size or in the background."""
    require("max_output" not in body, "a session keeps the end of its output, however much there is")
    command = Command(body, context.settings, more=_START)
    key, name, size = parse_name(body, "id"), parse_name(body, "name"), body.get("terminal")
    if size is None:
        program = context.programs.start(BACKGROUND, command, key, name)
    else:
        from terminal import start_in_terminal

        program = start_in_terminal(context, command, parse_size(size), key, name)
    peer.send(encode_json({"session": summary(program)}))


def list_all(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """Every session and detached execution that is known, oldest first."""
    check_fields(body, frozenset(), "session-list")
    peer.send(encode_json({"sessions": [summary(program) for program in context.programs.all()]}))


def read(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """What there is of a program's output from ``offset`` on, without waiting for more."""
    check_fields(body, _READ, "session-read")
    program = find(context, body)
    first, following = program.span()
    offset = parse_number(body, "offset", 0, following, first)
    left = parse_number(body, "limit", 1, READ_LIMIT, READ_LIMIT)
    frames, begin = [], None
    while left > 0:
        start, channel, data = program.read(offset, min(left, CHUNK))
        begin = start if begin is None else begin
        if not data:
            break
        frames.append(encode_channel(channel, data))
        offset, left = start + len(data), left - len(data)
    about = {"output": {"offset": begin, "next": offset, "session": summary(program)}}
    peer.send(b"".join([encode_json(about), *frames, END_OF_STREAM]), READ_TIME)


def kill(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """With a signal, send it to the process group; without, end all of it, with a grace."""
    check_fields(body, _KILL, "to kill")
    program = find(context, body)
    running = program.end is None
    if body.get("signal") is not None:
        program.send_signal(parse_signal(body["signal"]))
    else:
        program.stop(parse_seconds(body, "grace", GRACE_LIMIT))
    peer.send(encode_json({"killed": {"id": program.id, "was_running": running}}))


def find(context: Context, body: dict[str, Any]) -> Program:
    key = parse_name(body, "id")
    require(key is not None, "an id is needed")
    return context.programs.find(str(key))


def summary(program: Program) -> dict[str, Any]:
    """A program in a few fields. Of its command only the first word, for the others may be secrets."""
    first, following = program.span()
    size = program.size
    return {
        "id": program.id,
        "name": program.name,
        "kind": program.kind,
        "program": program.command.program,
        "pid": pid_of(program),
        "terminal": {"rows": size[0], "columns": size[1]} if program.kind == TERMINAL and size else None,
        "started": round(program.started_at, 3),
        "ended": program.ended_at and round(program.ended_at, 3),
        "end": program.end,
        "attached": program.followers,
        "first": first,
        "next": following,
    }
