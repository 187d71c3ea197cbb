# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The start of a program that needs no client, and the thread that stays with it."""

from __future__ import annotations

import os
import signal
import sys
import threading

from ending import Ending
from execute import Descriptors
from program import EXECUTION
from relay import Output, Relay
from wire import STDERR, STDOUT, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable

    from children import Child, Children
    from program import Program
    from terminal import Terminal

#: An execution keeps the beginning of each stream, a session the end of all.
ENDLESS = 1 << 62


def start(program: Program, children: Children, terminal: Terminal | None, done: Callable[[], None]) -> None:
    """Start it, and a thread that calls ``done`` at its end.

    Args:
        terminal: a new one for it, which is closed here; None for pipes.
    """
    command, descriptors, child = program.command, Descriptors(), None
    descriptors.add(*(terminal.ends if terminal else ()))
    try:
        ended, notify = descriptors.event_fds()
        fd, waker = descriptors.event_fds()
        if terminal:
            stdin = stdout = stderr = terminal.theirs
            feed: int | None = descriptors.add(os.dup(terminal.ours))
            outputs = [Output(STDOUT, terminal.ours, ENDLESS)]
        else:
            feed, stdin = open_input(program, descriptors)
            (out, stdout), (err, stderr) = descriptors.pipe(), descriptors.pipe()
            limit = command.max_output if program.kind == EXECUTION else ENDLESS
            outputs = [Output(STDOUT, out, limit), Output(STDERR, err, limit)]
        child = children.spawn(command.argv, command.env, command.cwd, (stdin, stdout, stderr), notify)
        descriptors.close(*{stdin, stdout, stderr})
        program.mark_started(child, children, fd, waker, terminal)
        ending = Ending(children, child, command.grace, terminal is not None)
        relay = Relay(program, child, command, ending, descriptors.close)

        def stay() -> None:
            try:
                relay.run(ended, feed, outputs)
            except Exception as error:  # noqa: BLE001 - whoever waits for the end must be told one
                sys.excepthook(type(error), error, error.__traceback__)
            finally:
                part(program, children, child, descriptors)
                done()

        threading.Thread(target=stay, name="program", daemon=True).start()
    except BaseException as error:
        release(children, child)
        descriptors.close_all()
        if isinstance(error, RuntimeError):
            raise Refused("exhausted", "no thread can be started: the limit of processes is reached") from None
        raise


def open_input(program: Program, descriptors: Descriptors) -> tuple[int | None, int]:
    """Our end and its end of its standard input; without any it is /dev/null."""
    if program.command.stdin is None:
        return None, descriptors.add(os.open(os.devnull, os.O_RDONLY | os.O_CLOEXEC))
    stdin, feed = descriptors.pipe()
    return feed, stdin


def part(program: Program, children: Children, child: Child, descriptors: Descriptors) -> None:
    """Close all descriptors of the program, and make sure that its end is recorded."""
    release(children, child)
    program.close_descriptors(descriptors.close_all)
    if program.end is None:
        program.finish({"exit": None, "signal": int(signal.SIGKILL), "timed_out": False}, False)


def release(children: Children, child: Child | None) -> None:
    if child is not None:
        if child.status is None:
            # After any error, no process runs that no client can find.
            children.signal_group(child, signal.SIGKILL)
        children.release(child)
