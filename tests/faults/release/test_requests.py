# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request of a release, and of finding a held sandbox, meets every fault."""

from __future__ import annotations

import math
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ApiTimeoutError,
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    GoneError,
    NotServedError,
    SandboxError,
    UnavailableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.agent_address import Located, locate
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import (
    Released,
    ReleaseTimeoutError,
    release,
)

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..traffic import DELETE, GET_CLAIM, LOCATE, PASSING, REFUSALS, RELEASE, RELEASE_AND_WAIT, TOO_LATE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

NAME = "build-1"
#: Real seconds that nothing here may take.
IN_TIME = 6.0

plain = [(False, request) for request in RELEASE]
waiting = [(True, request) for request in RELEASE_AND_WAIT]
every_release = pytest.mark.parametrize(
    ("wait", "request_kind"), plain + waiting, ids=lambda value: str(value) if isinstance(value, Request) else None
)


@pytest.fixture
def held(cluster: FakeCluster, client: Client) -> FakeCluster:
    """A cluster in which a sandbox of that name has been acquired."""
    acquire(client, cluster.request(name=NAME))
    cluster.plan.clear()
    return cluster


def released(client: Client, *, wait: bool, seconds: float = 5.0) -> Released:
    return release(client, NAMESPACE, NAME, Deadline(seconds, client.clock), wait=wait)


def located(client: Client, cluster: FakeCluster, seconds: float = 5.0) -> Located:
    deadline = Deadline(seconds, client.clock)
    return locate(client, NAMESPACE, NAME, port=cluster.agent.port, mode="service", deadline=deadline)


def failure_of(call: t.Callable[[], object]) -> SandboxError:
    began = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        call()
    assert time.monotonic() - began < IN_TIME
    return caught.value


@every_release
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_does_not_keep_a_sandbox_from_being_released(
    held: FakeCluster, client: Client, fault: Fault, wait: bool, request_kind: Request
) -> None:
    held.plan.add(fault, request_kind)
    assert released(client, wait=wait).existed
    assert held.claims() == []


@every_release
@pytest.mark.parametrize("fault", REFUSALS, ids=str)
def test_refused_release_is_forbidden_and_the_sandbox_is_still_ours(
    held: FakeCluster, client: Client, fault: Fault, wait: bool, request_kind: Request
) -> None:
    held.plan.add(fault, request_kind)
    error = failure_of(lambda: released(client, wait=wait))
    assert (type(error), error.reason, error.retryable) == (CredentialError, "forbidden", False)
    assert held.claims() == [NAME]


@every_release
@pytest.mark.parametrize("fault", TOO_LATE, ids=lambda fault: str(fault)[:40])
def test_retry_after_beyond_the_deadline_fails_at_once(
    held: FakeCluster, client: Client, fault: Fault, wait: bool, request_kind: Request
) -> None:
    held.plan.add(fault, request_kind)
    error = failure_of(lambda: released(client, wait=wait))
    assert (type(error), error.retryable) == (UnavailableError, True)
    assert len(held.plan.received()) <= len(RELEASE_AND_WAIT)


@every_release
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (status(503), UnavailableError),
        (Fault(How.CUT_BEFORE), ApiUnreachableError),
        (Fault(How.HANG), ApiTimeoutError),
    ],
    ids=str,
)
def test_fault_that_does_not_pass_is_given_up_at_the_deadline(
    held: FakeCluster, client: Client, fault: Fault, kind: type[SandboxError], wait: bool, request_kind: Request
) -> None:
    held.plan.add(fault, request_kind, times=math.inf)
    error = failure_of(lambda: released(client, wait=wait, seconds=1.0))
    assert (type(error), error.retryable) == (kind, True)


@pytest.mark.parametrize("wait", [False, True])
def test_release_of_what_is_gone_already_changes_nothing(cluster: FakeCluster, client: Client, wait: bool) -> None:
    assert not released(client, wait=wait).existed


def test_release_where_the_kind_is_not_served_fails(cluster: FakeCluster, client: Client) -> None:
    unserved = Fault(How.STATUS, 404, name=None)
    cluster.plan.add(unserved, DELETE)
    error = failure_of(lambda: released(client, wait=False))
    assert error.__class__ is NotServedError
    assert "CRDs are not installed" in str(error)


def test_conflict_without_a_precondition_is_no_success(held: FakeCluster, client: Client) -> None:
    held.plan.add(status(409), DELETE)
    assert failure_of(lambda: released(client, wait=False)).__class__ is ConflictError
    assert held.claims() == [NAME]


def test_another_claim_that_took_the_name_is_left_alone(held: FakeCluster, client: Client) -> None:
    key = held.key("sandboxclaims", NAME)
    held.controller.ready = None
    held.store.after_read(key, lambda: held.store.replace(key, {"spec": {}}))
    assert released(client, wait=True).existed
    assert held.claims() == [NAME]


def test_lost_answer_of_a_delete_still_counts_as_a_change(held: FakeCluster, client: Client) -> None:
    held.plan.add(Fault(How.CUT_AFTER), DELETE)
    assert released(client, wait=False).existed


def test_waiting_release_returns_only_when_the_pod_is_gone(cluster: FakeCluster, real_time_client: Client) -> None:
    acquire(real_time_client, cluster.request(name=NAME))
    cluster.controller.removal_delay = 0.3
    release(real_time_client, NAMESPACE, NAME, Deadline(5.0), wait=True)
    assert cluster.store.names("pods") == []


def test_pod_that_does_not_go_is_said_after_the_claim_went(held: FakeCluster, client: Client) -> None:
    held.controller.removal_delay = 60.0
    error = failure_of(lambda: released(client, wait=True))
    assert (type(error), error.reason, error.retryable) == (ReleaseTimeoutError, "not-gone", True)
    assert error.object in ("Sandbox team-a/python-00001", "Pod team-a/python-00001")
    assert held.claims() == []


@pytest.mark.parametrize("request_kind", LOCATE, ids=str)
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_does_not_hide_a_held_sandbox(
    held: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    held.plan.add(fault, request_kind)
    assert located(client, held).pod == "python-00001"


@pytest.mark.parametrize("request_kind", LOCATE, ids=str)
@pytest.mark.parametrize("fault", REFUSALS, ids=str)
def test_refused_read_of_a_held_sandbox_is_forbidden(
    held: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    held.plan.add(fault, request_kind)
    error = failure_of(lambda: located(client, held))
    assert (type(error), error.reason) == (CredentialError, "forbidden")


@pytest.mark.parametrize("request_kind", LOCATE, ids=str)
@pytest.mark.parametrize(
    ("fault", "kind"), [(status(503), UnavailableError), (Fault(How.HANG), ApiTimeoutError)], ids=str
)
def test_held_sandbox_that_cannot_be_read_is_given_up_at_the_deadline(
    held: FakeCluster, client: Client, fault: Fault, kind: type[SandboxError], request_kind: Request
) -> None:
    held.plan.add(fault, request_kind, times=math.inf)
    assert failure_of(lambda: located(client, held, seconds=1.0)).__class__ is kind


def test_sandbox_that_nobody_holds_is_not_found(cluster: FakeCluster, client: Client) -> None:
    error = failure_of(lambda: located(client, cluster))
    assert (type(error), error.reason) == (GoneError, "not-found")


def test_claim_that_is_not_bound_is_not_ready(cluster: FakeCluster, client: Client) -> None:
    cluster.controller.ready = None
    cluster.store.create("sandboxclaims", NAMESPACE, {"metadata": {"name": NAME}, "spec": {}})
    error = failure_of(lambda: located(client, cluster))
    assert (type(error), error.reason, error.retryable) == (AcquireError, "not-ready", True)


@pytest.mark.parametrize("code", [404, 410])
def test_claim_that_vanishes_between_read_and_delete_is_released(held: FakeCluster, client: Client, code: int) -> None:
    held.plan.add(status(code), DELETE)
    held.store.delete(held.key("sandboxclaims", NAME))
    assert not released(client, wait=False).existed
    assert GET_CLAIM not in held.plan.received()
