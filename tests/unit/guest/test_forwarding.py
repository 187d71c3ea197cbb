# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""TCP connections through the real agent."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestRefusedError, GuestUnreachableError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.forwarding import Forwarder, open_tcp
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, eventually, within
from ansible_collections.namzu.sandbox.tests.unit.guest.tap import Tap

Serve = t.Callable[[socket.socket], None]


@contextlib.contextmanager
def listening(serve: Serve, host: str = "127.0.0.1") -> t.Iterator[int]:
    """A program of the sandbox that serves each connection in a thread; its port."""
    family = socket.AF_INET6 if ":" in host else socket.AF_INET
    listener = socket.create_server((host, 0), family=family)
    threads: list[threading.Thread] = []

    def attend(sock: socket.socket) -> None:
        with sock, contextlib.suppress(OSError):
            serve(sock)

    def accept() -> None:
        while True:
            try:
                sock, _address = listener.accept()
            except OSError:
                return
            threads.append(threading.Thread(target=attend, args=(sock,)))
            threads[-1].start()

    accepting = threading.Thread(target=accept)
    accepting.start()
    try:
        yield int(listener.getsockname()[1])
    finally:
        listener.shutdown(socket.SHUT_RDWR)
        accepting.join()
        listener.close()
        for thread in threads:
            thread.join()


def echo(sock: socket.socket) -> None:
    while data := sock.recv(65536):
        sock.sendall(data)


def all_of(receive: t.Callable[[], bytes]) -> bytes:
    said = b""
    while data := receive():
        said += data
    return said


def sent_beside(sock: socket.socket, data: bytes) -> threading.Thread:
    """The thread that sends all of it, and then the end."""

    def send() -> None:
        sock.sendall(data)
        sock.shutdown(socket.SHUT_WR)

    sending = threading.Thread(target=send)
    sending.start()
    return sending


def test_bytes_go_both_ways(agent: RunningAgent) -> None:
    with listening(echo) as port, open_tcp(agent.client, port, deadline=within()) as stream:
        assert stream.send(b"ping", within())
        assert stream.receive(within()) == b"ping"
        stream.end_sending(within())
        assert stream.receive(within()) == b""


def test_each_way_ends_by_itself(agent: RunningAgent) -> None:
    def answer_after_the_end(sock: socket.socket) -> None:
        sock.sendall(all_of(lambda: sock.recv(65536))[::-1])

    def speak_first(sock: socket.socket) -> None:
        sock.sendall(b"hello")
        sock.shutdown(socket.SHUT_WR)
        heard.append(all_of(lambda: sock.recv(65536)))

    heard: list[bytes] = []
    with listening(answer_after_the_end) as port, open_tcp(agent.client, port, deadline=within()) as stream:
        stream.send(b"abc", within())
        stream.end_sending(within())
        assert all_of(lambda: stream.receive(within())) == b"cba"
    with listening(speak_first) as port, open_tcp(agent.client, port, deadline=within()) as stream:
        assert all_of(lambda: stream.receive(within())) == b"hello"
        assert stream.send(b"after", within())
        stream.end_sending(within())
        eventually(lambda: heard == [b"after"])


def test_ten_megabytes_arrive_whole_through_a_local_port(agent: RunningAgent) -> None:
    data = os.urandom(10_000_000)
    with listening(echo) as port, Forwarder(agent.client, port) as forwarder:
        with socket.create_connection(forwarder.address) as near:
            sending = sent_beside(near, data)
            assert all_of(lambda: near.recv(65536)) == data
            sending.join()
        assert forwarder.failure is None
    eventually(lambda: agent.status("Threads") == "2")


def test_program_that_does_not_read_for_a_while_is_waited_for(agent: RunningAgent) -> None:
    # More than the kernel's buffers on the way hold.
    data, reads = bytes(64_000_000), threading.Event()

    def late(sock: socket.socket) -> None:
        assert reads.wait(30.0)
        received = 0
        while part := sock.recv(1 << 20):
            received += len(part)
        sock.sendall(b"%d" % received)

    with listening(late) as port, Forwarder(agent.client, port) as forwarder:
        with socket.create_connection(forwarder.address) as near:
            sending = sent_beside(near, data)
            sending.join(1.0)
            held_back = sending.is_alive()
            reads.set()
            assert all_of(lambda: near.recv(65536)) == b"%d" % len(data)
            assert held_back
            sending.join()
        assert forwarder.failure is None


def test_many_connections_share_a_local_port(agent: RunningAgent) -> None:
    with listening(echo) as port, Forwarder(agent.client, port) as forwarder, contextlib.ExitStack() as stack:
        near = [stack.enter_context(socket.create_connection(forwarder.address)) for _unused in range(20)]
        for number, sock in enumerate(near):
            sock.sendall(b"%d" % number)
        assert [sock.recv(100) for sock in near] == [b"%d" % number for number in range(20)]


def test_a_program_that_listens_on_ipv6_only_is_found(agent: RunningAgent) -> None:
    try:
        with listening(echo, "::1") as port, open_tcp(agent.client, port, deadline=within()) as stream:
            stream.send(b"six", within())
            assert stream.receive(within()) == b"six"
            stream.end_sending(within())
    except OSError:
        pytest.skip("this machine has no IPv6")


def test_a_port_that_nobody_listens_on_is_refused_and_the_local_connection_closed(agent: RunningAgent) -> None:
    with socket.create_server(("127.0.0.1", 0)) as server:
        port = server.getsockname()[1]
    with pytest.raises(GuestRefusedError) as caught:
        open_tcp(agent.client, port, deadline=within())
    assert caught.value.kind == "not-connected"
    with Forwarder(agent.client, port) as forwarder, socket.create_connection(forwarder.address) as near:
        assert near.recv(10) == b""
        eventually(lambda: forwarder.failure is not None)
        assert isinstance(forwarder.failure, GuestRefusedError)


@pytest.mark.parametrize("body", [{}, {"port": 0}, {"port": 65536}, {"port": "80"}, {"port": 80, "host": "10.0.0.1"}])
def test_it_leads_to_a_port_of_the_sandbox_and_nowhere_else(agent: RunningAgent, body: dict[str, t.Any]) -> None:
    with agent.connect().request("open-tcp", body) as wire:
        assert wire.json()["error"]["kind"] == "bad-request"


def test_closing_the_local_port_ends_all_of_its_connections(agent: RunningAgent) -> None:
    with listening(echo) as port:
        forwarder = Forwarder(agent.client, port)
        with socket.create_connection(forwarder.address) as near:
            near.sendall(b"x")
            assert near.recv(1) == b"x"
            forwarder.close()
            assert near.recv(1) == b""
        with pytest.raises(OSError, match="refused"):
            socket.create_connection(forwarder.address)
    eventually(lambda: agent.status("Threads") == "2")


def test_a_dead_line_ends_both_sides_within_three_heartbeats(agent: RunningAgent) -> None:
    with listening(echo) as port, Tap(agent.port) as tap:
        with open_tcp(tap.client(heartbeat=0.4), port, deadline=within()) as stream:
            stream.send(b"x", within())
            assert stream.receive(within()) == b"x"
            tap.hush()
            with pytest.raises(GuestUnreachableError, match="three heartbeats"):
                stream.receive(within())
        eventually(lambda: agent.status("Threads") == "2")


def test_a_peer_that_resets_is_an_end(agent: RunningAgent) -> None:
    def reset(sock: socket.socket) -> None:
        sock.recv(1)
        sock.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")

    with listening(reset) as port, open_tcp(agent.client, port, deadline=within()) as stream:
        stream.send(b"x", within())
        assert stream.receive(within()) == b""
