# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""PID 1 of a container: it ends with its lease, passes on the agent's socket once, and the agent serves on it."""

from __future__ import annotations

import os
import pathlib
import signal
import socket
import subprocess
import sys
import time
import typing as t
import uuid

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.connection import connect_unix
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress

FOLDER = pathlib.Path(__file__).resolve().parents[4] / "roles/template/files/agent"
PATIENCE = 30.0
TOKEN = "token-of-a-test"


class Holder:
    """A started lease.py, as an engine starts it."""

    def __init__(self, folder: pathlib.Path, seconds: float) -> None:
        self.lease, self.socket = folder / "lease", folder / "agent.sock"
        self.offer = f"@namzu-test-{uuid.uuid4()}"
        self.renew(seconds)
        argv = [sys.executable, "-E", "-s", "-S", "-B", str(FOLDER / "lease.py")]
        self.process = subprocess.Popen(
            [*argv, str(self.lease), str(self.socket), self.offer], stderr=subprocess.PIPE, text=True
        )
        self.until(self.socket.exists)

    def renew(self, seconds: float) -> None:
        self.lease.write_text(str(time.time() + seconds))

    def until(self, condition: t.Callable[[], object]) -> None:
        limit = time.monotonic() + PATIENCE
        while not condition():
            assert time.monotonic() < limit, "what the test waits for did not happen"
            time.sleep(0.01)

    def end(self) -> str:
        """What it wrote, once it has ended."""
        return self.process.communicate(timeout=PATIENCE)[1]

    def dial(self, deadline: Deadline) -> socket.socket:
        return connect_unix(str(self.socket), deadline)


@pytest.fixture
def start(tmp_path: pathlib.Path) -> t.Iterator[t.Callable[[float], Holder]]:
    started: list[Holder] = []

    def start(seconds: float) -> Holder:
        started.append(Holder(tmp_path, seconds))
        return started[-1]

    yield start
    for holder in started:
        holder.process.kill()
        holder.process.communicate()


def test_ends_with_its_lease(start: t.Callable[[float], Holder]) -> None:
    assert start(0.5).end() == "namzu lease: ended\n"


def test_renewed_lease_goes_on(start: t.Callable[[float], Holder]) -> None:
    holder = start(1.0)
    holder.renew(600.0)
    time.sleep(1.5)
    assert holder.process.poll() is None


def test_lease_that_is_being_replaced_does_not_end_it(start: t.Callable[[float], Holder]) -> None:
    holder = start(0.5)
    holder.lease.unlink()
    time.sleep(1.0)
    holder.renew(600.0)
    time.sleep(2.5)
    assert holder.process.poll() is None


def test_lease_that_was_removed_ends_it(start: t.Callable[[float], Holder]) -> None:
    holder = start(0.5)
    holder.lease.write_text("not a time")
    assert holder.end() == "namzu lease: ended\n"


def test_ends_when_the_engine_stops_the_container(start: t.Callable[[float], Holder]) -> None:
    holder = start(600.0)
    holder.process.send_signal(signal.SIGTERM)
    assert holder.end() == "namzu lease: the container is being stopped\n"


def agent_of(holder: Holder) -> subprocess.Popen[bytes]:
    variables = {**os.environ, "NAMZU_AGENT_BIND_TOKEN": TOKEN, "NAMZU_AGENT_LISTENER": holder.offer}
    return subprocess.Popen([sys.executable, "-I", "-S", "-B", str(FOLDER)], env=variables, stderr=subprocess.PIPE)


def test_agent_serves_on_the_socket_that_is_passed_to_it(start: t.Callable[[float], Holder]) -> None:
    holder = start(600.0)
    process = agent_of(holder)
    try:
        agent = Agent(AgentAddress("test", 0, TOKEN, dial=holder.dial))
        assert agent.execute(["echo", "hello"], deadline=Deadline(PATIENCE)).stdout == b"hello\n"
        # Nobody else is given the socket.
        with pytest.raises(ConnectionRefusedError), socket.socket(socket.AF_UNIX) as late:
            late.connect(holder.offer.replace("@", "\0"))
        assert agent.healthz(Deadline(PATIENCE)).protocol == 1
    finally:
        process.kill()
        _out, errors = process.communicate()
    assert str(holder.socket) in errors.decode()


def test_bridge_carries_a_call_both_ways(start: t.Callable[[float], Holder]) -> None:
    holder = start(600.0)
    process = agent_of(holder)
    bridges: list[subprocess.Popen[bytes]] = []

    def dial(_deadline: Deadline) -> socket.socket:
        ours, theirs = socket.socketpair()
        argv = [sys.executable, "-E", "-s", "-S", "-B", str(FOLDER / "bridge.py"), str(holder.socket)]
        bridges.append(subprocess.Popen(argv, stdin=theirs, stdout=theirs))
        theirs.close()
        return ours

    try:
        agent = Agent(AgentAddress("test", 0, TOKEN, dial=dial))
        data = os.urandom(3 * 1024 * 1024)
        done = agent.execute(["cat"], stdin=data, max_output=len(data), deadline=Deadline(PATIENCE))
        assert done.stdout == data
        # The bridge ends with the connection.
        assert bridges[0].wait(PATIENCE) == 0
    finally:
        process.kill()
        process.communicate()
        for bridge in bridges:
            bridge.kill()
            bridge.wait()


def test_bridge_without_an_agent_ends(tmp_path: pathlib.Path) -> None:
    argv = [sys.executable, "-E", "-s", "-S", "-B", str(FOLDER / "bridge.py"), str(tmp_path / "nothing")]
    done = subprocess.run(argv, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 1
    assert done.stderr.startswith("connection refused: ")
