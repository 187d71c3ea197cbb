# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The shapes of the results about sessions, and of their output."""

from __future__ import annotations

import codecs
import datetime
import typing as t

from ...guest.sessions.sessions import Session, SessionOutput
from ...lifecycle.timestamps import timestamp


def session_result(session: Session) -> dict[str, t.Any]:
    """A session as the task returns it."""
    end = session.result
    return {
        "id": session.id,
        "name": session.name,
        "kind": session.kind,
        "program": session.program,
        "pid": session.pid,
        "running": session.running,
        "started_at": _moment(session.started),
        "ended_at": None if session.ended is None else _moment(session.ended),
        "rc": None if end is None else end.rc,
        "signal": None if end is None else end.signal,
        "timed_out": end is not None and end.timed_out,
        "attached": session.attached,
        "first": session.first,
        "next": session.next,
    }


def output_result(output: SessionOutput, asked: int) -> dict[str, t.Any]:
    """A part of a session's output as text, and where to read on.

    A character of which only the first bytes are there is left for the next read, unless it would be all, or the
    program has ended.
    """
    pieces = list(output.pieces)
    left = 0
    if pieces and output.session.running:
        left = _begun(pieces[-1][1])
        if left == sum(len(data) for _name, data in pieces):
            left = 0
    if left:
        pieces[-1] = (pieces[-1][0], pieces[-1][1][:-left])
    said = {name: b"".join(data for of, data in pieces if of == name) for name in ("stdout", "stderr")}
    return {
        **{name: data.decode("utf-8", "replace") for name, data in said.items()},
        "offset": output.next - left,
        "lost": max(0, output.offset - asked),
    }


def _begun(data: bytes) -> int:
    """How many bytes at the end of ``data`` are the beginning of a character."""
    decoder = codecs.getincrementaldecoder("utf-8")("replace")
    decoder.decode(data)
    return len(decoder.getstate()[0])


def _moment(seconds: float) -> str:
    return timestamp(datetime.datetime.fromtimestamp(seconds, datetime.UTC))
