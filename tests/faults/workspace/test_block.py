# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workspace for the time of a block: its ttl is put off meanwhile, and who started it suspends it at the end."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.keeper import Keeper
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import LeaseLostError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import (
    NotSettledError,
    WorkspacePreconditionError,
    WorkspaceReplacedError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.handle import Workspace

from ..fake.clock import SkippingClock
from ..fake.cluster import FakeCluster
from ..fake.plan import Request
from ..listening import Listener, elapse
from .ground import delete, key, mode, prepare, request, run, sandbox, suspend

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

TTL = 60.0
#: Real seconds in which threads have done what they are about to do.
SOON = 5.0


class Broken(Exception):
    """What goes wrong in a block."""


@pytest.fixture(autouse=True)
def _template(cluster: FakeCluster, clock: SkippingClock) -> None:
    cluster.server.now = clock.now
    prepare(cluster)


@pytest.fixture
def listener() -> Listener:
    return Listener(SOON)


@pytest.fixture
def keeper(listener: Listener, clock: SkippingClock) -> t.Iterator[Keeper]:
    with Keeper(listener, clock) as made:
        yield made


def opened(cluster: FakeCluster, client: Client, keeper: Keeper | None = None, **changes: t.Any) -> Workspace:
    return Workspace.open(client, request(cluster, ttl=TTL, **changes), keeper=keeper)


def test_workspace_that_the_block_started_sleeps_after_it(cluster: FakeCluster, client: Client) -> None:
    with opened(cluster, client) as workspace:
        assert workspace.execute(["echo", "hi"], deadline=Deadline(5.0)).stdout == b"echo hi\n"
    assert mode(cluster) == "Suspended"
    with opened(cluster, client) as workspace:
        assert workspace.opened.origin == "resumed"
    assert mode(cluster) == "Suspended"
    assert cluster.store.names("persistentvolumeclaims") == [key("persistentvolumeclaims").name]


@pytest.mark.parametrize("error", [Broken, KeyboardInterrupt, SystemExit])
def test_workspace_sleeps_after_a_block_that_raised(
    cluster: FakeCluster, client: Client, error: type[BaseException]
) -> None:
    with pytest.raises(error), opened(cluster, client):
        raise error
    assert mode(cluster) == "Suspended"


def test_workspace_that_ran_before_runs_on(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    with opened(cluster, client) as workspace:
        assert workspace.opened.origin == "adopted"
    assert mode(cluster) == "Running"


def test_workspace_without_a_ttl_needs_no_thread_and_sleeps_too(cluster: FakeCluster, client: Client) -> None:
    with Workspace.open(client, request(cluster)) as workspace:
        assert workspace.kept is None
        workspace.raise_if_lost()
    assert mode(cluster) == "Suspended"


def test_what_the_block_suspended_or_deleted_itself_is_left_as_it_is(cluster: FakeCluster, client: Client) -> None:
    with opened(cluster, client) as workspace:
        workspace.suspend()
    with opened(cluster, client) as workspace:
        workspace.delete(delete_disk=True)
    assert cluster.store.names("sandboxes") == []


def test_error_of_the_block_is_not_hidden_by_one_of_the_suspend(cluster: FakeCluster, client: Client) -> None:
    cluster.agent.settles["flush"] = {"error": {"kind": "failed", "message": "No space left on device"}}
    with pytest.raises(Broken) as caught, opened(cluster, client):
        raise Broken
    (note,) = caught.value.__notes__
    assert "could not be suspended" in note
    with pytest.raises(NotSettledError), opened(cluster, client, workspace_id="other"):
        pass
    assert mode(cluster) == "Running", "what is not on the disk is not thrown away"


def test_ttl_is_put_off_while_the_block_runs_and_not_after_it(
    cluster: FakeCluster, client: Client, clock: SkippingClock, keeper: Keeper
) -> None:
    with opened(cluster, client, keeper) as workspace:
        before, seen = sandbox(cluster)["spec"]["shutdownTime"], len(cluster.store.events)
        elapse(keeper, client, clock, 0.56 * TTL)
        assert cluster.store.wait_for_event(seen, SOON)
        assert sandbox(cluster)["spec"]["shutdownTime"] > before
        workspace.raise_if_lost()
    assert [entry.lease.ref.name for entry in keeper.registry.entries()] == ["another"]


def test_block_learns_that_another_holder_has_the_workspace_and_leaves_it_alone(
    cluster: FakeCluster, client: Client, clock: SkippingClock, keeper: Keeper, listener: Listener
) -> None:
    def work() -> None:
        with opened(cluster, client, keeper, holder_epoch=7) as workspace:
            run(cluster, client, holder_epoch=8)
            elapse(keeper, client, clock, 0.56 * TTL)
            listener.wait_for("lost")
            with pytest.raises(LeaseLostError) as lost:
                workspace.raise_if_lost()
            assert lost.value.reason == "overtaken"

    with pytest.raises(WorkspacePreconditionError):
        work()
    assert mode(cluster) == "Running"


def test_block_that_lost_its_disk_is_told_so_at_its_end(cluster: FakeCluster, client: Client) -> None:
    with pytest.raises(WorkspaceReplacedError), opened(cluster, client):
        delete(cluster, client, wait=True)


def test_lease_of_a_workspace_that_sleeps_and_wakes_in_the_block_is_the_new_one(
    cluster: FakeCluster, client: Client, keeper: Keeper, clock: SkippingClock
) -> None:
    with opened(cluster, client, keeper) as workspace:
        workspace.suspend()
        clock.sleep(2 * TTL)
        workspace.resume()
        assert workspace.kept is not None
        assert workspace.kept.lease.expires_at == workspace.opened.expires_at
        workspace.raise_if_lost()
        suspend(cluster, client)
    assert Request("delete", "sandboxes") not in cluster.plan.received()
