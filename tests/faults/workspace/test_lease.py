# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lease of a workspace: its end is put off for its holder alone, and giving it back costs no more than the pod."""

from __future__ import annotations

import datetime
import math
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.keeper import Keeper
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import Renewal, ensure_left
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.registry import Entry, Event, LeaseRegistry
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.lease import (
    WorkspaceLease,
    find_workspace_lease,
    workspace_lease_of,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import HOLDER_EPOCH_ANNOTATION

from ..fake.clock import SkippingClock
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..fake.store import Body
from ..listening import attempt_all
from .ground import ID, delete, key, mode, prepare, request, run, sandbox, suspend

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

TTL = 600.0
GET, PATCH = Request("get", "sandboxes"), Request("patch", "sandboxes")
EXPIRED: Body = {"type": "Ready", "status": "False", "reason": "SandboxExpired", "message": "Sandbox has expired"}


class Kept:
    """A workspace in a keeper's registry, on simulated time."""

    def __init__(self, cluster: FakeCluster, client: Client, clock: SkippingClock, **changes: t.Any) -> None:
        self.said: list[Event] = []
        self.cluster, self.client, self.clock = cluster, client, clock
        cluster.server.now = clock.now
        prepare(cluster)
        self.registry = LeaseRegistry(self.said.append, clock)
        self.asked: list[str] = []
        answer = cluster.agent.answer

        def records(asked: dict[str, t.Any]) -> bytes:
            self.asked.append(asked["op"])
            return answer(asked)

        cluster.agent.answer = records  # type: ignore[method-assign]
        self.hold(ttl=TTL, **changes)

    def hold(self, **changes: t.Any) -> None:
        opened = run(self.cluster, self.client, **changes)
        self.lease = workspace_lease_of(opened, request(self.cluster, **changes))
        self.entry: Entry = self.registry.hold(self.client, self.lease)
        self.cluster.plan.clear()

    def run(self, seconds: float) -> None:
        """Let simulated time pass, and make every attempt when it is due."""
        attempt_all(self.registry, self.clock, seconds)

    def left(self) -> float:
        end = datetime.datetime.fromisoformat(sandbox(self.cluster)["spec"]["shutdownTime"])
        return (end - self.clock.now()).total_seconds()

    def kinds(self) -> list[str]:
        return [event.kind for event in self.said]


@pytest.fixture
def kept(cluster: FakeCluster, client: Client, clock: SkippingClock) -> Kept:
    return Kept(cluster, client, clock)


@pytest.fixture
def fenced(cluster: FakeCluster, client: Client, clock: SkippingClock) -> Kept:
    """The same, held under epoch 7."""
    return Kept(cluster, client, clock, holder_epoch=7)


def carries(cluster: FakeCluster, epoch: str) -> Body:
    """Somebody writes another epoch."""
    return cluster.store.patch(key(), {"metadata": {"annotations": {HOLDER_EPOCH_ANNOTATION: epoch}}})


def test_end_is_put_off_twice_a_ttl_and_nothing_else_is_changed(kept: Kept) -> None:
    before = sandbox(kept.cluster)
    kept.run(5 * TTL)
    assert 8 <= kept.entry.renewals <= 12
    assert kept.cluster.plan.received() == [GET, PATCH] * kept.entry.renewals
    assert kept.left() > 0.4 * TTL
    after = sandbox(kept.cluster)
    assert {**after["spec"], "shutdownTime": None} == {**before["spec"], "shutdownTime": None}
    assert after["metadata"]["annotations"] == before["metadata"]["annotations"]
    assert kept.said == []


@pytest.mark.parametrize("request_kind", [GET, PATCH], ids=str)
@pytest.mark.parametrize("fault", [status(503), Fault(How.CUT_AFTER), status(403)], ids=str)
def test_fault_that_passes_is_said_once(kept: Kept, fault: Fault, request_kind: Request) -> None:
    kept.cluster.plan.add(fault, request_kind)
    kept.run(0.56 * TTL)
    assert kept.kinds() == ["failed", "recovered"]
    assert kept.entry.lost is None


def test_older_holder_loses_its_lease_by_name_and_changes_nothing(fenced: Kept) -> None:
    before = carries(fenced.cluster, "8")
    fenced.run(TTL)
    assert [(event.kind, event.error.reason) for event in fenced.said if event.error] == [("lost", "overtaken")]
    assert fenced.entry.lost is not None
    assert "held under the epoch 8, and this call came with 7" in str(fenced.entry.lost)
    assert "Its disk is as it was" in str(fenced.entry.lost)
    assert sandbox(fenced.cluster) == before


def test_holder_that_is_overtaken_between_read_and_change_changes_nothing(fenced: Kept) -> None:
    before = sandbox(fenced.cluster)["spec"]
    fenced.cluster.store.after_read(key(), lambda: carries(fenced.cluster, "8"))
    fenced.run(TTL)
    assert fenced.kinds() == ["lost"]
    assert sandbox(fenced.cluster)["spec"] == before


def test_holder_without_an_epoch_loses_it_to_one_that_has(kept: Kept) -> None:
    carries(kept.cluster, "0")
    kept.run(TTL)
    assert kept.entry.lost is not None
    assert kept.entry.lost.reason == "overtaken"


def test_epoch_that_cannot_be_read_is_a_failure_until_it_is_corrected(fenced: Kept) -> None:
    carries(fenced.cluster, "seven")
    fenced.run(0.6 * TTL)
    assert fenced.kinds() == ["failed"]
    carries(fenced.cluster, "7")
    fenced.run(0.2 * TTL)
    assert fenced.kinds() == ["failed", "recovered"]


def test_suspended_workspace_has_no_end_and_its_next_one_is_put_off_again(
    kept: Kept, cluster: FakeCluster, client: Client
) -> None:
    suspend(cluster, client)
    cluster.plan.clear()
    kept.run(3 * TTL)
    assert PATCH not in cluster.plan.received()
    run(cluster, client, ttl=TTL)
    kept.run(3 * TTL)
    assert kept.left() > 0.0
    assert kept.said == []


def test_pod_that_the_controller_has_stopped_is_a_loss_that_nobody_takes_back(kept: Kept) -> None:
    cluster = kept.cluster
    cluster.controller.workspaces.away = True
    kept.clock.sleep(TTL + 5.0)
    cluster.store.patch(key(), {"status": {"conditions": [EXPIRED]}})
    before = sandbox(cluster)
    kept.run(TTL)
    assert kept.entry.lost is not None
    assert kept.entry.lost.reason == "expired"
    assert sandbox(cluster) == before
    assert cluster.store.names("persistentvolumeclaims") == [key("persistentvolumeclaims").name]


@pytest.mark.parametrize("again", [False, True])
def test_deleted_workspace_is_lost_and_another_of_the_id_is_never_touched(
    kept: Kept, cluster: FakeCluster, client: Client, again: bool
) -> None:
    delete(cluster, client, wait=True)
    if again:
        run(cluster, client, ttl=TTL)
    cluster.controller.settle()
    events = len(cluster.store.events)
    kept.run(TTL)
    assert kept.entry.lost is not None
    assert kept.entry.lost.reason == ("replaced" if again else "gone")
    assert len(cluster.store.events) == events


def test_task_that_asks_for_the_suspend_alone_does_not_end_the_renewal(kept: Kept) -> None:
    unlimited = workspace_lease_of(run(kept.cluster, kept.client), request(kept.cluster))
    entry = kept.registry.hold(kept.client, unlimited, release_on_end=True)
    assert (entry.lease.ttl, entry.release_on_end, entry.renewed) == (TTL, True, True)


def given_back(kept: Kept, seconds: float = 5.0) -> list[Event]:
    """What is said when everything that is held is given back."""
    said: list[Event] = []
    with Keeper(said.append, kept.clock) as keeper:
        keeper.hold(kept.client, kept.lease, renewed=False, release_on_end=True)
        keeper.release_marked(Deadline(seconds, kept.clock))
    return said


def test_given_back_is_flushed_and_suspended_and_its_disk_stays(kept: Kept) -> None:
    (event,) = given_back(kept)
    assert event.kind == "released"
    assert mode(kept.cluster) == "Suspended"
    assert "flush" in kept.asked
    assert "shutdownTime" not in sandbox(kept.cluster)["spec"]
    assert kept.cluster.store.names("persistentvolumeclaims") == [key("persistentvolumeclaims").name]


def test_given_back_without_a_flush_asks_the_guest_nothing(
    cluster: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    kept = Kept(cluster, client, clock, flush=False)
    assert [event.kind for event in given_back(kept)] == ["released"]
    assert "flush" not in kept.asked


def test_given_back_is_what_is_suspended_or_gone_already(kept: Kept, cluster: FakeCluster, client: Client) -> None:
    suspend(cluster, client)
    assert [event.kind for event in given_back(kept)] == ["released"]
    delete(cluster, client, wait=True)
    assert [event.kind for event in given_back(kept)] == ["released"]
    run(cluster, client)
    assert [event.kind for event in given_back(kept)] == ["released"]
    assert mode(cluster) == "Running", "another one of the id is somebody else's"


def test_what_a_newer_holder_has_is_left_to_it(fenced: Kept) -> None:
    before = carries(fenced.cluster, "8")
    (event,) = given_back(fenced)
    assert event.kind == "lost"
    assert event.error is not None
    assert event.error.reason == "overtaken"
    assert sandbox(fenced.cluster) == before
    assert "flush" not in fenced.asked


@pytest.mark.parametrize("reason", ["flush-unreachable", "flush-unsupported", "flush-failed"])
def test_guest_that_does_not_flush_is_suspended_and_reported(kept: Kept, reason: str) -> None:
    """Nobody is left at the end of a play, so its pod must not run on."""
    if reason == "flush-unreachable":
        kept.cluster.agent.answers = False
    else:
        kind = "unsupported" if reason == "flush-unsupported" else "io-error"
        kept.cluster.agent.settles["flush"] = {"error": {"kind": kind, "message": "no"}}
    (event,) = given_back(kept, 2.0)
    assert event.kind == "released"
    assert event.error is not None
    assert event.error.reason == reason
    assert mode(kept.cluster) == "Suspended"


def test_agent_that_refuses_for_a_moment_is_asked_again_at_the_end(kept: Kept) -> None:
    answer, refusals = kept.cluster.agent.answer, [b"", b""]
    kept.cluster.agent.answer = lambda asked: refusals.pop() if refusals else answer(asked)  # type: ignore[method-assign]
    (event,) = given_back(kept, 20.0)
    assert (event.kind, event.error, refusals) == ("released", None, [])


@pytest.mark.parametrize("fault", [status(503), Fault(How.CUT_BEFORE), Fault(How.CUT_AFTER)], ids=str)
def test_fault_that_passes_does_not_keep_it_running(kept: Kept, fault: Fault) -> None:
    kept.cluster.plan.add(fault, PATCH)
    assert [event.kind for event in given_back(kept)] == ["released"]
    assert mode(kept.cluster) == "Suspended"


def test_server_that_stays_away_is_named(kept: Kept) -> None:
    kept.cluster.plan.add(status(503), PATCH, times=math.inf)
    (event,) = given_back(kept)
    assert event.kind == "unreleased"
    assert event.error is not None
    assert event.error.retryable


def ensured(kept: Kept, epoch: int | None = None, seconds: float = 2 * TTL, **options: t.Any) -> Renewal:
    def find(limit: Deadline) -> WorkspaceLease:
        return find_workspace_lease(kept.client, NAMESPACE, ID, epoch, limit)

    return ensure_left(kept.client, find, seconds, Deadline(5.0, kept.clock), **options)


def refused(kept: Kept, epoch: int | None = None, **options: t.Any) -> str:
    with pytest.raises(SandboxError) as caught:
        ensured(kept, epoch, **options)
    return str(caught.value.reason)


def test_by_id_too_little_becomes_enough_and_enough_is_left_alone(kept: Kept) -> None:
    assert not ensured(kept, seconds=60.0).changed
    assert ensured(kept, dry_run=True).changed
    assert kept.left() < TTL + 2.0
    assert ensured(kept).changed
    assert kept.left() > 2 * TTL - 2.0


def test_by_id_the_epoch_is_compared_and_a_newer_one_is_stored(fenced: Kept) -> None:
    assert refused(fenced) == refused(fenced, 6) == "precondition"
    assert ensured(fenced, 9).changed
    assert sandbox(fenced.cluster)["metadata"]["annotations"][HOLDER_EPOCH_ANNOTATION] == "9"
    assert refused(fenced, 8) == "precondition"


def test_by_id_what_runs_on_for_ever_is_left_as_it_is(
    cluster: FakeCluster, client: Client, clock: SkippingClock
) -> None:
    kept = Kept(cluster, client, clock)
    cluster.store.patch(key(), {"spec": {"shutdownTime": None}})
    renewal = ensured(kept)
    assert (renewal.changed, renewal.lease.expires_at) == (False, None)


def test_by_id_what_has_no_pod_is_refused(kept: Kept, cluster: FakeCluster, client: Client) -> None:
    assert refused(kept, uid="of-another") == "replaced"
    suspend(cluster, client)
    assert refused(kept) == "suspended"
    delete(cluster, client, wait=True)
    assert refused(kept) == "not-found"
