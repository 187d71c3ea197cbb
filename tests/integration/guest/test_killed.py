# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What becomes of every operation when the agent, or its pod, is killed in the middle of it."""

from __future__ import annotations

import contextlib
import dataclasses
import io
import os
import pathlib
import signal
import socket
import threading
import time
import typing as t
from concurrent.futures import Future, ThreadPoolExecutor

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    ExecutionLostError,
    GuestError,
    GuestRefusedError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.execution.stream import Execution
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.files import Files
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.forwarding import open_tcp
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.quiescence import flush, quiesce
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.attachment import open_terminal
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.detached import Executions
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Sessions
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import eventually, within

#: Seconds: three heartbeats of the fixture, and what a busy machine needs.
BOUND = 3 * 2.0 + 15.0
#: The container is made again in that time.
RESTART = 60.0

TALK = ["sh", "-c", "echo up; exec sleep 1000"]
COUNT = ["sh", "-c", "echo x >> runs; echo up; exec sleep 1000"]
SERVE = "import socket; s = socket.create_server(('', 8081)); c, a = s.accept(); c.sendall(b'up'); c.recv(9)"

LARGE = 300_000_000

Began = t.Callable[[], None]


class Operations:
    """Every operation that takes time; each says when it is in the middle, and goes on after the kill."""

    def __init__(self, agent: Agent) -> None:
        self._agent = agent
        self.killed = threading.Event()
        self.fetched = 0
        made = agent.execute(["sh", "-c", f"head -c {LARGE} /dev/zero > large"], deadline=within())
        assert made.rc == 0, made.stderr
        Sessions(agent).start(TALK, name="quiet", deadline=within())
        Sessions(agent).start(["python3", "-c", SERVE], deadline=within())
        eventually(lambda: agent.execute(["grep", "-q", ":1F91", "/proc/net/tcp"], deadline=within()).rc == 0)

    def execute(self, began: Began) -> Execution:
        return self._agent.execute(TALK, deadline=within(), on_output=lambda *_: began())

    def detached(self, began: Began) -> Execution:
        return Executions(self._agent).run(COUNT, deadline=within(90), on_output=lambda *_: began())

    def terminal(self, began: Began) -> None:
        with open_terminal(self._agent, TALK, deadline=within()) as terminal:
            while terminal.read(within()):
                began()

    def session(self, began: Began) -> None:
        with Sessions(self._agent).attach("quiet", deadline=within()) as session:
            while session.read(within()):
                began()

    def tcp(self, began: Began) -> None:
        with open_tcp(self._agent, 8081, deadline=within()) as stream:
            while stream.receive(within()):
                began()

    def put(self, began: Began) -> None:
        operations = self

        class Source(io.RawIOBase):
            pieces = 0

            def read(self, size: int = -1, /) -> bytes:
                self.pieces += 1
                if self.pieces == 3:
                    began()
                    operations.killed.wait()
                return bytes(size)

        Files(self._agent).put(Source(), "half", deadline=within())

    def fetch(self, began: Began) -> None:
        operations = self

        class Sink:
            def write(self, data: bytes, /) -> None:
                operations.fetched += len(data)
                began()
                operations.killed.wait()

        Files(self._agent).fetch("large", Sink(), deadline=within())


OPERATIONS = ("execute", "detached", "terminal", "session", "tcp", "put", "fetch")


class Way:
    """Operations that are under way, and when each of them ended."""

    def __init__(self, operations: Operations) -> None:
        self._workers = ThreadPoolExecutor(len(OPERATIONS))
        self.ended_at: dict[str, float] = {}
        self.ends: dict[str, Future[object]] = {}
        begun = {name: threading.Event() for name in OPERATIONS}
        for name in OPERATIONS:
            self.ends[name] = self._workers.submit(self._run, name, getattr(operations, name), begun[name].set)
        for name, event in begun.items():
            assert event.wait(60), f"{name} did not begin"

    def _run(self, name: str, operation: t.Callable[[Began], object], began: Began) -> object:
        try:
            return operation(began)
        finally:
            self.ended_at[name] = time.monotonic()


def signal_from_outside(uid: str, number: signal.Signals = signal.SIGKILL) -> bool:
    """Kill the agent of a pod on this machine, as the kernel does when memory runs out; False where we cannot."""
    for entry in pathlib.Path("/proc").iterdir():
        with contextlib.suppress(OSError, ValueError, IndexError):
            groups = (entry / "cgroup").read_text(encoding="utf-8").replace("_", "-")
            inner = (entry / "status").read_text(encoding="utf-8").split("NSpid:")[1].split("\n")[0].split()
            command = (entry / "cmdline").read_bytes()
            if uid in groups and inner[-1] == "1" and len(inner) > 1 and b"--token-fd" in command:
                os.kill(int(entry.name), number)
                return True
    return False


def test_every_operation_ends_with_a_named_error_in_time_and_nothing_runs_twice(hold, kube):
    held = hold()
    operations = Operations(held.agent)
    way = Way(operations)
    killed_at = time.monotonic()
    abrupt = signal_from_outside(held.agent.address.token)
    if not abrupt:
        path = f"/api/v1/namespaces/{held.namespace}/pods/{held.pod}"
        kube.request("DELETE", path, {"gracePeriodSeconds": 0})
    operations.killed.set()
    for name, end in way.ends.items():
        error = end.exception(120)
        # A pod that is deleted says how its programs ended, if there is time. A fetch goes on where it was, when the
        # agent is back before it gives up.
        whole = name == "fetch" and operations.fetched == LARGE
        assert isinstance(error, GuestError) or (error is None and (whole or not abrupt)), name
        assert way.ended_at[name] - killed_at < (RESTART if name == "detached" else BOUND), name
    if abrupt:
        assert isinstance(way.ends["detached"].exception(), ExecutionLostError)
        eventually(lambda: answers(held.agent), RESTART)
        assert Files(held.agent).read("runs", deadline=within()).data == b"x\n"


def test_a_flush_or_a_quiesce_in_flight_ends_with_a_named_error_in_time(hold, kube):
    """They have a sandbox of their own, for a quiesce ends all other operations."""
    held = hold()
    agent, uid = held.agent, held.agent.address.token

    def killed(operation: t.Callable[[], object], in_flight: t.Callable[[], object]) -> None:
        with ThreadPoolExecutor(1) as worker:
            end = worker.submit(operation)
            in_flight()
            began = time.monotonic()
            assert signal_from_outside(uid)
            error = end.exception(120)
        assert time.monotonic() - began < BOUND
        assert isinstance(error, GuestUnreachableError), error
        assert (error.sent, error.retryable) == (True, False)
        eventually(lambda: answers(agent), RESTART)

    if not signal_from_outside(uid, signal.SIGSTOP):
        pytest.skip("the pod's processes are on another machine, so an agent cannot be stopped within a moment")
    sent = threading.Event()
    # A disk is as fast as it is. An agent that was stopped before it heard of the flush has surely not done with it.
    killed(lambda: flush(Agent(noticing(agent.address, sent)), deadline=within()), lambda: sent.wait(60))
    deaf = ["sh", "-c", "trap '' TERM; echo x >> deaf; while :; do sleep 1; done"]
    Sessions(agent).start(deaf, deadline=within())
    eventually(lambda: agent.execute(["cat", "deaf"], deadline=within()).stdout == b"x\n")
    killed(lambda: quiesce(agent, deadline=within(), grace=60.0), lambda: eventually(lambda: is_quiescing(agent)))
    assert Files(agent).read("deaf", deadline=within()).data == b"x\n"
    assert [one for one in Sessions(agent).list(within()) if one.running] == []


def noticing(address: AgentAddress, sent: threading.Event) -> AgentAddress:
    """The address of the same agent, with a way there that says when something was sent."""

    class Noticing(socket.socket):
        def send(self, *arguments: t.Any) -> int:
            done = super().send(*arguments)
            sent.set()
            return done

    def dial(deadline: Deadline) -> socket.socket:
        line = Noticing(socket.AF_INET, socket.SOCK_STREAM)
        line.settimeout(deadline.remaining())
        line.connect((address.host, address.port))
        return line

    return dataclasses.replace(address, dial=dial)


def is_quiescing(agent: Agent) -> bool:
    try:
        agent.execute(["true"], deadline=within())
    except GuestRefusedError as error:
        return error.kind == "quiescing"
    return False


def test_pid_1_is_gone_within_a_second_of_sigterm_and_says_how_its_programs_ended(hold):
    agent = hold().agent
    with open_terminal(agent, TALK, deadline=within()) as terminal:
        assert terminal.read(within()) == ("stdout", b"up\r\n")
        sent = time.monotonic()
        # It ignores the signal, so that it is there to be killed last.
        done = agent.execute(["sh", "-c", "trap '' TERM; kill -TERM 1; sleep 1000"], deadline=within())
        assert done.signal in (signal.SIGTERM, signal.SIGKILL)
        with contextlib.suppress(GuestUnreachableError):
            while terminal.read(within()) is not None:
                pass
        took = time.monotonic() - sent
    assert took < 2.0, "0.7 s for the agent, and what it takes to start the command and to hear of its end"
    eventually(lambda: answers(agent), RESTART)


def answers(agent: Agent) -> bool:
    try:
        return agent.execute(["true"], deadline=within(5)).rc == 0
    except GuestError:
        return False
