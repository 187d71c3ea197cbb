# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A name is used once over claims, direct Sandboxes and workspaces, also by two callers at the same time."""

from __future__ import annotations

import math
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire, would_acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import PartialAcquireError, acquire_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import ClaimMismatchError

from ..fake.controller import NAMESPACE, POOL
from ..fake.plan import Request, status
from ..traffic import CREATE
from ..workspace import ground

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

    from ..fake.cluster import FakeCluster
    from ..fake.store import Body

NAME = "build-1"
WORKSPACE = ground.key().name
CREATE_DIRECT = Request("create", "sandboxes")
DIRECT: dict[str, t.Any] = {"warm_pool": None, "template": "python"}
WARM: dict[str, t.Any] = {}

#: An object of each kind that can have a name, by its plural.
CLAIM_BODY: Body = {"metadata": {"name": NAME}, "spec": {"warmPoolRef": {"name": POOL}}}
DIRECT_BODY: Body = {"metadata": {"name": NAME, "annotations": {"sandbox.namzu.ai/acquire-id": "other"}}, "spec": {}}
WORKSPACE_METADATA = {
    "labels": {"sandbox.namzu.ai/workspace": "true"},
    "annotations": {"sandbox.namzu.ai/workspace-id": "other"},
}

BOTH_ORDERS = pytest.mark.parametrize(
    ("first", "second"), [(WARM, DIRECT), (DIRECT, WARM)], ids=["claim-then-direct", "direct-then-claim"]
)


@pytest.fixture(autouse=True)
def templated(cluster: FakeCluster) -> None:
    """Templates for direct Sandboxes and for workspaces."""
    spec = {"podTemplate": {"spec": {"containers": [{"name": "agent"}]}}}
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": spec})
    ground.prepare(cluster)


def refusal(run: t.Callable[[], object]) -> ClaimMismatchError:
    with pytest.raises(ClaimMismatchError) as caught:
        run()
    assert (caught.value.reason, caught.value.retryable, caught.value.leftover) == ("conflict", False, None)
    return caught.value


def uids(cluster: FakeCluster) -> set[str]:
    """The uids of all claims and Sandboxes."""
    keys = [cluster.key(kind, name) for kind in ("sandboxclaims", "sandboxes") for name in cluster.store.names(kind)]
    return {str(cluster.store.get(key)["metadata"]["uid"]) for key in keys}


@BOTH_ORDERS
def test_name_of_the_other_kind_is_a_conflict_and_nothing_is_created(
    cluster: FakeCluster, client: Client, first: t.Any, second: t.Any
) -> None:
    acquire(client, cluster.request(name=NAME, **first))
    before = uids(cluster)
    cluster.plan.clear()
    refusal(lambda: acquire(client, cluster.request(name=NAME, **second)))
    assert not {CREATE, CREATE_DIRECT} & set(cluster.plan.received())
    refusal(lambda: would_acquire(client, cluster.request(name=NAME, **second)))
    assert uids(cluster) == before
    assert not acquire(client, cluster.request(name=NAME, **first)).created


@BOTH_ORDERS
@pytest.mark.parametrize("on_failure", ["release_all", "keep"])
def test_numbered_names_are_checked_too(
    cluster: FakeCluster, client: Client, first: t.Any, second: t.Any, on_failure: t.Any
) -> None:
    taken = acquire(client, cluster.request(name="build-1", **first))
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(client, cluster.request(name="build", **second), 3, on_failure)
    assert caught.value.reason == "conflict"
    had = [outcome.name for outcome in caught.value.outcomes if outcome.acquired is not None]
    assert had == (["build-0", "build-2"] if on_failure == "keep" else [])
    assert caught.value.outcomes[1].error is not None
    assert taken.uid in uids(cluster)
    cluster.controller.settle()
    left = {*cluster.claims(), *(name for name in cluster.store.names("sandboxes") if not name.startswith(POOL))}
    assert left == {"build-1", *had}


@pytest.mark.parametrize("kind", ["sandboxclaims", "sandboxes"])
def test_two_that_create_at_the_same_time_do_not_both_get_the_name(
    cluster: FakeCluster, client: Client, kind: str
) -> None:
    """The other one's object appears after the name was read and found free."""
    wanted, other = (DIRECT, CLAIM_BODY) if kind == "sandboxclaims" else (WARM, DIRECT_BODY)
    key = cluster.key(kind, NAME)
    made: list[str] = []

    def other_creates() -> None:
        # The first read is the one before creating; this is the second.
        cluster.store.before_read(
            key, lambda: made.append(cluster.store.create(kind, NAMESPACE, other)["metadata"]["uid"])
        )

    cluster.store.before_read(key, other_creates)
    refusal(lambda: acquire(client, cluster.request(name=NAME, **wanted)))
    mine = "sandboxes" if kind == "sandboxclaims" else "sandboxclaims"
    assert NAME not in cluster.store.names(mine)
    assert cluster.store.get(key)["metadata"]["uid"] == made[0]


def test_name_that_cannot_be_read_afterwards_hands_nothing_out(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(403), Request("get", "sandboxclaims"), nth=2, times=math.inf)
    with pytest.raises(SandboxError) as caught:
        acquire(client, cluster.request(name=NAME, **DIRECT))
    assert caught.value.reason == "forbidden"
    assert NAME not in cluster.store.names("sandboxes")


def test_sandbox_that_its_own_claim_owns_is_no_conflict(cluster: FakeCluster, client: Client) -> None:
    """A claim that started cold leads to a Sandbox of its own name, which stays a moment longer than the claim."""
    owner = {"kind": "SandboxClaim", "name": NAME, "uid": "of-the-claim-before"}
    body = {"metadata": {"name": NAME, "ownerReferences": [owner]}, "spec": {}}
    cluster.store.create("sandboxes", NAMESPACE, body)
    assert acquire(client, cluster.request(name=NAME)).created


def test_fresh_name_costs_no_request(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(**DIRECT))
    assert Request("get", "sandboxclaims") not in cluster.plan.received()


def test_claim_cannot_take_the_name_of_a_workspace(cluster: FakeCluster, client: Client) -> None:
    opened = ground.run(cluster, client)
    refusal(lambda: acquire(client, cluster.request(name=opened.name)))
    assert cluster.claims() == []


def test_workspace_cannot_take_the_name_of_a_claim(cluster: FakeCluster, client: Client) -> None:
    acquire(client, cluster.request(name=WORKSPACE))
    refusal(lambda: ground.run(cluster, client))
    assert WORKSPACE not in cluster.store.names("sandboxes")


def test_workspace_that_meets_a_claim_of_the_same_moment_is_deleted(cluster: FakeCluster, client: Client) -> None:
    key = cluster.key("sandboxclaims", WORKSPACE)
    claim = {"metadata": {"name": WORKSPACE}, "spec": {}}

    def other_creates() -> None:
        cluster.store.before_read(key, lambda: cluster.store.create("sandboxclaims", NAMESPACE, claim))

    cluster.store.before_read(key, other_creates)
    refusal(lambda: ground.run(cluster, client))
    assert WORKSPACE not in cluster.store.names("sandboxes")
    assert cluster.claims() == [WORKSPACE]
