# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Stopping everything, and putting it on the disk."""

from __future__ import annotations

import pathlib
import typing as t
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestRefusedError,
    QuiesceUnconfirmedError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.quiescence import (
    flush,
    quiesce,
    unseen_containers,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.detached import Executions
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Sessions
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    process_namespace,
    running_agent,
    within,
)
from tests.unit.guest.agent.test_client import Server, agent_at, answer


@pytest.fixture(params=["subreaper", "pid 1"])
def own(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> t.Iterator[RunningAgent]:
    """An agent of this test alone."""
    with running_agent(workspace=tmp_path, prefix=process_namespace() if request.param == "pid 1" else []) as started:
        yield started


def test_everything_is_stopped_and_reported_and_the_agent_goes_on(own: RunningAgent) -> None:
    executions, sessions = Executions(own.client), Sessions(own.client)
    key = executions.start(["sleep", "1000"], deadline=within())
    stubborn = "trap '' TERM; echo up; while :; do sleep 1000; done"
    sessions.start(["sh", "-c", stubborn], name="stubborn", deadline=within())
    sessions.start(["/bin/sh"], name="shell", terminal=(24, 80), deadline=within())
    own.client.execute(["sh", "-c", "(setsid sleep 1001 >/dev/null 2>&1 &)"], deadline=within())
    eventually(lambda: sessions.read("stubborn", deadline=within()).data == b"up\n")
    eventually(lambda: sessions.read("shell", deadline=within()).next > 0)
    with ThreadPoolExecutor(1) as pool:
        attached = pool.submit(own.client.execute, ["sleep", "1002"], deadline=within())
        eventually(lambda: len(own.children()) >= 5)
        report = quiesce(own.client, deadline=within(), grace=0.2)
        assert (attached.result().signal, attached.result().cut_short) == (15, True)
    kinds = {process.kind for process in report.stopped}
    assert {"execution", "background", "terminal", None} <= kinds
    assert key in {process.id for process in report.stopped}
    assert {process.signal for process in report.stopped} == {15, 9}
    assert report.count == len(report.stopped) >= 6
    assert all(not session.running for session in sessions.list(within()))
    eventually(lambda: own.children() == {})
    assert executions.attach(key, deadline=within()).signal == 15
    assert own.client.execute(["echo", "again"], deadline=within()).stdout == b"again\n"
    assert not own.client.execute(["sh", "-c", "kill $$"], deadline=within()).stopped


def test_nothing_to_stop_is_a_report_too(own: RunningAgent) -> None:
    report = quiesce(own.client, deadline=within())
    assert (report.stopped, report.count) == ((), 0)


def test_the_report_names_its_scope_and_the_processes_outside_of_it(own: RunningAgent, tmp_path: pathlib.Path) -> None:
    report = quiesce(own.client, deadline=within(), unseen_containers=["proxy"])
    assert report.unseen_containers == ("proxy",)
    if own.pid == own.process.pid:
        # A subreaper sees this test, which it did not start.
        assert report.scope == "descendants"
        assert report.outside_count >= len(report.outside) > 0
        assert own.pid not in {process.pid for process in report.outside}
    else:
        assert (report.scope, report.outside, report.outside_count) == ("container", (), 0)


def test_the_containers_that_an_agent_cannot_see_are_those_of_the_pod_beside_its_own() -> None:
    ours = {"name": "main", "env": [{"name": "NAMZU_AGENT_BIND_TOKEN"}]}
    spec: dict[str, t.Any] = {
        "containers": [ours, {"name": "proxy", "env": [{"name": "X"}]}],
        "initContainers": [{"name": "setup"}, {"name": "mesh", "restartPolicy": "Always"}],
    }
    assert unseen_containers({"spec": spec}) == ["proxy", "mesh"]
    assert unseen_containers({"spec": {"containers": [ours]}}) == []
    assert unseen_containers({"spec": {**spec, "shareProcessNamespace": True}}) == []


def test_a_report_of_an_older_agent_has_no_scope() -> None:
    older = {"stopped": [], "stopped_count": 0, "left": [], "left_count": 0, "duration_ms": 1}
    with Server(answer({"quiesced": older})) as server:
        report = quiesce(agent_at(server.port), deadline=within())
    assert (report.scope, report.outside, report.unseen_containers) == (None, (), ())


def test_nothing_is_started_meanwhile(own: RunningAgent) -> None:
    script = "trap '' TERM; echo up; while :; do sleep 0.05; done"
    key = Executions(own.client).start(["sh", "-c", script], deadline=within())
    eventually(lambda: Sessions(own.client).read(key, deadline=within()).data)
    kinds = set()
    with ThreadPoolExecutor(1) as pool:
        stopping = pool.submit(quiesce, own.client, deadline=within(), grace=1.0)
        while not stopping.done():
            try:
                own.client.execute(["true"], deadline=within())
            except GuestRefusedError as error:
                kinds.add((error.kind, error.retryable))
        stopping.result()
    assert kinds == {("quiescing", True)}


def test_a_program_that_forks_without_end_is_stopped(own: RunningAgent) -> None:
    # Each lives for a moment and leaves another one behind; some ten at a time, and a failure is outlived.
    hop = "hop() { trap '' TERM; [ $1 -lt 2000 ] || exit; sleep 0.01; hop $(($1 + 1)) & exit; }"
    script = f"{hop}; for n in 1 2 3 4 5 6 7 8; do (hop 0) & done; trap '' TERM; while :; do sleep 0.05; done"
    Executions(own.client).start(["sh", "-c", script], deadline=within())
    eventually(lambda: len(own.children()) > 0)
    quiesce(own.client, deadline=within(), grace=0.1)
    eventually(lambda: own.children() == {})


def test_what_cannot_be_stopped_is_named(tmp_path: pathlib.Path) -> None:
    patch = """
import processes
def stoppable():
    return {4242: processes.Process(b"4242 (stuck (nfs)) D 1 4242 4242 0")}
processes.stoppable = stoppable
import quiesce
quiesce.UNKILLABLE = 0.1
quiesce.send_signal = lambda pid, number: True
"""
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        with pytest.raises(QuiesceUnconfirmedError, match=r"4242 \(stuck \(nfs\)\)") as caught:
            quiesce(agent.client, deadline=within(), grace=0)
        assert caught.value.left == [{"pid": 4242, "name": "stuck (nfs)"}]
        assert agent.client.execute(["true"], deadline=within()).rc == 0


def test_who_has_the_answer_may_start_programs(tmp_path: pathlib.Path) -> None:
    patch = """
import time
import children
hold = children.Children.hold
def slow(self, quiescing):
    time.sleep(0 if quiescing else 0.5)
    hold(self, quiescing)
children.Children.hold = slow
"""
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        quiesce(agent.client, deadline=within(), grace=0)
        assert agent.client.execute(["true"], deadline=within()).rc == 0
        quiesce(agent.client, deadline=within(), grace=0)


def test_flush_says_what_it_reached(own: RunningAgent) -> None:
    (own.workspace / "file").write_bytes(bytes(1_000_000))
    report = flush(own.client, deadline=within())
    assert (report.path, report.scope) == (str(own.workspace), "file-system")


def test_without_ctypes_everything_is_flushed(tmp_path: pathlib.Path) -> None:
    with running_agent(
        workspace=tmp_path, patch="import os, sys; sys.modules['ctypes'] = None; os.sync = int"
    ) as agent:
        assert flush(agent.client, deadline=within()).scope == "machine"


def test_a_disk_that_fails_is_an_answer(tmp_path: pathlib.Path) -> None:
    patch = "import flush\ndef fail(fd): raise OSError(5, 'Input/output error')\nflush.sync_file_system = fail"
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        with pytest.raises(GuestRefusedError) as caught:
            flush(agent.client, deadline=within())
        assert caught.value.kind == "io-error"


@pytest.mark.parametrize("operation", ["quiesce", "flush"])
def test_what_it_does_not_know_is_refused(own: RunningAgent, operation: str) -> None:
    with own.connect().request(operation, {"hard": True}) as wire:
        assert wire.json()["error"]["kind"] == "bad-request"
