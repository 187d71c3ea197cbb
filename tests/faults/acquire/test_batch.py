# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many at once: one that fails takes the others back, or leaves them, as asked; nothing else stays."""

from __future__ import annotations

import math
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ApiUnreachableError, CredentialError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import acquire as acquire_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import PartialAcquireError, acquire_many

from ..fake.cluster import FakeCluster
from ..fake.plan import Fault, How, Request, status
from ..traffic import CREATE, GET_POD, GET_SANDBOX, WATCH

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

COUNT = 4
LIST = Request("list", "sandboxclaims")
EACH = (CREATE, GET_POD, GET_SANDBOX)

#: What is cured by asking again, whichever request it meets.
PASSING = (status(429), status(503), Fault(How.CUT_BEFORE), Fault(How.CUT_AFTER), Fault(How.TRUNCATED))


@pytest.mark.parametrize("request_kind", [*EACH, LIST, WATCH], ids=str)
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_is_outlived_with_one_claim_each(
    cluster: FakeCluster, real_time_client: Client, fault: Fault, request_kind: Request
) -> None:
    cluster.plan.add(fault, request_kind)
    acquired = acquire_many(real_time_client, cluster.request(), COUNT)
    assert len({one.sandbox for one in acquired}) == COUNT
    assert cluster.claims() == sorted(one.name for one in acquired)


@pytest.mark.parametrize("request_kind", EACH, ids=str)
def test_one_that_fails_takes_all_of_this_call_back(
    cluster: FakeCluster, real_time_client: Client, request_kind: Request
) -> None:
    cluster.plan.add(status(403), request_kind, nth=2)
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(real_time_client, cluster.request(), COUNT)
    assert (caught.value.reason, len(caught.value.outcomes)) == ("forbidden", COUNT)
    assert cluster.claims() == []


def test_the_first_failure_is_the_one_that_came_first(
    cluster: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Not the one of the first in order, whose request was cut for the other's sake when its time was nearly up."""

    def failing(one: acquire_module.Acquire) -> t.Any:
        if one.path.ref.name == "build-0":
            assert one.deadline.cancellation.wait(5.0)
            one.deadline.clock.sleep(one.deadline.seconds)
            raise ApiUnreachableError("cut", sent=True)
        raise CredentialError("not allowed", status=403)

    monkeypatch.setattr(acquire_module.Acquire, "run", failing)
    with pytest.raises(PartialAcquireError, match="The first failure: not allowed"):
        acquire_many(client, cluster.request(name="build"), COUNT)


@pytest.mark.parametrize("request_kind", EACH, ids=str)
def test_one_that_fails_leaves_the_others_when_asked_to(
    cluster: FakeCluster, real_time_client: Client, request_kind: Request
) -> None:
    cluster.plan.add(status(403), request_kind, nth=2)
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(real_time_client, cluster.request(), COUNT, "keep")
    kept = [one.name for one in caught.value.outcomes if one.acquired is not None]
    assert len(kept) == COUNT - 1
    assert cluster.claims() == sorted(kept)


@pytest.mark.parametrize("request_kind", [LIST, WATCH], ids=str)
def test_watch_that_is_refused_fails_at_once_and_leaves_nothing(
    cluster: FakeCluster, real_time_client: Client, request_kind: Request
) -> None:
    cluster.controller.ready = None
    cluster.plan.add(status(403), request_kind, times=math.inf)
    began = time.monotonic()
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(real_time_client, cluster.request(ready_timeout=30.0), COUNT)
    assert caught.value.reason == "forbidden"
    assert time.monotonic() - began < 10.0
    assert cluster.claims() == []


def test_claims_that_nobody_binds_are_given_up_at_the_deadline(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.ready = None
    began = time.monotonic()
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(real_time_client, cluster.request(ready_timeout=1.0), COUNT)
    assert caught.value.reason == "not-ready"
    assert {outcome.error and outcome.error.reason for outcome in caught.value.outcomes} == {"not-ready"}
    assert time.monotonic() - began < 5.0
    assert cluster.claims() == []


def test_claim_that_somebody_replaces_is_not_followed(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.ready = None
    key = cluster.key("sandboxclaims", "build-0")

    def replace() -> None:
        labels = cluster.store.get(key)["metadata"]["labels"]
        bound = {"conditions": [{"type": "Ready", "status": "True"}], "sandbox": {"name": "of-another"}}
        cluster.store.replace(key, {"spec": {}, "status": bound, "metadata": {"labels": labels}})

    cluster.server.later(0.3, replace)
    with pytest.raises(PartialAcquireError):
        acquire_many(real_time_client, cluster.request(name="build", ready_timeout=3.0), 1)
    assert GET_POD not in cluster.plan.received()
    assert cluster.claims() == ["build-0"]


def test_interrupt_leaves_nothing(
    cluster: FakeCluster, real_time_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> t.NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(acquire_module, "bind_pod", interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire_many(real_time_client, cluster.request(), COUNT)
    assert cluster.claims() == []


def test_many_cost_one_list_and_one_watch(cluster: FakeCluster, real_time_client: Client) -> None:
    acquire_many(real_time_client, cluster.request(), 20)
    received = cluster.plan.received()
    assert (received.count(LIST), received.count(WATCH)) == (1, 1)
    assert len(received) <= 2 + 3 * 20


def test_those_that_were_not_begun_are_cancelled(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.plan.add(status(403), CREATE, nth=3)
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(real_time_client, cluster.request(), 60)
    reasons = {outcome.error.reason for outcome in caught.value.outcomes if outcome.error is not None}
    assert caught.value.reason == "forbidden"
    assert reasons == {"forbidden", "cancelled"}
    assert cluster.claims() == []
