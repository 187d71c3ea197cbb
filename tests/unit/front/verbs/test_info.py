# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox_info`` and ``capacity_info``: shapes of results, queries, and what is refused before anything is sent."""

from __future__ import annotations

import datetime
import json
import sys
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.front.results.sandboxes import info_result
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, Result, Verb, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.capacity_info import VERB as CAPACITY_INFO
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox import VERB as SANDBOX
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_info import VERB as SANDBOX_INFO
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.workspace import VERB as WORKSPACE
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.workspace_info import VERB as WORKSPACE_INFO
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.inventory import SandboxInfo

from ....faults.fake.cluster import FakeCluster
from ....faults.fake.controller import NAMESPACE
from ....faults.fake.plan import Fault, How, Request, status
from ..playing import access

READY = {"type": "Ready", "status": "True"}
NOW = datetime.datetime(2026, 1, 31, 12, 0, 0, tzinfo=datetime.UTC)


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    """A cluster in which two sandboxes are held."""
    with FakeCluster() as made:
        made.controller.ready = None
        for number in (1, 2):
            spec = {"warmPoolRef": {"name": "python"}, "lifecycle": {"shutdownTime": "2999-01-31T12:00:00Z"}}
            metadata = {"name": f"build-{number}", "labels": {"job": str(number)}}
            made.store.create("sandboxclaims", NAMESPACE, {"metadata": metadata, "spec": spec})
        yield made


def info(cluster: FakeCluster, *, check_mode: bool = False, **options: t.Any) -> Result:
    params = {**access(cluster), "request_timeout": "30s", **options}
    return perform(SANDBOX_INFO, params, Context(check_mode=check_mode, environ={}))


def capacity(cluster: FakeCluster, **options: t.Any) -> Result:
    params = {**access(cluster), "request_timeout": "30s", **options}
    return perform(CAPACITY_INFO, params, Context(check_mode=False, environ={}))


@pytest.mark.parametrize("check_mode", [False, True])
def test_inventory_is_a_list_that_changes_nothing(cluster: FakeCluster, check_mode: bool) -> None:
    result = info(cluster, check_mode=check_mode)
    assert result["changed"] is False
    assert [one["name"] for one in result["sandboxes"]] == ["build-1", "build-2"]
    assert set(result) == {"changed", "sandboxes"}
    json.dumps(result)
    assert {request.verb for request in cluster.plan.received()} == {"list"}


def test_inventory_can_be_narrowed(cluster: FakeCluster) -> None:
    assert [one["name"] for one in info(cluster, name="build-2")["sandboxes"]] == ["build-2"]
    assert [one["name"] for one in info(cluster, label_selector="job=1")["sandboxes"]] == ["build-1"]
    assert info(cluster, name="none")["sandboxes"] == []


@pytest.mark.parametrize(
    ("query", "expected"),
    [
        ("[?phase=='pending'].name", ["build-1", "build-2"]),
        ("[?labels.job=='2'].name | [0]", "build-2"),
        ("length(@)", 2),
        ("[?phase=='ready']", []),
        ("nothing", None),
    ],
)
def test_query_is_applied_and_the_whole_stays(cluster: FakeCluster, query: str, expected: t.Any) -> None:
    result = info(cluster, query=query)
    assert result["queried"] == expected
    assert len(result["sandboxes"]) == 2


@pytest.mark.parametrize("query", ["[?", "a b", "'", "@@", "[0"])
def test_query_that_is_none_is_refused_before_anything_is_sent(cluster: FakeCluster, query: str) -> None:
    result = info(cluster, query=query)
    assert (result["failed"], result["reason"], result["retryable"]) == (True, "invalid-input", False)
    assert result["msg"].startswith("query is no JMESPath expression")
    assert cluster.plan.received() == []


@pytest.mark.parametrize("query", ["length(`1`)", "[].abs(name)", "nosuch(@)", "length(@, @)", "sort_by(@, &labels)"])
def test_query_that_cannot_be_applied_fails_with_its_reason(cluster: FakeCluster, query: str) -> None:
    """Found: a wrong type of argument left a traceback."""
    result = info(cluster, query=query)
    assert (result["failed"], result["reason"]) == (True, "invalid-input")
    assert "query" in result["msg"]


def test_query_without_the_library_says_what_is_missing(cluster: FakeCluster, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jmespath", None)
    result = info(cluster, query="[0]")
    assert (result["failed"], result["reason"]) == (True, "missing-dependency")
    assert "jmespath" in result["msg"]
    assert len(info(cluster)["sandboxes"]) == 2


def test_list_that_is_refused_fails_with_its_reason(cluster: FakeCluster) -> None:
    cluster.plan.add(status(403), Request("list", "pods"))
    result = info(cluster)
    assert (result["failed"], result["changed"], result["reason"]) == (True, False, "forbidden")


def line(**changes: t.Any) -> SandboxInfo:
    existing: dict[str, t.Any] = {
        "name": "build-1",
        "namespace": "team-a",
        "kind": "claim",
        "uid": "uid-1",
        "labels": {"job": "1"},
        "warm_pool": "python",
        "template": None,
        "workspace_id": None,
        "sandbox": "python-1",
        "pod": "python-1",
        "service": None,
        "pod_ip": "10.0.0.7",
        "node": "node-1",
        "warm": True,
        "phase": "ready",
        "reason": None,
        "message": None,
        "created_at": NOW,
        "expires_at": NOW + datetime.timedelta(hours=1),
        "age": 60.9,
        "lease_left": 3540.1,
    }
    return SandboxInfo(**{**existing, **changes})


def test_line_is_plain_data_with_times_as_text_and_lengths_as_seconds() -> None:
    result = info_result(line())
    assert result["created_at"] == "2026-01-31T12:00:00Z"
    assert result["expires_at"] == "2026-01-31T13:00:00Z"
    assert (result["age"], result["lease_left"]) == (60, 3540)
    assert json.loads(json.dumps(result)) == result
    assert "token" not in json.dumps(result)


def test_line_has_the_same_keys_whatever_is_known() -> None:
    unknown = dict.fromkeys(("created_at", "expires_at", "age", "lease_left", "pod", "pod_ip", "warm"))
    result = info_result(line(labels={}, **unknown))
    assert result.keys() == info_result(line()).keys()
    assert {key for key in unknown if result[key] is not None} == set()


def test_lease_that_is_over_is_nought_and_not_unknown() -> None:
    assert info_result(line(lease_left=0.0, age=0.0))["lease_left"] == 0


def test_capacity_is_the_numbers_of_the_pool(cluster: FakeCluster) -> None:
    pool = {"metadata": {"name": "python"}, "spec": {"replicas": 4}, "status": {"readyReplicas": 3}}
    cluster.store.create("sandboxwarmpools", NAMESPACE, pool)
    assert capacity(cluster, warm_pool="python") == {
        "changed": False,
        "capacity": {
            "warm_pool": "python",
            "ready": 3,
            "desired": 4,
            "active_claims": 2,
            "waiting_claims": 2,
            "pending_pods": 0,
            "gated_pods": 0,
            "headroom": 1,
            "problem": None,
        },
    }
    assert len(cluster.plan.received()) == 4


def test_pool_that_is_missing_is_named(cluster: FakeCluster) -> None:
    result = capacity(cluster, warm_pool="go")
    assert (result["failed"], result["reason"]) == (True, "not-found")
    assert result["object"] == "SandboxWarmPool team-a/go"


def test_name_that_cannot_be_one_is_refused_before_anything_is_sent(cluster: FakeCluster) -> None:
    assert capacity(cluster, warm_pool="../pods")["reason"] == "invalid-input"
    assert cluster.plan.received() == []


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (SANDBOX_INFO, {}),
        (WORKSPACE_INFO, {}),
        (SANDBOX, {"state": "absent", "name": "a"}),
        (SANDBOX, {"state": "absent", "label_selector": "a=b"}),
        (WORKSPACE, {"state": "absent", "workspace_id": "a", "delete_disk": True}),
    ],
    ids=["sandbox_info", "workspace_info", "sandbox-name", "sandbox-selector", "workspace"],
)
def test_namespace_that_does_not_exist_is_an_error_where_it_can_be_known(
    cluster: FakeCluster, verb: Verb, options: dict[str, t.Any]
) -> None:
    def run(namespace: str) -> dict[str, t.Any]:
        defaults = {name: option.get("default") for name, option in verb.options.items()}
        given = {**defaults, **access(cluster), **options, "namespace": namespace}
        return perform(verb, given, Context(check_mode=False, environ={}))

    missing = run("nowhere")
    assert (missing["failed"], missing["reason"], missing["object"]) == (True, "invalid-input", "Namespace nowhere")
    cluster.plan.add(Fault(How.STATUS, 403), Request("get", "namespaces"))
    assert not run("nowhere").get("failed"), "nothing is known without the right to read it"
    empty = run(NAMESPACE)
    assert not empty["changed"]
    assert "msg" in empty or verb.name.endswith("_info")
