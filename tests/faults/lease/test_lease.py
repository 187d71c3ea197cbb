# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Renewing a lease: what is renewed, what is refused, and what happens in between."""

from __future__ import annotations

import dataclasses
import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import ConflictError, NotServedError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import (
    Lease,
    LeaseLostError,
    find_lease,
    lease_of,
    renew,
)

from ..fake.clock import SkippingClock
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..fake.store import Body, Key
from ..traffic import GET_CLAIM, PATCH_CLAIM

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

NAME = "build-1"
TTL = 60.0


@pytest.fixture
def lease(cluster: FakeCluster, client: Client, clock: SkippingClock) -> Lease:
    """The lease of a claim that has just been acquired, on a server with the client's clock."""
    cluster.server.now = clock.now
    acquired = acquire(client, cluster.request(name=NAME, ttl=TTL))
    cluster.plan.clear()
    return lease_of(acquired, TTL, direct_sandbox=False)


def renewed(client: Client, lease: Lease, **options: t.Any) -> t.Any:
    return renew(client, lease, Deadline(5.0, client.clock), **options)


def refused(client: Client, lease: Lease) -> LeaseLostError:
    with pytest.raises(LeaseLostError) as caught:
        renewed(client, lease)
    return caught.value


def key(cluster: FakeCluster) -> Key:
    return cluster.key("sandboxclaims", NAME)


def end_of(body: Body) -> datetime.datetime:
    return datetime.datetime.fromisoformat(body["spec"]["lifecycle"]["shutdownTime"])


def ends(cluster: FakeCluster) -> datetime.datetime:
    return end_of(cluster.store.get(key(cluster)))


def seconds_left(cluster: FakeCluster, clock: SkippingClock) -> float:
    return (ends(cluster) - clock.now()).total_seconds()


def test_renewal_extends_the_lease_by_its_ttl(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    clock.sleep(30.0)
    renewal = renewed(client, lease)
    assert renewal.changed
    assert renewal.lease.expires_at == ends(cluster)
    assert TTL - 1.5 < seconds_left(cluster, clock) < TTL + 1.5
    assert cluster.plan.received() == [GET_CLAIM, PATCH_CLAIM]


def test_renewal_of_a_direct_sandbox_extends_its_own_time(
    cluster: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    cluster.server.now = clock.now
    template = {"metadata": {"name": "python"}, "spec": {"podTemplate": {"spec": {}}}}
    cluster.store.create("sandboxtemplates", NAMESPACE, template)
    acquired = acquire(client, cluster.request(name=NAME, warm_pool=None, template="python", ttl=TTL))
    clock.sleep(30.0)
    renewal = renewed(client, lease_of(acquired, TTL, direct_sandbox=True))
    body = cluster.store.get(cluster.key("sandboxes", NAME))
    assert datetime.datetime.fromisoformat(body["spec"]["shutdownTime"]) == renewal.lease.expires_at
    assert "lifecycle" not in body["spec"]


def test_lease_that_lasts_longer_is_not_shortened(cluster: FakeCluster, client: Client, lease: Lease) -> None:
    later = {"spec": {"lifecycle": {"shutdownTime": "2099-01-01T00:00:00Z"}}}
    cluster.store.patch(key(cluster), later)
    renewal = renewed(client, lease)
    assert not renewal.changed
    assert renewal.lease.expires_at == ends(cluster)
    assert PATCH_CLAIM not in cluster.plan.received()


def test_lease_without_an_end_is_left_without_one(cluster: FakeCluster, client: Client, lease: Lease) -> None:
    cluster.store.patch(key(cluster), {"spec": {"lifecycle": {"shutdownTime": None}}})
    assert renewed(client, lease).lease.expires_at is None
    assert PATCH_CLAIM not in cluster.plan.received()


def test_dry_run_asks_the_server_and_changes_nothing(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    before = ends(cluster)
    clock.sleep(30.0)
    assert renewed(client, lease, dry_run=True).changed
    assert PATCH_CLAIM in cluster.plan.received()
    assert ends(cluster) == before


def test_time_is_the_servers(cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease) -> None:
    ahead = datetime.timedelta(seconds=20)
    cluster.server.now = lambda: clock.now() + ahead
    clock.sleep(30.0)
    renewed(client, lease)
    assert TTL + 18.0 < seconds_left(cluster, clock) < TTL + 22.0


def test_lease_that_has_ended_by_the_servers_clock_is_refused(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    ahead = datetime.timedelta(seconds=40)
    cluster.server.now = lambda: clock.now() + ahead
    clock.sleep(30.0)
    assert refused(client, lease).reason == "expired"


def test_lease_that_has_ended_is_refused_and_nothing_is_sent(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    clock.sleep(TTL)
    error = refused(client, lease)
    assert (error.reason, error.retryable, error.object) == ("expired", False, "SandboxClaim team-a/build-1")
    assert cluster.plan.received() == [GET_CLAIM]


def test_lease_that_was_extended_by_others_after_its_end_is_refused(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    clock.sleep(TTL + 5.0)
    cluster.store.patch(key(cluster), {"spec": {"lifecycle": {"shutdownTime": "2099-01-01T00:00:00Z"}}})
    assert refused(client, lease).reason == "expired"
    assert cluster.plan.received() == [GET_CLAIM]


def test_lease_that_was_extended_by_others_in_time_goes_on(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    clock.sleep(30.0)
    others = renewed(client, lease).lease
    clock.sleep(20.0)
    assert renewed(client, dataclasses.replace(lease, expires_at=others.expires_at)).changed


@pytest.mark.parametrize("when", ["before the read", "between read and change"])
def test_claim_that_was_deleted_and_made_again_is_refused_and_left_alone(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease, when: str
) -> None:
    other = {"spec": {"lifecycle": {"shutdownTime": "2099-01-01T00:00:00Z"}}}
    clock.sleep(30.0)
    hook = cluster.store.before_read if when == "before the read" else cluster.store.after_read
    hook(key(cluster), lambda: cluster.store.replace(key(cluster), other))
    assert refused(client, lease).reason == "replaced"
    assert cluster.store.get(key(cluster))["spec"]["lifecycle"] == other["spec"]["lifecycle"]


@pytest.mark.parametrize("reason", ["ClaimExpired", "SandboxExpired"])
@pytest.mark.parametrize("when", ["before the read", "between read and change"])
def test_lease_whose_end_the_controller_has_decided_is_refused(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease, when: str, reason: str
) -> None:
    decided = {"status": {"conditions": [{"type": "Ready", "status": "False", "reason": reason}]}}
    clock.sleep(30.0)
    before = ends(cluster)
    hook = cluster.store.before_read if when == "before the read" else cluster.store.after_read
    hook(key(cluster), lambda: cluster.store.patch(key(cluster), decided))
    assert refused(client, lease).reason == "expired"
    assert ends(cluster) == before


def test_change_of_others_between_read_and_change_is_read_and_kept(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    clock.sleep(30.0)
    labelled = {"metadata": {"labels": {"by": "others"}}}
    cluster.store.after_read(key(cluster), lambda: cluster.store.patch(key(cluster), labelled))
    assert renewed(client, lease).changed
    assert cluster.store.get(key(cluster))["metadata"]["labels"] == {"by": "others"}
    assert cluster.plan.received() == [GET_CLAIM, PATCH_CLAIM, GET_CLAIM, PATCH_CLAIM]


def test_conflict_that_does_not_end_is_given_up(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    cluster.plan.add(status(409), PATCH_CLAIM, times=100)
    clock.sleep(30.0)
    with pytest.raises(ConflictError):
        renewed(client, lease)
    assert len(cluster.plan.received()) == 10


def test_claim_that_leads_to_another_sandbox_is_refused(cluster: FakeCluster, client: Client, lease: Lease) -> None:
    cluster.store.patch(key(cluster), {"status": {"sandbox": {"name": "python-99999"}}})
    error = refused(client, lease)
    assert error.reason == "replaced"
    assert "python-99999" in str(error)


def test_claim_that_is_being_deleted_is_refused(cluster: FakeCluster, client: Client, lease: Lease) -> None:
    cluster.store.patch(key(cluster), {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}})
    assert refused(client, lease).reason == "gone"


@pytest.mark.parametrize("request_kind", [GET_CLAIM, PATCH_CLAIM], ids=str)
@pytest.mark.parametrize("code", [404, 410])
def test_claim_that_is_gone_is_lost(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease, code: int, request_kind: Request
) -> None:
    clock.sleep(30.0)
    cluster.plan.add(status(code), request_kind)
    error = refused(client, lease)
    assert (error.reason, error.retryable) == ("gone", False)


@pytest.mark.parametrize("request_kind", [GET_CLAIM, PATCH_CLAIM], ids=str)
def test_kind_that_is_not_served_is_no_loss(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease, request_kind: Request
) -> None:
    clock.sleep(30.0)
    cluster.plan.add(Fault(How.STATUS, 404, name=None), request_kind)
    with pytest.raises(NotServedError):
        renewed(client, lease)


def test_renewal_in_the_last_seconds_asks_for_another_look(
    cluster: FakeCluster, client: Client, clock: SkippingClock, lease: Lease
) -> None:
    clock.sleep((ends(cluster) - clock.now()).total_seconds() - 2.5)
    renewal = renewed(client, lease)
    assert renewal.changed
    assert 2.0 < renewal.look_again < 5.0
    assert renewed(client, renewal.lease).look_again is None


def test_sandbox_that_nobody_holds_has_no_lease(cluster: FakeCluster, client: Client) -> None:
    with pytest.raises(LeaseLostError) as caught:
        find_lease(client, NAMESPACE, "nobody", Deadline(5.0, client.clock))
    assert caught.value.reason == "gone"


def test_member_of_a_pool_has_no_lease(cluster: FakeCluster, client: Client, lease: Lease) -> None:
    assert lease.sandbox is not None
    with pytest.raises(LeaseLostError):
        find_lease(client, NAMESPACE, lease.sandbox, Deadline(5.0, client.clock))
