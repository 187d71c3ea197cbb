# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request of an acquire, a renewal and a release fails in every way: bounded, named, and nothing leaks."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.inventory import list_containers
from ansible_collections.namzu.sandbox.plugins.module_utils.container.lease import renew_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import ContainerRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.tests.faults.fake.engine import FAULTS, FakeEngine, Fault

#: The requests of an acquire, in order; a test below holds the list to what is sent.
ACQUIRE = (
    "GET /version",
    "GET /v1.41/info",
    "GET /v1.41/images/python/json",
    "GET /v1.41/containers/json",
    "POST /v1.41/containers/create",
    "PUT /v1.41/containers/ID/archive",
    "POST /v1.41/containers/ID/start",
    "POST /v1.41/containers/ID/exec",
    "POST /v1.41/exec/ID/start",
    "GET /v1.41/containers/ID/json",
)
REASONS = {"api-unreachable", "api-timeout"}
#: Far more than the bounds of the clients add up to, for a machine that is busy.
BOUND = 60.0


def request(**options: t.Any) -> ContainerRequest:
    return ContainerRequest(image="python", name="one", ready_timeout=20.0, **options)


def test_acquire_sends_these_requests(engine: FakeEngine, client: EngineClient) -> None:
    sandbox = acquire_container(client, request())
    assert tuple(engine.requests) == ACQUIRE
    assert sandbox.created
    assert sandbox.verdict.privileges.none
    assert set(sandbox.timings) == {"claim", "ready", "bind", "probe", "boundary", "total"}


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(len(ACQUIRE)), ids=[name.replace("/", "-") for name in ACQUIRE])
def test_acquire_fails_bounded_and_leaves_nothing(
    engine: FakeEngine, client: EngineClient, folders: t.Callable[[], list[str]], number: int, fault: Fault
) -> None:
    engine.faults[number] = fault
    deadline = Deadline(BOUND)
    with pytest.raises(SandboxError) as raised:
        acquire_container(client, request())
    assert raised.value.reason in REASONS, raised.value
    assert not deadline.expired
    assert raised.value.leftover is None
    assert engine.containers == {}
    assert folders() == []
    # The next one is not held up by it.
    assert acquire_container(client, request()).created


@pytest.mark.parametrize("number", range(1, len(ACQUIRE)), ids=[name.replace("/", "-") for name in ACQUIRE[1:]])
def test_engine_that_is_killed_leaves_what_is_named(
    engine: FakeEngine, client: EngineClient, folders: t.Callable[[], list[str]], number: int
) -> None:
    engine.dead_from = number
    with pytest.raises(SandboxError) as raised:
        acquire_container(client, request())
    assert raised.value.reason in REASONS
    tried = number >= ACQUIRE.index("POST /v1.41/containers/create")
    assert raised.value.leftover == ("Container namzu-one" if tried else None)
    assert folders() == []


def test_interrupt_removes_what_was_created(
    engine: FakeEngine, client: EngineClient, folders: t.Callable[[], list[str]], monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupt(*_arguments: object) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr(
        "ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire.probe_privileges", interrupt
    )
    with pytest.raises(KeyboardInterrupt):
        acquire_container(client, request())
    assert engine.containers == {}
    assert folders() == []


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(2))
def test_release_is_repeated_until_it_is_done(
    engine: FakeEngine, client: EngineClient, folders: t.Callable[[], list[str]], number: int, fault: Fault
) -> None:
    acquire_container(client, request())
    engine.faults[len(engine.requests) + number] = fault
    assert release_container(client, "one", Deadline(BOUND)).existed
    assert engine.containers == {}
    assert folders() == []
    assert not release_container(client, "one", Deadline(BOUND)).existed


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(3))
def test_renewal_fails_named_and_may_be_repeated(
    engine: FakeEngine, client: EngineClient, number: int, fault: Fault
) -> None:
    acquire_container(client, request())
    engine.faults[len(engine.requests) + number] = fault
    with pytest.raises(SandboxError) as raised:
        renew_lease(client, "one", 7200.0, Deadline(BOUND))
    assert raised.value.reason in REASONS
    assert raised.value.retryable
    end = renew_lease(client, "one", 7200.0, Deadline(BOUND)).expires_at
    assert (end - client.now()).total_seconds() > 7000
    again = renew_lease(client, "one", 3600.0, Deadline(BOUND))
    assert (again.expires_at, again.changed) == (end, False)


@pytest.mark.parametrize("fault", FAULTS)
def test_inventory_that_cannot_be_read_fails_named(engine: FakeEngine, client: EngineClient, fault: Fault) -> None:
    acquire_container(client, request())
    engine.faults[len(engine.requests)] = fault
    with pytest.raises(SandboxError) as raised:
        list_containers(client, Deadline(BOUND))
    assert raised.value.reason in REASONS
    engine.faults[len(engine.requests) + 1] = fault
    # A lease that cannot be read is not known; the sandbox is listed.
    assert [one.name for one in list_containers(client, Deadline(BOUND))] == ["one"]
