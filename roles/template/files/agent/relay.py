# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Everything between a running command and whom it runs for, in one loop that never blocks.

Bytes go both ways at once, each side is held back by the other (what cannot be passed on is not read), and the clocks
run on meanwhile: neither a client that does not read nor a command that does not can delay a timeout.

It runs for an owner: a client on its connection (``AttachedClient``), or a ``Program``, which retains the output for
clients that connect later.
"""

from __future__ import annotations

import os
import select
import time

from children import exit_of
from ending import Ending
from memory import oom_kills
from stream import CHUNK, HIGH_WATER
from watch import Watch
from wire import STDERR, STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any, Union

    from children import Child
    from client import AttachedClient
    from command import Command
    from program import Program

    Owner = Union[AttachedClient, Program]

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
        self, owner: Owner, child: Child, command: Command, ending: Ending, close: Callable[[int], None]
    ) -> None:
        self._owner = owner
        self._child = child
        self._close = close
        self._ending = ending
        self._input = bytearray(command.stdin or b"")
        self._input_open = command.stdin_follows
        self._feed: int | None = None
        self._outputs: dict[int, Output] = {}
        self._watch = Watch()
        self._started = time.monotonic()
        self._timeout_at = None if command.timeout is None else self._started + command.timeout
        self._timed_out = False
        self._drained_at: float | None = None

    def run(self, ended: int, feed: int | None, outputs: list[Output]) -> None:
        """Until the command has ended, its output is passed on, and its owner has the last word.

        Args:
            ended: readable when the command has ended.
            feed: our end of its standard input, or None.
            outputs: our ends of its output.
        """
        self._outputs = {output.fd: output for output in outputs}
        if feed is not None:
            os.set_blocking(feed, False)
            self._feed = feed
            self._write_input()
        while not self._finished(time.monotonic()):
            self._turn(ended)
        self._read_rest()
        self._owner.finish(self._end(outputs), self._input_open)
        while not self._owner.served:
            self._turn(ended)
        self._owner.part()

    def _finished(self, now: float) -> bool:
        if self._ending.given_up(now):
            return True
        if self._child.status is None or self._ending.under_way:
            return False
        return not self._outputs or (self._drained_at is not None and now >= self._drained_at)

    def _turn(self, ended: int) -> None:
        """Wait for whatever comes first, and act on it."""
        for fd, events in self._watch.wait(self._wanted(ended), self._moments()):
            if fd == ended:
                self._drained_at = time.monotonic() + DRAIN
            elif fd == self._owner.fd:
                self._take(*self._owner.read_input(events))
            elif fd == self._feed:
                self._write_input()
            elif fd in self._outputs:
                self._read_output(self._outputs[fd])
        self._keep_time(time.monotonic())

    def _wanted(self, ended: int) -> dict[int, int]:
        wanted: dict[int, int] = {}
        if self._drained_at is None:
            wanted[ended] = select.POLLIN
        if not self._owner.full:
            wanted.update((fd, select.POLLIN) for fd in self._outputs)
        if self._feed is not None and self._input:
            wanted[self._feed] = select.POLLOUT
        if not self._owner.gone:
            wanted[self._owner.fd] = self._owner.events(len(self._input) < HIGH_WATER)
        return wanted

    def _moments(self) -> list[float | None]:
        """When a clock has to be looked at."""
        drained_at = self._drained_at if self._outputs and not self._ending.under_way else None
        return [self._ending.moment, drained_at, self._timeout_at, self._owner.moment]

    def _keep_time(self, now: float) -> None:
        if self._child.status is not None:
            self._timeout_at = None
        if self._timeout_at is not None and now >= self._timeout_at:
            self._timeout_at = None
            self._timed_out = True
            self._ending.begin()
        self._owner.keep_time(now)
        if self._owner.gone:
            # A command ends with its client.
            self._ending.begin(self._owner.grace)
        self._ending.keep_time(now)

    def _take(self, data: bytes, last: bool) -> None:
        if last:
            self._input_open = False
        elif self._input_open and self._feed is not None:
            self._input += data
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
            self._watch.forget(self._feed)
            self._close(self._feed)
            self._feed = None

    def _read_output(self, output: Output) -> int:
        """Pass one piece on; its size, 0 when there is nothing now or at all."""
        try:
            data = os.read(output.fd, CHUNK)
        except BlockingIOError:
            return 0
        except OSError:
            # The other side of a terminal is closed.
            data = b""
        if not data:
            del self._outputs[output.fd]
        kept = output.keep(data)
        if kept and not self._owner.write_output(output.channel, kept):
            output.dropped += len(kept)
        return len(data)

    def _read_rest(self) -> None:
        """What the command wrote before it ended, also when the client was too slow for it until now."""
        for output in list(self._outputs.values()):
            left = PIPE_SIZE
            while left > 0:
                size = self._read_output(output)
                left = left - size if size else 0
        self._outputs.clear()

    def _end(self, outputs: list[Output]) -> dict[str, Any]:
        self._drained_at = time.monotonic()
        dropped = {output.channel: output.dropped for output in outputs}
        return {
            **exit_of(self._child.status),
            "timed_out": self._timed_out,
            "dropped_stdout": dropped[STDOUT],
            "dropped_stderr": dropped.get(STDERR, 0),
            "duration_ms": int((self._drained_at - self._started) * 1000),
            # Only when true: clients of an older version do not have these fields.
            **({"stopped": True} if self._child.stopped else {}),
            **({"out_of_memory": True} if self._out_of_memory() else {}),
        }

    def _out_of_memory(self) -> bool:
        """Whether the command ended by SIGKILL, as itself or as a shell reports it, and the kernel killed meanwhile."""
        status = self._child.status
        killed = status is not None and list(exit_of(status).values()) in ([None, 9], [137, None])
        return killed and not self._child.stopped and not self._timed_out and oom_kills() > self._child.oom_kills_before
