# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A command that is running, seen over its connection."""

from __future__ import annotations

import contextlib
import typing as t

from ..errors import GuestProtocolError, GuestRefusedError
from ..protocol.call import Call
from .stream import EventCallback, Execution, OutputCallback, Pieces, collect, execution_of, follow


class RunningExecution:
    """The output of a command while it runs. A context manager; leaving it early ends the command."""

    def __init__(self, call: Call, max_output: int) -> None:
        self._call = call
        self._max_output = max_output
        self._result: Execution | None = None
        if "started" not in call.answer:
            call.close()
            raise call.protocol_error("the answer has neither a started program nor an error")

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection, and with it a command that still runs."""
        self._call.close()

    def __iter__(self) -> t.Iterator[tuple[str, bytes]]:
        """``("stdout" or "stderr", bytes)`` as they arrive, cut anywhere, to the command's end."""
        with explained(self._call):
            end = yield from follow(self._call.connection.receive, self._max_output)
            self._result = execution_of(end)

    @property
    def result(self) -> Execution | None:
        """How it ended, without the output that the iteration gave; None before the iteration is over."""
        return self._result

    def finish(self, on_output: OutputCallback | None = None) -> Execution:
        """Read to the end, instead of iterating; the Execution has all output."""
        with explained(self._call):
            return collect(self._call.connection.receive, self._max_output, on_output)


@contextlib.contextmanager
def explained(call: Call) -> t.Iterator[None]:
    """A block in which a stream is read: its errors get the names of the agent and the operation."""
    try:
        yield
    except GuestProtocolError as error:
        raise error if error.object else call.protocol_error(error.message) from None
    except GuestRefusedError as error:
        if error.object:
            raise
        raise call.caller.refused(call.operation, {"kind": error.kind, "message": error.message}) from None


def followed(call: Call, on_event: EventCallback | None = None) -> Pieces:
    """The output of a retained program, piece by piece; returns the event of its end."""
    with explained(call):
        return (yield from follow(call.connection.receive, None, on_event))
