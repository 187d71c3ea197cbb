# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workspace that a program holds: another pod is followed and told of, another workspace is not."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestUnreachableError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode, encode_json
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import (
    WorkspaceGuestGoneError,
    WorkspaceReplacedError,
    WorkspaceSuspendedError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.handle import Workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.identity import GuestRestart

from ..fake.agent import POD_UID, FakeAgent
from ..fake.cluster import FakeCluster
from .ground import delete, key, prepare, request, run, sandbox, suspend

ANOTHER_UID = "1a1b1c1d-1111-4222-8333-444455556666"


@pytest.fixture
def told() -> list[GuestRestart]:
    return []


@pytest.fixture
def workspace(cluster: FakeCluster, client: Client, told: list[GuestRestart]) -> Workspace:
    prepare(cluster)
    return Workspace.open(client, request(cluster), told.append)


def replace_pod(cluster: FakeCluster) -> None:
    """Another pod of the same name, whose agent knows its own token alone."""
    body = cluster.store.get(key("pods"))
    cluster.store.replace(key("pods"), {**body, "metadata": {**body["metadata"], "uid": ANOTHER_UID}})
    answer = cluster.agent.answer

    def knows(asked: dict[str, t.Any]) -> bytes:
        return answer({**asked, "token": POD_UID if asked["token"] == ANOTHER_UID else "another"})

    cluster.agent.answer = knows  # type: ignore[method-assign]


def cut(cluster: FakeCluster, meanwhile: t.Callable[[], object] = lambda: None) -> None:
    """The agent ends the connection after a program has started, and something happens to the pod."""
    answer = cluster.agent.answer

    def cuts(asked: dict[str, t.Any]) -> bytes:
        if asked["op"] != "execute":
            return answer(asked)
        meanwhile()
        return encode(encode_json({"started": {"pid": 7}}))

    cluster.agent.answer = cuts  # type: ignore[method-assign]


def execute(workspace: Workspace) -> str:
    return workspace.execute(["echo", "a"], deadline=Deadline(5.0)).stdout_text


def test_program_runs_in_the_guest(workspace: Workspace, told: list[GuestRestart]) -> None:
    assert execute(workspace) == "echo a\n"
    assert workspace.look() is None
    assert told == []


def test_new_pod_is_followed_and_told_of_once(
    workspace: Workspace, cluster: FakeCluster, told: list[GuestRestart]
) -> None:
    before = workspace.identity
    replace_pod(cluster)
    assert execute(workspace) == "echo a\n"
    assert [(notice.reason, notice.before) for notice in told] == [("pod-replaced", before)]
    assert workspace.look() is None


def test_container_that_was_started_again_is_told_of(
    workspace: Workspace, cluster: FakeCluster, told: list[GuestRestart]
) -> None:
    cluster.store.patch(key("pods"), {"status": {"containerStatuses": [{"restartCount": 1}]}})
    notice = workspace.look()
    assert notice is not None
    assert notice.reason == "container-restarted"
    assert told == [notice]


def test_program_whose_guest_went_away_is_not_repeated(workspace: Workspace, cluster: FakeCluster) -> None:
    before = workspace.identity
    cut(cluster, lambda: replace_pod(cluster))
    with pytest.raises(WorkspaceGuestGoneError) as gone:
        execute(workspace)
    assert gone.value.before["guest"] == before.guest
    assert gone.value.after is not None
    assert gone.value.after["guest"] == workspace.identity.guest != before.guest
    assert ANOTHER_UID not in str(gone.value.fields())


def test_program_whose_guest_went_away_for_good_is_told_apart(workspace: Workspace, cluster: FakeCluster) -> None:
    cut(cluster, lambda: cluster.store.delete(key("pods")))
    with pytest.raises(WorkspaceGuestGoneError) as gone:
        execute(workspace)
    assert gone.value.after is None


def test_address_that_answers_to_nobody_leaves_time_for_the_new_one(
    workspace: Workspace, cluster: FakeCluster, told: list[GuestRestart]
) -> None:
    """Where a pod was, packets may just vanish; here the agent at the old address takes them and says nothing."""
    with FakeAgent() as silent:
        silent.answers = False
        workspace._agent = Agent(AgentAddress("127.0.0.1", silent.port, POD_UID))
        replace_pod(cluster)
        done = workspace.execute(["echo", "a"], deadline=Deadline(3.0))
    assert done.stdout_text == "echo a\n"
    assert len(told) == 1


def test_connection_that_was_cut_to_the_same_guest_stays_what_it_is(workspace: Workspace, cluster: FakeCluster) -> None:
    cut(cluster)
    with pytest.raises(GuestUnreachableError):
        execute(workspace)


def test_program_in_a_workspace_that_somebody_has_suspended(
    workspace: Workspace, cluster: FakeCluster, client: Client
) -> None:
    suspend(cluster, client)
    cluster.agent.answers = False
    with pytest.raises(WorkspaceSuspendedError):
        workspace.execute(["true"], deadline=Deadline(0.3))
    with pytest.raises(WorkspaceSuspendedError):
        execute(workspace)


def test_suspend_and_resume_by_the_handle(workspace: Workspace, told: list[GuestRestart]) -> None:
    flushed = workspace.suspend(quiesce=True)
    assert flushed.flushed is not None
    assert flushed.quiesced is not None
    with pytest.raises(WorkspaceSuspendedError):
        execute(workspace)
    assert workspace.resume().origin == "resumed"
    assert execute(workspace) == "echo a\n"
    assert told == [], "the fake's pods all have one uid"


def test_another_workspace_of_the_id_is_refused_and_left_alone(
    workspace: Workspace, cluster: FakeCluster, client: Client
) -> None:
    delete(cluster, client, wait=True)
    for attempt in (workspace.resume, workspace.refresh, workspace.suspend, workspace.look):
        with pytest.raises(WorkspaceReplacedError):
            attempt()
    run(cluster, client)
    before = sandbox(cluster)
    for attempt in (workspace.resume, workspace.refresh, workspace.suspend, workspace.look):
        with pytest.raises(WorkspaceReplacedError):
            attempt()
    assert workspace.delete(delete_disk=True) is False
    assert sandbox(cluster) == before
