# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The stream of a running command: its input on the way in, its output and its end on the way out."""

from __future__ import annotations

import codecs
import dataclasses
import typing as t

from ...errors import SandboxError
from ..errors import GuestProtocolError, GuestRefusedError
from ..protocol.wire import CHANNEL_EVENT, CHANNEL_STDERR, CHANNEL_STDOUT, decode_json

OutputCallback = t.Callable[[str, bytes], None]

_NAMES = {CHANNEL_STDOUT: "stdout", CHANNEL_STDERR: "stderr"}


@dataclasses.dataclass(frozen=True)
class Execution:
    """How a command ended.

    Attributes:
        rc: exit code; 128 + signal when a signal ended it, as shells count.
        signal: number of the signal that ended it, or None.
        stdout, stderr: the first ``max_output`` bytes of each stream, unchanged.
        timed_out: whether the agent ended it because its ``timeout`` had passed.
        truncated_stdout, truncated_stderr: whether bytes after those were dropped.
        duration: seconds from start to end, on the agent's clock.
        dropped_stdout, dropped_stderr: how many bytes were dropped.
        stopped: whether everything in its pod was being ended when it did, because the pod was deleted, or its
            workspace suspended; False from an older agent.
        out_of_memory: whether it was killed, and the kernel killed a process because the container's memory limit was
            reached while it ran; False where the kernel does not show that.
    """

    rc: int
    signal: int | None
    stdout: bytes
    stderr: bytes
    timed_out: bool
    truncated_stdout: bool
    truncated_stderr: bool
    duration: float
    dropped_stdout: int = 0
    dropped_stderr: int = 0
    stopped: bool = False
    out_of_memory: bool = False

    @property
    def cut_short(self) -> bool:
        """Whether it is known to have been ended with its pod, so that its exit code is not its own result."""
        return self.stopped and self.rc != 0

    @property
    def stdout_text(self) -> str:
        """``stdout`` as UTF-8 text."""
        return _text(self.stdout, self.truncated_stdout)

    @property
    def stderr_text(self) -> str:
        """``stderr`` as UTF-8 text."""
        return _text(self.stderr, self.truncated_stderr)


class CommandFailedError(SandboxError):
    """A program that had to succeed ended with another exit code than 0, or ran into its timeout.

    Attributes:
        execution: how it ended, with its output.
    """

    reason = "non-zero-rc"

    def __init__(self, message: str, *, execution: Execution, **common: t.Any) -> None:
        super().__init__(message, **common)
        self.execution = execution


def _text(data: bytes, truncated: bool) -> str:
    """``data`` with wrong bytes replaced; a character that only the truncation cut in two is left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not truncated)


def collect(receive: t.Callable[[], bytes], max_output: int, on_output: OutputCallback | None = None) -> Execution:
    """Read a command's stream to its end.

    ``receive`` returns the next frame. Raises GuestProtocolError for a stream that is not valid, and GuestRefusedError
    when the agent ends it with an error; both without an object, which the caller adds.
    """
    output = {"stdout": bytearray(), "stderr": bytearray()}
    pieces = follow(receive, max_output)
    while True:
        try:
            name, data = next(pieces)
        except StopIteration as stop:
            return execution_of(stop.value, bytes(output["stdout"]), bytes(output["stderr"]))
        output[name] += data
        if on_output is not None:
            on_output(name, data)


Pieces = t.Generator[tuple[str, bytes], None, dict[str, t.Any]]
EventCallback = t.Callable[[dict[str, t.Any]], None]


def follow(receive: t.Callable[[], bytes], max_output: int | None, on_event: EventCallback | None = None) -> Pieces:
    """Give a command's output piece by piece, as ``("stdout" or "stderr", bytes)``, and return the event of its end.

    Args:
        max_output: bytes of each stream that an agent may send; None when there is no bound.
        on_event: called with every event that neither ends nor refuses.
    """
    reader = StreamReader(max_output, on_event)
    while not reader.ended:
        piece = reader.take(receive())
        if piece is not None:
            yield piece
    return reader.end


class StreamReader:
    """Makes pieces of output out of the frames of a stream."""

    def __init__(self, max_output: int | None = None, on_event: EventCallback | None = None) -> None:
        self._max_output = max_output
        self._on_event = on_event
        self._seen = dict.fromkeys(_NAMES, 0)
        self._end: dict[str, t.Any] | None = None
        #: Whether the stream is over.
        self.ended = False

    @property
    def end(self) -> dict[str, t.Any]:
        """The event of the command's end; GuestProtocolError when there was none."""
        if self._end is None:
            raise GuestProtocolError("the stream ended without the event that ends a command")
        return self._end

    def take(self, frame: bytes) -> tuple[str, bytes] | None:
        """The name of a stream and its bytes, or None when the frame was something else."""
        if not frame:
            self.ended = True
            return None
        channel, data = frame[0], frame[1:]
        if channel == CHANNEL_EVENT:
            event = _event(data)
            self._end = event.get("end", self._end)
            if self._on_event is not None:
                self._on_event(event)
            return None
        name = _NAMES.get(channel)
        if name is None:
            raise GuestProtocolError(f"a stream frame is on channel {channel}, which is not a valid channel here")
        self._seen[channel] += len(data)
        if self._max_output is not None and self._seen[channel] > self._max_output:
            raise GuestProtocolError(f"{name} is longer than the {self._max_output} bytes that were asked for")
        return (name, data) if data else None


def _event(data: bytes) -> dict[str, t.Any]:
    """An event; GuestRefusedError when it is an error."""
    event = decode_json(data)
    if "error" in event:
        error = event["error"] if isinstance(event["error"], dict) else {}
        raise GuestRefusedError(str(error.get("message", "")), kind=str(error.get("kind", "internal")))
    if not isinstance(event.get("end", {}), dict):
        raise GuestProtocolError("the event that ends a command is not an object")
    return event


def execution_of(end: dict[str, t.Any], stdout: bytes = b"", stderr: bytes = b"") -> Execution:
    """The Execution that an ``end`` event describes; GuestProtocolError when it is not valid."""
    code, signal = end.get("exit"), end.get("signal")
    numbers = [value for value in (code, signal) if isinstance(value, int) and not isinstance(value, bool)]
    if len(numbers) != 1:
        raise GuestProtocolError("the event that ends a command has neither an exit code nor a signal")
    dropped_stdout, dropped_stderr = _count(end, "dropped_stdout"), _count(end, "dropped_stderr")
    return Execution(
        rc=numbers[0] if signal is None else 128 + numbers[0],
        signal=signal,
        stdout=stdout,
        stderr=stderr,
        timed_out=end.get("timed_out") is True,
        truncated_stdout=dropped_stdout > 0,
        truncated_stderr=dropped_stderr > 0,
        duration=_count(end, "duration_ms") / 1000,
        dropped_stdout=dropped_stdout,
        dropped_stderr=dropped_stderr,
        stopped=end.get("stopped") is True,
        out_of_memory=end.get("out_of_memory") is True,
    )


def _count(end: dict[str, t.Any], name: str) -> int:
    value = end.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise GuestProtocolError(f"the event that ends a command has no count {name}")
    return value
