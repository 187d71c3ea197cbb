# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The keeper's attempts on a simulated clock: every fault is met, an outage is survived or is a loss with a name."""

from __future__ import annotations

import math
import random
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.keeper import attempt
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import lease_of
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.registry import Entry, Event, LeaseRegistry

from ..fake.clock import SkippingClock
from ..fake.cluster import FakeCluster
from ..fake.plan import Fault, How, Request, status
from ..listening import attempt_all
from ..traffic import GET_CLAIM, PASSING, PATCH_CLAIM, REFUSALS, TOO_LATE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

NAME = "build-1"
TTL = 3600.0
RENEWAL = (GET_CLAIM, PATCH_CLAIM)


class Kept:
    """One lease in a registry, and what was said about it; the simulated time goes on in ``run``."""

    def __init__(self, cluster: FakeCluster, client: Client, clock: SkippingClock, ttl: float = TTL) -> None:
        self.said: list[Event] = []
        self.cluster, self.clock = cluster, clock
        cluster.server.now = clock.now
        self.registry = LeaseRegistry(self.said.append, clock, random.Random(1).random)  # noqa: S311 - no secret
        acquired = acquire(client, cluster.request(name=NAME, ttl=ttl))
        self.began = clock.monotonic()
        self.entry: Entry = self.registry.hold(client, lease_of(acquired, ttl, direct_sandbox=False))
        cluster.plan.clear()

    def run(self, seconds: float) -> None:
        """Let simulated time pass, and make every attempt when it is due."""
        attempt_all(self.registry, self.clock, seconds)

    def kinds(self) -> list[str]:
        return [event.kind for event in self.said]


@pytest.fixture
def kept(cluster: FakeCluster, client: Client, clock: SkippingClock) -> Kept:
    return Kept(cluster, client, clock)


every_request = pytest.mark.parametrize("request_kind", RENEWAL, ids=str)


def test_lease_is_renewed_twice_a_ttl_for_as_long_as_it_is_kept(kept: Kept) -> None:
    kept.run(10 * TTL)
    assert 18 <= kept.entry.renewals <= 22
    assert kept.cluster.plan.received() == [*RENEWAL] * kept.entry.renewals
    assert kept.said == []


@every_request
@pytest.mark.parametrize("fault", [*PASSING, *TOO_LATE], ids=lambda fault: str(fault)[:40])
def test_fault_that_passes_is_said_once_and_the_next_attempt_renews(
    kept: Kept, fault: Fault, request_kind: Request
) -> None:
    kept.cluster.plan.add(fault, request_kind)
    kept.run(0.56 * TTL)
    assert kept.kinds() == ["failed", "recovered"]
    assert (kept.entry.renewals, kept.entry.failures, kept.entry.lost) == (1, 0, None)
    assert kept.cluster.claims() == [NAME]


@every_request
@pytest.mark.parametrize("fault", REFUSALS, ids=str)
def test_refused_renewal_is_tried_again_as_the_right_may_come_back(
    kept: Kept, fault: Fault, request_kind: Request
) -> None:
    kept.cluster.plan.add(fault, request_kind, times=3)
    kept.run(0.56 * TTL)
    assert kept.kinds() == ["failed", "recovered"]
    assert kept.said[0].error is not None
    assert kept.said[0].error.reason == "forbidden"
    assert kept.said[1].failures == 3


@every_request
@pytest.mark.parametrize("code", [404, 410])
def test_object_that_is_gone_ends_it_at_once(kept: Kept, code: int, request_kind: Request) -> None:
    kept.cluster.plan.add(status(code), request_kind)
    kept.run(5 * TTL)
    assert kept.kinds() == ["lost"]
    assert kept.entry.lost is not None
    assert kept.entry.lost.reason == "gone"
    assert len(kept.cluster.plan.received()) <= 2


def test_outage_shorter_than_the_rest_of_the_lease_is_survived(kept: Kept) -> None:
    kept.run(0.3 * TTL)
    kept.cluster.plan.add(status(503), times=math.inf)
    kept.run(0.6 * TTL)
    kept.cluster.plan.clear()
    kept.run(TTL)
    assert kept.kinds() == ["failed", "recovered"]
    assert kept.entry.lost is None
    assert kept.entry.renewals >= 2


def test_outage_longer_than_the_rest_of_the_lease_is_a_loss_that_names_its_cause(kept: Kept) -> None:
    kept.cluster.plan.add(status(503), times=math.inf)
    kept.run(3 * TTL)
    assert kept.kinds() == ["failed", "lost"]
    error = kept.said[1].error
    assert error is not None
    assert (error.reason, error.object) == ("expired", "SandboxClaim team-a/build-1")
    assert "503" in str(error)


def test_nothing_is_sent_after_a_loss(kept: Kept) -> None:
    kept.cluster.plan.add(status(503), times=math.inf)
    kept.run(1.5 * TTL)
    kept.cluster.plan.clear()
    kept.run(5 * TTL)
    assert kept.cluster.plan.received() == []


def test_attempts_of_an_outage_back_off(kept: Kept) -> None:
    kept.cluster.plan.add(status(503), times=math.inf)
    kept.run(1.5 * TTL)
    attempts = len(kept.cluster.plan.received())
    # From half of the ttl on: at most 1, 2, 4, 8 and 16 s, then one in 15 to 30 s, for 1620 to 1980 s.
    assert 55 <= attempts <= 140


@pytest.mark.parametrize("fault", [status(503), Fault(How.CUT_AFTER), Fault(How.HANG)], ids=str)
def test_attempts_go_on_until_the_end_of_a_short_lease(
    cluster: FakeCluster, client: Client, clock: SkippingClock, fault: Fault
) -> None:
    kept = Kept(cluster, client, clock, ttl=10.0)
    kept.run(4.0)
    cluster.plan.add(fault, times=math.inf)
    kept.run(4.0)
    cluster.plan.clear()
    kept.run(3.0)
    assert kept.kinds() == ["failed", "recovered"]


@every_request
def test_hanging_server_holds_a_request_no_longer_than_its_bound(
    cluster: FakeCluster, clock: SkippingClock, request_kind: Request
) -> None:
    with cluster.client(clock, request_timeout=30.0) as patient:
        kept = Kept(cluster, patient, clock, ttl=10.0)
        cluster.plan.add(Fault(How.HANG), request_kind)
        clock.sleep(6.0)
        began = clock.monotonic()
        for entry in kept.registry.take_due():
            attempt(kept.registry, entry, clock)
    assert kept.kinds() == ["failed"]
    # A quarter of half of the ttl.
    assert 1.0 < clock.monotonic() - began < 1.25 + 0.75


def test_release_that_is_under_way_is_no_loss(kept: Kept) -> None:
    kept.registry.leave(kept.entry)
    kept.cluster.store.delete(kept.cluster.key("sandboxclaims", NAME))
    kept.run(2 * TTL)
    assert kept.said == []
    assert kept.cluster.plan.received() == []


def test_release_that_failed_lets_the_renewal_go_on(kept: Kept) -> None:
    kept.registry.leave(kept.entry)
    kept.run(0.2 * TTL)
    kept.registry.leave(kept.entry, leaving=False)
    kept.run(TTL)
    assert kept.entry.renewals >= 1


def test_lease_that_cannot_be_read_is_a_failure_of_its_own(kept: Kept) -> None:
    broken = {"spec": {"lifecycle": {"shutdownTime": "tomorrow"}}}
    kept.cluster.store.patch(kept.cluster.key("sandboxclaims", NAME), broken)
    kept.run(0.6 * TTL)
    assert kept.kinds() == ["failed"]
    assert kept.entry.failures > 1


def test_hundred_leases_of_one_moment_are_renewed_by_ones_and_twos(
    cluster: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    kept = Kept(cluster, client, clock)
    lease = kept.entry.lease
    for number in range(99):
        kept.registry.hold(client, lease.__class__(lease.ref, f"uid-{number}", TTL, lease.expires_at, lease.sandbox))
    due = sorted(entry.due - kept.began for entry in kept.registry.entries())
    assert due[0] >= 0.45 * TTL - 2.0
    assert due[-1] <= 0.55 * TTL + 2.0
    assert max(sum(1 for other in due if moment <= other < moment + 1.0) for moment in due) <= 5
