# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Heartbeats: both sides find out that the other is gone, and neither mistakes quiet for gone."""

from __future__ import annotations

import contextlib
import os
import threading
import time
import warnings

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestProtocolError,
    GuestTimeoutError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.attachment import open_terminal
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, eventually, runs, within
from ansible_collections.namzu.sandbox.tests.unit.guest.tap import Tap
from tests.unit.guest.agent.test_client import Server, answer

BEAT = b"\x04"
#: Three of them pass within a test, and a busy machine does not keep a process waiting for so long.
SHORT = 0.8


def test_a_line_that_goes_dead_without_a_word_is_found_out_by_both_sides(agent: RunningAgent) -> None:
    pids: list[int] = []

    def hush(_stream: str, data: bytes) -> None:
        pids.append(int(data))
        tap.hush()

    with Tap(agent.port) as tap:
        started = time.monotonic()
        with pytest.raises(GuestUnreachableError) as caught:
            tap.client(heartbeat=SHORT).execute(
                ["sh", "-c", "echo $$; exec sleep 1000"], deadline=within(), on_output=hush
            )
        assert time.monotonic() - started < 10
        assert caught.value.sent
        assert "three heartbeats" in str(caught.value)
        eventually(lambda: not runs(pids[0]))


def test_a_quiet_command_is_not_gone(agent: RunningAgent) -> None:
    client = Agent(agent.client.address, heartbeat=SHORT)
    assert client.execute(["sleep", "3"], deadline=within()).rc == 0


def test_a_client_that_is_busy_elsewhere_is_not_gone(agent: RunningAgent) -> None:
    client = Agent(agent.client.address, heartbeat=SHORT)
    pause = threading.Event()
    done = client.execute(
        ["sh", "-c", "echo; sleep 0.1; echo"], deadline=within(), on_output=lambda *_: pause.wait(3.0) and None
    )
    assert done.stdout == b"\n\n"


def test_input_that_nobody_takes_is_not_silence(agent: RunningAgent) -> None:
    client = Agent(agent.client.address, heartbeat=SHORT)
    done = client.execute(["sh", "-c", "sleep 3; wc -c"], deadline=within(), stdin=bytes(3_000_000))
    assert done.stdout_text.strip() == "3000000"


def test_output_that_nobody_takes_is_not_silence(agent: RunningAgent) -> None:
    client = Agent(agent.client.address, heartbeat=SHORT)
    pause = threading.Event()
    waits = iter([3.0])
    done = client.execute(
        ["head", "-c", "9000000", "/dev/zero"],
        max_output=9_000_000,
        deadline=within(),
        on_output=lambda *_: pause.wait(next(waits, 0.0)) and None,
    )
    assert len(done.stdout) == 9_000_000


def test_it_is_sent_only_when_it_was_asked_for_and_echoed(agent: RunningAgent) -> None:
    with agent.connect().request("execute", {"argv": ["sleep", "0.5"]}) as wire:
        assert wire.json().keys() == {"started"}
        assert wire.frame()[0] == 3
    with agent.connect().request("execute", {"argv": ["sleep", "1000"]}, heartbeat=0.1) as wire:
        assert wire.json()["heartbeat"] == 0.1
        assert [wire.frame() for _unused in range(2)] == [BEAT, BEAT]
        for _unused in range(4):
            wire.socket.sendall(encode(BEAT))
            assert wire.frame() == BEAT


@pytest.mark.parametrize(("asked", "given"), [(0, None), (0.01, 0.1), (5, 5), (1e9, 3600)])
def test_the_agent_answers_with_what_it_does(agent: RunningAgent, asked: float, given: float | None) -> None:
    with agent.connect().request("execute", {"argv": ["true"]}, heartbeat=asked) as wire:
        assert wire.json().get("heartbeat") == given


@pytest.mark.parametrize("asked", [-1, "15", True, float("nan"), None])
def test_a_heartbeat_that_is_none_is_refused(agent: RunningAgent, asked: object) -> None:
    with agent.connect().request("execute", {"argv": ["true"]}, heartbeat=asked) as wire:
        assert wire.json()["error"]["kind"] == "bad-request"


def test_an_agent_that_echoes_none_is_waited_for_as_before() -> None:
    silent = answer({"started": {"pid": 1}})
    with Server(silent, hang=True) as server:
        client = Agent(agent_address(server.port), heartbeat=0.1)
        with pytest.raises(GuestTimeoutError):
            client.execute(["true"], deadline=within(0.5))
        assert b'"heartbeat":0.1' in server.requests[0]


@pytest.mark.parametrize("echo", [0, -1, 1000, "1", True])
def test_an_echo_that_nobody_would_wait_out_is_no_agents(echo: object) -> None:
    with Server(answer({"started": {"pid": 1}, "heartbeat": echo}), hang=True) as server:
        client = Agent(agent_address(server.port), heartbeat=0.1)
        with pytest.raises(GuestProtocolError, match="heartbeat"):
            client.execute(["true"], deadline=within())


def test_none_is_asked_for_when_the_deadline_comes_first_or_it_is_off() -> None:
    with Server(answer({"started": {"pid": 1}})) as server:
        for heartbeat, seconds in ((15.0, 40.0), (0.0, 60.0)):
            with pytest.raises(GuestUnreachableError):
                Agent(agent_address(server.port), heartbeat=heartbeat).execute(["true"], deadline=within(seconds))
        assert not any(b"heartbeat" in request for request in server.requests)


@pytest.mark.parametrize("heartbeat", [-1, 0.01, 4000, float("nan")])
def test_an_interval_that_makes_no_sense_is_refused(heartbeat: float) -> None:
    with pytest.raises(InputError, match="heartbeat"):
        Agent(agent_address(1), heartbeat=heartbeat)


def test_a_forked_process_beats_for_its_own_streams_only(agent: RunningAgent) -> None:
    client = Agent(agent.client.address, heartbeat=SHORT)
    with contextlib.ExitStack() as stack:
        terminal = stack.enter_context(open_terminal(client, ["sleep", "1000"], deadline=within()))
        reading, writing = os.pipe()
        pid = fork()
        if pid == 0:
            code = 1
            with contextlib.suppress(BaseException):
                code = client.execute(["sleep", "3"], deadline=within()).rc
            os.write(writing, bytes([code]))
            os._exit(0)
        assert os.read(reading, 1) == b"\0"
        os.waitpid(pid, 0)
        terminal.write(b"\x03", within())
        while terminal.read(within()) is not None:
            pass
        assert terminal.result is not None
        assert terminal.result.signal == 2
        for fd in (reading, writing):
            os.close(fd)


def agent_address(port: int) -> AgentAddress:
    return AgentAddress("127.0.0.1", port, "token")


def fork() -> int:
    with warnings.catch_warnings():
        # Ansible forks its workers from a process with threads as well.
        warnings.simplefilter("ignore", DeprecationWarning)
        return os.fork()
