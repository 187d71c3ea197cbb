# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection of a watch that is expected is opened before, and costs nothing but itself."""

from __future__ import annotations

import pathlib
import socket
import threading
import time

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.transport.pools import OpenedAhead
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ApiUnreachableError

from .authorities import Authority, server_context
from .scripted import Scripted, answer

ONE = CLAIM.ref("team-a", "one")
OURS = Authority("ours")
NO_EVENT = answer(200, b'{"type": "BOOKMARK", "object": {}}\n')


def opened(server: Scripted, connections: int = 1) -> bool:
    """Whether so many connections, and no more, have been opened in the next moment."""
    end = time.monotonic() + 5.0
    while server.connections < connections and time.monotonic() < end:
        time.sleep(0.01)
    time.sleep(0.05)
    return server.connections == connections


def test_watch_goes_over_the_connection_that_was_opened_for_it(tmp_path: pathlib.Path) -> None:
    tls = server_context(tmp_path, OURS.issue("localhost", address="127.0.0.1"))
    with Scripted(NO_EVENT, tls=tls) as server, Client(Access(server=server.url, ca_pem=OURS.pem)) as client:
        client.expect_watch(Deadline(5.0))
        assert opened(server)
        assert server.received == []
        assert [event["type"] for event in client.watch(ONE, "1", Deadline(5.0))] == ["BOOKMARK"]
        assert opened(server)


def test_no_second_connection_is_opened_while_the_first_waits_for_its_watch(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with Scripted(NO_EVENT) as server, Client(Access(server=server.url)) as client:
        client.expect_watch(Deadline(5.0))
        client.expect_watch(Deadline(5.0))
        assert opened(server)
        list(client.watch(ONE, "1", Deadline(5.0)))
        client.expect_watch(Deadline(5.0))
        assert opened(server, 2)
    # Such as that of a pool that is given back more than was taken.
    assert [record for record in caplog.records if record.levelname == "WARNING"] == []


def test_server_that_is_not_there_is_met_by_the_watch() -> None:
    with socket.create_server(("127.0.0.1", 0)) as gone:
        port = gone.getsockname()[1]
    with Client(Access(server=f"http://127.0.0.1:{port}")) as client:
        client.expect_watch(Deadline(5.0))
        with pytest.raises(ApiUnreachableError):
            list(client.watch(ONE, "1", Deadline(5.0)))


def test_handshake_that_hangs_is_cut_when_its_operation_is_cancelled() -> None:
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        with Client(Access(server=f"https://127.0.0.1:{port}", verify=False)) as client:
            deadline = Deadline(60.0)
            client.expect_watch(deadline)
            accepted, _peer = silent.accept()
            began = time.monotonic()
            deadline.cancel()
            with pytest.raises(ApiUnreachableError):
                list(client.watch(ONE, "1", deadline))
            assert time.monotonic() - began < 5.0
            accepted.close()


def test_nothing_is_opened_through_a_proxy() -> None:
    with Scripted(NO_EVENT) as proxy, Client(Access(server="http://192.0.2.1:80", proxy=proxy.url)) as client:
        client.expect_watch(Deadline(5.0))
        assert opened(proxy, 0)


class Slow:
    """A connection that is opened when it is allowed to."""

    def __init__(self) -> None:
        self.may = threading.Event()
        self.is_closed = True

    def connect(self) -> None:
        self.may.wait(5.0)
        self.is_closed = False

    def close(self) -> None:
        self.is_closed = True


@pytest.mark.parametrize("opened_first", [False, True], ids=["left first", "opened first"])
def test_connection_that_nobody_takes_is_closed_whenever_it_was_opened(opened_first: bool) -> None:
    """Found: a claim that was refused at once left the socket of its watch behind."""
    connection = Slow()
    ahead = OpenedAhead(connection, Deadline(5.0))
    if opened_first:
        connection.may.set()
        ahead.take()
        assert not connection.is_closed
    ahead.leave()
    connection.may.set()
    ahead.take()
    assert connection.is_closed
