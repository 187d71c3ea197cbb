# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox_session`` and ``sandbox_session_info``, by a fake cluster to the real agent."""

from __future__ import annotations

import json
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_exec import VERB as EXEC
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_session import VERB as SESSION
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_session_info import VERB as INFO
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire

from ....faults.fake.agent import POD_UID
from ....faults.fake.cluster import FakeCluster
from ....faults.workspace import ground as workspace_ground
from ...guest.running_agent import RunningAgent, eventually, running_agent, runs
from ..playing import Result, access, play

#: What no two runs have in common, and what Ansible adds to the result of a module, or by a result's own words.
OF_THE_RUN = {"id", "pid", "object", "started_at", "ended_at", "invocation", "stdout_lines", "stderr_lines"}

SERVE = ["sh", "-c", "echo up; exec sleep 1000"]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace"), token=POD_UID) as started:
        yield started


@pytest.fixture(scope="module")
def cluster() -> t.Iterator[FakeCluster]:
    """A cluster with a sandbox and a workspace, whose agents are one."""
    with FakeCluster() as made, made.client() as client:
        acquire(client, made.request(name="build-1"))
        workspace_ground.prepare(made)
        workspace_ground.run(made, client)
        yield made


Task = t.Callable[..., Result]


@pytest.fixture
def task(cluster: FakeCluster, agent: RunningAgent) -> Task:
    """Runs a verb on the sandbox."""

    def run(verb: t.Any = SESSION, *, check_mode: bool = False, **options: t.Any) -> Result:
        given = access(cluster, agent={"port": agent.port, "address": "pod_ip"}, **options)
        given = given if "workspace_id" in options else {"name": "build-1", **given}
        validated = ArgumentSpecValidator(verb.options, **verb.constraints).validate(given)
        assert validated.error_messages == []
        return perform(verb, validated.validated_parameters, Context(check_mode, {}))

    return run


def test_a_program_is_started_once_and_stopped_once(task: Task) -> None:
    first = task(session="once", argv=SERVE)
    assert (first["changed"], first["session"]["running"], first["session"]["name"]) == (True, True, "once")
    assert runs(first["session"]["pid"])
    again = task(session="once", argv=SERVE)
    assert (again["changed"], again["session"]["id"]) == (False, first["session"]["id"])
    ended = task(session="once", state="stopped")
    assert (ended["changed"], ended["session"]["running"], ended["session"]["signal"]) == (True, False, 15)
    assert not runs(first["session"]["pid"]), "stopped means that it has ended"
    assert task(session="once", state="stopped") == {
        "changed": False, "session": None, "sandbox": "build-1", "pod": first["pod"]
    }  # fmt: skip


def test_a_program_that_has_ended_is_started_again(task: Task) -> None:
    short = task(session="short", argv=["true"])
    eventually(lambda: not task(INFO, session="short")["sessions"][0]["running"])
    again = task(session="short", argv=["true"])
    assert again["changed"]
    assert again["session"]["id"] != short["session"]["id"]


@pytest.mark.parametrize(
    "other",
    [
        {"argv": ["sleep", "2000"]},
        {"command": "sleep 1000"},
        {"environment": {"A": "2"}},
        {"chdir": "/"},
        {"stdin": "x"},
        {"timeout": "1h"},
    ],
    ids=lambda other: next(iter(other)),
)
def test_another_command_under_the_name_is_refused_and_the_first_runs_on(task: Task, other: Result) -> None:
    asked = {"session": "taken", "argv": ["sleep", "1000"], "environment": {"A": "1"}}
    first = task(**asked)
    changed = {**asked, **other}
    if "command" in other:
        del changed["argv"]
    for check_mode in (True, False):
        refused = task(**changed, check_mode=check_mode)
        assert (refused["failed"], refused["reason"], refused["retryable"]) == (True, "conflict", False)
        assert "sleep" in refused["msg"]
    assert task(**asked)["session"]["id"] == first["session"]["id"]
    assert runs(first["session"]["pid"])


def test_check_mode_changes_nothing_and_says_what_would_change(task: Task) -> None:
    would = task(session="planned", argv=SERVE, check_mode=True)
    assert (would["changed"], would["session"]) == (True, None)
    assert would["diff"] == {
        "before": {"session": "planned", "state": "stopped"},
        "after": {"session": "planned", "state": "started", "cmd": SERVE},
    }
    assert task(INFO, session="planned")["sessions"] == []
    pid = task(session="planned", argv=SERVE)["session"]["pid"]
    assert not task(session="planned", argv=SERVE, check_mode=True)["changed"]
    assert task(session="planned", state="stopped", check_mode=True)["changed"]
    assert runs(pid)


def test_output_is_read_from_where_it_was_left(task: Task, agent: RunningAgent) -> None:
    task(session="talks", command="echo one; until [ -e on ]; do sleep 0.01; done; echo two >&2")
    eventually(lambda: task(INFO, session="talks")["stdout"] == "one\n")
    read = task(INFO, session="talks")
    assert (read["changed"], read["offset"], read["lost"]) == (False, 4, 0)
    (agent.workspace / "on").touch()
    eventually(lambda: not task(INFO, session="talks")["sessions"][0]["running"])
    rest = task(INFO, session="talks", offset=read["offset"])
    assert (rest["stdout"], rest["stderr"], rest["offset"]) == ("", "two\n", 8)
    assert (rest["sessions"][0]["rc"], rest["sessions"][0]["signal"]) == (0, None)
    assert task(INFO, session=rest["sessions"][0]["id"], max_output=2)["stdout"] == "on"


def test_a_character_is_never_cut_in_two(task: Task) -> None:
    task(session="words", command="printf '\\303\\244\\303\\244'; exec sleep 1000")
    eventually(lambda: task(INFO, session="words")["stdout"] == "ää")
    part = task(INFO, session="words", max_output=3)
    assert (part["stdout"], part["offset"]) == ("ä", 2)
    assert task(INFO, session="words", offset=part["offset"])["stdout"] == "ä"


def test_what_is_no_longer_kept_is_counted(task: Task) -> None:
    task(session="much", command="head -c 1500000 /dev/zero; echo end")
    eventually(lambda: not task(INFO, session="much")["sessions"][0]["running"])
    read = task(INFO, session="much")
    assert read["lost"] == read["sessions"][0]["first"] > 0
    assert len(read["stdout"]) == read["offset"] - read["lost"]
    rest = task(INFO, session="much", offset=1_500_000)
    assert (rest["lost"], rest["stdout"], rest["offset"]) == (0, "end\n", 1_500_004)


def test_a_workspace_is_named_by_its_id(task: Task) -> None:
    started = task(session="here", argv=SERVE, workspace_id=workspace_ground.ID)
    assert (started["changed"], started["sandbox"][:9]) == (True, "workspace")
    names = [one["name"] for one in task(INFO, workspace_id=workspace_ground.ID)["sessions"]]
    assert "here" in names
    assert task(session="here", state="stopped", workspace_id=workspace_ground.ID)["changed"]
    assert task(EXEC, argv=["echo", "in it"], workspace_id=workspace_ground.ID)["stdout"] == "in it\n"


def test_who_is_not_there_is_said_by_name(task: Task, cluster: FakeCluster) -> None:
    assert task(session="a", argv=["true"], name="nobody")["reason"] == "not-found"
    assert task(INFO, workspace_id="nobody")["reason"] == "not-found"
    with cluster.client() as client:
        workspace_ground.run(cluster, client, workspace_id="asleep")
        workspace_ground.suspend(cluster, client, workspace_id="asleep")
    asleep = task(session="a", argv=["true"], workspace_id="asleep")
    assert (asleep["reason"], "Resume it" in asleep["msg"]) == ("suspended", True)


@pytest.mark.parametrize(
    ("verb", "options"),
    [
        (SESSION, {"session": "a b", "argv": ["true"]}),
        (SESSION, {"session": ".a", "argv": ["true"]}),
        (SESSION, {"session": "a" * 65, "argv": ["true"]}),
        (SESSION, {"session": "a", "argv": []}),
        (SESSION, {"session": "a", "argv": ["true"], "timeout": 0}),
        (SESSION, {"session": "a", "state": "stopped", "grace": "61s"}),
        (SESSION, {"session": "a", "argv": ["true"], "workspace_id": ""}),
        (SESSION, {"session": "a", "argv": ["true"], "name": "No Name"}),
        (INFO, {"session": "a b"}),
        (INFO, {"session": "a", "offset": -1}),
        (INFO, {"session": "a", "max_output": 0}),
        (INFO, {"session": "a", "max_output": 1048577}),
    ],
)
def test_what_cannot_be_honoured_is_refused_before_anything_is_asked(
    task: Task, cluster: FakeCluster, verb: t.Any, options: Result
) -> None:
    cluster.plan.clear()
    assert task(verb, **options)["reason"] == "invalid-input"
    assert cluster.plan.received() == []


def sequence(cluster: FakeCluster, port: int) -> dict[str, dict[str, t.Any]]:
    """One task after another: what both verbs can answer."""
    base = {**access(cluster), "agent": {"port": port, "address": "pod_ip"}, "name": "build-1"}
    start = {**base, "session": "serve", "argv": ["sleep", "1000"]}

    def session(options: dict[str, t.Any]) -> dict[str, t.Any]:
        return {"namzu.sandbox.sandbox_session": options, "diff": True}

    return {
        "start": session(start),
        "start another": session({**start, "argv": ["true"]}),
        "stop": session({**base, "session": "serve", "state": "stopped"}),
        "read": {"namzu.sandbox.sandbox_session_info": {**base, "session": "serve"}},
        "nothing to start": session({**base, "session": "serve"}),
    }


@pytest.fixture
def both(tmp_path_factory: pytest.TempPathFactory, cluster: FakeCluster) -> dict[str, dict[str, Result]]:
    found = {}
    for connection in ("local", "elsewhere"):
        with running_agent(workspace=tmp_path_factory.mktemp("work"), token=POD_UID) as fresh:
            tasks = sequence(cluster, fresh.port)
            played = play(tmp_path_factory.mktemp(connection), list(tasks.values()), connection=connection)
            found[connection] = dict(zip(tasks, played.results, strict=True))
    return found


def comparable(value: t.Any) -> t.Any:
    if isinstance(value, dict):
        return {key: comparable(inner) for key, inner in value.items() if key not in {*OF_THE_RUN, "msg"}}
    return [comparable(inner) for inner in value] if isinstance(value, list) else value


def test_module_and_action_return_the_same(both: dict[str, dict[str, Result]]) -> None:
    assert comparable(both["elsewhere"]) == comparable(both["local"])
    assert all("invocation" not in result for result in both["local"].values())
    played = both["local"]
    assert {name for name, result in played.items() if result["changed"]} == {"start", "stop"}
    assert {name for name, result in played.items() if result["failed"]} == {"start another", "nothing to start"}
    assert {name for name, result in played.items() if "diff" in result} == {"start", "stop"}
    assert POD_UID not in json.dumps(both)
