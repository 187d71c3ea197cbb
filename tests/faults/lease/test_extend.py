# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Making sure that enough is left of a lease, by name: what verb ``sandbox_lease`` does, through every fault."""

from __future__ import annotations

import datetime
import math
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ApiTimeoutError,
    ApiUnreachableError,
    ConflictError,
    CredentialError,
    SandboxError,
    UnavailableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import (
    Lease,
    LeaseLostError,
    Renewal,
    ensure_left,
    find_lease,
)

from ..fake.clock import SkippingClock
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..fake.store import Key
from ..traffic import GET_CLAIM, PASSING, PATCH_CLAIM, REFUSALS, TOO_LATE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

NAME = "build-1"
TTL = 60.0
CLAIM_KEY = Key("sandboxclaims", NAMESPACE, NAME)

every_request = pytest.mark.parametrize("request_kind", [GET_CLAIM, PATCH_CLAIM], ids=str)


@pytest.fixture
def existing(cluster: FakeCluster, client: Client, clock: SkippingClock) -> FakeCluster:
    """A cluster in which a sandbox of that name has been acquired."""
    cluster.server.now = clock.now
    acquire(client, cluster.request(name=NAME, ttl=TTL))
    cluster.plan.clear()
    return cluster


def ensured(client: Client, seconds: float = 3600.0, within: float = 20.0, **options: t.Any) -> Renewal:
    def find(limit: Deadline) -> Lease:
        return find_lease(client, NAMESPACE, NAME, limit)

    return ensure_left(client, find, seconds, Deadline(within, client.clock), **options)


def failure(client: Client, **options: t.Any) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        ensured(client, **options)
    return caught.value


def test_enough_is_left_alone(existing: FakeCluster, client: Client) -> None:
    renewal = ensured(client, 30.0)
    assert (renewal.changed, renewal.before) == (False, renewal.lease.expires_at)
    assert PATCH_CLAIM not in existing.plan.received()


def test_too_little_becomes_enough_by_the_servers_clock(
    existing: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    renewal = ensured(client, 600.0)
    assert renewal.changed
    assert renewal.lease.expires_at is not None
    assert 598.5 < (renewal.lease.expires_at - clock.now()).total_seconds() < 601.5


@every_request
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_is_outlived_and_the_change_is_said(
    existing: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    existing.plan.add(fault, request_kind)
    renewal = ensured(client)
    assert renewal.changed
    assert renewal.before is not None
    assert renewal.lease.expires_at is not None
    assert renewal.before < renewal.lease.expires_at


@every_request
@pytest.mark.parametrize("fault", REFUSALS, ids=str)
def test_refused_request_is_forbidden(
    existing: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    existing.plan.add(fault, request_kind)
    error = failure(client)
    assert (type(error), error.reason, error.retryable) == (CredentialError, "forbidden", False)


@every_request
@pytest.mark.parametrize("fault", TOO_LATE, ids=lambda fault: str(fault)[:40])
def test_wait_beyond_the_deadline_fails_at_once(
    existing: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    existing.plan.add(fault, request_kind)
    error = failure(client, within=4.0)
    assert (type(error), error.retryable) == (UnavailableError, True)


@every_request
@pytest.mark.parametrize(
    ("fault", "kind"),
    [
        (status(503), UnavailableError),
        (Fault(How.CUT_BEFORE), ApiUnreachableError),
        (Fault(How.HANG), ApiTimeoutError),
    ],
    ids=str,
)
def test_fault_that_lasts_is_given_up_at_the_deadline(
    existing: FakeCluster, client: Client, fault: Fault, kind: type[SandboxError], request_kind: Request
) -> None:
    existing.plan.add(fault, request_kind, times=math.inf)
    error = failure(client, within=1.0)
    assert (type(error), error.retryable) == (kind, True)


def test_conflict_that_passes_is_outlived(existing: FakeCluster, client: Client) -> None:
    existing.plan.add(status(409), PATCH_CLAIM)
    assert ensured(client).changed


def test_conflict_that_lasts_is_one(existing: FakeCluster, client: Client) -> None:
    existing.plan.add(status(409), PATCH_CLAIM, times=math.inf)
    assert failure(client).__class__ is ConflictError


@pytest.mark.parametrize("code", [404, 410])
def test_sandbox_that_vanishes_between_read_and_change_is_lost(
    existing: FakeCluster, client: Client, code: int
) -> None:
    existing.plan.add(status(code), PATCH_CLAIM)
    error = failure(client)
    assert (type(error), error.reason, error.retryable) == (LeaseLostError, "gone", False)


def test_sandbox_that_has_expired_is_refused_and_left_alone(
    existing: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    clock.sleep(TTL)
    assert failure(client).reason == "expired"
    assert PATCH_CLAIM not in existing.plan.received()


def test_another_one_of_the_name_is_refused_when_its_uid_is_told(existing: FakeCluster, client: Client) -> None:
    uid = existing.store.get(CLAIM_KEY)["metadata"]["uid"]
    existing.store.replace(CLAIM_KEY, {"spec": {"lifecycle": {"shutdownTime": "2099-01-01T00:00:00Z"}}})
    assert failure(client, uid=uid).reason == "replaced"
    assert ensured(client).changed is False


def shortly_before_the_end(cluster: FakeCluster, clock: SkippingClock) -> None:
    end = cluster.store.get(CLAIM_KEY)["spec"]["lifecycle"]["shutdownTime"]
    clock.sleep((datetime.datetime.fromisoformat(end) - clock.now()).total_seconds() - 2.5)


def test_close_call_is_looked_at_again_when_the_old_end_has_passed(
    existing: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    shortly_before_the_end(existing, clock)
    clock.slept.clear()
    renewal = ensured(client)
    assert renewal.changed
    assert renewal.before is not None
    assert clock.slept
    assert clock.now() > renewal.before
    assert existing.plan.received()[-1] == GET_CLAIM


def test_close_call_that_the_controller_has_won_is_lost(
    existing: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    shortly_before_the_end(existing, clock)

    def delete_after_the_change() -> None:
        existing.store.before_read(CLAIM_KEY, lambda: existing.store.before_read(CLAIM_KEY, delete))

    def delete() -> None:
        existing.store.delete(CLAIM_KEY)

    # The first read finds it, the second is that of the renewal, the third the look at what came of it.
    existing.store.before_read(CLAIM_KEY, delete_after_the_change)
    assert failure(client).reason == "gone"
    assert PATCH_CLAIM in existing.plan.received()


def test_dry_run_changes_nothing(existing: FakeCluster, client: Client) -> None:
    before = existing.store.get(CLAIM_KEY)
    assert ensured(client, dry_run=True).changed
    assert existing.store.get(CLAIM_KEY) == before
