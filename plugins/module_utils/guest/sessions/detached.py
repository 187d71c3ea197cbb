# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Executions that outlive their connection: started once, found again by their id, and never run a second time."""

from __future__ import annotations

import typing as t
import uuid

from ...deadline import Deadline
from ...errors import InputError
from ..agent import Agent
from ..errors import (
    ExecutionDetachedError,
    ExecutionLostError,
    GuestRefusedError,
    GuestTimeoutError,
    GuestUnreachableError,
)
from ..execution.request import DEFAULT_MAX_OUTPUT, Input, command_body
from ..execution.running import followed
from ..execution.stream import Execution, OutputCallback, execution_of
from ..protocol.call import Call, unsupported
from ..protocol.waiting import pause

#: Bytes of each output stream of a detached execution that an agent retains, at most.
LARGEST_RETAINED_OUTPUT = 16 * 1024 * 1024
#: Seconds for which ``run`` and ``attach`` try to reach the agent again after they lost it.
RECONNECT = 30.0
#: Seconds between those tries, from the first to all later ones.
_RECONNECT_WAITS = (0.1, 0.2, 0.5, 1.0, 2.0)

_FEATURE = "detach"


class Executions:
    """The detached executions of one agent."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def start(
        self,
        argv: t.Sequence[str],
        *,
        deadline: Deadline,
        key: str | None = None,
        stdin: Input = None,
        **options: t.Any,
    ) -> str:
        """Start a program and leave it running.

        Args:
            argv: program and arguments.
            deadline: for the start alone.
            key: the execution's id, 1 to 64 letters, digits, dots, dashes and underscores; made up when None.
            stdin: all of its input; with the rest of the request at most 8 MiB.
            options: ``cwd``, ``env``, ``timeout``, ``grace`` and ``max_output`` (0 to 16 MiB) of ``Agent.execute``.

        Returns the id. Raises GuestRefusedError ``exists`` for an id that was used, ``busy`` when 64 run already,
        GuestUnsupportedError for an agent without the feature ``detach``, and what ``Agent.execute`` raises.
        """
        key = key or uuid.uuid4().hex
        self._begin(key, argv, deadline, stdin, options).close()
        return key

    def run(
        self,
        argv: t.Sequence[str],
        *,
        deadline: Deadline,
        key: str | None = None,
        stdin: Input = None,
        on_output: OutputCallback | None = None,
        **options: t.Any,
    ) -> Execution:
        """Run a program to its end, over as many connections as it takes; it is started once.

        A lost connection is made again for up to 30 s, and goes on at the byte where the last one ended. The arguments
        are those of ``start`` and ``Agent.execute``; the deadline is for all of it, and ends only the following.

        Besides the errors of ``start`` it raises ExecutionDetachedError when the client stopped following, and
        ExecutionLostError when the agent does not have it any more: both have the ``id`` and the ``offset``.
        """
        key = key or uuid.uuid4().hex
        following = _Following(self._agent, key, 0, on_output)
        try:
            call = self._begin(key, argv, deadline, stdin, options)
        except GuestUnreachableError as error:
            if not error.sent:
                raise
            # It may have been started, and is then found by its id.
            return following.to_the_end(deadline, None)
        return following.to_the_end(deadline, call)

    def attach(
        self, key: str, *, deadline: Deadline, offset: int = 0, on_output: OutputCallback | None = None
    ) -> Execution:
        """Follow an execution from a byte of its output to its end; the Execution has what came from there on.

        Args:
            offset: counted over both output streams, in the order in which the agent read them.

        Raises as ``run`` does, and GuestRefusedError ``bad-request`` for an offset beyond its output.
        """
        return _Following(self._agent, key, offset, on_output).to_the_end(deadline, None)

    def cancel(self, key: str, *, deadline: Deadline, grace: float | None = None) -> bool:
        """Ask an execution's process group to end, and have it killed after the grace (seconds; its own when None).

        Returns whether it was still running. Raises ExecutionLostError when there is none.
        """
        body: dict[str, t.Any] = {"id": key} | ({} if grace is None else {"grace": grace})
        try:
            with self._agent.caller.call("cancel", body, deadline, feature=_FEATURE) as call:
                return bool(call.part("killed", was_running=bool)["was_running"])
        except GuestRefusedError as error:
            raise _lost(error, key, 0) if error.kind == "not-found" else error from None

    def _begin(
        self, key: str, argv: t.Sequence[str], deadline: Deadline, stdin: Input, options: t.Mapping[str, t.Any]
    ) -> Call:
        max_output = options.get("max_output", DEFAULT_MAX_OUTPUT)
        if max_output > LARGEST_RETAINED_OUTPUT:
            raise InputError(
                f"max_output is {max_output}; of a detached execution {LARGEST_RETAINED_OUTPUT} can be kept."
            )
        body, _following = command_body(argv, stdin, inline=True, **options)
        body |= {"detach": True, "id": key}
        agent = self._agent
        try:
            call = agent.caller.call("execute", body, deadline, feature=_FEATURE, heartbeat=agent.heartbeat)
        except GuestRefusedError as error:
            # An older agent refuses the field, and has run nothing.
            if error.kind == "bad-request" and not agent.healthz(deadline).supports(_FEATURE):
                raise unsupported(agent.peer, "execute", _FEATURE) from None
            raise
        call.part("started", id=str)
        return call


class _Following:
    """What was received of one execution, over all connections."""

    def __init__(self, agent: Agent, key: str, offset: int, on_output: OutputCallback | None) -> None:
        self._agent = agent
        self._key = key
        self._offset = offset
        self._on_output = on_output
        self._reached = False
        self._output = {"stdout": bytearray(), "stderr": bytearray()}

    def to_the_end(self, deadline: Deadline, call: Call | None) -> Execution:
        """Follow ``call``, or first make one; and another one whenever it is lost."""
        failure: GuestUnreachableError | None = None
        last_contact = deadline.elapsed()
        tries = 0
        while True:
            try:
                call = call or self._attach(deadline, last_contact, failure)
                end = self._follow(call)
                return execution_of(end, bytes(self._output["stdout"]), bytes(self._output["stderr"]))
            except GuestTimeoutError as error:
                raise self._detached(error.message) from None
            except GuestUnreachableError as error:
                if call is not None:
                    last_contact, tries = deadline.elapsed(), 0
                failure = error
            if deadline.elapsed() - last_contact >= RECONNECT:
                raise self._detached(failure.message) from None
            call = None
            pause(deadline, _RECONNECT_WAITS[min(tries, len(_RECONNECT_WAITS) - 1)])
            tries += 1

    def _attach(self, deadline: Deadline, last_contact: float, failure: GuestUnreachableError | None) -> Call:
        agent = self._agent
        left = deadline.remaining() if failure is None else RECONNECT - (deadline.elapsed() - last_contact)
        within = Deadline(deadline.at_most(left), deadline.clock, cancellation=deadline.cancellation)
        body = {"id": self._key, "offset": self._offset}
        try:
            call = agent.caller.call("attach", body, within, feature=_FEATURE, heartbeat=agent.heartbeat)
        except GuestRefusedError as error:
            raise _lost(error, self._key, self._offset) if error.kind == "not-found" else error from None
        call.connection.deadline = deadline
        call.part("attached", offset=int)
        return call

    def _follow(self, call: Call) -> dict[str, t.Any]:
        self._reached = True
        with call:
            pieces = followed(call)
            while True:
                try:
                    name, data = next(pieces)
                except StopIteration as stop:
                    return t.cast("dict[str, t.Any]", stop.value)
                self._offset += len(data)
                self._output[name] += data
                if self._on_output is not None:
                    self._on_output(name, data)

    def _detached(self, why: str) -> ExecutionDetachedError:
        return ExecutionDetachedError(
            f"{why} The execution {self._key} was not ended by that; {self._offset} bytes of its output were received.",
            id=self._key,
            offset=self._offset,
            reached=self._reached,
            object=self._agent.peer.name,
            next_step="Attach to it with this id and offset, or cancel it.",
        )


def _lost(error: GuestRefusedError, key: str, offset: int) -> ExecutionLostError:
    return ExecutionLostError(
        error.message,
        id=key,
        offset=offset,
        object=error.object,
        next_step="The agent was restarted or has removed it: check its results, and do not assume that it ran.",
    )
