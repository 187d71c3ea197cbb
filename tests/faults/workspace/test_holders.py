# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two holders of one workspace: whatever they do and however it interleaves, the older changes nothing after the newer.

An interleaving is two verbs, one of which runs as a whole before the n-th request of the other. As every verb writes
under a condition, in one request, this covers every place that a write can take among the requests of another verb.
"""

from __future__ import annotations

import contextlib
import itertools
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import WORKSPACE_ID_ANNOTATION, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import WorkspacePreconditionError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import (
    HOLDER_EPOCH_ANNOTATION,
    TEMPLATE_HASH_ANNOTATION,
)

from ..fake.clock import SkippingClock
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.wireless import Wireless
from .ground import ID, delete, extend, key, prepare, refresh, refresh_asleep, run, sandbox, suspend

OLDER, NEWER = 7, 8

Verb = t.Callable[..., object]
VERBS: dict[str, Verb] = {
    "run": run, "suspend": suspend, "refresh": refresh, "refresh asleep": refresh_asleep, "extend": extend,
    "delete": delete,
}  # fmt: skip

#: When the pods of all of them would be stopped.
LATER = "2099-01-01T00:00:00Z"

#: How they race: a guest that the other one has stopped is waited for as long as that.
RACED = {"run": {"on_stale": "ignore", "ready_timeout": 2.0}, "refresh": {"ready_timeout": 2.0}}

#: How the workspace stands when the race begins: its mode, and the epoch that it carries.
STARTS = (("Running", None), ("Suspended", OLDER))


class HolderClient(Client):
    """A client that lets somebody else go first at one of its requests.

    Attributes:
        asked: how many requests it has made.
        first_at, first: at which of them somebody else goes first, and what that is.
        writes: the uid of the Sandbox for each change of it that the server took, in the order of all holders.
    """

    def __init__(self, cluster: FakeCluster, holder: int, writes: list[tuple[int, str]]) -> None:
        with cluster.client(SkippingClock(), request_timeout=5.0) as like:
            super().__init__(like.access, request_timeout=5.0, clock=like.clock)
        self.asked = 0
        self.first_at = 0
        self.first: t.Callable[[], object] = lambda: None
        self.writes = writes
        self._cluster, self._holder = cluster, holder
        self._requests = Wireless(cluster.server)

    def _open(self, method: str, path: str, *rest: t.Any) -> t.Any:
        self.asked += 1
        if self.asked == self.first_at:
            self.first()
        writes = method in ("PATCH", "DELETE") and "/sandboxes/" in path
        uid = self._uid(path.rpartition("/")[2]) if writes else ""
        answer = super()._open(method, path, *rest)
        if writes:
            self.writes.append((self._holder, uid))
        if method != "GET":
            # Nobody has to wait for the controller then, and each race goes as it went the last time.
            self._cluster.controller.settle()
        return answer

    def _uid(self, name: str) -> str:
        there = name in self._cluster.store.names("sandboxes")
        return str(self._cluster.store.get(key()._replace(name=name))["metadata"]["uid"]) if there else ""


class Race:
    """Two holders on a cluster, for many races, each about a workspace of its own. A context manager."""

    def __init__(self, cluster: FakeCluster) -> None:
        self.cluster = cluster
        self.count = 0
        self._writes: list[tuple[int, str]] = []
        self._clients = {holder: HolderClient(cluster, holder, self._writes) for holder in (OLDER, NEWER)}
        prepare(cluster)
        with cluster.client(SkippingClock()) as client:
            run(cluster, client)
        self._model = sandbox(cluster)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        for client in self._clients.values():
            client.close()

    def __call__(self, start: tuple[str, int | None], outer: tuple[int, str], inner: tuple[int, str], at: int) -> bool:
        """Run ``outer``, and ``inner`` before its ``at``-th request; False when it makes fewer requests."""
        self.count += 1
        workspace_id = f"race-{self.count}"
        self._stand(workspace_id, *start)
        self._writes.clear()

        def act(holder: int, verb: str) -> None:
            options = RACED.get(verb, {})
            client = self._clients[holder]
            with contextlib.suppress(SandboxError):
                VERBS[verb](self.cluster, client, workspace_id=workspace_id, holder_epoch=holder, **options)

        client = self._clients[outer[0]]
        client.asked, client.first_at, client.first = 0, at, lambda: act(*inner)
        act(*outer)
        client.first_at = 0
        case = f"{start}, {outer}, and before request {at} {inner}"
        if client.asked < at:
            return False
        self._holds(workspace_id, case)
        return True

    def _stand(self, workspace_id: str, mode: str, epoch: int | None) -> None:
        """Make a workspace that is older than its template."""
        place = key(workspace_id=workspace_id)
        annotations = {WORKSPACE_ID_ANNOTATION: workspace_id, TEMPLATE_HASH_ANNOTATION: "sha256:older"}
        if epoch is not None:
            annotations[HOLDER_EPOCH_ANNOTATION] = str(epoch)
        metadata = {"name": place.name, "labels": self._model["metadata"]["labels"], "annotations": annotations}
        store = self.cluster.store
        with store.changed:
            store.create(
                "sandboxes",
                NAMESPACE,
                {"metadata": metadata, "spec": {**self._model["spec"], "operatingMode": mode, "shutdownTime": LATER}},
            )
        self.cluster.controller.settle()

    def _holds(self, workspace_id: str, case: str) -> None:
        newer: set[str] = set()
        for holder, uid in self._writes:
            assert holder == NEWER or uid not in newer, f"the older has written after the newer: {case}"
            if holder == NEWER:
                newer.add(uid)
        if key(workspace_id=workspace_id).name not in self.cluster.store.names("sandboxes"):
            return
        body = self.cluster.store.get(key(workspace_id=workspace_id))
        if body["metadata"]["uid"] in newer:
            stored = body["metadata"]["annotations"][HOLDER_EPOCH_ANNOTATION]
            assert stored == str(NEWER), case
            last = [holder for holder, uid in self._writes if uid == body["metadata"]["uid"]][-1]
            assert last == NEWER, case


def test_older_holder_never_changes_anything_after_the_newer_in_500_interleavings() -> None:
    raced = 0
    for outer, inner in itertools.product(VERBS, VERBS):
        with FakeCluster() as cluster, Race(cluster) as race:
            for start, (first, second) in itertools.product(STARTS, ((OLDER, NEWER), (NEWER, OLDER))):
                at = 1
                while race(start, (first, outer), (second, inner), at):
                    at += 1
                raced += at - 1
    assert raced >= 500


@pytest.mark.parametrize("verb", VERBS)
def test_overtaken_holder_learns_it_by_name(cluster: FakeCluster, client: Client, verb: str) -> None:
    prepare(cluster)
    run(cluster, client, holder_epoch=NEWER)
    before = sandbox(cluster)
    with pytest.raises(WorkspacePreconditionError) as refused:
        VERBS[verb](cluster, client, holder_epoch=OLDER)
    assert (refused.value.reason, refused.value.holder_epoch, refused.value.stored_epoch) == ("precondition", 7, "8")
    assert sandbox(cluster) == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("stored", ["eight", "-8", "08", "٨"])
def test_epoch_that_cannot_be_read_refuses_every_holder(
    cluster: FakeCluster, client: Client, verb: str, stored: str
) -> None:
    prepare(cluster)
    run(cluster, client)
    annotations = {HOLDER_EPOCH_ANNOTATION: stored}
    before = cluster.store.patch(key(), {"metadata": {"annotations": annotations}})
    for epoch in (None, OLDER, 2**53 - 1):
        with pytest.raises(WorkspacePreconditionError, match="which is none"):
            VERBS[verb](cluster, client, holder_epoch=epoch)
    assert sandbox(cluster) == before


@pytest.mark.parametrize("verb", VERBS)
def test_caller_without_an_epoch_cannot_change_what_is_fenced(cluster: FakeCluster, client: Client, verb: str) -> None:
    prepare(cluster)
    run(cluster, client, holder_epoch=OLDER)
    before = sandbox(cluster)
    with pytest.raises(WorkspacePreconditionError, match="came without one"):
        VERBS[verb](cluster, client)
    assert sandbox(cluster) == before


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.parametrize("epoch", [-1, 2**53, "7", 7.0, True])
def test_epoch_that_is_none_is_refused_before_anything_is_sent(
    cluster: FakeCluster, client: Client, verb: str, epoch: t.Any
) -> None:
    with pytest.raises(InputError, match="holder_epoch"):
        VERBS[verb](cluster, client, holder_epoch=epoch)
    assert cluster.plan.received() == []


def test_write_to_a_workspace_that_was_never_fenced_is_bound_to_what_was_read(
    cluster: FakeCluster, client: Client
) -> None:
    """Between read and write somebody takes it over: the annotation that is missing cannot be tested, so all is."""
    prepare(cluster)
    run(cluster, client)
    takes_over: Body = {"metadata": {"annotations": {HOLDER_EPOCH_ANNOTATION: str(NEWER)}}}
    cluster.store.after_read(key(), lambda: cluster.store.patch(key(), takes_over))
    with pytest.raises(WorkspacePreconditionError):
        suspend(cluster, client, flush=False, holder_epoch=OLDER)
    assert sandbox(cluster)["spec"]["operatingMode"] == "Running"


def test_status_that_the_controller_writes_in_between_hinders_nobody(cluster: FakeCluster, client: Client) -> None:
    prepare(cluster)
    run(cluster, client)
    note: Body = {"status": {"nodeName": "elsewhere"}}
    cluster.store.after_read(key(), lambda: cluster.store.patch(key(), note))
    assert suspend(cluster, client, flush=False, holder_epoch=OLDER).changed


def test_deletion_ends_the_fence_with_the_workspace(cluster: FakeCluster, client: Client) -> None:
    """What is gone remembers nobody: the next one of that id is another workspace, on another disk."""
    prepare(cluster)
    run(cluster, client, holder_epoch=NEWER)
    before = sandbox(cluster)["metadata"]["uid"]
    assert delete(cluster, client, holder_epoch=NEWER)
    with cluster.store.changed:
        gone = key("persistentvolumeclaims").name
        cluster.store.changed.wait_for(lambda: gone not in cluster.store.names("persistentvolumeclaims"), 10.0)
    opened = run(cluster, client, holder_epoch=OLDER, workspace_id=ID)
    assert opened.origin == "created"
    assert opened.uid != before
