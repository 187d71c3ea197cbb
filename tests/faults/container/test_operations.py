# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request of the operations beside a first acquire fails in every way: bounded, named, and nothing changes."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.requests import Request
from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.batch import acquire_containers
from ansible_collections.namzu.sandbox.plugins.module_utils.container.inventory import held_containers, locate_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.planned import planned_acquires
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.tests.faults.fake.engine import FAULTS, FakeEngine, Fault

from .test_every_request import ACQUIRE, BOUND, REASONS, request

ONE = "/v1.41/containers/namzu-one"
CREATED = tuple(one for one in ACQUIRE if "containers" in one or "exec" in one)


@dataclasses.dataclass(frozen=True)
class Operation:
    """What is done with an engine that has the sandbox ``one``, and the requests that it sends, in order."""

    name: str
    run: t.Callable[[EngineClient], object]
    requests: tuple[str, ...]


def acquire(**options: t.Any) -> t.Callable[[EngineClient], object]:
    return lambda client: acquire_container(client, dataclasses.replace(request(), **options))


OPEN = {"network": "outside", "egress": Request.of("allow_all")}
OPERATIONS = (
    Operation(
        "find",
        lambda client: locate_container(client, "one", Deadline(BOUND)),
        (f"GET {ONE}/json", "GET /v1.41/containers/ID/archive"),
    ),
    Operation("names", lambda client: held_containers(client, Deadline(BOUND)), ("GET /v1.41/containers/json",)),
    Operation(
        "acquire what exists",
        acquire(),
        (
            "GET /v1.41/info",
            "GET /v1.41/images/python/json",
            "GET /v1.41/containers/json",
            f"GET {ONE}/json",
            "GET /v1.41/containers/ID/archive",
            "HEAD /v1.41/containers/ID/archive",
            "GET /v1.41/containers/ID/json",
        ),
    ),
    Operation(
        "check mode",
        lambda client: planned_acquires(client, [dataclasses.replace(request(), name="two")]),
        ("GET /v1.41/info", "GET /v1.41/containers/json", "GET /v1.41/containers/namzu-two/json"),
    ),
    Operation(
        "acquire with a pull",
        acquire(name="two", image="registry:5000/node"),
        (
            "GET /v1.41/info",
            "GET /v1.41/images/registry%3A5000%2Fnode/json",
            "POST /v1.41/images/create",
            "GET /v1.41/images/registry%3A5000%2Fnode/json",
            *CREATED,
        ),
    ),
    Operation(
        "acquire with a network",
        acquire(name="two", **OPEN),
        ("GET /v1.41/info", "GET /v1.41/networks/outside", "GET /v1.41/images/python/json", *CREATED),
    ),
)
CASES = [
    pytest.param(operation, number, id=f"{operation.name}-{number}-{one.split(' ')[0]}")
    for operation in OPERATIONS
    for number, one in enumerate(operation.requests)
]


@pytest.fixture
def held(engine: FakeEngine, client: EngineClient) -> FakeEngine:
    """An engine that has the sandbox ``one``, and a network."""
    engine.networks = {"outside": {"Driver": "bridge", "Internal": False, "Options": {}}}
    acquire_container(client, request())
    return engine


@pytest.mark.parametrize("operation", OPERATIONS, ids=lambda one: one.name)
def test_operation_sends_these_requests(held: FakeEngine, client: EngineClient, operation: Operation) -> None:
    before = len(held.requests)
    operation.run(client)
    assert tuple(held.requests[before:]) == operation.requests


@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize(("operation", "number"), CASES)
def test_operation_fails_bounded_and_changes_nothing(
    held: FakeEngine,
    client: EngineClient,
    folders: t.Callable[[], list[str]],
    operation: Operation,
    number: int,
    fault: Fault,
) -> None:
    containers, kept, deadline = set(held.containers), folders(), Deadline(BOUND)
    held.faults[len(held.requests) + number] = fault
    with pytest.raises(SandboxError) as raised:
        operation.run(client)
    # What the engine says about a pull is the registry's answer.
    pulled = {"image-pull"} if operation.requests[number].startswith("POST /v1.41/images") else set()
    assert raised.value.reason in REASONS | pulled, raised.value
    assert raised.value.leftover is None
    assert not deadline.expired
    assert set(held.containers) == containers
    assert folders() == kept
    operation.run(client)


@pytest.mark.parametrize(("operation", "number"), CASES)
def test_engine_that_is_killed_is_named(
    held: FakeEngine, client: EngineClient, operation: Operation, number: int
) -> None:
    held.dead_from = len(held.requests) + number
    with pytest.raises(SandboxError) as raised:
        operation.run(client)
    assert raised.value.reason in REASONS, raised.value
    assert raised.value.leftover in (None, "Container namzu-two")


#: After the version, the engine and the image are read.
@pytest.mark.parametrize("fault", FAULTS)
@pytest.mark.parametrize("number", range(3, 17))
def test_batch_in_which_a_request_fails_leaves_nothing(
    engine: FakeEngine, client: EngineClient, folders: t.Callable[[], list[str]], number: int, fault: Fault
) -> None:
    engine.faults[number] = fault
    outcomes, first = acquire_containers(client, dataclasses.replace(request(), name="many"), 2)
    assert first is not None
    assert first.reason in REASONS, first
    assert [one.acquired for one in outcomes] == [None, None]
    assert engine.containers == {}
    assert folders() == []


@pytest.mark.parametrize("fault", FAULTS)
def test_release_does_not_need_the_volumes(held: FakeEngine, client: EngineClient, fault: Fault) -> None:
    before = len(held.requests)
    held.faults[before + 2] = fault
    assert release_container(client, "one", Deadline(BOUND)).existed
    assert held.requests[before + 2] == "POST /v1.41/volumes/prune"
    assert held.containers == {}
