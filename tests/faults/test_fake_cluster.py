# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which requests the verbs make when nothing fails; the fault tests run through exactly these."""

from __future__ import annotations

import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, POD
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.agent_address import locate
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release

from .fake.cluster import FakeCluster
from .fake.controller import NAMESPACE
from .traffic import ACQUIRE, GET_SANDBOX, LOCATE, REACQUIRE, RELEASE, RELEASE_AND_WAIT

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client


def test_acquire_makes_the_requests_that_the_fault_tests_cover(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request())
    assert tuple(cluster.plan.received()) == ACQUIRE


def test_warm_acquire_costs_at_most_five_requests(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(agent_address="service", pod_labels={"sandbox.users.io/job": "1"}))
    assert len(cluster.plan.received()) <= 5


def test_reacquire_makes_the_requests_that_the_fault_tests_cover(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name="build-1"))
    cluster.plan.clear()
    again = acquire(client, cluster.request(name="build-1"))
    assert not again.created
    # The name is looked up among Sandboxes before it is used.
    assert tuple(cluster.plan.received()) == (GET_SANDBOX, *REACQUIRE)


def test_release_makes_the_requests_that_the_fault_tests_cover(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name="build-1"))
    cluster.plan.clear()
    release(client, NAMESPACE, "build-1", Deadline(5.0, client.clock))
    assert tuple(cluster.plan.received()) == RELEASE


def test_waiting_release_makes_the_requests_that_the_fault_tests_cover(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name="build-1"))
    cluster.plan.clear()
    release(client, NAMESPACE, "build-1", Deadline(5.0, client.clock), wait=True)
    assert set(cluster.plan.received()) == set(RELEASE_AND_WAIT)


def test_locate_makes_the_requests_that_the_fault_tests_cover(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name="build-1"))
    cluster.plan.clear()
    deadline = Deadline(5.0, client.clock)
    locate(client, NAMESPACE, "build-1", port=cluster.agent.port, mode="service", deadline=deadline)
    assert tuple(cluster.plan.received()) == LOCATE


def test_request_during_a_watch_finds_a_connection_open(cluster: FakeCluster, client: Client) -> None:
    acquired = acquire(client, cluster.request())
    ref = CLAIM.ref(NAMESPACE, acquired.name)
    version = client.get(ref)["metadata"]["resourceVersion"]
    watched = client.watch(ref, str(int(version) - 1), Deadline(5.0, client.clock))
    assert next(watched)
    opened = cluster.server.connections
    client.get(POD.ref(NAMESPACE, acquired.pod))
    assert cluster.server.connections == opened
    watched.close()
