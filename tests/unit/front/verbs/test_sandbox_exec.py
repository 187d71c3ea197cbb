# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox_exec`` with ``detach`` and ``attach``, by a fake cluster to the real agent."""

from __future__ import annotations

import concurrent.futures
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_exec import VERB
from ansible_collections.namzu.sandbox.plugins.module_utils.guest import agent as agent_module
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.quiescence import quiesce
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire

from ....faults.fake.agent import POD_UID
from ....faults.fake.cluster import FakeCluster
from ...guest.running_agent import RunningAgent, eventually, running_agent, within
from ...guest.tap import Tap
from ..playing import access

Task = t.Callable[..., dict[str, t.Any]]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace"), token=POD_UID) as started:
        yield started


@pytest.fixture(scope="module")
def task(agent: RunningAgent) -> t.Iterator[Task]:
    """Runs the verb on an acquired sandbox."""
    with FakeCluster() as cluster:
        with cluster.client() as client:
            acquire(client, cluster.request(name="build-1"))

        def run(check_mode: bool = False, **options: t.Any) -> dict[str, t.Any]:
            reached = {"port": agent.port, "address": "pod_ip", **options.pop("agent", {})}
            given = access(cluster, agent=reached, name="build-1", **options)
            if "attach" in given:
                given["attach"] = {"offset": 0, "cancel": False, **given["attach"]}
            defaults = {name: option.get("default") for name, option in VERB.options.items()}
            return perform(VERB, {**defaults, **given}, Context(check_mode, {}))

        yield run


def test_a_command_goes_on_and_is_followed_from_where_it_was_left(task: Task, agent: RunningAgent) -> None:
    script = "echo first; until [ -e go ]; do sleep 0.02; done; echo second >&2; exit 3"
    started = task(command=script, detach=True)
    assert (started["changed"], started["running"], started["offset"]) == (True, True, 0)
    look = task(attach={"id": started["id"]}, timeout="0.5s")
    assert (look["changed"], look["running"], look["stdout"], look["offset"]) == (False, True, "first\n", 6)
    assert "failed" not in look
    (agent.workspace / "go").touch()
    end = task(attach={"id": started["id"], "offset": look["offset"]})
    assert (end["changed"], end["running"], end["failed"], end["rc"]) == (False, False, True, 3)
    assert (end["stdout"], end["stderr"], end["offset"]) == ("", "second\n", 13)


def test_a_command_that_everything_in_the_pod_ended_with_is_told_apart(task: Task, agent: RunningAgent) -> None:
    with concurrent.futures.ThreadPoolExecutor(1) as thread:
        # One process: a shell that waits for a child ends by itself when the child is stopped first.
        running = thread.submit(task, command="echo up; : > up; exec sleep 1000")
        eventually((agent.workspace / "up").exists)
        quiesce(agent.client, deadline=within(), grace=0.2)
        end = running.result()
    assert (end["failed"], end["changed"], end["reason"], end["retryable"]) == (True, True, "pod-stopping", True)
    assert (end["rc"], end["signal"], end["stdout"]) == (143, 15, "up\n")


def test_it_is_ended_on_request_and_that_is_no_failure(task: Task) -> None:
    started = task(argv=["sleep", "1000"], detach=True)
    ended = task(attach={"id": started["id"], "cancel": True})
    assert (ended["changed"], ended["running"], ended["signal"]) == (True, False, 15)
    assert ended["failed"] is False, "Ansible takes any rc but 0 for a failure unless it is told"
    assert "reason" not in ended
    again = task(attach={"id": started["id"], "cancel": True})
    assert not again["changed"]


def test_its_timeout_is_kept_without_anybody_waiting(task: Task) -> None:
    started = task(argv=["sleep", "1000"], detach=True, timeout="0.2s")
    ended = task(attach={"id": started["id"]})
    assert (ended["timed_out"], ended["reason"]) == (True, "timeout")


def test_what_is_unknown_is_lost(task: Task) -> None:
    lost = task(attach={"id": "nobody"})
    assert (lost["failed"], lost["reason"], lost["id"], lost["retryable"]) == (True, "execution-lost", "nobody", False)


@pytest.mark.parametrize(
    "options", [{"argv": ["true"], "detach": True, "max_output": 1 << 25}, {"attach": {"id": "x", "offset": -1}}]
)
def test_what_cannot_be_honoured_is_refused_before_anything_is_asked(task: Task, options: dict[str, t.Any]) -> None:
    assert task(**options)["reason"] == "invalid-input"


def test_check_mode_starts_and_ends_nothing_but_looks(task: Task) -> None:
    assert task(check_mode=True, argv=["true"], detach=True)["skipped"]
    started = task(argv=["sh", "-c", "echo up; exec sleep 1000"], detach=True)
    assert task(check_mode=True, attach={"id": started["id"], "cancel": True})["skipped"]
    eventually(lambda: task(check_mode=True, attach={"id": started["id"]}, timeout="0.2s")["stdout"] == "up\n")
    assert task(attach={"id": started["id"], "cancel": True})["changed"]


def test_a_connection_that_is_lost_is_found_by_the_heartbeat_that_the_task_asks_for(
    task: Task, agent: RunningAgent
) -> None:
    with Tap(agent.port) as tap, concurrent.futures.ThreadPoolExecutor(1) as thread:
        options = {"command": "echo up; exec sleep 1000", "agent": {"port": tap.port, "heartbeat": "0.2s"}}
        running = thread.submit(task, **options)
        eventually(lambda: b"up\n" in tap.received)
        tap.hush()
        end = running.result()
    assert (end["failed"], end["reason"], end["sent"]) == (True, "agent-unreachable", True)


def test_a_command_with_a_timeout_ends_soon_after_it_when_the_connection_is_lost(
    task: Task, agent: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(agent_module, "DEFAULT_GRACE", 0.0)
    monkeypatch.setattr(agent_module, "END_SECONDS", 0.5)
    with Tap(agent.port) as tap, concurrent.futures.ThreadPoolExecutor(1) as thread:
        options = {"command": "echo up; exec sleep 1000", "timeout": "2s", "agent": {"port": tap.port}}
        running = thread.submit(task, **options)
        eventually(lambda: b"up\n" in tap.received)
        tap.hush()
        end = running.result()
    # The bound is the one of the command, and not a minute of the client's own.
    assert (end["failed"], end["reason"], end["stage"]) == (True, "agent-timeout", "stream")
    assert "within 2.5 s" in end["msg"]


def test_a_heartbeat_that_is_not_valid_is_refused_before_anything_is_asked(task: Task) -> None:
    assert task(argv=["true"], agent={"heartbeat": "0.01s"})["reason"] == "invalid-input"


def test_command_that_a_signal_ended_names_the_signal(task: Task) -> None:
    ended = task(argv=["sh", "-c", "kill -9 $$"])
    assert (ended["failed"], ended["reason"]) == (True, "non-zero-rc")
    assert "SIGKILL" in ended["msg"]


def test_timeout_reports_how_long_the_command_ran(task: Task) -> None:
    ended = task(argv=["sleep", "1000"], timeout="0.5s")
    assert (ended["timed_out"], ended["reason"]) == (True, "timeout")
    assert "after 0." in ended["msg"] or "after 1." in ended["msg"]


@pytest.mark.parametrize("workspace_id", ["customer-4711/main"])
def test_workspace_that_does_not_exist_is_named_as_one(workspace_id: str) -> None:
    with FakeCluster() as cluster:
        defaults = {name: option.get("default") for name, option in VERB.options.items()}
        given = access(cluster, workspace_id=workspace_id, argv=["true"])
        result = perform(VERB, {**defaults, **given}, Context(check_mode=False, environ={}))
    assert (result["failed"], result["reason"]) == (True, "not-found")
    assert f"workspace {workspace_id!r}" in result["msg"]
    assert "SandboxClaim" not in result["msg"]
