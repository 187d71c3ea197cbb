# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Programs that run in the background of a sandbox."""

from __future__ import annotations

import typing as t

from ..deadline import Cancellation, Deadline
from ..guest.agent import Agent
from ..guest.execution.stream import Execution
from ..guest.sessions.detached import Executions
from .standard_errors import standard_errors

#: Seconds for finding, releasing and renewing, and for the answer of the agent beyond a timeout.
CALL_SECONDS = 60.0
#: Seconds that a program or a copy without a timeout may take: a day, so that even that is bounded.
UNBOUNDED_SECONDS = 86400.0

Output = t.Callable[[bytes], object]


def argv_of(command: str | t.Sequence[str]) -> list[str]:
    """Program and arguments: of a text, the shell that reads it."""
    return ["/bin/sh", "-c", command] if isinstance(command, str) else [*command]


def on_output(on_stdout: Output | None, on_stderr: Output | None) -> t.Callable[[str, bytes], None] | None:
    """One function for both output streams."""
    calls = {"stdout": on_stdout, "stderr": on_stderr}

    def received(stream: str, data: bytes) -> None:
        call = calls[stream]
        if call is not None:
            call(data)

    return received if on_stdout or on_stderr else None


class Process:
    """A program that runs in a sandbox without a connection to it.

    It goes on when this program ends, for as long as the sandbox exists; ``Sandbox.process(id)`` finds it again.

    Attributes:
        id: by which it is found.
    """

    def __init__(self, agent: Agent, key: str) -> None:
        """See ``Sandbox.start`` and ``Sandbox.process``."""
        self.id = key
        self._executions = Executions(agent)

    @standard_errors
    def wait(
        self,
        timeout: float | None = None,
        *,
        offset: int = 0,
        on_stdout: Output | None = None,
        on_stderr: Output | None = None,
        cancellation: Cancellation | None = None,
    ) -> Execution:
        """Wait for its end. A lost connection is made again for 30 s.

        Args:
            timeout: seconds (above 0) for the wait; the program goes on after it. A day when None.
            offset: the byte of its output, both streams counted together, from which on the output is wanted.
            on_stdout, on_stderr: called with bytes as they arrive.
            cancellation: ends the wait, not the program, when it is cancelled.

        Returns:
            Exit code and output; at most 16 MiB of the output are retained.

        Raises:
            ExecutionDetachedError: it still ran at the end of the wait; it has the ``offset`` for the next one.
            ExecutionLostError: the sandbox has no such program; how it ended is unknown.
        """
        deadline = Deadline(UNBOUNDED_SECONDS if timeout is None else timeout)
        with (cancellation or Cancellation()).cutting(deadline.cancel):
            return self._executions.attach(
                self.id, deadline=deadline, offset=offset, on_output=on_output(on_stdout, on_stderr)
            )

    @standard_errors
    def kill(self, *, grace: float | None = None) -> bool:
        """End its process group: SIGTERM, and SIGKILL after ``grace`` seconds (0 to 60; 2 when None).

        Returns:
            Whether it was still running.

        Raises:
            ExecutionLostError: the sandbox has no such program.
        """
        return self._executions.cancel(self.id, deadline=Deadline(CALL_SECONDS), grace=grace)
