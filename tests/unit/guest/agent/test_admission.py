# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Who is admitted by the agent, and what a stranger can make it do."""

from __future__ import annotations

import contextlib
import json
import pathlib
import socket
import threading

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestRefusedError,
    GuestUnauthorizedError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import FIRST_FRAME_LIMIT, encode
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    TOKEN,
    RunningAgent,
    eventually,
    running_agent,
    within,
)

BODY = {"argv": ["true"]}


@pytest.mark.parametrize(
    "first",
    [
        {"op": "execute", "token": "another", "body": BODY},
        {"op": "execute", "token": TOKEN[:-1], "body": BODY},
        {"op": "execute", "token": TOKEN + "\0", "body": BODY},
        {"op": "execute", "token": "\ud800ü", "body": BODY},
        {"op": "execute", "token": "", "body": BODY},
        {"op": "execute", "token": None, "body": BODY},
        {"op": "execute", "token": [TOKEN], "body": BODY},
        {"op": "execute", "body": BODY},
        {"op": "no-such-operation", "token": "another"},
        {"op": "auth", "token": "another"},
        {"op": "healthz"},
        [],
        "text",
    ],
)
def test_without_the_token_every_request_gets_the_same_answer_and_the_end(agent: RunningAgent, first: object) -> None:
    with agent.connect() as reference, agent.connect() as wire:
        reference.send_json({"op": "execute", "token": "wrong", "body": BODY})
        wire.send_json(first)
        answer = reference.rest()
        assert wire.rest() == answer
    assert json.loads(answer[9:]) == {
        "error": {"kind": "unauthorized", "message": "the token is missing or is not this agent's"}
    }


@pytest.mark.parametrize("first", [b"", b"{", b"\xff\xfe", b"[" * 65_536, b'{"token":' * 7_000, b'"\\' + b"[" * 65_000])
def test_what_is_no_json_is_unauthorized_too(agent: RunningAgent, first: bytes) -> None:
    with agent.connect() as wire:
        wire.socket.sendall(encode(first))
        assert wire.json()["error"]["kind"] == "unauthorized"
        assert wire.rest() == b""


@pytest.mark.parametrize(
    ("start", "kind"),
    [
        (b"%08x\n" % (FIRST_FRAME_LIMIT + 1), "too-large"),
        (b"ffffffff\n", "too-large"),
        (b"GET / HTTP/1.1\r\nHost: x\r\n\r\n", "bad-frame"),
        (b"0000000A\n", "bad-frame"),
        (b"\x16\x03\x01", "bad-frame"),
    ],
)
def test_what_is_no_first_frame_is_refused_at_once(agent: RunningAgent, start: bytes, kind: str) -> None:
    with agent.connect() as wire:
        wire.socket.sendall(start)
        assert wire.json()["error"]["kind"] == kind
        assert wire.rest() == b""


def test_a_refusal_reaches_a_client_that_is_still_sending(agent: RunningAgent) -> None:
    stranger = Agent(AgentAddress("127.0.0.1", agent.port, "another"))
    for _unused in range(5):
        with pytest.raises(GuestUnauthorizedError):
            stranger.execute(["true", "x" * 4_000_000], deadline=within())
        with pytest.raises(GuestUnauthorizedError):
            stranger.execute(["true"], deadline=within(), stdin=bytes(6_000_000))


def test_an_operation_from_the_future_is_unsupported(agent: RunningAgent) -> None:
    with agent.connect().request("teleport") as wire:
        assert wire.json()["error"]["kind"] == "unsupported"


@pytest.mark.parametrize(
    "request_", [{"op": 1, "token": TOKEN}, {"token": TOKEN}, {"op": "healthz", "token": TOKEN, "body": []}]
)
def test_a_request_of_the_wrong_shape_is_bad(agent: RunningAgent, request_: object) -> None:
    with agent.connect() as wire:
        wire.send_json(request_)
        assert wire.json()["error"]["kind"] == "bad-request"


def test_after_auth_comes_a_request_without_a_token(agent: RunningAgent) -> None:
    with agent.connect() as wire:
        wire.send_json({"op": "auth", "token": TOKEN})
        wire.send_json({"op": "healthz", "body": {"padding": "x" * 7_000_000}})
        assert wire.json()["protocol"] == 1
    with agent.connect() as wire:
        wire.send_json({"op": "auth", "token": TOKEN})
        wire.socket.sendall(b"00800001\n")
        assert wire.json()["error"]["kind"] == "too-large"


def test_one_who_only_looks_whether_the_port_is_open_does_no_harm(agent: RunningAgent) -> None:
    for _unused in range(20):
        socket.create_connection(("127.0.0.1", agent.port)).close()
    assert agent.client.healthz(within()).protocol == 1


def test_a_stranger_has_little_time(tmp_path: pathlib.Path) -> None:
    patch = "import wire; wire.FIRST_FRAME_TIME = 0.3"
    with running_agent(workspace=tmp_path, patch=patch) as agent, agent.connect() as silent, agent.connect() as slow:
        stop = threading.Event()

        def trickle() -> None:
            # Each byte comes well within the time; the frame as a whole does not.
            with contextlib.suppress(OSError):
                while not stop.wait(0.02):
                    slow.socket.sendall(b"0")

        slow.socket.sendall(b"00001000\n")
        sender = threading.Thread(target=trickle)
        sender.start()
        try:
            assert silent.rest() == b""
            eventually(lambda: agent.status("Threads") == "2")
        finally:
            stop.set()
            sender.join()


def test_strangers_cannot_make_it_hold_much(agent: RunningAgent) -> None:
    before = int(agent.status("VmRSS").split()[0])
    wires = [agent.connect() for _unused in range(200)]
    try:
        for wire in wires:
            # All but the last byte of the largest first frame.
            wire.socket.sendall(b"%08x\n" % FIRST_FRAME_LIMIT + bytes(FIRST_FRAME_LIMIT - 1))
        eventually(lambda: int(agent.status("Threads")) >= 202)
        grown = int(agent.status("VmRSS").split()[0]) - before
        # 64 KiB each, twice while bytes are being joined, and some for a thread.
        assert grown < 200 * 200
        assert agent.client.healthz(within()).protocol == 1
    finally:
        for wire in wires:
            wire.socket.close()
    eventually(lambda: agent.status("Threads") == "2")


def test_over_the_limit_of_connections_it_says_busy_and_recovers(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, patch="import server; server.CONNECTION_LIMIT = 4") as agent:
        held = [agent.connect() for _unused in range(4)]
        for _unused in range(100):
            with pytest.raises(GuestRefusedError) as caught:
                agent.client.execute(["true"], deadline=within(), stdin=bytes(100_000))
            assert (caught.value.kind, caught.value.retryable) == ("busy", True)
        for wire in held:
            wire.socket.close()
        eventually(lambda: agent.status("Threads") == "2")
        assert agent.client.healthz(within()).protocol == 1


def test_a_fault_of_the_agent_is_told_from_a_lost_connection(tmp_path: pathlib.Path) -> None:
    patch = "import health; health.AGENT_VERSION = object()"
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        with pytest.raises(GuestRefusedError) as caught:
            agent.client.healthz(within())
        assert caught.value.kind == "internal"
        assert agent.client.execute(["true"], deadline=within()).rc == 0


def test_running_out_of_descriptors_is_refused_and_passes(tmp_path: pathlib.Path) -> None:
    patch = "import resource, server; server.DESCRIPTORS = 0; resource.setrlimit(resource.RLIMIT_NOFILE, (40, 40))"
    with running_agent(workspace=tmp_path, patch=patch) as agent, contextlib.ExitStack() as crowd:
        # Each connection takes one; a command takes several, so it fails while there is still one to be told by.
        def press() -> None:
            for _unused in range(40):
                crowd.enter_context(agent.connect())
                assert agent.client.execute(["true"], deadline=within()).rc == 0

        with pytest.raises(GuestRefusedError) as caught:
            press()
        assert (caught.value.kind, caught.value.retryable) == ("exhausted", True)
        crowd.close()
        eventually(lambda: agent.status("Threads") == "2")
        assert agent.client.execute(["true"], deadline=within()).rc == 0
