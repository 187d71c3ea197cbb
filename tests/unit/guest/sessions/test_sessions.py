# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions and terminals of the real agent."""

from __future__ import annotations

import pathlib
import re
import signal
import typing as t
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestRefusedError,
    GuestTimeoutError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.execution.stream import Execution
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.attachment import Attachment, open_terminal
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Sessions
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    runs,
    within,
)


@pytest.fixture
def sessions(agent: RunningAgent) -> Sessions:
    return Sessions(agent.client)


def until(attachment: Attachment, pattern: bytes) -> re.Match[bytes]:
    """Read until this was said."""
    said = b""
    while (found := re.search(pattern, said, re.DOTALL)) is None:
        piece = attachment.read(within())
        assert piece is not None, said
        said += piece[1]
    return found


def to_the_end(attachment: Attachment) -> tuple[bytes, Execution]:
    said = b""
    while (piece := attachment.read(within())) is not None:
        said += piece[1]
    assert attachment.result is not None
    return said, attachment.result


def terminal(agent: RunningAgent, *argv: str, **options: t.Any) -> Attachment:
    return open_terminal(agent.client, argv or ["/bin/sh"], deadline=within(), **options)


def kind_of(call: t.Callable[[], object]) -> str:
    with pytest.raises(GuestRefusedError) as caught:
        call()
    return caught.value.kind


def test_a_background_program_outlives_the_connection_and_is_found_by_its_name(sessions: Sessions) -> None:
    started = sessions.start(["sh", "-c", "echo up; exec sleep 1000"], name="server", deadline=within())
    assert (started.kind, started.name, started.program, started.running) == ("background", "server", "sh", True)
    eventually(lambda: sessions.read("server", deadline=within()).data == b"up\n")
    assert started.id in [session.id for session in sessions.list(within())]
    assert sessions.kill("server", deadline=within())
    eventually(lambda: not runs(started.pid))
    eventually(lambda: not sessions.read(started.id, deadline=within()).session.running)
    assert not sessions.kill("server", deadline=within())


def test_who_has_been_told_the_end_follows_no_more(tmp_path: pathlib.Path) -> None:
    patch = """
import program, time
def slowly(self, bell, real=program.Program.unfollow):
    time.sleep(0.2)
    real(self, bell)
program.Program.unfollow = slowly
"""
    with running_agent(workspace=tmp_path, patch=patch) as slow:
        sessions = Sessions(slow.client)
        key = sessions.start(["true"], deadline=within()).id
        with sessions.attach(key, deadline=within()) as attached:
            to_the_end(attached)
        assert sessions.read(key, deadline=within()).session.attached == 0


def test_a_name_is_unique_among_what_runs(sessions: Sessions) -> None:
    first = sessions.start(["sleep", "1000"], name="one", deadline=within())
    assert kind_of(lambda: sessions.start(["true"], name="one", deadline=within())) == "exists"
    sessions.kill("one", deadline=within())
    eventually(lambda: not sessions.read("one", deadline=within()).session.running)
    second = sessions.start(["sleep", "1000"], name="one", deadline=within())
    assert sessions.read("one", deadline=within()).session.id == second.id != first.id
    sessions.kill("one", deadline=within())


def test_output_is_read_from_any_offset_in_parts(sessions: Sessions) -> None:
    script = "printf abc; sleep 0.05; printf XYZ >&2; sleep 0.05; printf def; exec sleep 1000"
    key = sessions.start(["sh", "-c", script], deadline=within()).id
    eventually(lambda: sessions.read(key, deadline=within()).next == 9)
    assert sessions.read(key, deadline=within()).pieces == (("stdout", b"abc"), ("stderr", b"XYZ"), ("stdout", b"def"))
    offset, said = 0, b""
    while part := sessions.read(key, offset=offset, limit=2, deadline=within()).data:
        said, offset = said + part, offset + len(part)
    assert said == b"abcXYZdef"
    assert sessions.read(key, offset=9, deadline=within()).data == b""
    assert kind_of(lambda: sessions.read(key, offset=10, deadline=within())) == "bad-request"
    sessions.kill(key, deadline=within())


def test_of_endless_output_the_end_is_kept_and_what_is_lost_is_said(tmp_path: pathlib.Path) -> None:
    patch = "import programs, retained; programs.SESSION_OUTPUT = 10_000; retained._SLACK = 1000"
    with running_agent(workspace=tmp_path, patch=patch) as small:
        sessions = Sessions(small.client)
        key = sessions.start(["sh", "-c", "seq 100000; exec sleep 1000"], deadline=within()).id
        whole = b"".join(b"%d\n" % number for number in range(1, 100_001))
        eventually(lambda: sessions.read(key, offset=0, deadline=within()).next == len(whole))
        part = sessions.read(key, deadline=within())
        assert 10_000 <= len(part.data) <= 11_000
        assert part.data == whole[part.offset :]
        with sessions.attach(key, offset=5, deadline=within()) as attached:
            piece = attached.read(within())
            assert piece is not None
            assert attached.lost == part.offset - 5
            assert piece[1] == whole[part.offset :]
            assert attached.offset == len(whole)


def test_whoever_attaches_writes_to_an_input_that_is_kept_open(sessions: Sessions) -> None:
    script = "while read a; do echo got $a; done; echo end"
    key = sessions.start(["sh", "-c", script], keep_input_open=True, deadline=within()).id
    for word in (b"one", b"two"):
        with sessions.attach(key, deadline=within()) as attached:
            attached.write(word + b"\n", within())
            until(attached, b"got " + word)
    with sessions.attach(key, deadline=within()) as attached:
        attached.end_input(within())
        said, result = to_the_end(attached)
    assert (said, result.rc) == (b"got one\ngot two\nend\n", 0)


def test_input_without_end_is_held_back_and_none_is_lost(sessions: Sessions, agent: RunningAgent) -> None:
    script = "until [ -e read-now ]; do sleep 0.02; done; wc -c"
    key = sessions.start(["sh", "-c", script], keep_input_open=True, deadline=within()).id
    data = bytes(60_000_000)
    with sessions.attach(key, deadline=within()) as attached, pytest.raises(GuestTimeoutError):
        attached.write(data, within(0.2))
    (agent.workspace / "read-now").touch()
    with sessions.attach(key, deadline=within()) as attached:
        attached.end_input(within())
        said, _result = to_the_end(attached)
    assert 65536 <= int(said) < len(data)


def test_signals_reach_the_group_and_the_ended_refuse_them(sessions: Sessions) -> None:
    script = "trap 'echo usr1' USR1; echo up; while :; do sleep 0.02; done"
    key = sessions.start(["sh", "-c", script], deadline=within()).id
    with sessions.attach(key, deadline=within()) as attached:
        until(attached, b"up")
        attached.send_signal(signal.SIGUSR1, within())
        until(attached, b"usr1")
        sessions.kill(key, signal=signal.SIGUSR1, deadline=within())
        until(attached, b"usr1")
        sessions.kill(key, signal=signal.SIGKILL, deadline=within())
        assert to_the_end(attached)[1].signal == 9
    assert kind_of(lambda: sessions.kill(key, signal=15, deadline=within())) == "ended"
    assert kind_of(lambda: sessions.kill(key, signal=0, deadline=within())) == "bad-request"


@pytest.mark.parametrize("call", ["read", "attach", "kill"])
def test_what_is_not_there_is_not_found(sessions: Sessions, call: str) -> None:
    assert kind_of(lambda: getattr(sessions, call)("nobody", deadline=within())) == "not-found"


def test_a_program_that_is_not_there_is_refused_also_in_a_terminal(sessions: Sessions, agent: RunningAgent) -> None:
    for size in (None, (24, 80)):
        assert kind_of(lambda: sessions.start(["nosuch"], terminal=size, deadline=within())) == "not-found"  # noqa: B023
    assert kind_of(lambda: terminal(agent, "nosuch")) == "not-found"
    assert kind_of(lambda: terminal(agent, "/etc/passwd")) == "not-executable"
    assert kind_of(lambda: terminal(agent, rows=0)) == "bad-request"


def test_a_terminal_is_one_and_has_the_size_that_it_is_given(agent: RunningAgent) -> None:
    with terminal(agent, rows=11, columns=33) as shell:
        shell.write(b"test -t 0 && test -t 1 && stty size && echo $TERM && tty\n", within())
        until(shell, rb"11 33\r\nxterm-256color\r\n/dev/pts/")
        shell.resize(50, 132, within())
        shell.write(b"stty size; exit 7\n", within())
        said, result = to_the_end(shell)
        assert b"50 132\r\n" in said
        assert result.rc == 7
        with pytest.raises(GuestUnreachableError):
            shell.write(bytes(9_000_000), within(10))


def test_interrupt_goes_to_what_runs_in_front(agent: RunningAgent) -> None:
    with terminal(agent, "/bin/bash", "--norc") as shell:
        shell.write(b"sleep 1000; echo code $?\n", within())
        until(shell, b"sleep 1000")
        eventually(lambda: any("sleep" in name for name in names_below(agent)))
        shell.write(b"\x03", within())
        shell.write(b"echo code $?\n", within())
        until(shell, b"code 130")
        shell.write(b"sleep 1001\n", within())
        eventually(lambda: any("sleep" in name for name in names_below(agent)))
        shell.send_signal(signal.SIGTERM, within())
        until(shell, b"Terminated")


def test_a_terminal_that_is_closed_takes_all_of_its_jobs_with_it(agent: RunningAgent) -> None:
    with terminal(agent, "/bin/bash", "--norc", grace=0.2) as shell:
        shell.write(b"trap '' HUP; (trap '' HUP TERM; exec sleep 1000) & echo job=$!=\n", within())
        job = int(until(shell, rb"job=(\d+)=")[1])
        assert runs(job)
    eventually(lambda: not runs(job))
    eventually(lambda: agent.status("Threads") == "2")


def test_a_terminal_waits_for_its_client_instead_of_losing_output(agent: RunningAgent) -> None:
    with terminal(agent, "sh", "-c", "stty -opost; seq 300000") as shell:
        eventually(lambda: any("seq" in name for name in names_below(agent)))
        said, _result = to_the_end(shell)
    assert said == b"".join(b"%d\n" % number for number in range(1, 300_001))


def test_a_terminal_session_is_left_and_found_again(sessions: Sessions) -> None:
    started = sessions.start(["/bin/sh"], name="shell", terminal=(24, 80), deadline=within())
    assert (started.kind, started.terminal) == ("terminal", (24, 80))
    with sessions.attach("shell", deadline=within()) as attached:
        attached.write(b"word=kept\n", within())
        until(attached, b"kept")
        at = attached.offset
    with sessions.attach("shell", offset=at, deadline=within()) as attached:
        attached.resize(30, 90, within())
        attached.write(b"echo =$word=; exit\n", within())
        assert b"=kept=" in to_the_end(attached)[0]
    session = next(session for session in sessions.list(within()) if session.name == "shell")
    assert (session.running, session.terminal) == (False, (30, 90))


def test_reading_may_run_out_of_time_and_go_on(agent: RunningAgent) -> None:
    with terminal(agent, "sh", "-c", "read a; echo =$a=") as shell:
        for _unused in range(3):
            with pytest.raises(GuestTimeoutError):
                shell.read(within(0.05))
        shell.write(b"x\n", within())
        assert b"=x=" in to_the_end(shell)[0]


def test_only_a_terminal_has_a_size(sessions: Sessions) -> None:
    key = sessions.start(["sleep", "1000"], deadline=within()).id
    with sessions.attach(key, deadline=within()) as attached:
        attached.resize(10, 10, within())
        with pytest.raises(GuestRefusedError) as caught:
            attached.read(within())
        assert caught.value.kind == "ended"
    sessions.kill(key, deadline=within())


def names_below(agent: RunningAgent) -> list[str]:
    names = []
    for entry in pathlib.Path("/proc").iterdir():
        try:
            text = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
            environ = (entry / "environ").read_bytes()
        except (OSError, ValueError):
            continue
        if str(agent.workspace).encode() in environ and entry.name != str(agent.pid):
            names.append(text)
    return names


def test_the_program_of_a_session_is_the_one_that_was_asked_for_from_its_first_listing_on(
    tmp_path: pathlib.Path,
) -> None:
    # The listing is made while the program is being started.
    patch = f"""
import os, time, programs
original = programs.start
def slow(*arguments):
    while not os.path.exists({str(tmp_path / "go")!r}):
        time.sleep(0.01)
    return original(*arguments)
programs.start = slow
"""
    with running_agent(workspace=tmp_path, patch=patch) as agent, ThreadPoolExecutor(1) as pool:
        sessions = Sessions(agent.client)
        start = pool.submit(sessions.start, ["/bin/sleep", "1000"], terminal=(1, 1), deadline=within())
        eventually(lambda: sessions.list(within()))
        listed = sessions.list(within())[0]
        (tmp_path / "go").touch()
        assert listed.program == start.result().program == sessions.list(within())[0].program == "/bin/sleep"
