# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""execute: run a program, stream its input and output, and say how it ended."""

from __future__ import annotations

import os
import signal

from client import AttachedClient
from command import Command
from ending import Ending
from relay import Output, Relay
from stream import Stream
from wire import STDERR, STDOUT

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer


class Descriptors:
    """Descriptors that are ours to close, each exactly once: a number that was closed may be another thread's."""

    def __init__(self) -> None:
        self._open: set[int] = set()

    def add(self, *fds: int) -> int:
        """Take care of them; the first is returned."""
        self._open.update(fds)
        return fds[0] if fds else -1

    def close(self, *fds: int) -> None:
        for fd in fds:
            self._open.remove(fd)
            os.close(fd)

    def close_all(self) -> None:
        self.close(*self._open.copy())

    def event_fds(self) -> tuple[int, int]:
        """One to poll and one to write to: an event counter, or before Python 3.10 a pipe."""
        if hasattr(os, "eventfd"):
            fd = self.add(os.eventfd(0, os.EFD_CLOEXEC | os.EFD_NONBLOCK))
            return fd, fd
        ends = os.pipe2(os.O_CLOEXEC | os.O_NONBLOCK)
        self.add(*ends)
        return ends

    def pipe(self) -> tuple[int, int]:
        ends = os.pipe2(os.O_CLOEXEC)
        self.add(*ends)
        return ends


def execute(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """Start the command, and stay with it until it has ended or its client has left."""
    if body.get("detach"):
        from attach import execute_detached

        execute_detached(context, peer, body)
        return
    command = Command(body, context.settings)
    children = context.children
    descriptors = Descriptors()
    child = None
    try:
        ended, notify = descriptors.event_fds()
        if command.stdin is None:
            stdin, feed = descriptors.add(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC)), None
        else:
            stdin, feed = descriptors.pipe()
        (out, stdout), (err, stderr) = descriptors.pipe(), descriptors.pipe()
        child = children.spawn(command.argv, command.env, command.cwd, (stdin, stdout, stderr), notify)
        descriptors.close(stdin, stdout, stderr)
        peer.begin({"started": {"pid": child.pid}})
        ending = Ending(children, child, command.grace)
        outputs = [Output(STDOUT, out, command.max_output), Output(STDERR, err, command.max_output)]
        Relay(AttachedClient(Stream(peer)), child, command, ending, descriptors.close).run(ended, feed, outputs)
    finally:
        if child is not None:
            if child.status is None:
                # After any error, no process runs that no client can find.
                children.signal_group(child, signal.SIGKILL)
            children.release(child)
        descriptors.close_all()
