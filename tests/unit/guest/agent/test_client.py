# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The client before servers that are no agent, an agent that is not well, and nobody at all."""

from __future__ import annotations

import contextlib
import datetime
import json
import pathlib
import socket
import threading
import traceback
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress, Health
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestError,
    GuestProtocolError,
    GuestRefusedError,
    GuestTimeoutError,
    GuestUnauthorizedError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol import connection
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    within,
)

TOKEN = "secret-4711"
HEALTH = {
    "protocol": 1,
    "features": ["execute"],
    "agent": "1.0.0",
    "python": "3.11.2",
    "executable": "/usr/bin/python3",
    "workspace": "/workspace",
    "uptime": 1,
}


class Server:
    """Accepts connections, reads one request from each and answers with fixed bytes."""

    def __init__(self, answer: bytes, *, hang: bool = False, reset: bool = False) -> None:
        self._listener = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listener.getsockname()[1]
        self.requests: list[bytes] = []
        self._answer = answer
        self._hang = hang
        self._reset = reset
        self._stop = threading.Event()
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stop.set()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()

    def _serve(self) -> None:
        while not self._stop.is_set():
            try:
                sock, _address = self._listener.accept()
            except OSError:
                return
            with sock:
                self.requests.append(sock.recv(65536))
                if self._reset:
                    sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
                with contextlib.suppress(OSError):
                    sock.sendall(self._answer)
                if self._hang:
                    self._stop.wait()


class Clock:
    """Counts its waits; the time passes by them alone."""

    def __init__(self, on_sleep: t.Callable[[int], None] = lambda _count: None) -> None:
        self.slept: list[float] = []
        self._on_sleep = on_sleep

    def monotonic(self) -> float:
        return sum(self.slept)

    def now(self) -> datetime.datetime:
        return datetime.datetime.now(datetime.UTC)

    def sleep(self, seconds: float) -> None:
        self.slept.append(seconds)
        self._on_sleep(len(self.slept))


def agent_at(port: int, host: str = "127.0.0.1") -> Agent:
    return Agent(AgentAddress(host, port, TOKEN), subject="sandbox team-a/build-7")


def answer(value: t.Any) -> bytes:
    return encode(json.dumps(value).encode())


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as server:
        return int(server.getsockname()[1])


def failure(agent: Agent, deadline: Deadline | None = None) -> SandboxError:
    """The error of a command, which says where it happened, what to do, and never the token."""
    with pytest.raises(GuestError) as caught:
        agent.execute(["true"], deadline=deadline or within())
    error = caught.value
    assert error.object == f"agent {agent.address.host}:{agent.address.port} of sandbox team-a/build-7"
    assert error.object in str(error)
    assert "execute" in str(error)
    assert error.next_step or isinstance(error, GuestRefusedError)
    told = "".join(traceback.format_exception(error)) + repr(error) + repr(error.args) + repr(vars(error))
    assert TOKEN not in told + repr(error.fields()) + repr(error.__context__)
    return error


def test_nobody_listens() -> None:
    clock = Clock()
    error = failure(agent_at(closed_port()), Deadline(30, clock))
    assert isinstance(error, GuestUnreachableError)
    assert (error.reason, error.retryable, error.sent) == ("agent-unreachable", True, False)
    assert "Connection refused" in str(error)
    assert clock.slept == list(connection.CONNECT_WAITS)


def test_an_agent_that_comes_up_between_the_tries_is_reached() -> None:
    port = closed_port()
    with contextlib.ExitStack() as stack:
        servers = []

        def come_up(count: int) -> None:
            if count == 2:
                server = Server(answer(HEALTH))
                server._listener.close()
                server._listener = socket.create_server(("127.0.0.1", port))
                servers.append(stack.enter_context(server))

        health = agent_at(port).healthz(Deadline(30, Clock(come_up)))
        assert health.executable == "/usr/bin/python3"
        assert len(servers[0].requests) == 1


def test_a_name_that_does_not_exist() -> None:
    error = failure(agent_at(1024, "no-such-name.invalid"), Deadline(30, Clock()))
    assert isinstance(error, GuestUnreachableError)
    assert "pod_ip" in str(error.next_step)
    assert not error.retryable


def test_a_resolver_without_an_answer_is_asked_again_within_its_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where no DNS server answers, each look-up takes seconds."""
    clock = Clock()
    look_ups: list[str] = []

    def silent(host: str, _port: int, **options: int) -> t.NoReturn:
        if options["flags"]:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        look_ups.append(host)
        clock.slept.append(connection.RESOLVE_SECONDS)
        raise socket.gaierror(socket.EAI_AGAIN, "Temporary failure in name resolution")

    monkeypatch.setattr(socket, "getaddrinfo", silent)
    error = failure(agent_at(1024, "some.name"), Deadline(60, clock))
    assert isinstance(error, GuestUnreachableError)
    assert (error.retryable, look_ups) == (True, ["some.name"])


@pytest.mark.parametrize("host", ["a" * 64 + ".example", "ü" * 300, "-", ".."])
def test_a_name_that_is_none(host: str) -> None:
    assert isinstance(failure(agent_at(1024, host), Deadline(30, Clock())), GuestUnreachableError)


def test_a_resolver_that_hangs_does_not_hang_us(monkeypatch: pytest.MonkeyPatch) -> None:
    hang = threading.Event()
    look_up = socket.getaddrinfo

    def hanging(host: str, port: int, **options: t.Any) -> t.Any:
        if not options["flags"]:
            hang.wait()
        return look_up(host, port, **options)

    monkeypatch.setattr(socket, "getaddrinfo", hanging)
    try:
        error = failure(agent_at(1024, "some.name"), within(0.05))
    finally:
        hang.set()
    assert isinstance(error, GuestTimeoutError)
    assert (error.stage, error.retryable) == ("resolve", True)


@pytest.mark.parametrize("seconds", [0.2, 86400.0])
def test_packets_that_are_dropped(monkeypatch: pytest.MonkeyPatch, seconds: float) -> None:
    """However long the work may take, nobody is waited for to accept it for as long."""
    monkeypatch.setattr(connection, "CONNECT_SECONDS", 0.3)
    # A full accept queue drops what comes, as a policy does.
    with socket.socket() as listener, contextlib.ExitStack() as stack:
        listener.bind(("127.0.0.1", 0))
        listener.listen(0)
        for _unused in range(4):
            waiting = stack.enter_context(socket.socket())
            waiting.setblocking(False)
            waiting.connect_ex(listener.getsockname())
        error = failure(agent_at(listener.getsockname()[1]), within(seconds))
    assert isinstance(error, GuestTimeoutError)
    assert (error.stage, error.reason, error.retryable) == ("connect", "agent-timeout", True)
    assert "neither yes nor no" in str(error)


def test_no_time_at_all() -> None:
    assert isinstance(failure(agent_at(closed_port()), Deadline(0)), GuestError)


@pytest.mark.parametrize(
    ("said", "words"),
    [
        (b"HTTP/1.1 400 Bad Request\r\n\r\n", "begins with 'HTTP/1.1 '"),
        (b"SSH-2.0-OpenSSH_9.2\r\n", "eight hex digits"),
        (b"ffffffff\n", "announces 4294967295 bytes"),
        (encode(b"hello"), "is not JSON: 'hello'"),
        (encode(b"[]"), "holds list"),
        (encode(b""), "is not JSON"),
        (encode(b"[" * 60_000), "lists and objects"),
        (answer({}), "neither a started program nor an error"),
        (answer({"error": "no"}), "has no kind"),
        (answer({"started": {}}) + encode(b"\x09"), "channel 9"),
        (answer({"started": {}}) + encode(b"\x03[]"), "holds list"),
        (answer({"started": {}}) + encode(b""), "without the event that ends a command"),
        (answer({"started": {}}) + b"GET", "begins with 'GET'"),
    ],
)
def test_another_program_at_the_port(said: bytes, words: str) -> None:
    with Server(said) as server:
        error = failure(agent_at(server.port))
        assert len(server.requests) == 1
    assert isinstance(error, GuestProtocolError)
    assert (error.reason, error.retryable) == ("agent-protocol", False)
    assert words in str(error)


@pytest.mark.parametrize("reset", [False, True])
@pytest.mark.parametrize("said", [b"", b"0000", answer({"started": {}}), answer({"started": {}}) + b"00000009\n\x01"])
def test_a_connection_that_ends_is_not_tried_again(said: bytes, reset: bool) -> None:
    with Server(said, reset=reset) as server:
        error = failure(agent_at(server.port))
        assert len(server.requests) == 1
    assert isinstance(error, GuestUnreachableError)
    assert (error.sent, error.retryable) == (True, False)
    assert "may have been carried out" in str(error)


@pytest.mark.parametrize(("said", "stage"), [(b"", "answer"), (b"0000", "answer"), (answer({"started": {}}), "stream")])
def test_an_agent_that_hangs(said: bytes, stage: str) -> None:
    with Server(said, hang=True) as server:
        error = failure(agent_at(server.port), within(0.2))
        assert len(server.requests) == 1
    assert isinstance(error, GuestTimeoutError)
    assert (error.stage, error.reason, error.retryable) == (stage, "agent-timeout", False)


def test_another_pods_agent() -> None:
    with Server(answer({"error": {"kind": "unauthorized", "message": TOKEN}})) as server:
        error = failure(agent_at(server.port))
    assert isinstance(error, GuestUnauthorizedError)
    assert (error.reason, error.retryable) == ("agent-unauthorized", False)
    assert "another pod" in str(error)


@pytest.mark.parametrize(
    ("kind", "retryable"), [("busy", True), ("exhausted", True), ("bad-cwd", False), ("new", False)]
)
def test_a_refusal_carries_its_kind_and_clean_words(kind: str, retryable: bool) -> None:
    with Server(answer({"error": {"kind": kind, "message": "a\x1b[31m\n" + "x" * 1000}})) as server:
        error = failure(agent_at(server.port))
    assert isinstance(error, GuestRefusedError)
    assert (error.kind, error.reason, error.retryable) == (kind, "agent-refused", retryable)
    assert error.message.isprintable()
    assert len(error.message) < 700
    assert error.fields()["kind"] == kind


def test_an_error_within_the_stream_is_a_refusal_too() -> None:
    event = encode(b'\x03{"error":{"kind":"internal","message":"oh"}}')
    with Server(answer({"started": {}}) + event) as server:
        error = failure(agent_at(server.port))
    assert isinstance(error, GuestRefusedError)
    assert error.kind == "internal"


def test_health_is_read_whole() -> None:
    with Server(answer(HEALTH)) as server:
        assert agent_at(server.port).healthz(within()) == Health(
            1, frozenset({"execute"}), "1.0.0", "3.11.2", "/usr/bin/python3", "/workspace", 1.0
        )


@pytest.mark.parametrize(
    "changes", [{"protocol": 2}, {"protocol": "1"}, {"features": None}, {"executable": 1}, {"uptime": "x"}]
)
def test_health_of_another_shape_or_protocol_is_refused(changes: dict[str, t.Any]) -> None:
    with Server(answer({**HEALTH, **changes})) as server, pytest.raises(GuestProtocolError, match="healthz at agent"):
        agent_at(server.port).healthz(within())


def test_a_failing_callback_ends_the_command_and_is_passed_on(agent: RunningAgent) -> None:
    def on_output(_stream: str, _data: bytes) -> None:
        raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        agent.client.execute(["sh", "-c", "echo; exec sleep 1000"], deadline=within(), on_output=on_output)


def test_an_agent_that_is_killed_in_the_middle(tmp_path: pathlib.Path) -> None:
    argv = ["sh", "-c", "echo; exec sleep 5"]
    with running_agent(workspace=tmp_path) as doomed, pytest.raises(GuestUnreachableError) as caught:
        doomed.client.execute(argv, deadline=within(), on_output=lambda *_: doomed.process.kill())
    assert caught.value.sent


def test_a_machine_that_died_is_found_out_by_both_sides(agent: RunningAgent) -> None:
    def timers() -> dict[str, str]:
        """The kernel's timer of each end of the connection, from /proc/net/tcp."""
        running = {}
        for line in pathlib.Path("/proc/net/tcp").read_text(encoding="utf-8").splitlines()[1:]:
            _number, local, remote, state, _queues, timer, *_unused = line.split()
            for side, address in (("agent", local), ("client", remote)):
                if address.endswith(f":{agent.port:04X}") and state == "01":
                    running[side] = timer.split(":")[0]
        return running

    def look(*_: object) -> None:
        # 02 is keepalive; another one runs until all is acknowledged.
        eventually(lambda: timers() == {"agent": "02", "client": "02"})
        raise KeyError("seen")

    with pytest.raises(KeyError, match="seen"):
        agent.client.execute(["sh", "-c", "echo; exec sleep 1000"], deadline=within(), on_output=look)


def test_the_token_is_in_no_text_form() -> None:
    agent = agent_at(1)
    assert TOKEN not in repr(agent) + str(agent) + repr(agent.address) + str(agent.address) + agent.peer.name
    assert agent_at(1, "fd00::1").peer.name == "agent [fd00::1]:1 of sandbox team-a/build-7"


def test_times_beyond_what_a_poll_takes_are_waited_for_in_pieces(agent: RunningAgent) -> None:
    years = 10 * 365 * 86400.0
    done = agent.client.execute(["true"], deadline=Deadline(years), timeout=years)
    assert (done.rc, done.timed_out) == (0, False)
