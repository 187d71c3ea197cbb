# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The client of the agent in a pod: one method an operation, one connection a call, one deadline over all of it."""

from __future__ import annotations

import dataclasses
import typing as t

from ..deadline import Deadline
from .execution.request import DEFAULT_GRACE, DEFAULT_MAX_OUTPUT, END_SECONDS, Input, command_body
from .execution.running import RunningExecution
from .execution.stream import Execution, OutputCallback
from .protocol.call import Caller
from .protocol.connection import Dial, Peer, protocol_error
from .protocol.heartbeat import DEFAULT_HEARTBEAT, check_heartbeat
from .protocol.wire import MISSES, PROTOCOL

DEFAULT_PORT = 1024


@dataclasses.dataclass(frozen=True)
class AgentAddress:
    """Where an agent listens, and the token that binds the connection to one pod.

    Attributes:
        host: IP address or name.
        port: TCP port.
        token: the pod's uid. It is not part of the text form.
        dial: makes the connection where there is no route to the pod, or None to connect to host and port.
    """

    host: str
    port: int
    token: str = dataclasses.field(repr=False)
    dial: Dial | None = dataclasses.field(default=None, repr=False, compare=False)


@dataclasses.dataclass(frozen=True)
class Health:
    """What an agent reports about itself.

    Attributes:
        protocol: version of the wire.
        features: names of what it can do; ask with ``supports``.
        agent: version of the agent.
        python: version of the Python that runs it.
        executable: absolute path of that Python in the pod.
        workspace: the folder that commands start in.
        uptime: seconds since it started.
    """

    protocol: int
    features: frozenset[str]
    agent: str
    python: str
    executable: str
    workspace: str
    uptime: float

    def supports(self, feature: str) -> bool:
        """Whether the agent names ``feature``."""
        return feature in self.features


class Agent:
    """Talks to one agent.

    Connecting is tried three times within the deadline. A request that was sent is never sent again.

    Every method raises GuestUnreachableError (no connection, or it ended early), GuestTimeoutError (the deadline
    passed), GuestUnauthorizedError (another pod's agent), GuestProtocolError (no agent) and GuestRefusedError (the
    agent refuses the request; its ``kind`` is the reason).
    """

    def __init__(
        self, address: AgentAddress, *, subject: str | None = None, heartbeat: float = DEFAULT_HEARTBEAT
    ) -> None:
        """Nothing is connected here. Time is each call's deadline's.

        Args:
            subject: the object whose agent this is, for messages, for example ``sandbox team-a/build-7``.
            heartbeat: seconds (0.1 to 3600; 15 when not given) between the heartbeats of streams. When three of them
                are missing, either side treats the connection as lost. 0 is off.
        """
        self.address = address
        self.subject = subject
        self.heartbeat = check_heartbeat("heartbeat", heartbeat)

    def __repr__(self) -> str:
        return f"Agent({self.address!r})"

    @property
    def peer(self) -> Peer:
        """The agent's address and subject for messages, without the token."""
        return Peer(self.address.host, self.address.port, self.subject, self.address.dial)

    @property
    def caller(self) -> Caller:
        """The peer, the token and the heartbeat of a call, for the other modules of this package."""
        return Caller(self.peer, self.address.token, self.heartbeat)

    def healthz(self, deadline: Deadline) -> Health:
        """Ask the agent what it is and what it can do."""
        with self.caller.call("healthz", {}, deadline) as call:
            return self._health(call.answer)

    def execute(
        self,
        argv: t.Sequence[str],
        *,
        deadline: Deadline,
        cwd: str | None = None,
        env: t.Mapping[str, str] | None = None,
        stdin: Input = None,
        timeout: float | None = None,
        grace: float | None = None,
        max_output: int = DEFAULT_MAX_OUTPUT,
        on_output: OutputCallback | None = None,
    ) -> Execution:
        """Run a program in the sandbox and wait for its end.

        Args:
            argv: program and arguments; no shell is involved. A name without ``/`` is looked up in PATH.
            deadline: bounds the whole call. When it passes, the agent ends the program's process group.
            cwd: absolute, or relative to the workspace, which is the default.
            env: variables added to the agent's clean environment.
            stdin: bytes for standard input, of any size; ``/dev/null`` when None or empty.
            timeout: seconds (above 0) after which the agent ends the process group; the result has ``timed_out``. The
                call itself then takes at most ``timeout`` + ``grace`` + 3 s: GuestTimeoutError after that.
            grace: seconds (0 to 60; the agent's default is 2) between SIGTERM and SIGKILL when it does.
            max_output: bytes of each stream that are kept (0 to 256 MiB); what follows is counted and dropped, and
                the program is never blocked by it.
            on_output: called with ``"stdout"`` or ``"stderr"`` and bytes as they arrive, cut anywhere.

        Returns the Execution, whatever the program's exit code. Besides the errors of the class it raises InputError
        for a request above 8 MiB and GuestRefusedError ``not-found``, ``not-executable``, ``bad-cwd``, ``bad-request``
        or ``exhausted`` for a program that did not start.
        """
        with self.stream(
            argv, deadline=deadline, cwd=cwd, env=env, stdin=stdin, timeout=timeout, grace=grace, max_output=max_output
        ) as running:
            return running.finish(on_output)

    def stream(
        self,
        argv: t.Sequence[str],
        *,
        deadline: Deadline,
        stdin: Input = None,
        **options: t.Any,
    ) -> RunningExecution:
        """Start a program as ``execute`` does, and give its output while it runs.

        Args:
            stdin: also any iterable of bytes, which is asked for more as the program takes it, in constant memory.
            options: ``cwd``, ``env``, ``timeout``, ``grace`` and ``max_output`` of ``execute``.

        Returns a context manager that is iterated over for ``("stdout" or "stderr", bytes)``; its ``result`` is the
        Execution. To leave the block early ends the program.
        """
        max_output = options.pop("max_output", DEFAULT_MAX_OUTPUT)
        timeout, grace = options.get("timeout"), options.get("grace")
        body, following = command_body(argv, stdin, max_output=max_output, **options)
        within = deadline
        if timeout is not None:
            within = deadline.child(timeout + (DEFAULT_GRACE if grace is None else grace) + END_SECONDS)
        # A deadline that passes first finds a lost connection as well.
        heartbeat = self.heartbeat if within.remaining() >= MISSES * self.heartbeat else 0.0
        call = self.caller.call("execute", body, within, following, heartbeat=heartbeat)
        return RunningExecution(call, max_output)

    def _health(self, answer: dict[str, t.Any]) -> Health:
        shape: dict[str, type | tuple[type, ...]] = {
            "protocol": int, "features": list, "agent": str, "python": str, "executable": str, "workspace": str,
            "uptime": (int, float),
        }  # fmt: skip
        wrong = [name for name, kind in shape.items() if not isinstance(answer.get(name), kind)]
        if wrong:
            raise protocol_error(self.peer, "healthz", f"the answer lacks {', '.join(wrong)}")
        if answer["protocol"] != PROTOCOL:
            raise protocol_error(self.peer, "healthz", f"its protocol is {answer['protocol']}, not {PROTOCOL}")
        values = {name: answer[name] for name in shape}
        values["features"] = frozenset(str(feature) for feature in answer["features"])
        values["uptime"] = float(answer["uptime"])
        return Health(**values)
