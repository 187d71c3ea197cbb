# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""All programs that run, or have run, without a client."""

from __future__ import annotations

import os
import threading
import time

from program import EXECUTION, Program
from retained import Budget, Log
from runner import start
from wire import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from command import Command
    from operations import Context
    from terminal import Terminal

#: How many may run at a time, and how many that have ended are kept, for how many seconds.
RUNNING_LIMIT = 64
ENDED_LIMIT = 64
RETENTION = 3600.0
#: Bytes of the end of a session's output that are kept.
SESSION_OUTPUT = 1024 * 1024


class Programs:
    """Finds programs by their id, or sessions by their name, and forgets those that ended long ago."""

    def __init__(self, context: Context) -> None:
        self._children = context.children
        self._lock = threading.Lock()
        self._known: dict[str, Program] = {}
        self._budget = Budget(self._forget_oldest)

    def start(
        self,
        kind: str,
        command: Command,
        key: str | None = None,
        name: str | None = None,
        terminal: Terminal | None = None,
    ) -> Program:
        """Start a program.

        Refused ``exists`` when its id was used before, or its name is a running session's: nothing is started twice.

        Args:
            key: the client's id, by which it finds the program again; made up when None.
            terminal: a new one for it, closed here; None for pipes.
        """
        log = Log(self._budget, None if kind == EXECUTION else SESSION_OUTPUT)
        program = Program(kind, key or os.urandom(8).hex(), name, command, log)
        self._admit(program)

        def done() -> None:
            if program.left:
                self._forget(program)

        try:
            start(program, self._children, terminal, done)
        except BaseException:
            self._forget(program)
            raise
        return program

    def leave(self, program: Program) -> None:
        """Nobody will come for it any more: end it, and forget it then."""
        program.stop(None)
        # The end is known before ``done`` is called, so one of the two sees both.
        program.left = True
        if program.end is not None:
            self._forget(program)

    def find(self, key: str) -> Program:
        """By id, or by name the session that runs, or the last of that name."""
        with self._lock:
            found = self._known.get(key)
            if found is None:
                named = [program for program in self._known.values() if program.name == key]
                found = next((program for program in named if program.end is None), named[-1] if named else None)
        if found is None:
            raise Refused("not-found", f"execution or session {key}: does not exist, or not any more")
        return found

    def all(self) -> list[Program]:
        with self._lock:
            return list(self._known.values())

    def _admit(self, program: Program) -> None:
        oldest = time.time() - RETENTION
        with self._lock:
            known = list(self._known.values())
            running = [other for other in known if other.end is None]
            ended = [other for other in known if other.end is not None]
            if program.id in self._known:
                raise Refused("exists", f"the id {program.id} was used before")
            if program.name is not None and program.name in (other.name for other in running):
                raise Refused("exists", f"a session {program.name} runs already")
            if len(running) >= RUNNING_LIMIT:
                raise Refused("busy", f"{RUNNING_LIMIT} executions and sessions run without a client already")
            self._known[program.id] = program
        for index, other in enumerate(ended):
            if index < len(ended) - ENDED_LIMIT or (other.ended_at or 0) < oldest:
                self._forget(other)

    def _forget(self, program: Program) -> None:
        with self._lock:
            self._known.pop(program.id, None)
        # Not under our lock: a program that asks for room holds its own, and waits for ours.
        program.forget()

    def _forget_oldest(self) -> bool:
        with self._lock:
            ended = next((program for program in self._known.values() if program.end is not None), None)
        if ended is None:
            return False
        self._forget(ended)
        return True
