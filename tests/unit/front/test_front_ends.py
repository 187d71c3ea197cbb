# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The action and the module give the same result for the same task; only the way there differs."""

from __future__ import annotations

import pathlib
import re
import typing as t

import pytest

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import POOL
from ...faults.fake.plan import Request
from .playing import Result, Task, access, play, present

NAME = "build-1"

#: What no two runs have in common.
OF_THE_RUN = {"timings", "uid", "expires_at", "sandbox_uid", "lease_left"}
OF_THE_RUN |= {"ansible_sandbox_uid", "ansible_sandbox_host", "ansible_sandbox_agent_port"}

#: What Ansible adds to the result of a module, and to one that ran in the background.
OF_THE_MODULE = {"invocation", "ansible_job_id", "results_file", "started", "finished", "stdout_lines", "stderr_lines"}


def sequence(cluster: FakeCluster) -> dict[str, Task]:
    """One task after another on the same sandbox: everything that the verbs can answer."""

    def sandbox(**options: t.Any) -> Task:
        return {"namzu.sandbox.sandbox": options}

    def execute(**options: t.Any) -> Task:
        agent = {"port": cluster.agent.port, "address": "pod_ip"}
        return {"namzu.sandbox.sandbox_exec": {**access(cluster), "agent": agent, "name": NAME, **options}}

    def lease(**options: t.Any) -> Task:
        return {"namzu.sandbox.sandbox_lease": {**access(cluster), "name": NAME, **options}}

    def check(**options: t.Any) -> Task:
        where = {"namespace": "agents", "labels": {"app": "sandbox"}, "manifests": [], "fail": False}
        return {"namzu.sandbox.boundary_check": {**where, **options}}

    wanted = present(cluster, name=NAME, labels={"job": "1"})
    gone = access(cluster, name=NAME, state="absent")
    return {
        "would acquire": {**sandbox(**wanted), "check_mode": True, "diff": True},
        "acquire": {**sandbox(**wanted), "diff": True},
        "acquire again": {**sandbox(**wanted), "diff": True},
        "would find": {**sandbox(**wanted), "check_mode": True},
        "another of that name": sandbox(**{**wanted, "labels": {"job": "2"}}),
        "release without a keeper": sandbox(**{**wanted, "name": "build-2"}, release_on_end=True),
        "enough left": lease(remaining="30m"),
        "would extend": {**lease(remaining="2h"), "check_mode": True, "diff": True},
        "extend": {**lease(remaining="2h"), "diff": True},
        "extend another": lease(remaining="2h", uid="of-another"),
        "extend nobody": lease(remaining="2h", name="nobody"),
        "extend by nothing": lease(remaining=0),
        "execute words": execute(argv=["echo", "a b"]),
        "execute a line": execute(command="echo a | cat"),
        "would execute": {**execute(argv=["true"]), "check_mode": True},
        "nothing to execute": execute(argv=[]),
        "would release": {**sandbox(**gone), "check_mode": True, "diff": True},
        "release": {**sandbox(**gone, wait=True), "diff": True},
        "release again": {**sandbox(**gone), "diff": True},
        "execute in nothing": execute(argv=["true"]),
        "wrong credential": sandbox(**{**wanted, "api_key": "wrong"}),
        "invalid name": sandbox(**{**wanted, "name": "No Name"}),
        "invalid lease": sandbox(**{**wanted, "ttl": "soon"}),
        "short request timeout": sandbox(**{**wanted, "request_timeout": 0}),
        "no pool": sandbox(**access(cluster)),
        "wrong choice": sandbox(**{**wanted, "state": "there"}),
        "wrong type": sandbox(**{**wanted, "agent": {"port": "many"}}),
        "two commands": execute(argv=["a"], command="b"),
        "a kind alone": check(egress="no_network"),
        "a kind that does not exist": check(egress="some_network"),
        "a dictionary in short form": check(egress="kind=dns_only"),
    }


CHANGED = {
    "would acquire",
    "acquire",
    "would extend",
    "extend",
    "execute words",
    "execute a line",
    "would release",
    "release",
}
FAILED = {
    "a kind that does not exist",
    "another of that name", "extend another", "extend nobody", "extend by nothing", "nothing to execute",
    "execute in nothing", "wrong credential", "invalid name", "invalid lease", "short request timeout", "no pool",
    "wrong choice", "wrong type", "two commands", "release without a keeper",
}  # fmt: skip
UNCHANGED = {"acquire again", "enough left", "would find", "would execute", "release again"}
UNCHANGED |= {"a kind alone", "a dictionary in short form"}
TASKS = sorted(CHANGED | FAILED | UNCHANGED)


class Both(t.NamedTuple):
    """The results of the sequence by name, from the action and from the module, and the requests that they made."""

    action: dict[str, Result]
    module: dict[str, Result]
    requests: dict[str, list[Request]]


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Both:
    results, requests = {}, {}
    for connection in ("local", "elsewhere"):
        with FakeCluster() as cluster:
            tasks = sequence(cluster)
            assert sorted(tasks) == TASKS
            played = play(tmp_path_factory.mktemp(connection), list(tasks.values()), connection=connection)
            results[connection] = dict(zip(tasks, played.results, strict=True))
            requests[connection] = cluster.plan.received()
    return Both(results["local"], results["elsewhere"], requests)


def comparable(value: t.Any) -> t.Any:
    """A result without what belongs to the run."""
    if isinstance(value, dict):
        return {key: comparable(inner) for key, inner in value.items() if key not in OF_THE_RUN | OF_THE_MODULE}
    return [comparable(inner) for inner in value] if isinstance(value, list) else value


def without_addresses(result: Result, name: str) -> Result:
    """Every run has its own ports and leases, and Ansible names the module in the errors about its options."""
    words = str(result.get("msg", ""))
    shown = comparable(result)
    if "msg" in shown:
        shown["msg"] = (
            words.partition(": ")[2] if words.startswith("Unsupported") else words.split(" http", maxsplit=1)[0]
        )
        shown["msg"] = re.sub(r"lease ends at [\dTZ:-]+", "lease ends at TIME", shown["msg"])
    for sandbox in [
        *shown.get("sandboxes", []),
        *([shown["sandbox"]] if isinstance(shown.get("sandbox"), dict) else []),
    ]:
        port = sandbox["address"].pop("port")
        ingress = sandbox["verdict"]["ingress"]
        ingress["request"] = ingress["request"].replace(f" {port} ", " PORT ")
    return t.cast("Result", shown)


@pytest.mark.parametrize("name", TASKS, ids=lambda name: name.replace(" ", "-"))
def test_module_returns_what_the_action_returns(both: Both, name: str) -> None:
    assert without_addresses(both.module[name], name) == without_addresses(both.action[name], name)


def test_action_runs_no_module(both: Both) -> None:
    assert all("invocation" not in result for result in both.action.values())


def test_module_makes_the_requests_of_the_action(both: Both) -> None:
    # What is read beside the wait for a claim has no place in the order.
    assert sorted(both.requests["elsewhere"]) == sorted(both.requests["local"])


@pytest.mark.parametrize("name", TASKS, ids=lambda name: name.replace(" ", "-"))
def test_task_says_whether_it_changed_and_failed(both: Both, name: str) -> None:
    result = both.action[name]
    assert (bool(result["changed"]), bool(result["failed"])) == (name in CHANGED, name in FAILED)


@pytest.mark.parametrize("name", ["would acquire", "acquire", "would release", "release"])
def test_change_has_a_difference_when_it_is_asked_for(both: Both, name: str) -> None:
    diff = both.action[name]["diff"]
    made, deleted = ("after", "before") if "acquire" in name else ("before", "after")
    assert NAME in str(diff[made])
    assert NAME not in str(diff[deleted])


@pytest.mark.parametrize("name", ["would extend", "extend"])
def test_extended_lease_shows_both_ends(both: Both, name: str) -> None:
    diff = both.action[name]["diff"]
    assert diff["before"]["expires_at"] < diff["after"]["expires_at"] == both.action[name]["expires_at"]


@pytest.mark.parametrize("name", ["acquire again", "release again", "would find", "enough left"])
def test_no_change_has_no_difference(both: Both, name: str) -> None:
    assert "diff" not in both.action[name]


@pytest.mark.parametrize(
    ("name", "reason", "retryable"),
    [
        ("another of that name", "conflict", False),
        ("extend another", "replaced", False),
        ("extend nobody", "gone", False),
        ("extend by nothing", "invalid-input", False),
        ("execute in nothing", "not-found", False),
        ("wrong credential", "forbidden", False),
        ("invalid name", "invalid-input", False),
        ("invalid lease", "invalid-input", False),
        ("short request timeout", "invalid-input", False),
    ],
)
def test_failure_says_why_in_one_word(both: Both, name: str, reason: str, retryable: bool) -> None:
    result = both.action[name]
    assert (result["reason"], result["retryable"]) == (reason, retryable)


def test_release_on_end_without_a_keeper_is_refused_with_the_line_that_enables_it(both: Both) -> None:
    result = both.action["release without a keeper"]
    assert result["reason"] == "invalid-input"
    assert "ANSIBLE_CALLBACKS_ENABLED=namzu.sandbox.lease_keeper" in result["msg"]


def test_acquired_sandbox_is_described(both: Both) -> None:
    sandbox = both.action["acquire"]["sandbox"]
    assert both.action["acquire"]["sandboxes"] == [sandbox]
    assert (sandbox["name"], sandbox["namespace"], sandbox["pod"]) == (NAME, "team-a", "python-00001")
    assert set(sandbox["timings"]) == {"claim", "ready", "bind", "probe", "boundary", "total"}
    assert sandbox["verdict"]["privileges"]["none"] is True


def test_command_is_described(both: Both) -> None:
    result = both.action["execute words"]
    assert (result["rc"], result["stdout"], result["cmd"]) == (0, "echo a b\n", ["echo", "a b"])


class Wired(t.NamedTuple):
    """A play in which the access options come from elsewhere than the task."""

    results: dict[str, Result]
    claims: list[str]


@pytest.fixture(scope="module", params=["local", "elsewhere"])
def wired(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Wired:
    with FakeCluster() as cluster:
        options = access(cluster)
        release = {"namzu.sandbox.sandbox": {"name": "nobody", "namespace": "team-a", "state": "absent"}}
        agent = {"agent": present(cluster)["agent"]}
        apart = {"group/namzu.sandbox.sandbox": options, "group/namzu.sandbox.agent": agent}
        acquire = {"namzu.sandbox.sandbox": {"name": "by-defaults", "warm_pool": POOL}}
        environment = {"K8S_AUTH_HOST": options["host"], "K8S_AUTH_API_KEY": options["api_key"]}
        tasks = {
            "all": {**release, "module_defaults": {"group/namzu.sandbox.all": options}},
            "sandbox": {**release, "module_defaults": {"group/namzu.sandbox.sandbox": options}},
            "agent for those that take it": {**acquire, "module_defaults": apart},
            "agent for those that take none": {"namzu.sandbox.sandbox_info": {}, "module_defaults": apart},
            "environment": {**release, "environment": environment},
            "background": {"namzu.sandbox.sandbox": present(cluster, name=NAME), "async": 60, "poll": 1},
        }
        played = play(tmp_path_factory.mktemp("wired"), list(tasks.values()), connection=request.param)
        return Wired(dict(zip(tasks, played.results, strict=True)), cluster.claims())


@pytest.mark.parametrize("source", ["all", "sandbox", "environment", "agent for those that take none"])
def test_access_options_reach_the_verb(wired: Wired, source: str) -> None:
    assert (wired.results[source]["failed"], wired.results[source]["changed"]) == (False, False)


def test_address_of_the_agent_reaches_the_verbs_that_take_it(wired: Wired) -> None:
    result = wired.results["agent for those that take it"]
    assert result["sandbox"]["host_vars"]["ansible_sandbox_agent_address"] == "pod_ip"


def test_task_in_the_background_does_not_depend_on_the_home(
    tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As in a CI job or an execution environment, where HOME is an empty folder and not the home of the user."""
    (tmp_path / "empty").mkdir()
    monkeypatch.setenv("HOME", str(tmp_path / "empty"))
    with FakeCluster() as cluster:
        background = {"namzu.sandbox.sandbox": present(cluster, name=NAME), "async": 60, "poll": 1}
        played = play(tmp_path, [background])
    assert played.results[0]["sandbox"]["name"] == NAME


def test_task_in_the_background_runs_as_a_module(wired: Wired) -> None:
    assert wired.results["background"]["finished"]
    assert wired.results["background"]["sandbox"]["name"] == NAME
    assert sorted(wired.claims) == sorted([NAME, "by-defaults"])
