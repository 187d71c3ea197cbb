# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every verb that acts on an existing sandbox or workspace refuses another object of its name, and does nothing."""

from __future__ import annotations

import importlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.front.results.sandboxes import sandbox_result
from ansible_collections.namzu.sandbox.plugins.module_utils.front.results.workspaces import opened_result
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire

from .fake.controller import NAMESPACE
from .fake.plan import Fault, How
from .fake.server import TOKEN
from .traffic import DELETE, GET_CLAIM
from .workspace import ground

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

    from .fake.cluster import FakeCluster

NAME = "build-1"
OTHER_UID = "00000000-0000-4000-8000-000000000000"
DIRECT: dict[str, t.Any] = {"warm_pool": None, "template": "python"}

#: What each verb does with a sandbox, beyond saying which.
ON_SANDBOXES: dict[str, tuple[str, dict[str, t.Any]]] = {
    "exec": ("sandbox_exec", {"argv": ["true"]}),
    "upload": ("sandbox_files", {"src": "/tmp", "dest": "faults"}),
    "start a session": ("sandbox_session", {"session": "web", "argv": ["true"]}),
    "stop a session": ("sandbox_session", {"session": "web", "state": "stopped"}),
    "read sessions": ("sandbox_session_info", {}),
    "release": ("sandbox", {"state": "absent"}),
    "release and wait": ("sandbox", {"state": "absent", "wait": True}),
    "extend": ("sandbox_lease", {"remaining": "9h"}),
    "open egress": ("sandbox_egress", {"egress": {"kind": "public_internet", "engine": "core"}}),
    "close egress": ("sandbox_egress", {"state": "absent"}),
}

ON_WORKSPACES: dict[str, tuple[str, dict[str, t.Any]]] = {
    name: (verb, options) for name, (verb, options) in ON_SANDBOXES.items() if verb.startswith("sandbox_se")
} | {
    "exec": ON_SANDBOXES["exec"],
    "extend": ON_SANDBOXES["extend"],
}

OF_WORKSPACES: dict[str, dict[str, t.Any]] = {
    "open": {"template": ground.TEMPLATE, "ingress": "unverified"},
    "suspend": {"state": "suspended"},
    "suspend and refresh": {"state": "suspended", "refresh": True},
    "delete": {"state": "absent", "delete_disk": True},
}

Run = t.Callable[..., dict[str, t.Any]]


@pytest.fixture
def run(cluster: FakeCluster) -> Run:
    """Runs a verb with its defaults."""

    def go(verb_name: str, **options: t.Any) -> dict[str, t.Any]:
        package = "ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs"
        verb = importlib.import_module(f"{package}.{verb_name}").VERB
        defaults = {name: option.get("default") for name, option in verb.options.items()}
        agent = {"port": cluster.agent.port, "address": "pod_ip"} if "agent" in verb.options else None
        way = {"host": cluster.server.url, "api_key": TOKEN, "agent": agent}
        return perform(verb, {**defaults, **way, **options}, Context(check_mode=False, environ={}))

    return go


@pytest.fixture(params=["claim", "direct"])
def replaced(request: pytest.FixtureRequest, cluster: FakeCluster, client: Client) -> dict[str, t.Any]:
    """The result of an acquire whose sandbox has been replaced by another one of the same name."""
    spec = {"podTemplate": {"spec": {"containers": [{"name": "agent"}]}}}
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": spec})
    source = {} if request.param == "claim" else DIRECT
    acquired = acquire(client, cluster.request(name=NAME, per_sandbox_egress=True, **source))
    cluster.store.renew(cluster.key("sandboxclaims" if request.param == "claim" else "sandboxes", NAME), OTHER_UID)
    return sandbox_result(acquired)


@pytest.fixture
def replaced_workspace(cluster: FakeCluster, client: Client) -> dict[str, t.Any]:
    """The result of opening a workspace whose Sandbox has been replaced by another one of the same id."""
    ground.prepare(cluster)
    opened = ground.run(cluster, client, ttl=600.0)
    cluster.store.renew(ground.key(), OTHER_UID)
    return opened_result(opened)


def events(cluster: FakeCluster) -> int:
    cluster.controller.settle()
    return len(cluster.store.events)


def assert_refused(cluster: FakeCluster, before: int, result: dict[str, t.Any]) -> None:
    assert (result.get("failed"), result.get("reason"), result["changed"]) == (True, "replaced", False), result
    assert events(cluster) == before
    assert cluster.agent.asked == []


@pytest.mark.parametrize(("verb", "options"), ON_SANDBOXES.values(), ids=ON_SANDBOXES)
@pytest.mark.parametrize("form", ["uid", "sandbox"])
def test_other_sandbox_of_the_name_is_refused(
    cluster: FakeCluster, run: Run, replaced: dict[str, t.Any], verb: str, options: dict[str, t.Any], form: str
) -> None:
    cluster.agent.asked.clear()
    before = events(cluster)
    given = {"uid": replaced["uid"], "name": NAME, "namespace": NAMESPACE} if form == "uid" else {"sandbox": replaced}
    assert_refused(cluster, before, run(verb, **options, **given))


@pytest.mark.parametrize(("verb", "options"), ON_WORKSPACES.values(), ids=ON_WORKSPACES)
@pytest.mark.parametrize("form", ["uid", "sandbox"])
def test_other_workspace_of_the_id_is_refused(
    cluster: FakeCluster, run: Run, replaced_workspace: dict[str, t.Any], verb: str, options: t.Any, form: str
) -> None:
    cluster.agent.asked.clear()
    before = events(cluster)
    by_uid = {"uid": replaced_workspace["uid"], "workspace_id": ground.ID, "namespace": NAMESPACE}
    given = by_uid if form == "uid" else {"sandbox": replaced_workspace}
    assert_refused(cluster, before, run(verb, **options, **given))


@pytest.mark.parametrize("options", OF_WORKSPACES.values(), ids=OF_WORKSPACES)
def test_workspace_is_changed_only_if_it_is_the_one_that_is_meant(
    cluster: FakeCluster, run: Run, replaced_workspace: dict[str, t.Any], options: dict[str, t.Any]
) -> None:
    cluster.agent.asked.clear()
    before = events(cluster)
    result = run("workspace", namespace=NAMESPACE, workspace_id=ground.ID, uid=replaced_workspace["uid"], **options)
    assert_refused(cluster, before, result)
    current = run("workspace", namespace=NAMESPACE, workspace_id=ground.ID, uid=OTHER_UID, **options)
    assert not current.get("failed"), current


def test_sandbox_that_is_meant_is_used_and_released(cluster: FakeCluster, client: Client, run: Run) -> None:
    acquired = sandbox_result(acquire(client, cluster.request(name=NAME)))
    assert run("sandbox_exec", argv=["echo"], sandbox=acquired)["rc"] == 0
    assert run("sandbox", state="absent", sandbox=acquired)["released"] == [NAME]
    assert run("sandbox", state="absent", sandbox=acquired)["changed"] is False


def test_several_are_released_by_their_results(cluster: FakeCluster, client: Client, run: Run) -> None:
    made = [sandbox_result(acquire(client, cluster.request(name=f"build-{number}"))) for number in range(3)]
    cluster.store.renew(cluster.key("sandboxclaims", "build-1"), OTHER_UID)
    result = run("sandbox", state="absent", sandboxes=made)
    assert (result["failed"], result["released"]) == (True, ["build-0", "build-2"])
    assert [(one["name"], one["reason"]) for one in result["failures"]] == [("build-1", "replaced")]
    assert cluster.claims() == ["build-1"]


def test_one_that_is_replaced_while_it_is_released_is_left(cluster: FakeCluster, client: Client, run: Run) -> None:
    acquired = sandbox_result(acquire(client, cluster.request(name=NAME)))
    key = cluster.key("sandboxclaims", NAME)
    cluster.store.after_read(key, lambda: cluster.store.renew(key, OTHER_UID))
    run("sandbox", state="absent", wait=True, sandbox=acquired)
    assert cluster.store.get(key)["metadata"]["uid"] == OTHER_UID


def test_one_that_is_replaced_after_it_was_chosen_by_label_is_left(
    cluster: FakeCluster, client: Client, run: Run
) -> None:
    acquire(client, cluster.request(name=NAME, labels={"job": "7"}))
    key = cluster.key("sandboxclaims", NAME)
    cluster.store.before_read(key, lambda: cluster.store.renew(key, OTHER_UID))
    result = run("sandbox", state="absent", wait=True, namespace=NAMESPACE, label_selector="job=7")
    assert (result.get("failed"), result["changed"]) == (None, False)
    assert cluster.store.get(key)["metadata"]["uid"] == OTHER_UID


def test_release_whose_answer_is_lost_deletes_that_one_alone(cluster: FakeCluster, client: Client, run: Run) -> None:
    acquired = sandbox_result(acquire(client, cluster.request(name=NAME)))
    cluster.plan.add(Fault(How.CUT_AFTER), DELETE)
    cluster.plan.add(Fault(How.CUT_BEFORE), GET_CLAIM)
    assert run("sandbox", state="absent", sandbox=acquired)["changed"]
    assert cluster.claims() == []


@pytest.mark.parametrize(
    "options",
    [
        {"sandbox": {"name": NAME}},
        {"sandbox": {"name": NAME, "namespace": NAMESPACE, "uid": None}},
        {"sandbox": {"name": NAME, "namespace": NAMESPACE, "uid": "u"}, "namespace": "team-b"},
    ],
    ids=["without-uid", "null", "other-namespace"],
)
@pytest.mark.parametrize(("verb", "given"), ON_SANDBOXES.values(), ids=ON_SANDBOXES)
def test_what_is_not_the_result_of_an_acquire_is_refused_before_anything_is_asked(
    cluster: FakeCluster, run: Run, verb: str, given: dict[str, t.Any], options: dict[str, t.Any]
) -> None:
    assert run(verb, **given, **options)["reason"] == "invalid-input"
    assert cluster.plan.received() == []


@pytest.mark.parametrize("option", [{"uid": "u"}, {"sandbox": {}}, {"sandboxes": []}], ids=lambda one: next(iter(one)))
def test_acquire_does_not_take_what_says_which_exists(cluster: FakeCluster, run: Run, option: dict[str, t.Any]) -> None:
    assert run("sandbox", name=NAME, warm_pool="python", **option)["reason"] == "invalid-input"
    assert cluster.plan.received() == []
