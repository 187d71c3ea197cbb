# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A port of a pod through the API server: bytes both ways, ends of either side, refusals, and no traces."""

from __future__ import annotations

import base64
import contextlib
import pathlib
import socket
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.credentials import StaticToken
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.portforward import open_port
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import POD
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ApiTimeoutError,
    ApiUnreachableError,
    CredentialError,
    GoneError,
    SandboxError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestUnreachableError

from ...unit.cluster.authorities import Authority, server_context
from ..fake.websocket import BINARY, CLOSE, PING, PONG, PORT, TEXT, Peer, Server

POD_REF = POD.ref("team-a", "python-1")
TOKEN = "a-token-that-shows-nowhere"
UID = "8f7c2f0a-3b1e-4f4e-9d0c-5a2b7c6d1e90"


@pytest.fixture(autouse=True)
def no_thread_is_left() -> t.Iterator[None]:
    """The threads of a connection end with it, and say nothing."""
    yield
    for thread in threading.enumerate():
        if thread.name == "namzu-port-forward":
            thread.join(5.0)
            assert not thread.is_alive()


def client(peer: Server, /, **changes: t.Any) -> Client:
    return Client(
        Access(
            **{
                "credential": StaticToken(TOKEN),
                "server": changes.pop("server", None) or f"http://{peer.address}",
                **changes,
            }
        )
    )


def opened(peer: Server, seconds: float = 5.0, /, **changes: t.Any) -> socket.socket:
    with client(peer, **changes) as made:
        connection = open_port(made, POD_REF, PORT, Deadline(seconds))
    connection.settimeout(5.0)
    return connection


def refused(peer: Server, seconds: float = 5.0, /, **changes: t.Any) -> SandboxError:
    """The error of a connection that must not be made, in time, and without the token."""
    began = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        opened(peer, seconds, **changes).close()
    assert time.monotonic() - began < seconds + 2.0
    assert TOKEN not in f"{caught.value!r} {caught.value} {caught.value.fields()}"
    assert "Pod team-a/python-1" in caught.value.message
    assert caught.value.object == "Pod team-a/python-1"
    return caught.value


def everything(connection: socket.socket) -> bytes:
    """What comes until the other side ends."""
    parts = []
    while part := connection.recv(65536):
        parts.append(part)
    return b"".join(parts)


def test_request_is_the_port_forward_of_the_pod_as_who_we_are() -> None:
    with Server(Peer.accept) as server:
        opened(server, impersonate_user="ann", impersonate_groups=("a", "b")).close()
    (peer,) = server.peers
    line = peer.head.splitlines()[0]
    assert line == b"GET /api/v1/namespaces/team-a/pods/python-1/portforward?ports=1024 HTTP/1.1"
    assert peer.header("Authorization") == f"Bearer {TOKEN}"
    assert peer.header("Sec-WebSocket-Protocol") == "v4.channel.k8s.io"
    assert peer.header("Origin") == ""
    assert peer.header("Impersonate-User") == "ann"
    assert peer.head.count(b"Impersonate-Group: ") == 2


def test_bytes_of_any_value_go_both_ways() -> None:
    every = bytes(range(256))

    def echo(peer: Peer) -> None:
        peer.accept()
        peer.send(b"\0" + peer.data()[::-1])
        assert peer.data() == b"\0\1\0"
        peer.send(b"\0")  # a message without content
        peer.send(b"\0" + b"done")

    with Server(echo) as server, opened(server) as connection:
        connection.sendall(every)
        assert connection.recv(256, socket.MSG_WAITALL) == every[::-1]
        connection.sendall(b"\0\1\0")
        assert everything(connection) == b"done"


def test_large_streams_go_both_ways_at_once() -> None:
    size = 2 * 1024 * 1024

    def swap(peer: Peer) -> None:
        peer.accept()
        sender = threading.Thread(target=lambda: [peer.send(b"\0" + b"p" * 32768) for _unused in range(size // 32768)])
        sender.start()
        left = size
        while left:
            left -= len(peer.data())
        sender.join()

    with Server(swap) as server, opened(server) as connection:
        sender = threading.Thread(target=connection.sendall, args=(b"c" * size,))
        sender.start()
        assert everything(connection) == b"p" * size
        sender.join()


def test_ping_is_answered_and_is_no_data() -> None:
    def ping(peer: Peer) -> None:
        peer.accept()
        peer.send(b"alive?", opcode=PING)
        assert peer.receive() == (PONG, b"alive?")
        peer.send(b"\0yes")

    with Server(ping) as server, opened(server) as connection:
        assert everything(connection) == b"yes"


def test_what_the_pod_says_comes_also_after_we_said_our_last() -> None:
    """Found: a shutdown of our sending side ended the receiving too."""
    said, may_answer = threading.Event(), threading.Event()

    def answer_late(peer: Peer) -> None:
        peer.accept()
        assert peer.data() == b"question"
        said.set()
        may_answer.wait(5.0)
        peer.send(b"\0answer")

    with Server(answer_late) as server, opened(server) as connection:
        connection.sendall(b"question")
        connection.shutdown(socket.SHUT_WR)
        assert said.wait(5.0)
        may_answer.set()
        assert everything(connection) == b"answer"


def test_closing_our_side_ends_the_connection() -> None:
    gone = threading.Event()

    def wait(peer: Peer) -> None:
        with contextlib.suppress(ConnectionError):  # it may be gone before both channels have begun
            peer.accept()
        if peer.at_end():
            gone.set()

    with Server(wait) as server:
        opened(server).close()
        assert gone.wait(5.0)


def test_closing_after_a_half_close_ends_the_connection() -> None:
    gone = threading.Event()

    def wait(peer: Peer) -> None:
        with contextlib.suppress(ConnectionError):  # it may be gone before both channels have begun
            peer.accept()
        if peer.at_end():
            gone.set()

    with Server(wait) as server:
        connection = opened(server)
        connection.shutdown(socket.SHUT_WR)
        connection.close()
        assert gone.wait(5.0)


@pytest.mark.parametrize("with_close_frame", [True, False])
def test_end_of_the_pods_side_is_an_end_after_its_last_byte(with_close_frame: bool) -> None:
    def end(peer: Peer) -> None:
        peer.accept()
        peer.send(b"\0last")
        if with_close_frame:
            peer.send((1000).to_bytes(2, "big"), opcode=CLOSE)

    with Server(end) as server, opened(server) as connection:
        assert everything(connection) == b"last"


@pytest.mark.parametrize(
    ("payload", "opcode"),
    [(b"\1connection refused", BINARY), (b"text", TEXT), (b"\xff\xfe", TEXT), (b"", BINARY), (b"?", 3), (b"1", CLOSE)],
    ids=["error-channel", "text", "broken-text", "empty", "unknown-opcode", "bad-close"],
)
def test_what_is_an_error_ends_the_connection_without_a_word(
    payload: bytes, opcode: int, capfd: pytest.CaptureFixture[str]
) -> None:
    def fail(peer: Peer) -> None:
        peer.accept()
        peer.send(payload, opcode)
        peer.at_end()

    with Server(fail) as server, opened(server) as connection:
        assert everything(connection) == b""
    assert capfd.readouterr() == ("", "")


@pytest.mark.parametrize(
    ("said", "sent"),
    [
        (f"port 1024 of {'a1' * 32}, uid {UID}: dial tcp4 127.0.0.1:1024: connection refused IPv6: no ", False),
        (f"error copying from pod {UID}: connection reset by peer", True),
    ],
)
def test_what_the_api_server_says_about_the_end_is_told_without_ids(said: str, sent: bool) -> None:
    def fail(peer: Peer) -> None:
        peer.accept()
        peer.send(b"\1" + said.encode())
        peer.at_end()

    with Server(fail) as server, pytest.raises(GuestUnreachableError) as caught:
        Agent(AgentAddress("team-a/python-1", PORT, UID, dial=lambda _limit: opened(server))).healthz(Deadline(5.0))
    assert "connection re" in caught.value.message
    assert (caught.value.sent, "may have been" in caught.value.message) == (sent, sent)
    for secret in (UID, "a1" * 32):
        assert secret not in f"{caught.value!r} {caught.value} {caught.value.fields()}"


def test_error_channel_without_a_word_is_no_error() -> None:
    def speak(peer: Peer) -> None:
        peer.accept()
        peer.send(b"\1")
        peer.send(b"\0data")

    with Server(speak) as server, opened(server) as connection:
        assert everything(connection) == b"data"


@pytest.mark.parametrize(
    ("status", "kind", "reason", "retryable"),
    [
        (401, CredentialError, "forbidden", False),
        (403, CredentialError, "forbidden", False),
        (404, GoneError, "not-found", False),
        (410, GoneError, "not-found", False),
        (429, ApiUnreachableError, "api-unreachable", True),
        (500, ApiUnreachableError, "api-unreachable", True),
        (503, ApiUnreachableError, "api-unreachable", True),
    ],
)
def test_upgrade_that_is_refused_is_an_error_of_its_class(
    status: int, kind: type[SandboxError], reason: str, retryable: bool
) -> None:
    with Server(lambda peer: peer.refuse(status)) as server:
        error = refused(server)
    assert (type(error), error.reason, error.retryable) == (kind, reason, retryable)
    assert str(status) in error.message


def test_redirect_is_not_followed_and_the_token_stays_here() -> None:
    """Found: the request went on to the address that the answer named, with the token."""
    with Server(Peer.accept) as elsewhere:
        location = f"Location: ws://{elsewhere.address}/"
        with Server(lambda peer: peer.refuse(302, location)) as server:
            assert refused(server).__class__ is ApiUnreachableError
    assert elsewhere.peers == []


@pytest.mark.parametrize("protocol", ["v5.channel.k8s.io", "portforward.k8s.io"])
def test_server_that_chooses_another_protocol_is_refused(protocol: str) -> None:
    with Server(lambda peer: peer.accept(protocol)) as server:
        assert refused(server).__class__ is ApiUnreachableError


@pytest.mark.parametrize("answer", [b"", b"nonsense\r\n\r\n", b"HTTP/1.1 200 OK\r\n\r\n", b"\xff\x00\r\n\r\n"])
def test_answer_that_is_none_is_unreachable(answer: bytes) -> None:
    with Server(lambda peer: peer.connection.sendall(answer)) as server:
        assert isinstance(refused(server), ApiUnreachableError)


def test_nobody_who_listens_is_unreachable() -> None:
    with Server(Peer.accept) as server:
        address = server.address
    assert refused(server, server=f"http://{address}").__class__ is ApiUnreachableError


def test_silent_server_is_given_up_at_the_deadline() -> None:
    with Server(lambda peer: peer.at_end()) as server:
        assert refused(server, 0.3).__class__ is ApiTimeoutError


def test_server_that_says_a_little_now_and_then_is_given_up_at_the_deadline() -> None:
    """Found: every byte began the time anew."""
    stop = threading.Event()

    def dribble(peer: Peer) -> None:
        with contextlib.suppress(OSError):
            for byte in b"HTTP/1.1 101 Switching Protocols\r\n" + b"X-More: yes\r\n" * 10:
                peer.connection.sendall(bytes([byte]))
                if stop.wait(0.1):
                    return

    with Server(dribble) as server:
        assert refused(server, 0.5).__class__ is ApiTimeoutError
        stop.set()


def test_tls_that_nobody_answers_is_given_up_at_the_deadline() -> None:
    """Found: it was called unreachable."""
    quiet = socket.create_server(("127.0.0.1", 0))
    with quiet:
        access = Access(server=f"https://127.0.0.1:{quiet.getsockname()[1]}", credential=StaticToken(TOKEN))
        began = time.monotonic()
        with Client(access) as made, pytest.raises(ApiTimeoutError):
            open_port(made, POD_REF, PORT, Deadline(0.3))
        assert time.monotonic() - began < 3.0


def greet(peer: Peer) -> None:
    """Answer one message under TLS."""
    peer.accept()
    peer.send(b"\0" + peer.data().upper())


@pytest.fixture
def secure(tmp_path: pathlib.Path) -> t.Iterator[tuple[Server, Authority]]:
    """A server with a certificate for another name than its address."""
    authority = Authority("cluster")
    with Server(greet, server_context(tmp_path, authority.issue("kubernetes"))) as server:
        yield server, authority


@pytest.mark.parametrize(
    "changes",
    [{"server_name": "kubernetes"}, {"verify": False, "ca_pem": None}],
    ids=["server-name", "not-verified"],
)
def test_tls_is_as_the_access_says(secure: tuple[Server, Authority], changes: dict[str, t.Any]) -> None:
    """Found: the server name and ``validate_certs: false`` were not honoured."""
    server, authority = secure
    access = {"server": f"https://{server.address}", "ca_pem": authority.pem, **changes}
    with opened(server, **access) as connection:
        connection.sendall(b"hello")
        assert everything(connection) == b"HELLO"


@pytest.mark.parametrize("changes", [{}, {"server_name": "another"}, {"ca_pem": None, "server_name": "kubernetes"}])
def test_certificate_that_does_not_fit_is_refused(secure: tuple[Server, Authority], changes: dict[str, t.Any]) -> None:
    server, authority = secure
    access = {"server": f"https://{server.address}", "ca_pem": authority.pem, **changes}
    assert refused(server, **access).__class__ is ApiUnreachableError
    assert server.peers == []


def test_proxies_of_the_environment_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("http_proxy", "http://127.0.0.1:1")
    with Server(greet) as server, opened(server) as connection:
        connection.sendall(b"hello")
        assert everything(connection) == b"HELLO"


def test_exceptions_to_a_proxy_in_the_environment_do_not_count(monkeypatch: pytest.MonkeyPatch) -> None:
    """Found: NO_PROXY of the process was weighed again, after the access had decided for the proxy."""
    monkeypatch.setenv("no_proxy", "127.0.0.1")

    def tunnel(peer: Peer) -> None:
        peer.connection.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
        behind = Peer(peer.connection)
        behind.accept()
        behind.send(b"\0through")

    with Server(tunnel) as proxy:
        changes = {"server": "http://127.0.0.1:1", "proxy": f"http://ann:pass%20word@{proxy.address}"}
        with opened(proxy, **changes) as connection:
            assert everything(connection) == b"through"
    (peer,) = proxy.peers
    assert peer.head.startswith(b"CONNECT 127.0.0.1:1 ")
    assert peer.header("Proxy-Authorization") == "Basic " + base64.b64encode(b"ann:pass word").decode()
    assert peer.header("Authorization") == ""
