# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keeper's threads: they renew beside the program, end when they are told to, and release what is marked."""

from __future__ import annotations

import contextlib
import dataclasses
import math
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.context import Held, held
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import ReplacedError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.keeper import Keeper
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import Lease, LeaseLostError, lease_of

from ..fake.clock import SkippingClock
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, status
from ..fake.store import Body, Key
from ..listening import Listener, elapse
from ..traffic import DELETE, GET_CLAIM, PATCH_CLAIM

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

NAME = "build-1"
TTL = 60.0
#: Real seconds in which threads have done what they are about to do.
SOON = 5.0


@pytest.fixture
def listener() -> Listener:
    return Listener(SOON)


@pytest.fixture
def keeper(cluster: FakeCluster, clock: SkippingClock, listener: Listener) -> t.Iterator[Keeper]:
    cluster.server.now = clock.now
    with Keeper(listener, clock) as made:
        yield made


@pytest.fixture
def sandbox(cluster: FakeCluster, client: Client, keeper: Keeper) -> t.Iterator[Held]:
    """A sandbox in a block that runs as long as the test."""
    with contextlib.ExitStack() as stack:
        yield stack.enter_context(held(client, cluster.request(name=NAME, ttl=TTL), keeper))


def changed(cluster: FakeCluster, since: int, key: Key) -> Body:
    """The object after its next change."""
    until = time.monotonic() + SOON
    while time.monotonic() < until:
        events = cluster.store.wait_for_event(since, until - time.monotonic())
        since += len(events)
        for event in events:
            if event.key == key:
                return event.body
    pytest.fail(f"{key} was not changed")


def claim(name: str = NAME) -> Key:
    return Key("sandboxclaims", NAMESPACE, name)


def test_sandbox_is_renewed_while_its_block_runs(
    cluster: FakeCluster, client: Client, clock: SkippingClock, keeper: Keeper, sandbox: Held
) -> None:
    before, since = sandbox.expires_at, len(cluster.store.events)
    elapse(keeper, client, clock, 0.56 * TTL)
    body = changed(cluster, since, claim())
    assert before is not None
    assert body["spec"]["lifecycle"]["shutdownTime"] > before.strftime("%Y-%m-%dT%H:%M:%SZ")
    sandbox.raise_if_lost()


def test_block_learns_that_its_sandbox_is_lost(
    cluster: FakeCluster, client: Client, clock: SkippingClock, keeper: Keeper, sandbox: Held, listener: Listener
) -> None:
    cluster.store.replace(claim(), {"spec": {}})
    elapse(keeper, client, clock, 0.56 * TTL)
    listener.wait_for("lost")
    with pytest.raises(LeaseLostError) as caught:
        sandbox.raise_if_lost()
    assert caught.value.reason == "replaced"


def test_lease_is_renewed_no_more_after_its_block(
    cluster: FakeCluster, client: Client, clock: SkippingClock, keeper: Keeper
) -> None:
    with held(client, cluster.request(name=NAME, ttl=TTL), keeper):
        pass
    elapse(keeper, client, clock, TTL)
    assert [entry.lease.ref.name for entry in keeper.registry.entries()] == ["another"]
    assert PATCH_CLAIM not in cluster.plan.received()


def test_renewal_that_hangs_does_not_hold_up_the_end(
    cluster: FakeCluster, clock: SkippingClock, listener: Listener
) -> None:
    cluster.server.now = clock.now
    with cluster.client(clock, request_timeout=30.0) as patient:
        keeper = Keeper(listener, clock)
        keeper.hold(patient, lease_of(acquire(patient, cluster.request(ttl=600.0)), 600.0, direct_sandbox=False))
        cluster.plan.clear()
        cluster.plan.add(Fault(How.HANG), GET_CLAIM)
        elapse(keeper, patient, clock, 0.56 * 600.0)
        until = time.monotonic() + SOON
        while not cluster.plan.received() and time.monotonic() < until:
            threading.Event().wait(0.01)
        began = time.monotonic()
        keeper.close()
        listener.wait_for("failed")
    assert time.monotonic() - began < 1.0


def test_other_leases_are_renewed_while_one_hangs(
    cluster: FakeCluster, client: Client, clock: SkippingClock, keeper: Keeper, listener: Listener
) -> None:
    for name in ("a", "b"):
        acquired = acquire(client, cluster.request(name=name, ttl=TTL))
        keeper.hold(client, lease_of(acquired, TTL, direct_sandbox=False))
    since = len(cluster.store.events)
    cluster.plan.add(Fault(How.HANG), GET_CLAIM)
    elapse(keeper, client, clock, 0.56 * TTL)
    listener.wait_for("failed")
    assert cluster.store.wait_for_event(since, SOON)


def test_marked_sandboxes_are_released_and_no_others(
    cluster: FakeCluster, client: Client, keeper: Keeper, listener: Listener
) -> None:
    for name, marked in (("a", True), ("b", False), ("c", True)):
        acquired = acquire(client, cluster.request(name=name, ttl=TTL))
        keeper.hold(client, lease_of(acquired, TTL, direct_sandbox=False), release_on_end=marked)
    keeper.release_marked(Deadline(5.0, client.clock))
    assert cluster.claims() == ["b"]
    assert sorted(event.lease.ref.name for event in listener.said if event.kind == "released") == ["a", "c"]


def marked(cluster: FakeCluster, client: Client, keeper: Keeper) -> None:
    acquired = acquire(client, cluster.request(name=NAME, ttl=TTL))
    keeper.hold(client, lease_of(acquired, TTL, direct_sandbox=False), release_on_end=True)


def test_sandbox_that_is_gone_already_is_released(
    cluster: FakeCluster, client: Client, keeper: Keeper, listener: Listener
) -> None:
    marked(cluster, client, keeper)
    cluster.store.delete(claim())
    keeper.release_marked(Deadline(5.0, client.clock))
    assert [event.kind for event in listener.said] == ["released"]


def test_another_one_of_the_name_is_never_released(cluster: FakeCluster, client: Client, keeper: Keeper) -> None:
    marked(cluster, client, keeper)
    cluster.store.replace(claim(), {"spec": {}})
    keeper.release_marked(Deadline(5.0, client.clock))
    assert cluster.claims() == [NAME]


@pytest.mark.parametrize("fault", [status(503), status(429, "1"), Fault(How.CUT_BEFORE), Fault(How.HANG)], ids=str)
def test_fault_that_passes_does_not_keep_a_marked_sandbox(
    cluster: FakeCluster, client: Client, keeper: Keeper, listener: Listener, fault: Fault
) -> None:
    marked(cluster, client, keeper)
    cluster.plan.add(fault, DELETE, times=2)
    keeper.release_marked(Deadline(5.0, client.clock))
    assert cluster.claims() == []
    assert [event.kind for event in listener.said] == ["released"]


@pytest.mark.parametrize(("fault", "reason"), [(status(403), "forbidden"), (status(503), "api-unreachable")], ids=str)
def test_marked_sandbox_that_cannot_be_released_is_named(
    cluster: FakeCluster, client: Client, keeper: Keeper, listener: Listener, fault: Fault, reason: str
) -> None:
    marked(cluster, client, keeper)
    cluster.plan.add(fault, DELETE, times=math.inf)
    keeper.release_marked(Deadline(5.0, client.clock))
    (event,) = listener.said
    assert (event.kind, event.lease.ref.name) == ("unreleased", NAME)
    assert event.error is not None
    assert event.error.reason == reason


def test_two_hundred_are_released_within_two_seconds(
    cluster: FakeCluster, real_time_client: Client, listener: Listener
) -> None:
    with Keeper(listener) as keeper:
        for number in range(200):
            body = {"metadata": {"name": f"many-{number}"}, "spec": {}}
            uid = cluster.store.create("sandboxclaims", NAMESPACE, body)["metadata"]["uid"]
            lease = Lease(CLAIM.ref(NAMESPACE, f"many-{number}"), uid, 3600.0, None)
            keeper.hold(real_time_client, lease, release_on_end=True)
        began = time.monotonic()
        keeper.release_marked(Deadline(10.0))
        assert time.monotonic() - began < 2.0
    assert cluster.claims() == []
    assert len(listener.said) == 200


def run_in(sandbox: Held) -> bytes:
    return sandbox.agent.execute(["echo", "hi"], deadline=Deadline(SOON)).stdout


def test_agent_of_a_lost_lease_calls_nobody(
    cluster: FakeCluster, client: Client, clock: SkippingClock, keeper: Keeper, sandbox: Held, listener: Listener
) -> None:
    """Found: it went on in what was another one's sandbox by then."""
    cluster.store.replace(claim(), {"spec": {}})
    elapse(keeper, client, clock, 0.56 * TTL)
    listener.wait_for("lost")
    cluster.agent.asked.clear()
    with pytest.raises(LeaseLostError) as caught:
        run_in(sandbox)
    assert (caught.value.reason, cluster.agent.asked) == ("replaced", [])


def test_agent_calls_nobody_after_its_block(cluster: FakeCluster, client: Client, keeper: Keeper) -> None:
    with held(client, cluster.request(name=NAME, ttl=TTL), keeper) as sandbox:
        assert run_in(sandbox) == b"echo hi\n"
    cluster.agent.asked.clear()
    with pytest.raises(LeaseLostError) as caught:
        run_in(sandbox)
    assert (caught.value.reason, cluster.agent.asked) == ("gone", [])


@pytest.fixture
def nobody() -> str:
    """An address on which no agent listens."""
    return "127.0.0.2"


def test_agent_follows_the_address_of_its_pod(
    cluster: FakeCluster, client: Client, keeper: Keeper, nobody: str
) -> None:
    with held(client, cluster.request(agent_address="pod_ip"), keeper) as sandbox:
        sandbox.agent.address = dataclasses.replace(sandbox.agent.address, host=nobody)
        assert run_in(sandbox) == b"echo hi\n"
        assert sandbox.agent.address.host == "127.0.0.1"


def test_agent_does_not_follow_another_pod(cluster: FakeCluster, client: Client, keeper: Keeper, nobody: str) -> None:
    with held(client, cluster.request(agent_address="pod_ip"), keeper) as sandbox:
        cluster.store.renew(Key("pods", NAMESPACE, sandbox.acquired.pod), "another")
        sandbox.agent.address = dataclasses.replace(sandbox.agent.address, host=nobody)
        cluster.agent.asked.clear()
        with pytest.raises(ReplacedError):
            run_in(sandbox)
        assert cluster.agent.asked == []
