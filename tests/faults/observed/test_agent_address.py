# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A pod that moves between bind and connect is found again, before the sandbox is handed out and never after."""

from __future__ import annotations

import socket
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestTimeoutError,
    GuestUnauthorizedError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import acquire as acquire_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError

from ..fake.agent import POD_UID
from ..fake.cluster import FakeCluster
from ..traffic import GET_POD

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

POD = "python-00001"
#: Nothing listens there: the network of this machine has no other address of its own that is in use.
STALE = "127.0.0.254"
BY_IP: dict[str, t.Any] = {"agent_address": "pod_ip"}


def when_read(cluster: FakeCluster, **status: t.Any) -> None:
    """Let the pod be read as it was, and then be as it is."""
    key = cluster.key("pods", POD)
    was = {"status": {"podIP": STALE, **status}}

    def after() -> None:
        cluster.store.patch(key, {"status": {"podIP": "127.0.0.1"}})

    def before() -> None:
        cluster.store.patch(key, was)
        cluster.store.after_read(key, after)

    cluster.store.before_read(key, before)


def failure_of(client: Client, cluster: FakeCluster, **request: t.Any) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        acquire(client, cluster.request(**request))
    return caught.value


def test_pod_whose_address_has_changed_is_found_again(cluster: FakeCluster, client: Client) -> None:
    when_read(cluster)
    acquired = acquire(client, cluster.request(**BY_IP))
    assert (acquired.pod_ip, acquired.agent.host) == ("127.0.0.1", "127.0.0.1")
    assert cluster.plan.received().count(GET_POD) == 2


def test_pod_that_was_replaced_is_bound_anew(cluster: FakeCluster, client: Client) -> None:
    """The old pod's token is no good for the new one, which answers at the same address."""
    key = cluster.key("pods", POD)

    def before() -> None:
        cluster.store.renew(key, "of-the-old-one")
        cluster.store.after_read(key, lambda: cluster.store.renew(key, POD_UID))

    cluster.store.before_read(key, before)
    assert acquire(client, cluster.request()).agent.token == POD_UID


def test_pod_whose_agent_takes_another_token_is_refused_after_one_more_look(
    cluster: FakeCluster, client: Client
) -> None:
    key = cluster.key("pods", POD)
    cluster.store.before_read(key, lambda: cluster.store.renew(key, "another"))
    assert failure_of(client, cluster).__class__ is GuestUnauthorizedError
    assert cluster.plan.received().count(GET_POD) == 2
    assert cluster.claims() == []


def test_agent_that_begins_to_listen_late_is_waited_for(cluster: FakeCluster, real_time_client: Client) -> None:
    with socket.create_server(("127.0.0.1", 0)) as reserved:
        port = reserved.getsockname()[1]
    begun: list[socket.socket] = []

    def listen() -> None:
        begun.append(socket.create_server(("127.0.0.1", port)))
        cluster.server.later(0.0, lambda: relay(begun[0], cluster.agent.port))

    cluster.server.later(0.7, listen)
    assert acquire(real_time_client, cluster.request(agent_port=port, ready_timeout=20.0)).agent.port == port
    begun[0].close()


def relay(listener: socket.socket, port: int) -> None:
    """Carry one request and one answer."""
    connection, _peer = listener.accept()
    with connection, socket.create_connection(("127.0.0.1", port)) as agent:
        agent.sendall(connection.recv(65536))
        while answer := agent.recv(65536):
            connection.sendall(answer)


def test_address_that_never_answers_is_given_up_at_the_probes_end(cluster: FakeCluster, client: Client) -> None:
    error = failure_of(client, cluster, agent_port=1, ready_timeout=60.0)
    assert (type(error), error.retryable) == (GuestUnreachableError, True)
    assert client.clock.monotonic() > acquire_module.PROBE_SECONDS
    assert cluster.plan.received().count(GET_POD) < 20
    assert cluster.claims() == []


def test_agent_that_hangs_is_given_up_at_the_probes_end(
    cluster: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acquire_module, "PROBE_SECONDS", 0.6)
    cluster.agent.answers = False
    error = failure_of(client, cluster)
    assert error.__class__ is GuestTimeoutError
    assert "within 0.6 s" in error.message
    assert cluster.claims() == []


def test_pod_that_is_gone_when_it_is_looked_for_again_is_not_ready(cluster: FakeCluster, client: Client) -> None:
    key = cluster.key("pods", POD)
    cluster.store.after_read(key, lambda: cluster.store.delete(key))
    error = failure_of(client, cluster, agent_port=1)
    assert (type(error), error.reason) == (AcquireError, "not-ready")
    assert cluster.claims() == []


def test_sandbox_that_was_handed_out_does_not_follow_its_name_to_another_pod(
    cluster: FakeCluster, client: Client
) -> None:
    acquired = acquire(client, cluster.request())
    # What a client of the old pod sends to the one that has its address now.
    stale = Agent(AgentAddress(acquired.agent.host, acquired.agent.port, "of-the-old-one"))
    with pytest.raises(GuestUnauthorizedError):
        stale.execute(["true"], deadline=Deadline(5.0))
