# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Everything between a running command and its client, in one loop that never blocks.

Bytes go both ways at once, each side is held back by the other (what cannot be passed on is not read), and the clocks
run on meanwhile: neither a client that does not read nor a command that does not can keep a timeout from being kept.
"""

from __future__ import annotations

import os
import select
import signal
import time

from children import exit_of
from ending import Ending
from stream import CHUNK, HIGH_WATER
from wire import END_OF_STREAM, STDERR, STDIN, STDOUT, encode_channel, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from children import Child, Children
    from command import Command
    from stream import Stream

#: Seconds that output is still awaited after the command has ended, when a process that it left holds the pipe.
DRAIN = 0.1
#: What the command itself wrote is in the pipe when it has ended; no pipe holds more (/proc/sys/fs/pipe-max-size).
PIPE_SIZE = 1024 * 1024


class Output:
    """One output stream: the first ``limit`` bytes are passed on, the rest is counted."""

    def __init__(self, channel: int, fd: int, limit: int) -> None:
        self.channel = channel
        self.fd = fd
        self.left = limit
        self.dropped = 0
        os.set_blocking(fd, False)

    def keep(self, data: bytes) -> bytes:
        kept = data[: self.left]
        self.left -= len(kept)
        self.dropped += len(data) - len(kept)
        return kept


class Relay:
    """The loop of one command. ``close`` takes the descriptor of its standard input when that has ended."""

    def __init__(
        self, stream: Stream, children: Children, child: Child, command: Command, close: Callable[[int], None]
    ) -> None:
        self._stream = stream
        self._child = child
        self._close = close
        self._max_output = command.max_output
        self._ending = Ending(children, child, command.grace)
        self._input = bytearray(command.stdin or b"")
        self._input_open = command.stdin_follows
        self._feed: int | None = None
        self._outputs: dict[int, Output] = {}
        self._poll = select.poll()
        self._watched: dict[int, int] = {}
        self._started = time.monotonic()
        self._timeout_at = None if command.timeout is None else self._started + command.timeout
        self._timed_out = False
        self._drained_at: float | None = None

    def run(self, bell: int, feed: int | None, out: int, err: int) -> None:
        """Until the command has ended, its output is passed on, and the client has its last word.

        Args:
            bell: readable when the command has ended.
            feed: our end of its standard input, or None.
            out, err: our ends of its standard output and error.
        """
        stdout, stderr = (Output(STDOUT, out, self._max_output), Output(STDERR, err, self._max_output))
        self._outputs = {out: stdout, err: stderr}
        if feed is not None:
            os.set_blocking(feed, False)
            self._feed = feed
            self._write_input()
        while not self._finished(time.monotonic()):
            self._turn(bell)
        self._read_rest()
        self._say_end(stdout.dropped, stderr.dropped)
        while not (self._stream.empty or self._stream.gone):
            self._turn(bell)
        if self._input_open and not self._stream.gone:
            self._stream.linger()

    def _finished(self, now: float) -> bool:
        if self._ending.given_up(now):
            return True
        if self._child.status is None or self._ending.under_way:
            return False
        return not self._outputs or (self._drained_at is not None and now >= self._drained_at)

    def _turn(self, bell: int) -> None:
        """Wait for whatever comes first, and act on it."""
        self._watch(bell)
        moment = self._next_moment()
        wait = None if moment is None else max(0.0, moment - time.monotonic()) * 1000
        for fd, events in self._poll.poll(wait):
            if fd == bell:
                self._drained_at = time.monotonic() + DRAIN
            elif fd == self._stream.fd:
                self._take(self._stream.receive(events))
            elif fd == self._feed:
                self._write_input()
            elif fd in self._outputs:
                self._read_output(self._outputs[fd])
        self._keep_time(time.monotonic())

    def _watch(self, bell: int) -> None:
        """Ask the kernel only about what can be acted on: a pipe that may not be read now would wake us for ever."""
        wanted: dict[int, int] = {}
        if self._drained_at is None:
            wanted[bell] = select.POLLIN
        if not self._stream.full:
            wanted.update((fd, select.POLLIN) for fd in self._outputs)
        if self._feed is not None and self._input:
            wanted[self._feed] = select.POLLOUT
        if not self._stream.gone:
            wanted[self._stream.fd] = self._stream.events(reading=len(self._input) < HIGH_WATER)
        for fd in self._watched.keys() - wanted.keys():
            self._poll.unregister(fd)
        for fd, events in wanted.items():
            if self._watched.get(fd) != events:
                self._poll.register(fd, events)
        self._watched = wanted

    def _next_moment(self) -> float | None:
        """When a clock has to be looked at."""
        drained_at = self._drained_at if self._outputs and not self._ending.under_way else None
        moments = [self._ending.moment, drained_at, self._timeout_at, self._stream.stalls_at]
        return min((moment for moment in moments if moment is not None), default=None)

    def _keep_time(self, now: float) -> None:
        if self._child.status is not None:
            self._timeout_at = None
        if self._timeout_at is not None and now >= self._timeout_at:
            self._timeout_at = None
            self._timed_out = True
            self._ending.begin()
        stalls_at = self._stream.stalls_at
        if stalls_at is not None and now >= stalls_at:
            self._stream.leave()
        if self._stream.gone:
            # A command runs only for a client.
            self._ending.begin()
        self._ending.keep_time(now)

    def _take(self, frame: bytes | None) -> None:
        """Input for the command, or its end (a frame of length zero)."""
        if frame is None:
            return
        if frame and frame[0] != STDIN:
            # The client speaks of things that we do not know; to go on would be to guess.
            self._stream.leave()
        elif not frame:
            self._input_open = False
        elif self._input_open and self._feed is not None:
            self._input += memoryview(frame)[1:]
        self._write_input()

    def _write_input(self) -> None:
        try:
            while self._feed is not None and self._input:
                del self._input[: os.write(self._feed, self._input)]
        except BlockingIOError:
            return
        except OSError:
            # The command reads no more, which is its right. What still comes is thrown away.
            self._input.clear()
            self._end_input()
        if not self._input_open:
            self._end_input()

    def _end_input(self) -> None:
        if self._feed is not None:
            if self._watched.pop(self._feed, None) is not None:
                # Before it is closed, because its number may soon be another's.
                self._poll.unregister(self._feed)
            self._close(self._feed)
            self._feed = None

    def _read_output(self, output: Output) -> int:
        """Pass one piece on; its size, 0 when there is nothing now or at all."""
        try:
            data = os.read(output.fd, CHUNK)
        except BlockingIOError:
            return 0
        if not data:
            del self._outputs[output.fd]
        kept = output.keep(data)
        if kept:
            self._stream.send(encode_channel(output.channel, kept))
        return len(data)

    def _read_rest(self) -> None:
        """What the command wrote before it ended, also when the client was too slow for it until now."""
        for output in list(self._outputs.values()):
            left = PIPE_SIZE
            while left > 0:
                size = self._read_output(output)
                left = left - size if size else 0
        self._outputs.clear()

    def _say_end(self, dropped_stdout: int, dropped_stderr: int) -> None:
        status = self._child.status
        self._drained_at = time.monotonic()
        end = {
            **(exit_of(status) if status is not None else {"exit": None, "signal": int(signal.SIGKILL)}),
            "timed_out": self._timed_out,
            "dropped_stdout": dropped_stdout,
            "dropped_stderr": dropped_stderr,
            "duration_ms": int((self._drained_at - self._started) * 1000),
        }
        self._stream.send(encode_event({"end": end}) + END_OF_STREAM)
