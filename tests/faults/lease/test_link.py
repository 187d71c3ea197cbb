# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keeper's process, spoken to as a worker of Ansible does, without Ansible."""

from __future__ import annotations

import datetime
import json
import math
import os
import pathlib
import signal
import socket
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, SANDBOX
from ansible_collections.namzu.sandbox.plugins.module_utils.front.leases.keeper_process import read_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import Lease
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.protocol import (
    MAXIMUM_MESSAGE,
    accept,
    connect,
    receive,
    send,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.timestamps import timestamp
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.lease import WorkspaceLease
from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper.link import KeeperError, KeeperLink

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How
from ..fake.server import TOKEN
from ..traffic import DELETE

Message = dict[str, t.Any]
SOON = 30.0


class EventRecorder:
    """Records the events of the keeper."""

    def __init__(self) -> None:
        self.messages: list[Message | None] = []
        self._changed = threading.Condition()

    def __call__(self, message: Message | None) -> None:
        with self._changed:
            self.messages.append(message)
            self._changed.notify_all()

    def wait_for(self, event: str | None) -> Message | None:
        def found() -> list[Message | None]:
            return [message for message in self.messages if (message["event"] if message else None) == event]

        with self._changed:
            assert self._changed.wait_for(found, SOON), f"the keeper did not send {event}: {self.messages}"
            return found()[0]

    def events(self) -> list[str]:
        return [message["event"] for message in self.messages if message is not None]


@pytest.fixture
def recorder() -> EventRecorder:
    return EventRecorder()


@pytest.fixture
def link(recorder: EventRecorder) -> t.Iterator[KeeperLink]:
    made = KeeperLink(recorder)
    yield made
    made.end(SOON)


def part(cluster: FakeCluster, name: str, *, marked: bool) -> Message:
    """A lease that a task hands over; its claim is there."""
    metadata = cluster.store.create("sandboxclaims", NAMESPACE, {"metadata": {"name": name}, "spec": {}})["metadata"]
    lease = Lease(CLAIM.ref(NAMESPACE, name), metadata["uid"], 3600.0, None)
    return {**lease.described(), "release_on_end": marked}


def options(cluster: FakeCluster) -> Message:
    return {"host": cluster.server.url, "api_key": TOKEN}


def test_what_is_marked_is_released_at_the_end_and_the_keeper_ends(
    cluster: FakeCluster, link: KeeperLink, recorder: EventRecorder
) -> None:
    with link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True), part(cluster, "b", marked=False)])
    link.end(SOON)
    assert cluster.claims() == ["b"]
    assert recorder.events() == ["held", "held", "ending", "released"]
    assert link._process.wait(SOON) == 0
    with pytest.raises(ProcessLookupError):
        os.kill(link.pid, 0)


def test_operation_that_the_keeper_does_not_have_is_an_error(cluster: FakeCluster, link: KeeperLink) -> None:
    """Found: it meant that what is held could not be released."""
    with link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True)])
        with pytest.raises(KeeperError):
            connection._ask({"op": "relaese", "namespace": NAMESPACE, "names": ["a"]})
        connection.leave(NAMESPACE, ["a"])


def test_release_that_hangs_does_not_hold_up_the_end(
    cluster: FakeCluster, link: KeeperLink, recorder: EventRecorder
) -> None:
    with link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True)])
    cluster.plan.add(Fault(How.HANG), DELETE, times=math.inf)
    began = time.monotonic()
    link.end(0.3)
    assert time.monotonic() - began < 1.3
    assert "released" not in recorder.events()
    os.kill(link.pid, signal.SIGKILL)


def test_keeper_that_holds_nothing_ends_without_a_word(link: KeeperLink, recorder: EventRecorder) -> None:
    began = time.monotonic()
    link.end(SOON)
    assert recorder.messages == [None]
    assert time.monotonic() - began < SOON


def test_released_by_the_play_is_forgotten(cluster: FakeCluster, link: KeeperLink, recorder: EventRecorder) -> None:
    with link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True), part(cluster, "b", marked=True)])
        connection.leave(NAMESPACE, ["a", "b"])
        connection.forget(NAMESPACE, ["a"])
        connection.stay(NAMESPACE, ["b"])
    link.end(SOON)
    # Nobody has deleted it in truth: the keeper believed what it was recorder.
    assert cluster.claims() == ["a"]
    assert recorder.events() == ["held", "held", "forgotten", "ending", "released"]


def test_name_on_another_server_is_not_forgotten(cluster: FakeCluster, link: KeeperLink) -> None:
    with link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True)])
    with link.open({"host": "https://other.example", "api_key": "x"}, {}) as elsewhere:
        elsewhere.forget(NAMESPACE, ["a"])
    link.end(SOON)
    assert cluster.claims() == []


def test_environment_of_the_task_leads_to_the_server(cluster: FakeCluster, link: KeeperLink) -> None:
    environ = {"K8S_AUTH_HOST": cluster.server.url, "K8S_AUTH_API_KEY": TOKEN}
    with link.open({}, environ) as connection:
        connection.hold([part(cluster, "a", marked=True)])
    link.end(SOON)
    assert cluster.claims() == []


def test_credentials_that_cannot_be_used_are_refused_in_words_without_them(
    cluster: FakeCluster, link: KeeperLink
) -> None:
    with link.open({"host": "ftp://h", "api_key": "hush"}, {}) as connection, pytest.raises(KeeperError) as caught:
        connection.hold([part(cluster, "a", marked=True)])
    assert "host" in str(caught.value)
    assert "hush" not in str(caught.value)


def test_keeper_that_has_ended_is_an_error_that_says_so(
    cluster: FakeCluster, link: KeeperLink, recorder: EventRecorder
) -> None:
    os.kill(link.pid, signal.SIGKILL)
    recorder.wait_for(None)
    with pytest.raises(KeeperError) as caught, link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True)])
    assert (caught.value.reason, caught.value.retryable) == ("keeper", False)


def test_keeper_that_is_told_to_end_gives_back_what_is_marked(
    cluster: FakeCluster, link: KeeperLink, recorder: EventRecorder
) -> None:
    with link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True)])
    os.kill(link.pid, signal.SIGTERM)
    recorder.wait_for("released")
    assert cluster.claims() == []


def test_caller_that_talks_nonsense_ends_alone(cluster: FakeCluster, link: KeeperLink) -> None:
    for nonsense in (b"\xff\xff\xff\xff", b"\x00\x00\x00\x02{]", b"\x00\x00\x00\x10cut", b""):
        with connect(link._control_socket) as wire:
            wire.settimeout(SOON)
            wire.sendall(nonsense)
            wire.shutdown(socket.SHUT_WR)
            assert wire.recv(1) == b""
    with link.open(options(cluster), {}) as connection:
        connection.hold([part(cluster, "a", marked=True)])
    link.end(SOON)
    assert cluster.claims() == []


def test_messages_arrive_whole_whatever_their_size() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        large = {"text": "x" * 1_000_000}
        writer = threading.Thread(target=send, args=(ours, large))
        writer.start()
        assert receive(theirs) == large
        writer.join()
        ours.close()
        assert receive(theirs) is None


def test_message_that_is_too_large_is_not_read() -> None:
    ours, theirs = socket.socketpair()
    with ours, theirs:
        ours.sendall((MAXIMUM_MESSAGE + 1).to_bytes(4, "big"))
        with pytest.raises(OSError, match="too large"):
            receive(theirs)


def test_door_gives_everybody_a_connection_of_their_own() -> None:
    control_socket, inside = socket.socketpair()
    with inside:
        callers = [connect(control_socket) for _caller in range(20)]
        control_socket.close()
        for number, caller in enumerate(callers):
            send(caller, {"number": number})
        for number in range(20):
            wire = accept(inside)
            assert wire is not None
            with wire:
                assert receive(wire) == {"number": number}
        assert accept(inside) is None
        for caller in callers:
            caller.close()


@pytest.mark.parametrize("kind", [CLAIM, SANDBOX], ids=lambda kind: kind.name)
def test_lease_survives_the_wire(cluster: FakeCluster, kind: t.Any) -> None:
    made = Lease(kind.ref("n", "a"), "uid-1", 90.0, cluster.server.now().replace(microsecond=0), "python-1")
    assert read_lease(json.loads(json.dumps(made.described()))) == made


def test_lease_of_a_workspace_survives_the_wire() -> None:
    named = {"workspace_id": "a/b", "holder_epoch": 7, "flush": False, "agent_port": 99, "agent_address": "pod_ip"}
    made = WorkspaceLease(SANDBOX.ref("n", "workspace-a-b"), "uid-1", 0.0, None, **named)
    assert read_lease(json.loads(json.dumps(made.described()))) == made


#: What two hundred leases may cost: the part of one processor, and bytes.
MANY, PROCESSOR, MEMORY = 200, 0.01, 60e6


def test_two_hundred_leases_cost_less_than_a_hundredth_of_a_processor_and_sixty_megabytes(
    cluster: FakeCluster, link: KeeperLink
) -> None:
    soon = cluster.server.now() + datetime.timedelta(seconds=5)
    spec = {"lifecycle": {"shutdownTime": timestamp(soon)}}
    parts = []
    for number in range(MANY):
        body = {"metadata": {"name": f"many-{number}"}, "spec": spec}
        uid = cluster.store.create("sandboxclaims", NAMESPACE, body)["metadata"]["uid"]
        lease = Lease(CLAIM.ref(NAMESPACE, f"many-{number}"), uid, 3600.0, soon)
        parts.append({**lease.described(), "release_on_end": False})
    with link.open(options(cluster), {}) as connection:
        connection.hold(parts)
        before = processor_seconds(link.pid)
        # They end soon, so each is renewed once now, and then in half an hour.
        renewed, seen = 0, 0
        while renewed < MANY:
            events = cluster.store.wait_for_event(seen, SOON)
            assert events, f"{renewed} were renewed"
            seen += len(events)
            renewed += sum(event.type == "MODIFIED" for event in events)
        each = (processor_seconds(link.pid) - before) / MANY
        # The keeper does nothing between renewals, and two of each lease come in one ttl.
        assert each * MANY * 2 / 3600.0 < PROCESSOR
        assert int(stat(link.pid)[21]) * os.sysconf("SC_PAGE_SIZE") < MEMORY


def stat(pid: int) -> list[str]:
    return pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="ascii").rpartition(") ")[2].split()


def processor_seconds(pid: int) -> float:
    fields = stat(pid)
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
