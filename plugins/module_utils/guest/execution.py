# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The stream of a running command: its input on the way in, its output and its end on the way out."""

from __future__ import annotations

import codecs
import dataclasses
import typing as t

from .errors import GuestProtocolError, GuestRefusedError
from .wire import (
    CHANNEL_EVENT,
    CHANNEL_STDERR,
    CHANNEL_STDIN,
    CHANNEL_STDOUT,
    END_OF_STREAM,
    decode_json,
    encode_channel,
)

OutputCallback = t.Callable[[str, bytes], None]

_STDIN_PART = 64 * 1024
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

    @property
    def stdout_text(self) -> str:
        """``stdout`` as UTF-8 text."""
        return _text(self.stdout, self.truncated_stdout)

    @property
    def stderr_text(self) -> str:
        """``stderr`` as UTF-8 text."""
        return _text(self.stderr, self.truncated_stderr)


def _text(data: bytes, truncated: bool) -> str:
    """``data`` with wrong bytes replaced; a character that only the truncation cut in two is left out."""
    return codecs.getincrementaldecoder("utf-8")("replace").decode(data, final=not truncated)


def stdin_frames(data: bytes) -> t.Iterator[bytes]:
    """``data`` as stream frames of 64 KiB, and the end of the stream."""
    for start in range(0, len(data), _STDIN_PART):
        yield encode_channel(CHANNEL_STDIN, data[start : start + _STDIN_PART])
    yield END_OF_STREAM


def collect(receive: t.Callable[[], bytes], max_output: int, on_output: OutputCallback | None = None) -> Execution:
    """Read a command's stream to its end.

    ``receive`` gives the next frame. Raises GuestProtocolError for a stream that is none, and GuestRefusedError when
    the agent gives up on the command; both without an object, which the caller knows.
    """
    output = {CHANNEL_STDOUT: bytearray(), CHANNEL_STDERR: bytearray()}
    end: dict[str, t.Any] | None = None
    while frame := receive():
        channel, data = frame[0], frame[1:]
        if channel == CHANNEL_EVENT:
            end = _event(data) or end
        elif channel in output:
            kept = output[channel]
            kept += data
            if len(kept) > max_output:
                raise GuestProtocolError(f"{_NAMES[channel]} is longer than the {max_output} bytes that were asked for")
            if on_output is not None and data:
                on_output(_NAMES[channel], data)
        else:
            raise GuestProtocolError(f"a stream frame is on channel {channel}, which means nothing here")
    if end is None:
        raise GuestProtocolError("the stream ended without saying how the command did")
    return _execution(end, bytes(output[CHANNEL_STDOUT]), bytes(output[CHANNEL_STDERR]))


def _event(data: bytes) -> dict[str, t.Any] | None:
    """The ``end`` event, or None for an event that this client does not know."""
    event = decode_json(data)
    if "error" in event:
        error = event["error"] if isinstance(event["error"], dict) else {}
        raise GuestRefusedError(str(error.get("message", "")), kind=str(error.get("kind", "internal")))
    end = event.get("end")
    if end is None:
        return None
    if not isinstance(end, dict):
        raise GuestProtocolError("the event that ends a command is not an object")
    return end


def _execution(end: dict[str, t.Any], stdout: bytes, stderr: bytes) -> Execution:
    code, signal = end.get("exit"), end.get("signal")
    numbers = [value for value in (code, signal) if isinstance(value, int) and not isinstance(value, bool)]
    if len(numbers) != 1:
        raise GuestProtocolError("the event that ends a command says neither its exit code nor its signal")
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
    )


def _count(end: dict[str, t.Any], name: str) -> int:
    value = end.get(name)
    if not isinstance(value, int) or isinstance(value, bool) or value < 0:
        raise GuestProtocolError(f"the event that ends a command has no count {name}")
    return value
