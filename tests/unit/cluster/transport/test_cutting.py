# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A request under way ends at once when its operation is cancelled, wherever it hangs; others go on."""

from __future__ import annotations

import contextlib
import socket
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.portforward import open_port
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, POD
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Cancellation, Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ApiUnreachableError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestError

REF = CLAIM.ref("team-a", "build-1")
#: Seconds within which "at once" must have come, and seconds that everything here would take if it were not cut.
AT_ONCE = 5.0
LONG = 60.0

HEAD = b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n"
OBJECT = b'{"metadata":{"uid":"u"}}'
WHOLE = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n%b" % (len(OBJECT), OBJECT)


class Silent:
    """A server that answers, and hangs in the last answer until its test has ended. Use it as a context manager."""

    def __init__(self, *answers: bytes, half: bytes = b"") -> None:
        self.hangs = threading.Event()
        self._half = half
        self._answers = answers
        self._over = threading.Event()
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._serve)

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._over.set()
        self._thread.join()
        self._listener.close()

    @property
    def address(self) -> str:
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _serve(self) -> None:
        with contextlib.suppress(OSError), contextlib.ExitStack() as stack:
            connection, _peer = self._listener.accept()
            stack.enter_context(connection)
            for answer in self._answers:
                connection.recv(65536)
                connection.sendall(answer)
            connection.recv(65536)
            connection.sendall(self._half)
            self.hangs.set()
            self._over.wait(LONG)


def cut(server: Silent, call: t.Callable[[Deadline], object], error: type[Exception]) -> None:
    """Call off what hangs at the server; it must end at once, with that error."""
    deadline = Deadline(LONG)

    def cancel() -> None:
        server.hangs.wait(AT_ONCE)
        deadline.cancel()

    caller = threading.Thread(target=cancel)
    caller.start()
    began = time.monotonic()
    with pytest.raises(error):
        call(deadline)
    assert time.monotonic() - began < AT_ONCE
    caller.join()


def client_of(server: Silent, scheme: str = "http") -> Client:
    return Client(Access(server=f"{scheme}://{server.address}", verify=False), request_timeout=LONG)


@pytest.mark.parametrize(
    ("scheme", "half"), [("https", b""), ("http", b""), ("http", HEAD)], ids=["handshake", "head", "body"]
)
def test_request_that_hangs_is_cut(scheme: str, half: bytes) -> None:
    with Silent(half=half) as server, client_of(server, scheme) as client:
        cut(server, lambda deadline: client.get(REF, deadline), ApiUnreachableError)


def test_request_that_hangs_on_a_kept_connection_is_cut() -> None:
    with Silent(WHOLE) as server, client_of(server) as client:
        assert client.get(REF, Deadline(AT_ONCE))["metadata"]["uid"] == "u"
        cut(server, lambda deadline: client.get(REF, deadline), ApiUnreachableError)


def test_watch_that_is_quiet_is_cut() -> None:
    quiet = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
    with Silent(half=quiet) as server, client_of(server) as client:
        cut(server, lambda deadline: list(client.watch(REF, "1", deadline)), ApiUnreachableError)


def test_port_forward_that_is_not_answered_is_cut() -> None:
    with Silent() as server, client_of(server) as client:
        pod = POD.ref("team-a", "python-1")
        cut(server, lambda deadline: open_port(client, pod, 1024, deadline), ApiUnreachableError)


def test_agent_that_hangs_is_cut() -> None:
    with Silent() as server:
        host, _colon, port = server.address.partition(":")
        agent = Agent(AgentAddress(host, int(port), "token"))
        cut(server, lambda deadline: agent.execute(["true"], deadline=deadline), GuestError)


def test_request_of_what_is_cancelled_already_is_not_waited_for() -> None:
    deadline = Deadline(LONG)
    deadline.cancel()
    with Silent() as server, client_of(server) as client:
        began = time.monotonic()
        with pytest.raises(ApiUnreachableError):
            client.get(REF, deadline)
        assert time.monotonic() - began < AT_ONCE


def test_request_of_another_operation_is_not_cut() -> None:
    cancelled = Deadline(LONG)
    with Silent(WHOLE, WHOLE) as server, client_of(server) as client:
        client.get(REF, cancelled)
        cancelled.cancel()
        assert client.get(REF, Deadline(AT_ONCE))["metadata"]["uid"] == "u"


def test_what_has_ended_is_not_cut_any_more() -> None:
    cuts: list[str] = []
    cancellation = Cancellation()
    with cancellation.cutting(lambda: cuts.append("over")):
        pass
    with cancellation.cutting(lambda: cuts.append("under way")):
        cancellation.cancel()
        assert cuts == ["under way"]
    with cancellation.cutting(lambda: cuts.append("too late")):
        assert cuts == ["under way", "too late"]


def test_step_with_a_clock_of_its_own_is_cancelled_with_the_whole() -> None:
    whole = Deadline(1.0)
    step = Deadline(LONG, cancellation=whole.cancellation)
    assert step.remaining() > 1.0
    whole.cancel()
    assert (step.cancelled, step.remaining()) == (True, 0.0)
