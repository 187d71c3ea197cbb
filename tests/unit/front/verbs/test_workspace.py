# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``workspace`` and ``workspace_info``: the same as a module and as an action, and what check mode says and leaves."""

from __future__ import annotations

import json
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import WORKSPACE
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.workspace import VERB

from ....faults.fake.agent import POD_UID
from ....faults.fake.cluster import FakeCluster
from ....faults.workspace.ground import TEMPLATE, edit_template, prepare
from ..playing import Result, Task, access, play

#: What no two runs have in common, and what Ansible adds to the result of a module.
OF_THE_RUN = {
    "timings", "uid", "guest", "address", "resource_version", "mode_since", "mode_for", "stopped_for", "invocation",
    "host_vars", "duration", "ansible_sandbox_agent_port", "request", "expires_at", "lease_left",
}  # fmt: skip


def sequence(cluster: FakeCluster) -> dict[str, Task]:
    agent = {"port": cluster.agent.port, "address": "pod_ip"}
    base = {**access(cluster), "workspace_id": "build/1"}

    def workspace(**options: t.Any) -> Task:
        return {"namzu.sandbox.workspace": {**base, "agent": agent, **options}, "diff": True}

    def lease(**options: t.Any) -> Task:
        return {"namzu.sandbox.sandbox_lease": {**base, "remaining": "2h", **options}, "diff": True}

    return {
        "would create": {**workspace(template=TEMPLATE, holder_epoch=7), "check_mode": True},
        "create": workspace(template=TEMPLATE, holder_epoch=7, ttl="1h"),
        "adopt": workspace(template=TEMPLATE, holder_epoch=7),
        "overtaken": workspace(template=TEMPLATE, holder_epoch=6),
        "suspend at the end without a keeper": workspace(holder_epoch=7, release_on_end=True),
        "would extend": {**lease(holder_epoch=7), "check_mode": True},
        "extend": lease(holder_epoch=7),
        "enough left": lease(holder_epoch=7, remaining="1h"),
        "extend overtaken": lease(holder_epoch=6),
        "would suspend": {**workspace(state="suspended", holder_epoch=7), "check_mode": True},
        "suspend": workspace(state="suspended", holder_epoch=7, quiesce=True),
        "extend asleep": lease(holder_epoch=7),
        "info": {"namzu.sandbox.workspace_info": base},
        "would resume": {**workspace(holder_epoch=7), "check_mode": True},
        "delete without a word": workspace(state="absent", holder_epoch=7),
        "would delete": {**workspace(state="absent", holder_epoch=7, delete_disk=True), "check_mode": True},
        "delete": workspace(state="absent", holder_epoch=7, delete_disk=True),
        "suspend nothing": workspace(state="suspended"),
        "wrong epoch": workspace(holder_epoch=-1),
    }


CHANGED = {
    "would create", "create", "would extend", "extend", "would suspend", "suspend", "would resume", "would delete",
    "delete",
}  # fmt: skip
FAILED = {
    "overtaken": "precondition", "delete without a word": "invalid-input", "suspend nothing": "not-found",
    "wrong epoch": "invalid-input", "suspend at the end without a keeper": "invalid-input",
    "extend overtaken": "precondition", "extend asleep": "suspended",
}  # fmt: skip


def comparable(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: comparable(inner) for key, inner in value.items() if key not in OF_THE_RUN}
    return [comparable(inner) for inner in value] if isinstance(value, list) else value


@pytest.fixture(scope="module")
def results(tmp_path_factory: pytest.TempPathFactory) -> dict[str, dict[str, Result]]:
    found = {}
    for connection in ("local", "elsewhere"):
        with FakeCluster() as cluster:
            prepare(cluster)
            tasks = sequence(cluster)
            played = play(tmp_path_factory.mktemp(connection), list(tasks.values()), connection=connection)
            found[connection] = dict(zip(tasks, played.results, strict=True))
    return found


def test_module_and_action_return_the_same(results: dict[str, dict[str, Result]]) -> None:
    assert comparable(results["elsewhere"]) == comparable(results["local"])
    assert all("invocation" not in result for result in results["local"].values())


def test_tasks_say_whether_they_changed_and_why_they_failed(results: dict[str, dict[str, Result]]) -> None:
    played = results["local"]
    assert {name for name, result in played.items() if result["changed"]} == CHANGED
    assert {name: result["reason"] for name, result in played.items() if result.get("failed")} == FAILED
    origins = {name: result["origin"] for name, result in played.items() if "origin" in result}
    assert origins == {"would create": "created", "create": "created", "adopt": "adopted", "would resume": "resumed"}
    (line,) = played["info"]["workspaces"]
    assert (line["mode"], line["holder_epoch"], line["template_current"]) == ("suspended", 7, True)


def test_no_result_has_the_bind_token(results: dict[str, dict[str, Result]]) -> None:
    assert POD_UID not in json.dumps(results)


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    with FakeCluster() as made:
        prepare(made)
        yield made


def run(cluster: FakeCluster, *, check_mode: bool = False, **options: t.Any) -> Result:
    defaults = {name: option.get("default") for name, option in WORKSPACE.items()}
    agent = {"port": cluster.agent.port, "address": "pod_ip"}
    params = {**defaults, **access(cluster), "agent": agent, "workspace_id": "a", "template": TEMPLATE, **options}
    return perform(VERB, params, Context(check_mode=check_mode, environ={}))


def test_check_mode_changes_nothing_in_any_state(cluster: FakeCluster) -> None:
    def checked(**options: t.Any) -> Result:
        before = [cluster.store.names(plural) for plural in ("sandboxes", "pods")]
        events = len(cluster.store.events)
        result = run(cluster, check_mode=True, **options)
        assert [cluster.store.names(plural) for plural in ("sandboxes", "pods")] == before
        assert len(cluster.store.events) == events
        return result

    assert checked()["origin"] == "created"
    run(cluster)
    assert not checked()["changed"]
    assert checked(state="suspended")["changed"]
    assert checked(state="absent", delete_disk=True)["changed"]
    edit_template(cluster)
    assert checked()["reason"] == "mismatch"
    assert checked(refresh=True)["changed"]
    run(cluster, state="suspended")
    assert checked(refresh=True)["origin"] == "resumed"
    assert checked(state="suspended", refresh=True)["changed"]
    assert not checked(state="suspended")["changed"]


def test_state_suspended_with_refresh_takes_the_template_for_the_next_start(cluster: FakeCluster) -> None:
    run(cluster)
    edit_template(cluster)
    asleep = run(cluster, state="suspended", refresh=True)
    assert asleep["changed"]
    assert asleep["workspace"]["refreshed"]
    woken = run(cluster)
    assert woken["workspace"]["template_current"] is True


def test_older_workspace_that_goes_on_is_warned_of(cluster: FakeCluster) -> None:
    run(cluster)
    edit_template(cluster)
    assert "terminationGracePeriodSeconds" in run(cluster, on_stale="report")["warnings"][0]
    assert "warnings" not in run(cluster, on_stale="ignore")


def test_nothing_is_asked_of_the_server_for_what_cannot_be(cluster: FakeCluster) -> None:
    for options in ({"workspace_id": ""}, {"ttl": "1s"}, {"ready_timeout": "0"}, {"template": "No Name"}):
        assert run(cluster, **options)["reason"] == "invalid-input"
    assert cluster.plan.received() == []
