# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a workspace does when its guest, its disk, its template or its holder is not what it should be."""

from __future__ import annotations

import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import (
    WORKSPACE_ID_ANNOTATION,
    WORKSPACE_LABEL,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import PrivilegeError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import IngressBoundary
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import (
    NotSettledError,
    WorkspaceMismatchError,
    WorkspaceNotFoundError,
    WorkspaceSuspendTimeoutError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.inventory import list_workspaces

from ..fake.agent import PRIVILEGED, UNPRIVILEGED
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Request
from ..fake.workspaces import FAILED
from .ground import (  # fmt: skip
    TEMPLATE,
    delete,
    edit_template,
    key,
    mode,
    prepare,
    refresh,
    refresh_asleep,
    run,
    sandbox,
    suspend,
)

ACQUIRE = "ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire"


@pytest.fixture(autouse=True)
def _template(cluster: FakeCluster) -> None:
    prepare(cluster)


def test_one_call_says_how_the_workspace_came_to_run(cluster: FakeCluster, client: Client) -> None:
    assert run(cluster, client).origin == "created"
    adopted = run(cluster, client)
    assert (adopted.origin, adopted.changed) == ("adopted", False)
    assert suspend(cluster, client).changed
    assert not suspend(cluster, client).changed
    resumed = run(cluster, client)
    assert (resumed.origin, resumed.changed) == ("resumed", True)
    assert resumed.uid == adopted.uid


def test_no_word_of_the_bind_token_is_in_what_is_handed_out(cluster: FakeCluster, client: Client) -> None:
    opened = run(cluster, client)
    assert opened.agent.token not in repr(opened)
    assert opened.agent.token not in str(opened.identity.as_dict())


def test_guest_with_privileges_is_suspended_and_not_destroyed(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    suspend(cluster, client)
    cluster.agent.status = PRIVILEGED
    with pytest.raises(PrivilegeError, match="It was suspended, and its disks are as they were"):
        run(cluster, client)
    assert mode(cluster) == "Suspended"
    cluster.agent.status = UNPRIVILEGED
    assert run(cluster, client).origin == "resumed"


def test_new_workspace_that_is_refused_is_suspended_too(cluster: FakeCluster, client: Client) -> None:
    cluster.agent.status = PRIVILEGED
    with pytest.raises(PrivilegeError):
        run(cluster, client)
    assert mode(cluster) == "Suspended"


def test_workspace_that_ran_before_is_refused_and_runs_on(cluster: FakeCluster, client: Client) -> None:
    """Others may work in it; whoever may decide that suspends it."""
    run(cluster, client)
    cluster.agent.status = PRIVILEGED
    with pytest.raises(PrivilegeError):
        run(cluster, client)
    assert mode(cluster) == "Running"


def test_boundary_that_will_not_hold_wakes_nothing(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    suspend(cluster, client)
    everyone = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [{}]}
    cluster.store.create("networkpolicies", NAMESPACE, {"metadata": {"name": "everyone"}, "spec": everyone})
    cluster.plan.clear()
    with pytest.raises(BoundaryError, match="everyone"):
        run(cluster, client, ingress=IngressBoundary())
    assert Request("patch", "sandboxes") not in cluster.plan.received()
    assert mode(cluster) == "Suspended"


def test_interrupt_while_it_starts_suspends_what_was_started(
    cluster: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> t.NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(f"{ACQUIRE}.probe_privileges", interrupted)
    with pytest.raises(KeyboardInterrupt):
        run(cluster, client)
    assert mode(cluster) == "Suspended"


@pytest.mark.parametrize("operation", ["flush", "quiesce"])
@pytest.mark.parametrize(
    ("answer", "reason"),
    [
        ({"error": {"kind": "unsupported", "message": "what is that"}}, "unsupported"),
        ({"error": {"kind": "io-error", "message": "the disk is broken"}}, "failed"),
        ({"flushed": "yes"}, "failed"),
    ],
    ids=["unsupported", "failed", "nonsense"],
)
def test_guest_that_does_not_settle_refuses_the_suspend(
    cluster: FakeCluster, client: Client, operation: str, answer: dict[str, t.Any], reason: str
) -> None:
    run(cluster, client)
    cluster.agent.settles[operation] = answer
    with pytest.raises(NotSettledError) as refused:
        suspend(cluster, client, quiesce=True)
    assert refused.value.reason == f"{operation}-{reason}"
    assert mode(cluster) == "Running"
    assert suspend(cluster, client, flush=False).changed, "who says so suspends without it"


def test_agent_that_does_not_answer_refuses_the_suspend(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    cluster.agent.answers = False
    with cluster.client(request_timeout=5.0) as patient, pytest.raises(NotSettledError) as refused:
        suspend(cluster, patient, timeout=1.0)
    assert (refused.value.reason, refused.value.retryable) == ("flush-unreachable", True)
    assert mode(cluster) == "Running"


@pytest.mark.parametrize("operation", ["flush", "quiesce"])
@pytest.mark.parametrize("kind", ["unsupported", "io-error"])
def test_suspend_that_must_not_fail_reports_what_the_guest_did_not_do(
    cluster: FakeCluster, client: Client, operation: str, kind: str
) -> None:
    run(cluster, client)
    cluster.agent.settles[operation] = {"error": {"kind": kind, "message": "no"}}
    done = suspend(cluster, client, quiesce=True, on_flush_failure="suspend")
    outcome = "unsupported" if kind == "unsupported" else "failed"
    assert [error.reason for error in done.unsettled] == [f"{operation}-{outcome}"]
    assert mode(cluster) == "Suspended"
    assert (done.flushed is None, done.quiesced is None) == (operation == "flush", operation == "quiesce")


def test_wedged_agent_leaves_time_for_the_suspend(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    cluster.agent.answers = False
    with cluster.client(request_timeout=5.0) as patient:
        done = suspend(cluster, patient, timeout=2.0, on_flush_failure="suspend")
    assert [error.reason for error in done.unsettled] == ["flush-unreachable"]
    assert mode(cluster) == "Suspended"


def test_refresh_of_a_workspace_with_a_wedged_agent_may_restart_it(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    edit_template(cluster)
    cluster.agent.settles["flush"] = {"error": {"kind": "unsupported", "message": "no"}}
    with pytest.raises(NotSettledError):
        refresh(cluster, client)
    assert [error.reason for error in refresh(cluster, client, on_flush_failure="suspend").unsettled] == [
        "flush-unsupported"
    ]


def test_where_no_pod_runs_there_is_nothing_to_flush(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    cluster.store.patch(key("pods"), {"status": {"phase": "Failed"}})
    assert suspend(cluster, client).flushed is None


def test_older_holder_does_not_even_stop_the_guests_processes(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client, holder_epoch=8)
    asked: list[str] = []
    answer = cluster.agent.answer
    cluster.agent.answer = lambda request: asked.append(request["op"]) or answer(request)  # type: ignore[method-assign]
    with pytest.raises(SandboxError):
        suspend(cluster, client, quiesce=True, holder_epoch=7)
    assert asked == []


def test_pod_that_does_not_stop_is_a_timeout_and_stays_told(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    cluster.controller.workspaces.stops = False
    with pytest.raises(WorkspaceSuspendTimeoutError) as late:
        suspend(cluster, client)
    assert (late.value.reason, late.value.retryable) == ("suspend-timeout", True)
    assert mode(cluster) == "Suspended"


def test_failed_pod_is_recovered_by_switching_the_mode_there_and_back(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    disk = cluster.store.get(key("persistentvolumeclaims"))["metadata"]["uid"]
    with cluster.store.changed:
        cluster.store.patch(key("pods"), {"status": {"phase": "Failed"}})
        cluster.store.patch(key(), {"metadata": {"labels": {"look": "again"}}})
        cluster.store.changed.wait_for(lambda: sandbox(cluster)["status"]["conditions"] == [FAILED], 10.0)
    assert run(cluster, client).origin == "recovered"
    assert cluster.store.get(key("persistentvolumeclaims"))["metadata"]["uid"] == disk


def test_edited_template_is_a_mismatch_a_report_or_a_refresh_and_never_a_deletion(
    cluster: FakeCluster, client: Client
) -> None:
    uid = run(cluster, client).uid
    edit_template(cluster)
    with pytest.raises(WorkspaceMismatchError, match="terminationGracePeriodSeconds"):
        run(cluster, client)
    reported = run(cluster, client, on_stale="report")
    assert (reported.changed, reported.template_current, reported.stale != ()) == (False, False, True)
    assert run(cluster, client, on_stale="ignore").stale == ()
    refreshed = refresh(cluster, client)
    assert (refreshed.origin, refreshed.refreshed, refreshed.uid) == ("resumed", True, uid)
    assert sandbox(cluster)["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"] == 7
    assert not refresh(cluster, client).changed
    assert Request("delete", "sandboxes") not in cluster.plan.received()


def test_refresh_leaves_nothing_of_the_older_pod_template(cluster: FakeCluster, client: Client) -> None:
    cluster.store.patch(
        cluster.key("sandboxtemplates", TEMPLATE), {"spec": {"podTemplate": {"spec": {"nodeSelector": {"disk": "a"}}}}}
    )
    run(cluster, client)
    gone = {"spec": {"podTemplate": {"spec": {"nodeSelector": None}}}}
    cluster.store.patch(cluster.key("sandboxtemplates", TEMPLATE), gone)
    refresh(cluster, client)
    assert "nodeSelector" not in sandbox(cluster)["spec"]["podTemplate"]["spec"]


def test_suspended_workspace_is_refreshed_without_waking_it(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    edit_template(cluster)
    with pytest.raises(WorkspaceMismatchError, match="it runs"):
        refresh_asleep(cluster, client)
    suspend(cluster, client)
    assert refresh_asleep(cluster, client)
    assert not refresh_asleep(cluster, client)
    assert mode(cluster) == "Suspended"
    assert sandbox(cluster)["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"] == 7


def test_workspace_outlives_its_template(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    suspend(cluster, client)
    cluster.store.delete(cluster.key("sandboxtemplates", TEMPLATE))
    resumed = run(cluster, client, template=None)
    assert (resumed.origin, resumed.template, resumed.template_current) == ("resumed", TEMPLATE, None)


def test_release_by_name_does_not_take_a_workspace_for_a_sandbox(cluster: FakeCluster, client: Client) -> None:
    """Its disk would go with it."""
    run(cluster, client)
    released = release(client, NAMESPACE, key().name, Deadline(5.0, client.clock))
    assert not released.existed
    assert cluster.store.names("sandboxes") == [key().name]


@pytest.mark.parametrize("verb", [run, suspend, delete])
@pytest.mark.parametrize(
    ("metadata", "words"),
    [
        ({"labels": {WORKSPACE_LABEL: None}}, "it is no workspace"),
        ({"annotations": {WORKSPACE_ID_ANNOTATION: "another"}}, "its id is 'another'"),
    ],
)
def test_stranger_under_the_name_is_left_alone(
    cluster: FakeCluster, client: Client, verb: t.Callable[..., object], metadata: dict[str, t.Any], words: str
) -> None:
    run(cluster, client)
    cluster.store.patch(key(), {"metadata": metadata})
    before = sandbox(cluster)
    with pytest.raises(WorkspaceMismatchError, match=words):
        verb(cluster, client)
    assert sandbox(cluster) == before


@pytest.mark.parametrize("verb", [suspend, refresh_asleep])
def test_what_is_not_there_is_not_made_to_be_suspended(
    cluster: FakeCluster, client: Client, verb: t.Callable[..., object]
) -> None:
    with pytest.raises(WorkspaceNotFoundError):
        verb(cluster, client)
    with pytest.raises(WorkspaceNotFoundError):
        run(cluster, client, template=None)
    assert cluster.store.names("sandboxes") == []


def test_workspace_that_would_take_its_disk_with_its_lease_is_refused(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    doomed = {"spec": {"shutdownPolicy": "Delete", "shutdownTime": "2999-01-01T00:00:00Z"}}
    cluster.store.patch(key(), doomed)
    with pytest.raises(WorkspaceMismatchError, match="its disks would be deleted"):
        run(cluster, client)


def test_workspace_without_an_end_is_given_none_by_a_later_ttl(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    later = run(cluster, client, ttl=60)
    assert (later.changed, later.origin, later.expires_at) == (False, "adopted", None)


def test_ttl_is_kept_while_it_is_long_enough_and_taken_away_by_a_suspend(cluster: FakeCluster, client: Client) -> None:
    first = run(cluster, client, ttl=3600)
    assert first.expires_at is not None
    assert sandbox(cluster)["spec"]["shutdownPolicy"] == "Retain"
    assert not run(cluster, client, ttl=3600).changed
    extended = run(cluster, client, ttl=3 * 3600)
    assert extended.changed
    assert extended.expires_at is not None
    assert extended.expires_at > first.expires_at + datetime.timedelta(hours=1)
    assert not run(cluster, client).changed, "who says nothing about it leaves it"
    suspend(cluster, client)
    assert "shutdownTime" not in sandbox(cluster)["spec"]


def test_act_on_another_state_than_the_one_that_was_seen_is_refused(cluster: FakeCluster, client: Client) -> None:
    run(cluster, client)
    seen = list_workspaces(client, NAMESPACE, Deadline(5.0, client.clock))[0].resource_version
    cluster.store.patch(key(), {"metadata": {"labels": {"touched": "yes"}}})
    for verb in (suspend, delete):
        with pytest.raises(SandboxError) as refused:
            verb(cluster, client, resource_version=seen)
        assert refused.value.reason == "precondition"
    assert mode(cluster) == "Running"
