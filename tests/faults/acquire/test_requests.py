# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request of an acquire meets every fault: it ends in time, with the right word, and leaves nothing behind."""

from __future__ import annotations

import math
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ConflictError,
    GoneError,
    InvalidError,
    SandboxError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError

from ..fake.cluster import FakeCluster
from ..fake.plan import Fault, How, Request, status
from ..traffic import (
    ACQUIRE,
    CREATE,
    DELETE,
    GET_CLAIM,
    GET_POD,
    GET_SANDBOX,
    PASSING,
    REACQUIRE,
    REFUSALS,
    TOO_LATE,
    WATCH,
)

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

#: Real seconds that no acquire here may take: waits between attempts are skipped, those who hang are waited for.
IN_TIME = 8.0

every_request = pytest.mark.parametrize("request_kind", ACQUIRE, ids=str)
every_name = pytest.mark.parametrize("name", [None, "build-1"], ids=["fresh", "named"])


def failure_of(client: Client, cluster: FakeCluster, **request: t.Any) -> SandboxError:
    """The error of an acquire that must fail, and that must take no longer than it may."""
    began = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        acquire(client, cluster.request(**request))
    assert time.monotonic() - began < IN_TIME
    return caught.value


@every_name
@every_request
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_is_outlived_with_one_claim(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request, name: str | None
) -> None:
    cluster.plan.add(fault, request_kind)
    acquired = acquire(client, cluster.request(name=name))
    assert cluster.claims() == [acquired.name]
    assert acquired.created


@pytest.mark.parametrize("request_kind", REACQUIRE, ids=str)
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_does_not_keep_reacquire_from_finding_its_sandbox(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    first = acquire(client, cluster.request(name="build-1"))
    cluster.plan.add(fault, request_kind)
    again = acquire(client, cluster.request(name="build-1"))
    assert (again.uid, again.created) == (first.uid, False)


@every_request
@pytest.mark.parametrize("fault", TOO_LATE, ids=lambda fault: str(fault)[:40])
def test_retry_after_beyond_the_deadline_fails_at_once(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    cluster.plan.add(fault, request_kind)
    error = failure_of(client, cluster)
    assert (type(error), error.reason, error.retryable) == (AcquireError, "api-unreachable", True)
    assert cluster.claims() == []


@every_name
@every_request
@pytest.mark.parametrize("fault", REFUSALS, ids=str)
def test_refused_credential_is_forbidden_and_leaves_nothing(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request, name: str | None
) -> None:
    cluster.plan.add(fault, request_kind)
    error = failure_of(client, cluster, name=name)
    assert (type(error), error.reason, error.retryable) == (AcquireError, "forbidden", False)
    assert cluster.claims() == []


@pytest.mark.parametrize("fault", REFUSALS, ids=str)
@pytest.mark.parametrize("request_kind", REACQUIRE, ids=str)
def test_refused_reacquire_leaves_the_existing_claim_alone(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    acquire(client, cluster.request(name="build-1"))
    cluster.plan.add(fault, request_kind)
    assert failure_of(client, cluster, name="build-1").reason == "forbidden"
    assert cluster.claims() == ["build-1"]


@every_request
@pytest.mark.parametrize(("code", "kind", "reason"), [(400, InvalidError, "rejected"), (422, InvalidError, "rejected")])
def test_refused_object_is_said_and_leaves_nothing(
    cluster: FakeCluster, client: Client, request_kind: Request, code: int, kind: type[SandboxError], reason: str
) -> None:
    cluster.plan.add(status(code), request_kind)
    error = failure_of(client, cluster)
    assert (type(error), error.reason, error.retryable) == (kind, reason, False)
    assert cluster.claims() == []


@pytest.mark.parametrize("code", [404, 410])
@pytest.mark.parametrize("request_kind", [CREATE, GET_SANDBOX], ids=str)
def test_missing_object_is_not_found_and_leaves_nothing(
    cluster: FakeCluster, client: Client, request_kind: Request, code: int
) -> None:
    cluster.plan.add(status(code), request_kind, times=math.inf)
    error = failure_of(client, cluster)
    assert (type(error), error.reason, error.retryable) == (GoneError, "not-found", False)
    assert cluster.claims() == []


def test_watch_of_a_missing_kind_is_not_found_and_leaves_nothing(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(404), WATCH)
    assert failure_of(client, cluster).reason == "not-found"
    assert cluster.claims() == []


def test_watch_that_is_too_old_is_begun_anew(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(410), WATCH)
    acquired = acquire(client, cluster.request())
    assert cluster.claims() == [acquired.name]


@pytest.mark.parametrize("code", [404, 410])
def test_pod_of_another_name_is_found_by_the_selector(cluster: FakeCluster, client: Client, code: int) -> None:
    cluster.plan.add(status(code), GET_POD)
    acquired = acquire(client, cluster.request())
    assert acquired.pod == acquired.sandbox


@pytest.mark.parametrize("code", [404, 410])
def test_pod_that_never_appears_is_not_ready_and_leaves_nothing(
    cluster: FakeCluster, client: Client, code: int
) -> None:
    cluster.plan.add(status(code), GET_POD, times=math.inf)
    cluster.plan.add(status(code), Request("list", "pods"), times=math.inf)
    cluster.plan.add(status(code), GET_SANDBOX, times=math.inf)
    error = failure_of(client, cluster)
    assert (type(error), error.reason, error.retryable) == (AcquireError, "not-ready", True)
    assert cluster.claims() == []


def test_conflict_with_nobody_is_tried_again(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(409), CREATE)
    acquired = acquire(client, cluster.request(name="build-1"))
    assert acquired.created
    assert cluster.claims() == ["build-1"]


def test_conflict_with_nobody_that_does_not_end_is_given_up_in_time(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(409), CREATE, times=math.inf)
    error = failure_of(client, cluster, name="build-1")
    assert (type(error), error.reason) == (ConflictError, "conflict")
    assert len(cluster.plan.received()) < 40


@pytest.mark.parametrize("request_kind", [WATCH, GET_POD, GET_SANDBOX], ids=str)
def test_conflict_where_none_can_be_is_said_and_leaves_nothing(
    cluster: FakeCluster, client: Client, request_kind: Request
) -> None:
    cluster.plan.add(status(409), request_kind)
    assert failure_of(client, cluster).reason == "conflict"
    assert cluster.claims() == []


@pytest.mark.parametrize("fault", [Fault(How.CUT_AFTER), Fault(How.TRUNCATED), Fault(How.NO_JSON)], ids=str)
def test_post_that_is_never_answered_but_done_is_found_by_its_name(
    cluster: FakeCluster, client: Client, fault: Fault
) -> None:
    cluster.plan.add(fault, CREATE, times=math.inf)
    acquired = acquire(client, cluster.request())
    assert acquired.created
    assert cluster.claims() == [acquired.name]


@pytest.mark.parametrize("request_kind", [WATCH, GET_POD, GET_SANDBOX], ids=str)
@pytest.mark.parametrize("fault", [Fault(How.CUT_AFTER), Fault(How.TRUNCATED), Fault(How.NO_JSON)], ids=str)
def test_read_that_is_never_answered_whole_is_given_up_and_leaves_nothing(
    cluster: FakeCluster, client: Client, request_kind: Request, fault: Fault
) -> None:
    cluster.plan.add(fault, request_kind, times=math.inf)
    if request_kind == WATCH:
        cluster.plan.add(fault, GET_CLAIM, times=math.inf)
    assert failure_of(client, cluster, ready_timeout=1.0).reason == "api-unreachable"
    assert cluster.claims() == []


@every_request
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (status(429), "api-unreachable"),
        (status(500), "api-unreachable"),
        (Fault(How.CUT_BEFORE), "api-unreachable"),
        (Fault(How.HANG), "api-timeout"),
    ],
    ids=str,
)
def test_fault_that_does_not_pass_is_given_up_at_the_deadline_and_leaves_nothing(
    cluster: FakeCluster, client: Client, request_kind: Request, fault: Fault, reason: str
) -> None:
    cluster.plan.add(fault, request_kind, times=math.inf)
    if request_kind == WATCH:
        cluster.plan.add(fault, GET_CLAIM, times=math.inf)
    error = failure_of(client, cluster, ready_timeout=1.0)
    cluster.plan.clear()
    assert (type(error), error.reason, error.retryable) == (AcquireError, reason, True)
    assert cluster.claims() == []


@pytest.mark.parametrize("position", range(1, len(ACQUIRE) + 1))
@pytest.mark.parametrize("fault", [status(503), Fault(How.CUT_BEFORE), Fault(How.CUT_AFTER)], ids=str)
def test_server_that_goes_away_at_a_request_is_unreachable_and_the_leftover_is_named(
    cluster: FakeCluster, client: Client, position: int, fault: Fault
) -> None:
    cluster.plan.add(fault, nth=position, times=math.inf)
    error = failure_of(client, cluster, name="build-1", ready_timeout=1.0)
    assert (type(error), error.reason) == (AcquireError, "api-unreachable")
    if cluster.claims():
        assert "SandboxClaim team-a/build-1 could not be deleted" in str(error)


@pytest.mark.parametrize("code", [401, 403])
def test_refused_delete_names_the_leftover_and_keeps_the_first_reason(
    cluster: FakeCluster, client: Client, code: int
) -> None:
    cluster.plan.add(status(422), GET_POD)
    cluster.plan.add(status(code), DELETE, times=math.inf)
    error = failure_of(client, cluster, name="build-1")
    assert error.reason == "rejected"
    assert "SandboxClaim team-a/build-1 could not be deleted" in str(error)
    assert error.leftover == "SandboxClaim team-a/build-1"


@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_of_the_cleanup_that_passes_leaves_nothing(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    cluster.plan.add(status(422), GET_POD)
    cluster.plan.add(fault, DELETE)
    error = failure_of(client, cluster)
    assert cluster.claims() == []
    assert error.leftover is None
