# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Executions that outlive their connection."""

from __future__ import annotations

import pathlib
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    ExecutionDetachedError,
    ExecutionLostError,
    GuestRefusedError,
    GuestTimeoutError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions import detached as executions_module
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.detached import Executions
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Sessions
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    runs,
    within,
)
from ansible_collections.namzu.sandbox.tests.unit.guest.tap import Tap


@pytest.fixture
def executions(agent: RunningAgent) -> Executions:
    return Executions(agent.client)


def counted(workspace: pathlib.Path, name: str) -> int:
    """How often a command ran that appends a line to that file."""
    return len((workspace / name).read_text(encoding="utf-8").splitlines())


def test_it_runs_on_without_a_client_and_is_found_by_its_id(executions: Executions, agent: RunningAgent) -> None:
    script = "echo first; until [ -e open ]; do sleep 0.02; done; echo second; exit 3"
    key = executions.start(["sh", "-c", script], deadline=within())
    eventually(lambda: Sessions(agent.client).read(key, deadline=within()).data == b"first\n")
    (agent.workspace / "open").touch()
    done = executions.attach(key, deadline=within())
    assert (done.rc, done.stdout) == (3, b"first\nsecond\n")
    assert executions.attach(key, deadline=within()) == done


def test_attaching_at_an_offset_gives_the_rest_and_no_byte_twice(executions: Executions) -> None:
    script = "printf abc; sleep 0.05; printf XYZ >&2; sleep 0.05; printf def"
    key = executions.start(["sh", "-c", script], deadline=within())
    whole = executions.attach(key, deadline=within())
    assert (whole.stdout, whole.stderr) == (b"abcdef", b"XYZ")

    def from_byte(offset: int) -> str:
        heard: list[bytes] = []
        executions.attach(key, offset=offset, deadline=within(), on_output=lambda _stream, data: heard.append(data))
        return b"".join(heard).decode()

    assert [from_byte(offset) for offset in range(10)] == ["abcXYZdef"[offset:] for offset in range(10)]


def test_an_offset_beyond_the_output_is_refused(executions: Executions) -> None:
    key = executions.start(["true"], deadline=within())
    executions.attach(key, deadline=within())
    with pytest.raises(GuestRefusedError) as caught:
        executions.attach(key, offset=1, deadline=within())
    assert caught.value.kind == "bad-request"


def test_a_connection_that_is_cut_in_the_middle_is_made_again_and_nothing_runs_twice(agent: RunningAgent) -> None:
    script = "echo x >> cut; for i in 1 2 3 4 5; do echo $i; until [ -e $i ]; do sleep 0.01; done; done"
    with Tap(agent.port) as tap:

        def on_output(_stream: str, data: bytes) -> None:
            tap.cut()
            for word in data.split():
                (agent.workspace / word.decode()).touch()

        done = Executions(tap.client()).run(["sh", "-c", script], deadline=within(), on_output=on_output)
        assert tap.connections == 6
    assert (done.rc, done.stdout) == (0, b"1\n2\n3\n4\n5\n")
    assert counted(agent.workspace, "cut") == 1


def test_an_answer_that_is_lost_does_not_run_it_again(agent: RunningAgent) -> None:
    with Tap(agent.port, lose_answers=3) as tap:
        done = Executions(tap.client()).run(["sh", "-c", "echo x >> lost; echo done"], deadline=within())
        assert tap.sent.count(b'"execute"') == 1
        assert tap.connections == 4
    assert done.stdout == b"done\n"
    assert counted(agent.workspace, "lost") == 1


def test_an_id_is_used_once(executions: Executions, agent: RunningAgent) -> None:
    argv = ["sh", "-c", "echo x >> once"]
    executions.start(argv, key="my.id-1_x", deadline=within())
    with pytest.raises(GuestRefusedError) as caught:
        executions.start(argv, key="my.id-1_x", deadline=within())
    assert (caught.value.kind, caught.value.retryable) == ("exists", False)
    executions.attach("my.id-1_x", deadline=within())
    assert counted(agent.workspace, "once") == 1


def test_a_start_that_failed_does_not_take_the_id(executions: Executions) -> None:
    with pytest.raises(GuestRefusedError) as caught:
        executions.start(["no-such-program"], key="again", deadline=within())
    assert caught.value.kind == "not-found"
    executions.start(["true"], key="again", deadline=within())


def test_cancel_ends_the_whole_group(executions: Executions, agent: RunningAgent) -> None:
    key = executions.start(["sh", "-c", "trap '' TERM; sleep 1000 & echo $!; wait; sleep 1000"], deadline=within())
    eventually(lambda: Sessions(agent.client).read(key, deadline=within()).data)
    child = int(Sessions(agent.client).read(key, deadline=within()).data)
    assert executions.cancel(key, deadline=within(), grace=0.1)
    assert executions.attach(key, deadline=within()).signal == 9
    eventually(lambda: not runs(child))
    assert not executions.cancel(key, deadline=within())


def test_what_is_unknown_is_lost_and_says_so(executions: Executions) -> None:
    for look in (executions.attach, executions.cancel):
        with pytest.raises(ExecutionLostError) as caught:
            look("nobody", deadline=within())
        assert (caught.value.reason, caught.value.id, caught.value.retryable) == ("execution-lost", "nobody", False)


def test_a_deadline_ends_only_the_looking(executions: Executions) -> None:
    heard: list[bytes] = []
    with pytest.raises(ExecutionDetachedError) as caught:
        executions.run(
            ["sh", "-c", "echo $$; exec sleep 1000"],
            key="patient",
            deadline=within(0.4),
            on_output=lambda _stream, data: heard.append(data),
        )
    assert (caught.value.id, caught.value.offset, caught.value.reached) == ("patient", len(heard[0]), True)
    assert runs(int(heard[0]))
    executions.cancel("patient", deadline=within())
    assert executions.attach("patient", offset=caught.value.offset, deadline=within()).signal == 15


def test_an_agent_that_stays_away_is_named_in_time(agent: RunningAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(executions_module, "RECONNECT", 0.3)
    with Tap(agent.port) as tap:

        def leave(*_: object) -> None:
            tap.refuse()
            tap.cut()

        with pytest.raises(ExecutionDetachedError) as caught:
            Executions(tap.client()).run(
                ["sh", "-c", "echo up; exec sleep 60"], key="away", deadline=within(), on_output=leave
            )
    assert (caught.value.id, caught.value.offset) == ("away", 3)
    Executions(agent.client).cancel("away", deadline=within())


def test_nothing_is_tried_again_when_nothing_was_sent(agent: RunningAgent) -> None:
    with Tap(agent.port) as tap:
        tap.refuse()
        client = tap.client()
        with pytest.raises(GuestUnreachableError) as caught:
            Executions(client).run(["true"], deadline=within())
    assert not caught.value.sent


def test_input_and_limits_are_those_of_execute(executions: Executions) -> None:
    data = bytes(range(256)) * 4096
    done = executions.run(["cat"], stdin=data, max_output=len(data), deadline=within())
    assert done.stdout == data
    done = executions.run(["seq", "100000"], max_output=1000, deadline=within())
    assert (len(done.stdout), done.truncated_stdout) == (1000, True)
    assert executions.run(["sleep", "1000"], timeout=0.1, deadline=within()).timed_out
    with pytest.raises(InputError):
        executions.start(["true"], max_output=17 * 1024 * 1024, deadline=within())
    with pytest.raises(GuestTimeoutError):
        executions.start(["true"], deadline=within(0))


def test_there_is_a_limit_on_what_runs_and_the_ended_make_room(tmp_path: pathlib.Path) -> None:
    patch = "import programs; programs.RUNNING_LIMIT = 3; programs.ENDED_LIMIT = 2"
    with running_agent(workspace=tmp_path, patch=patch) as small:
        executions = Executions(small.client)
        keys = [executions.start(["sleep", "1000"], deadline=within()) for _unused in range(3)]
        with pytest.raises(GuestRefusedError) as caught:
            executions.start(["true"], deadline=within())
        assert (caught.value.kind, caught.value.retryable) == ("busy", True)
        for key in keys:
            executions.cancel(key, deadline=within())
            executions.attach(key, deadline=within())
        last = executions.start(["true"], deadline=within())
        executions.attach(last, deadline=within())
        known = [session.id for session in Sessions(small.client).list(within())]
        assert known == [*keys[1:], last]


def test_kept_output_has_a_budget_that_the_oldest_pays_for(tmp_path: pathlib.Path) -> None:
    patch = "import retained; retained.Budget.__init__.__defaults__ = (100_000,)"
    with running_agent(workspace=tmp_path, patch=patch) as small:
        executions = Executions(small.client)
        first = executions.start(["head", "-c", "60000", "/dev/zero"], deadline=within())
        assert len(executions.attach(first, deadline=within()).stdout) == 60000
        done = executions.run(["head", "-c", "90000", "/dev/zero"], deadline=within())
        assert len(done.stdout) == 90000
        with pytest.raises(ExecutionLostError):
            executions.attach(first, deadline=within())
        # Alone it is not too much to run, only too much to keep.
        done = executions.run(["head", "-c", "1000000", "/dev/zero"], deadline=within())
        assert done.rc == 0
        assert len(done.stdout) <= 100_000
        assert len(done.stdout) + done.dropped_stdout == 1_000_000


def test_many_watch_one_execution(executions: Executions, agent: RunningAgent) -> None:
    key = executions.start(["sh", "-c", "seq 50000; until [ -e all ]; do sleep 0.02; done"], deadline=within())
    with ThreadPoolExecutor(8) as pool:
        watching = [pool.submit(executions.attach, key, deadline=within()) for _unused in range(8)]
        session = Sessions(agent.client)
        eventually(lambda: {one.id: one.attached for one in session.list(within())}[key] == 8)
        (agent.workspace / "all").touch()
        assert {one.result().stdout for one in watching} == {b"".join(b"%d\n" % i for i in range(1, 50001))}
    eventually(lambda: agent.status("Threads") == "2")
