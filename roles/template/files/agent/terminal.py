# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""open-terminal, and programs in terminals of their own."""

from __future__ import annotations

import os
import sys

from attach import parse_size, pid_of, send_output
from command import Command
from fields import require
from program import TERMINAL, set_size
from stream import Stream
from wire import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from program import Program
    from wire import Peer

DEFAULT_TYPE = "xterm-256color"
#: Seconds after the hang-up until what still runs is killed.
HANG_UP_GRACE = 2.0

_OPEN = frozenset(("terminal",))

#: Makes the terminal the session's own, which only a process in that session can do, and becomes the program.
_TAKE_TERMINAL = """
import fcntl, os, sys, termios
fcntl.ioctl(0, termios.TIOCSCTTY, 0)
try:
    os.execvp(sys.argv[1], sys.argv[1:])
except OSError as error:
    sys.exit(f"{sys.argv[1]}: {error.strerror}")
"""


class Terminal:
    """A new terminal of a size (rows and columns)."""

    def __init__(self, size: tuple[int, int]) -> None:
        try:
            self.ends = self.ours, self.theirs = os.openpty()
        except OSError as error:
            raise Refused("exhausted", f"no terminal can be opened: {os.strerror(error.errno or 0)}") from None
        self.size = size
        set_size(self.ours, *size)


def open_terminal(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """A program in a terminal that lives as long as its connection."""
    command = Command(body, context.settings, more=_OPEN)
    program = start_in_terminal(context, command, parse_size(body.get("terminal")))
    try:
        peer.begin({"started": {"pid": pid_of(program), "id": program.id}})
        send_output(program, Stream(peer), 0, holds=True)
    finally:
        context.programs.leave(program)


def start_in_terminal(
    context: Context,
    command: Command,
    size: tuple[int, int],
    key: str | None = None,
    name: str | None = None,
) -> Program:
    require(command.stdin is None, "a terminal takes its input from channel 0")
    command.env.setdefault("TERM", DEFAULT_TYPE)
    look_for(command)
    python = sys.executable or "/proc/self/exe"
    command.argv = [python, "-I", "-S", "-B", "-c", _TAKE_TERMINAL, *command.argv]
    command.stdin_follows = True
    return context.programs.start(TERMINAL, command, key, name, Terminal(size))


def look_for(command: Command) -> None:
    """Refuse a program that is not there, while it can still be refused: the terminal belongs to the program."""
    name = command.argv[0]
    folders = [""] if "/" in name else command.env.get("PATH", "").split(":")
    found = [path for path in (os.path.join(command.cwd, folder, name) for folder in folders) if os.path.isfile(path)]
    if not found:
        raise Refused("not-found", f"{name}: the program does not exist")
    if not any(os.access(path, os.X_OK) for path in found):
        raise Refused("not-executable", f"{name}: the program may not be executed")
