# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""attach, and everything else that shows a kept program to a client on its connection."""

from __future__ import annotations

import json
import os
import select
import signal
import time

from command import DEFAULT_MAX_OUTPUT, Command
from execute import Descriptors
from fields import check_fields, is_whole, parse_name, parse_number, require
from program import EXECUTION
from stream import CHUNK, Stream
from watch import Watch
from wire import END_OF_STREAM, EVENT, STDIN, Refused, encode_channel, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from program import Program
    from wire import Peer

#: Bytes of each stream of an execution that are kept for clients to come, at most.
DETACHED_OUTPUT = 16 * 1024 * 1024
#: Rows and columns of the largest terminal.
LARGEST_SIZE = 0xFFFF

_DETACHED = frozenset(("detach", "id"))
_ATTACH = frozenset(("id", "offset"))


def execute_detached(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """Start a command that outlives its connection, and show it as ``attach`` does."""
    require(body["detach"] is True, "detach is true or false")
    parse_number(body, "max_output", 0, DETACHED_OUTPUT, DEFAULT_MAX_OUTPUT)
    command = Command(body, context.settings, more=_DETACHED)
    require(not command.stdin_follows, "a detached execution takes its input with the request")
    program = context.programs.start(EXECUTION, command, parse_name(body, "id"))
    peer.begin({"started": {"pid": pid_of(program), "id": program.id}})
    send_output(program, Stream(peer), 0)


def attach(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """Show a program's output from ``offset`` on, to its end. Whoever leaves changes nothing."""
    check_fields(body, _ATTACH, "attach")
    key = parse_name(body, "id")
    require(key is not None, "attach needs an id")
    program = context.programs.find(str(key))
    first, following = program.span()
    offset = parse_number(body, "offset", 0, following, first)
    about = {"id": program.id, "kind": program.kind, "pid": pid_of(program), "offset": max(offset, first)}
    peer.begin({"attached": about})
    send_output(program, Stream(peer), offset)


def pid_of(program: Program) -> int:
    return program.child.pid if program.child is not None else 0


def send_output(program: Program, stream: Stream, offset: int, holds: bool = False) -> None:
    """Until the program's end has been said, or the client has left.

    Args:
        holds: the program waits for this client instead of getting ahead of it.
    """
    descriptors = Descriptors()
    try:
        wakeup, waker = descriptors.event_fds()
        program.follow(waker, holds)
        try:
            OutputSender(program, stream, offset, wakeup, waker).run()
        finally:
            program.unfollow(waker)
    finally:
        descriptors.close_all()


class OutputSender:
    """The loop of one client."""

    def __init__(self, program: Program, stream: Stream, offset: int, wakeup: int, waker: int) -> None:
        self._program = program
        self._stream = stream
        self._offset = offset
        self._wakeup = wakeup
        self._waker_fd = waker
        self._watch = Watch()
        self._end_sent = False

    def run(self) -> None:
        while not self._stream.gone and not (self._end_sent and self._stream.empty):
            self._send_pieces()
            wanted = {self._stream.fd: self._stream.events(not self._program.input_full)}
            if not self._end_sent:
                wanted[self._wakeup] = select.POLLIN
            for fd, events in self._watch.wait(wanted, [self._stream.moment]):
                if fd == self._wakeup:
                    os.read(self._wakeup, 4096)
                else:
                    self._take(self._stream.receive(events))
            self._stream.keep_time(time.monotonic())

    def _send_pieces(self) -> None:
        """As much of the output as the client takes, and after the last of it the end."""
        while not (self._stream.full or self._end_sent or self._stream.gone):
            # Before the output is looked at: what comes after the end was said is nothing.
            end = self._program.end
            start, channel, data = self._program.read(self._offset, CHUNK)
            if start > self._offset:
                self._stream.send(encode_event({"lost": {"offset": self._offset, "bytes": start - self._offset}}))
            self._offset = start + len(data)
            if data:
                self._stream.send(encode_channel(channel, data))
            elif end is None:
                return
            else:
                self._end_sent = True
                # Before it can know: who asks then how many follow is not one of them.
                self._program.unfollow(self._waker_fd)
                self._stream.send(encode_event({"end": end}) + END_OF_STREAM)

    def _take(self, frame: bytes | None) -> None:
        if frame is None:
            return
        if not frame:
            self._program.end_input()
        elif frame[0] == STDIN:
            self._program.write(frame[1:])
        elif frame[0] == EVENT:
            self._act(frame[1:])
        else:
            self._stream.leave()

    def _act(self, event: bytes) -> None:
        """A new size of the terminal, or a signal. Of an event that cannot be honoured the client is told so."""
        try:
            apply_event(self._program, event)
        except Refused as refused:
            self._stream.send(encode_event({"refused": refused.answer()["error"]}))


def apply_event(program: Program, event: bytes) -> None:
    try:
        value = json.loads(event)
    except (ValueError, RecursionError):
        value = None
    require(isinstance(value, dict) and len(value) == 1, "an event is an object of one field")
    if "resize" in value:
        program.resize(*parse_size(value["resize"]))
    elif "signal" in value:
        program.send_signal(parse_signal(value["signal"]))
    else:
        require(False, "the events that a client sends are resize and signal")


def parse_size(size: Any) -> tuple[int, int]:
    require(isinstance(size, dict) and set(size) == {"rows", "columns"}, "a size has rows and columns")
    numbers = [size["rows"], size["columns"]]
    require(all(is_whole(n) and 0 < n <= LARGEST_SIZE for n in numbers), "rows and columns are 1 to 65535")
    return numbers[0], numbers[1]


def parse_signal(number: Any) -> int:
    require(is_whole(number) and 0 < number < signal.NSIG, f"a signal is a number from 1 to {signal.NSIG - 1}")
    return int(number)
