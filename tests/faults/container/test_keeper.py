# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease keeper's process with sandboxes of a container engine."""

from __future__ import annotations

import json
import os
import signal
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import ContainerSandbox
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.engine_lease import (
    ENGINE_SANDBOX,
    ContainerLease,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.front.leases.keeper_process import read_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import LeaseLostError
from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper.link import KeeperError, KeeperLink
from ansible_collections.namzu.sandbox.tests.faults.fake.engine import FAULTS, FakeEngine, Fault

from ..lease.test_link import SOON, EventRecorder, Message
from .test_refusals import request


@pytest.fixture
def recorder() -> EventRecorder:
    return EventRecorder()


@pytest.fixture
def link(recorder: EventRecorder) -> t.Iterator[KeeperLink]:
    made = KeeperLink(recorder)
    yield made
    made.end(SOON)


def lease_of(sandbox: ContainerSandbox, ttl: float = 3600.0) -> ContainerLease:
    return ContainerLease(ENGINE_SANDBOX.ref("", sandbox.name), sandbox.uid, ttl, sandbox.expires_at)


def part(lease: ContainerLease, *, marked: bool) -> Message:
    return {**lease.described(), "release_on_end": marked}


def options(engine: FakeEngine) -> Message:
    return {"backend": "container", "docker_host": f"unix://{engine.path}"}


def test_lease_is_the_same_after_it_was_sent(engine: FakeEngine, client: EngineClient) -> None:
    lease = lease_of(acquire_container(client, request()))
    read = read_lease(json.loads(json.dumps(lease.described())))
    assert isinstance(read, ContainerLease)
    assert (read.ref, read.uid, read.ttl, read.left(client)) == (
        lease.ref,
        lease.uid,
        lease.ttl,
        pytest.approx(3600, abs=9),
    )


def test_what_is_marked_is_released_at_the_end(
    engine: FakeEngine, client: EngineClient, link: KeeperLink, recorder: EventRecorder
) -> None:
    marked, unmarked = (lease_of(acquire_container(client, request(name=name))) for name in ("one", "two"))
    with link.open(options(engine), {}) as connection:
        assert connection.hold([part(marked, marked=True), part(unmarked, marked=False)]) == {marked.uid}
    link.end(SOON)
    assert list(engine.containers) == [unmarked.uid]
    assert recorder.events() == ["held", "held", "ending", "released"]


def test_lease_is_renewed_by_the_keeper(
    engine: FakeEngine, client: EngineClient, link: KeeperLink, recorder: EventRecorder
) -> None:
    sandbox = acquire_container(client, request(ttl=10.0))
    first = engine.leases[sandbox.uid]
    with link.open(options(engine), {}) as connection:
        connection.hold([part(lease_of(sandbox, 10.0), marked=False)])
        limit = Deadline(SOON)
        while engine.leases[sandbox.uid] == first:
            assert not limit.expired, recorder.messages
            limit.sleep(0.1)
    link.end(SOON)
    ending = recorder.wait_for("ending")
    assert ending is not None
    assert ending["renewals"] >= 1


@pytest.mark.parametrize("release", ["gone", "replaced"])
def test_lease_that_is_lost_has_the_reason_of_the_engine(
    engine: FakeEngine, client: EngineClient, release: str
) -> None:
    sandbox = acquire_container(client, request())
    lease = lease_of(sandbox)
    release_container(client, "one", Deadline(SOON))
    if release == "replaced":
        acquire_container(client, request())
    with pytest.raises(LeaseLostError) as raised:
        lease.renewed(client, Deadline(SOON), 10.0)
    assert raised.value.reason == release
    assert lease.release(client, Deadline(SOON)) is None
    assert len(engine.containers) == (1 if release == "replaced" else 0)


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(3))
def test_renewal_that_fails_is_tried_again(engine: FakeEngine, client: EngineClient, number: int, fault: Fault) -> None:
    lease = lease_of(acquire_container(client, request(ttl=600.0)))
    engine.faults[len(engine.requests) + number] = fault
    with pytest.raises(SandboxError) as raised:
        lease.renewed(client, Deadline(SOON), 10.0)
    assert not isinstance(raised.value, LeaseLostError)
    lease.renewed(client, Deadline(SOON), 10.0)
    assert engine.leases[lease.uid] > client.now().timestamp() + 3000


def test_engine_that_cannot_be_named_is_reported_to_the_task(engine: FakeEngine, link: KeeperLink) -> None:
    with (
        link.open({"backend": "container", "docker_host": "carrier-pigeon://x"}, {}) as connection,
        pytest.raises(KeeperError, match="docker_host"),
    ):
        connection.hold([])


def test_engine_that_hangs_does_not_hold_up_the_end(
    engine: FakeEngine, client: EngineClient, link: KeeperLink, recorder: EventRecorder
) -> None:
    lease = lease_of(acquire_container(client, request()))
    with link.open(options(engine), {}) as connection:
        connection.hold([part(lease, marked=True)])
    engine.faults.update(dict.fromkeys(range(len(engine.requests), len(engine.requests) + 99), "hang"))
    link.end(0.3)
    assert "released" not in recorder.events()
    os.kill(link.pid, signal.SIGKILL)
