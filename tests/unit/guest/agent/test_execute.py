# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running commands with the real agent."""

from __future__ import annotations

import base64
import fcntl
import pathlib
import signal
import threading
import typing as t
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestRefusedError, GuestTimeoutError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.execution.stream import Execution
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    runs,
    status_field,
    within,
)

EVERY_BYTE = bytes(range(256)) * 4


def shell(agent: RunningAgent, script: str, **options: t.Any) -> Execution:
    return agent.client.execute(["/bin/sh", "-c", script], deadline=within(), **options)


def test_a_command_gives_its_output_and_exit_code(agent: RunningAgent) -> None:
    execution = shell(agent, "echo out; echo err >&2; exit 7")
    assert (execution.rc, execution.signal) == (7, None)
    assert (execution.stdout, execution.stderr) == (b"out\n", b"err\n")
    assert (execution.timed_out, execution.truncated_stdout, execution.truncated_stderr) == (False, False, False)
    assert 0 <= execution.duration < 60


def test_no_shell_is_involved(agent: RunningAgent) -> None:
    assert agent.client.execute(["echo", "$HOME; *", "a  b"], deadline=within()).stdout == b"$HOME; * a  b\n"


def test_a_signal_is_told_from_an_exit_code(agent: RunningAgent) -> None:
    execution = shell(agent, "kill -KILL $$")
    assert (execution.rc, execution.signal) == (137, 9)
    assert shell(agent, "exit 137").signal is None


def test_it_starts_in_the_workspace_or_where_it_is_told(agent: RunningAgent) -> None:
    workspace = shell(agent, "mkdir -p inner; pwd").stdout_text.strip()
    assert workspace == agent.client.healthz(within()).workspace
    assert shell(agent, "pwd", cwd="inner").stdout_text == f"{workspace}/inner\n"
    assert shell(agent, "pwd", cwd="/").stdout_text == "/\n"


def test_the_environment_is_clean_and_takes_additions(agent: RunningAgent) -> None:
    workspace = agent.client.healthz(within()).workspace
    lines = agent.client.execute(["env"], deadline=within(), env={"A": "1=2\n3", "LANG": "de"}).stdout_text
    assert "A=1=2\n3\n" in lines
    names = {line.split("=")[0] for line in lines.splitlines()}
    assert names - {"LC_CTYPE", "3"} == {"A", "HOME", "LANG", "NAMZU_WORKSPACE", "PATH"}
    assert f"HOME={workspace}\n" in lines
    assert "LANG=de\n" in lines


def test_input_is_dev_null_unless_there_is_some(agent: RunningAgent) -> None:
    assert shell(agent, "readlink /proc/self/fd/0").stdout == b"/dev/null\n"
    assert shell(agent, "readlink /proc/self/fd/0", stdin=b"x").stdout.startswith(b"pipe:")


@pytest.mark.parametrize("size", [1, 32 * 1024, 32 * 1024 + 1, 10 * 1024 * 1024])
def test_input_of_any_size_comes_back_intact(agent: RunningAgent, size: int) -> None:
    data = (EVERY_BYTE * (size // len(EVERY_BYTE) + 1))[:size]
    execution = agent.client.execute(["cat"], deadline=within(), stdin=data, max_output=size)
    assert execution.stdout == data
    assert not execution.truncated_stdout


def test_input_that_is_not_read_does_no_harm(agent: RunningAgent) -> None:
    data = bytes(5 * 1024 * 1024)
    assert agent.client.execute(["true"], deadline=within(), stdin=data).rc == 0
    assert shell(agent, "exec <&-; echo done", stdin=data).stdout == b"done\n"


def test_input_inline_and_as_frames_is_explicit(agent: RunningAgent) -> None:
    for stdin in (
        {"encoding": "utf-8", "data": "ü"},
        {"encoding": "base64", "data": base64.b64encode(b"\xc3\xbc").decode()},
    ):
        with agent.connect().request("execute", {"argv": ["cat"], "stdin": stdin}) as wire:
            assert "started" in wire.json()
            assert wire.frame() == b"\x01\xc3\xbc"
    with agent.connect().request("execute", {"argv": ["cat"], "stdin": {"encoding": "frames"}}) as wire:
        assert "started" in wire.json()
        for byte in (b"\xc3", b"\xbc"):
            wire.socket.sendall(encode(b"\x00" + byte))
            assert wire.frame() == b"\x01" + byte
        wire.socket.sendall(encode(b""))
        assert wire.end()["exit"] == 0


def test_a_shell_command_is_asked_for_as_one(agent: RunningAgent) -> None:
    with agent.connect().request("execute", {"command": "exit $((40 + 2))", "shell": True}) as wire:
        assert "started" in wire.json()
        assert wire.end()["exit"] == 42


def test_output_of_a_million_lines_is_cut_counted_and_blocks_nobody(agent: RunningAgent) -> None:
    whole = b"".join(b"%d\n" % number for number in range(1, 1_000_001))
    execution = agent.client.execute(["seq", "1000000"], deadline=within(), max_output=100_000)
    assert execution.rc == 0
    assert execution.stdout == whole[:100_000]
    assert (execution.truncated_stdout, execution.dropped_stdout) == (True, len(whole) - 100_000)
    assert (execution.truncated_stderr, execution.dropped_stderr) == (False, 0)


def test_output_may_be_only_counted(agent: RunningAgent) -> None:
    execution = shell(agent, "echo four; echo five5 >&2", max_output=0)
    assert (execution.stdout, execution.dropped_stdout, execution.dropped_stderr) == (b"", 5, 6)


def test_output_arrives_while_the_command_runs(agent: RunningAgent) -> None:
    heard = []
    script = "echo first; flock -s gate true; echo second"
    workspace = pathlib.Path(agent.client.healthz(within()).workspace)
    with (workspace / "gate").open("w", encoding="utf-8") as gate:
        fcntl.flock(gate, fcntl.LOCK_EX)

        def on_output(stream: str, data: bytes) -> None:
            heard.append((stream, data))
            fcntl.flock(gate, fcntl.LOCK_UN)

        assert shell(agent, script, on_output=on_output).stdout == b"first\nsecond\n"
    assert heard == [("stdout", b"first\n"), ("stdout", b"second\n")]


@pytest.mark.parametrize(
    ("argv", "cwd", "kind"),
    [
        (["no-such-program"], None, "not-found"),
        (["/no/such/program"], None, "not-found"),
        (["/etc/passwd"], None, "not-executable"),
        (["/etc/passwd/x"], None, "not-found"),
        (["/"], None, "not-executable"),
        (["./orphaned-script"], None, "not-found"),
        (["./no-program"], None, "not-executable"),
        (["true"], "/no/such/folder", "bad-cwd"),
        (["true"], "/etc/passwd", "bad-cwd"),
        (["true", "x" * 3_000_000], None, "bad-request"),
        (["a\0b"], None, "bad-request"),
        (["\ud800"], None, "bad-request"),
        ([""], None, "bad-request"),
        ([], None, "bad-request"),
    ],
)
def test_what_cannot_start_is_refused_by_kind(agent: RunningAgent, argv: list[str], cwd: str | None, kind: str) -> None:
    workspace = pathlib.Path(agent.client.healthz(within()).workspace)
    for name, text in (("orphaned-script", "#!/no/such/interpreter\n"), ("no-program", "\x7fwhat")):
        (workspace / name).write_text(text, encoding="utf-8")
        (workspace / name).chmod(0o755)
    with pytest.raises(GuestRefusedError) as caught:
        agent.client.execute(argv, deadline=within(), cwd=cwd)
    assert (caught.value.kind, caught.value.reason, caught.value.retryable) == (kind, "agent-refused", False)


@pytest.mark.parametrize(
    "body",
    [
        {},
        {"argv": "true"},
        {"argv": [1]},
        {"argv": ["true"], "command": "true"},
        {"argv": ["true"], "shell": True},
        {"command": "true"},
        {"command": "true", "shell": "yes"},
        {"argv": ["true"], "env": []},
        {"argv": ["true"], "env": {"A": 1}},
        {"argv": ["true"], "env": {"A=B": "1"}},
        {"argv": ["true"], "env": {"": "1"}},
        {"argv": ["true"], "cwd": 1},
        {"argv": ["true"], "stdin": "text"},
        {"argv": ["true"], "stdin": {"encoding": "latin-1", "data": ""}},
        {"argv": ["true"], "stdin": {"encoding": "base64", "data": "a"}},
        {"argv": ["true"], "stdin": {"encoding": "base64", "data": "ab cd==="}},
        {"argv": ["true"], "stdin": {"encoding": "utf-8", "data": "\ud800"}},
        {"argv": ["true"], "timeout": 0},
        {"argv": ["true"], "timeout": -1},
        {"argv": ["true"], "timeout": "1"},
        {"argv": ["true"], "timeout": float("nan")},
        {"argv": ["true"], "timeout": True},
        {"argv": ["true"], "grace": 61},
        {"argv": ["true"], "max_output": -1},
        {"argv": ["true"], "max_output": 1 << 40},
        {"argv": ["true"], "max_output": 1.5},
        {"argv": ["true"], "nice": 5},
        {"argv": ["true"], "detach": 1},
        {"argv": ["true"], "detach": True, "id": "no/slash"},
    ],
)
def test_a_request_that_cannot_be_honoured_is_refused(agent: RunningAgent, body: dict[str, t.Any]) -> None:
    with agent.connect().request("execute", body) as wire:
        error = wire.json()["error"]
    assert error["kind"] == "bad-request"
    assert error["message"]


def test_a_large_request_is_sent_after_the_token(agent: RunningAgent) -> None:
    value = "x" * 100_000
    execution = shell(agent, 'printf %s "$A" | wc -c', env={"A": value, "B": value})
    assert execution.stdout_text.strip() == "100000"


def test_a_request_that_fits_no_frame_is_not_sent(agent: RunningAgent) -> None:
    with pytest.raises(InputError, match="Send large data as standard input"):
        agent.client.execute(["x" * 9_000_000], deadline=within())


def test_a_command_that_ignores_sigterm_is_killed_after_the_grace(agent: RunningAgent) -> None:
    execution = shell(agent, "trap '' TERM; echo up; while :; do sleep 1000; done", timeout=0.2, grace=0.2)
    assert (execution.timed_out, execution.signal, execution.stdout) == (True, signal.SIGKILL, b"up\n")


def test_a_timeout_ends_the_whole_group_and_gives_it_its_grace(agent: RunningAgent) -> None:
    script = (
        "(trap 'echo cleaned; exit' TERM; echo $(exec sh -c 'echo $PPID'); while :; do sleep 1000 & wait; done) & "
        "trap - TERM; sleep 1000"
    )
    execution = shell(agent, script, timeout=0.5, grace=30)
    assert (execution.timed_out, execution.signal) == (True, signal.SIGTERM)
    pid, word = execution.stdout_text.split()
    assert word == "cleaned"
    eventually(lambda: not runs(int(pid)))


def test_a_command_that_ends_in_time_is_not_timed_out(agent: RunningAgent) -> None:
    assert not shell(agent, "exit 0", timeout=60).timed_out


def test_a_background_child_that_holds_the_pipes_holds_up_nobody(agent: RunningAgent) -> None:
    execution = shell(agent, "sleep 1000 & echo $!")
    pid = int(execution.stdout)
    assert execution.rc == 0
    assert execution.duration < 30
    assert runs(pid)
    shell(agent, f"kill {pid}")
    eventually(lambda: not runs(pid))


def test_a_background_child_that_floods_the_pipe_holds_up_nobody(agent: RunningAgent) -> None:
    execution = shell(agent, "yes & echo $!", max_output=1000)
    pid = int(execution.stdout.split()[0])
    assert execution.rc == 0
    # Its pipe has no reader any more.
    eventually(lambda: not runs(pid))


def test_a_client_that_leaves_takes_the_process_group_with_it(agent: RunningAgent) -> None:
    with agent.connect() as wire:
        wire.request("execute", {"argv": ["sh", "-c", "trap '' TERM; sleep 1000 & echo $$ $!; wait"], "grace": 0.1})
        assert "started" in wire.json()
        pids = [int(word) for word in wire.frame()[1:].split()]
        assert all(map(runs, pids))
    eventually(lambda: not any(map(runs, pids)))


def test_a_deadline_that_passes_ends_the_command(agent: RunningAgent) -> None:
    heard: list[bytes] = []
    with pytest.raises(GuestTimeoutError) as caught:
        agent.client.execute(
            ["sh", "-c", "echo $$; exec sleep 1000"],
            deadline=within(0.5),
            on_output=lambda _stream, data: heard.append(data),
        )
    assert (caught.value.stage, caught.value.reason, caught.value.retryable) == ("stream", "agent-timeout", False)
    eventually(lambda: not runs(int(b"".join(heard))))


def test_a_client_that_does_not_read_cannot_stop_the_clock(agent: RunningAgent) -> None:
    body = {"argv": ["sh", "-c", "yes & echo $! >&2; wait"], "max_output": 200_000_000, "timeout": 0.5, "grace": 0.1}
    with agent.connect().request("execute", body) as wire:
        assert "started" in wire.json()
        while (frame := wire.frame())[0] != 2:
            pass
        pid = int(frame[1:])
        # From here on nothing is read, and the pipes are full.
        eventually(lambda: not runs(pid))
        end = wire.end()
    assert end["timed_out"]


def test_output_that_a_slow_client_had_not_taken_at_the_end_is_not_lost(agent: RunningAgent) -> None:
    size = 12_000_000
    with agent.connect().request(
        "execute", {"argv": ["head", "-c", str(size), "/dev/zero"], "max_output": size}
    ) as wire:
        pid = wire.json()["started"]["pid"]
        assert runs(pid)
        received = 0
        while (frame := wire.frame())[0] == 1:
            received += len(frame) - 1
        assert received == size


def test_a_command_has_nothing_of_the_agents(agent: RunningAgent) -> None:
    fds = shell(agent, "ls /proc/$$/fd").stdout_text.split()
    assert set(fds) <= {"0", "1", "2", "10", "255"}
    status = agent.client.execute(["cat", "/proc/self/status"], deadline=within()).stdout_text
    # The C library keeps 32 and 33 for itself, and lets nobody reset them.
    masks = [int(status_field(status, name), 16) & ~(3 << 31) for name in ("SigBlk", "SigIgn", "SigCgt")]
    assert masks == [0, 0, 0]
    ids = shell(agent, "cat /proc/$$/stat").stdout_text.rpartition(")")[2].split()
    group, session = ids[2], ids[3]
    assert group == session != str(agent.pid)


def test_two_hundred_commands_run_at_once(agent: RunningAgent) -> None:
    number = 200
    workspace = pathlib.Path(agent.client.healthz(within()).workspace)
    all_up = threading.Barrier(number + 1)
    with (workspace / "gate").open("w", encoding="utf-8") as gate, ThreadPoolExecutor(number) as pool:
        fcntl.flock(gate, fcntl.LOCK_EX)

        def on_output(_stream: str, data: bytes) -> None:
            if data.startswith(b"up"):
                all_up.wait(60)

        def run(index: int) -> tuple[int, bytes]:
            execution = shell(agent, f"echo up; flock -s gate true; echo {index}; exit {index}", on_output=on_output)
            return execution.rc, execution.stdout

        results = [pool.submit(run, index) for index in range(number)]
        all_up.wait(60)
        fcntl.flock(gate, fcntl.LOCK_UN)
        assert [result.result() for result in results] == [
            (index, f"up\n{index}\n".encode()) for index in range(number)
        ]


def test_no_exit_code_is_lost_to_the_reaper(agent: RunningAgent) -> None:
    def run(index: int) -> int:
        return shell(agent, f"(exit 99 &) ; (sleep 0 &) ; exit {index % 90}").rc

    with ThreadPoolExecutor(8) as pool:
        assert list(pool.map(run, range(300))) == [index % 90 for index in range(300)]
    eventually(lambda: "Z" not in agent.children().values())


def test_descriptors_and_threads_are_given_back(tmp_path: pathlib.Path) -> None:
    # Otherwise only root could look at its descriptors.
    with running_agent(workspace=tmp_path, patch="import init; init.protect = lambda: None") as agent:
        folder = pathlib.Path(f"/proc/{agent.pid}/fd")
        eventually(lambda: agent.status("Threads") == "2")
        before = len(list(folder.iterdir()))
        for _unused in range(20):
            shell(agent, "cat", stdin=b"x" * 100_000)
            with pytest.raises(GuestRefusedError):
                agent.client.execute(["no-such-program"], deadline=within(), stdin=b"x")
        eventually(lambda: agent.status("Threads") == "2")
        assert len(list(folder.iterdir())) == before


def test_a_python_without_eventfd_serves_as_well(tmp_path: pathlib.Path) -> None:
    patch = "if hasattr(os, 'eventfd'): del os.eventfd"
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        assert shell(agent, "exit 5").rc == 5
        assert shell(agent, "sleep 1000 & exit 6").rc == 6


def test_the_interpreter_in_health_runs(agent: RunningAgent) -> None:
    health = agent.client.healthz(within())
    version = "import sys; print(sys.version.split()[0])"
    execution = agent.client.execute([health.executable, "-I", "-S", "-c", version], deadline=within())
    assert execution.stdout_text.strip() == health.python
    assert health.supports("execute")
    assert not health.supports("telepathy")
