# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Check mode on the container backend reports what the real run does, and changes nothing."""

from __future__ import annotations

import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import SANDBOX, SANDBOX_LEASE
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, Result, Verb, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import sandbox, sandbox_lease
from ansible_collections.namzu.sandbox.tests.faults.fake.engine import FakeEngine

from .test_refusals import request


def task(engine: FakeEngine, verb: Verb, *, check_mode: bool = True, **given: t.Any) -> Result:
    options = SANDBOX if verb is sandbox.VERB else SANDBOX_LEASE
    params = {name: spec.get("default") for name, spec in options.items()}
    environ = {"NAMZU_SANDBOX_BACKEND": "container", "DOCKER_HOST": f"unix://{engine.path}"}
    return perform(verb, {**params, **given}, Context(check_mode=check_mode, environ=environ))


def changes(engine: FakeEngine) -> list[str]:
    return [one for one in engine.requests if one.startswith(("POST", "PUT", "DELETE"))]


def test_sandbox_that_does_not_match_is_the_conflict_of_the_real_run(engine: FakeEngine, client: EngineClient) -> None:
    acquire_container(client, request(pids=20))
    before = changes(engine)
    asked = {"image": "python", "name": "one", "pids": 30}
    planned = task(engine, sandbox.VERB, **asked)
    assert changes(engine) == before
    real = task(engine, sandbox.VERB, check_mode=False, **asked)
    assert (planned["failed"], planned["reason"]) == (True, "conflict")
    assert planned["msg"] == real["msg"]


def test_container_that_is_not_a_sandbox_is_the_conflict_of_the_real_run(
    engine: FakeEngine, client: EngineClient
) -> None:
    uid = acquire_container(client, request()).uid
    engine.containers[uid]["Config"]["Labels"] = {}
    planned = task(engine, sandbox.VERB, image="python", name="one")
    real = task(engine, sandbox.VERB, check_mode=False, image="python", name="one")
    assert (planned["reason"], planned["msg"]) == ("conflict", real["msg"])


def test_numbered_sandboxes_are_compared_each(engine: FakeEngine, client: EngineClient) -> None:
    acquire_container(client, request(name="one-1"))
    planned = task(engine, sandbox.VERB, image="python", name="one", count=3)
    assert [one["name"] for one in planned["diff"]["after"]["sandboxes"]] == ["one-0", "one-2"]
    assert task(engine, sandbox.VERB, image="python", name="one", count=3, pids=20)["reason"] == "conflict"


def test_one_that_matches_is_unchanged_and_one_that_has_ended_would_be_created(
    engine: FakeEngine, client: EngineClient
) -> None:
    uid = acquire_container(client, request()).uid
    assert not task(engine, sandbox.VERB, image="python", name="one")["changed"]
    engine.containers[uid]["State"] = {"Status": "exited", "Running": False}
    assert task(engine, sandbox.VERB, image="python", name="one", pids=20)["changed"]


def test_lease_shows_the_end_that_it_would_have(engine: FakeEngine, client: EngineClient) -> None:
    acquire_container(client, request(ttl=600.0))
    before = changes(engine)
    planned = task(engine, sandbox_lease.VERB, name="one", remaining="2h")
    assert changes(engine) == before
    assert planned["changed"]
    old, new = (datetime.datetime.fromisoformat(planned["diff"][side]["expires_at"]) for side in ("before", "after"))
    assert (new - old).total_seconds() > 6000
    assert planned["lease_left"] > 7000
    assert not task(engine, sandbox_lease.VERB, name="one", remaining="5m")["changed"]


def test_lease_is_renewed_with_three_requests(engine: FakeEngine, client: EngineClient) -> None:
    acquire_container(client, request(ttl=600.0))
    before = len(engine.requests)
    assert task(engine, sandbox_lease.VERB, check_mode=False, name="one", remaining="2h")["changed"]
    sent = [one for one in engine.requests[before:] if "/version" not in one]
    assert [one.split()[0] for one in sent] == ["GET", "HEAD", "PUT"]


@pytest.mark.parametrize("remaining", ["1s", "9s", "4000d"])
def test_remaining_out_of_bounds_is_reported(engine: FakeEngine, client: EngineClient, remaining: str) -> None:
    acquire_container(client, request())
    before = len(engine.requests)
    result = task(engine, sandbox_lease.VERB, check_mode=False, name="one", remaining=remaining)
    assert result["reason"] == "invalid-input"
    assert "remaining" in result["msg"]
    assert len(engine.requests) == before


def test_labels_are_found_without_a_look_at_leases(engine: FakeEngine, client: EngineClient) -> None:
    for name in ("one", "two"):
        acquire_container(client, request(name=name, labels={"job": "1"}))
    before = len(engine.requests)
    released = task(engine, sandbox.VERB, check_mode=False, state="absent", label_selector="job=1")["released"]
    assert sorted(released) == ["one", "two"]
    assert not [one for one in engine.requests[before:] if one.startswith("HEAD")]
