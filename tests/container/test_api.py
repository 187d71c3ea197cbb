# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The Python API on a real engine: the first example of its page, and what else its page promises."""

from __future__ import annotations

import asyncio
import contextlib
import pathlib
import re
import socket
import subprocess
import sys
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.api import (
    AsyncSandbox,
    CommandFailedError,
    Sandbox,
    SandboxError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Cancellation, Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import ExecutionDetachedError

from .conftest import IMAGE, Way, until

PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "reference" / "python.md"


@pytest.fixture
def engine(docker: EngineClient, monkeypatch: pytest.MonkeyPatch) -> Way:
    monkeypatch.setenv("DOCKER_HOST", docker.access.docker_host)
    return Way(docker, None, "auto")


@pytest.fixture
def sandbox(engine: Way) -> t.Iterator[Sandbox]:
    with Sandbox.acquire(image=IMAGE, ready_timeout="120s") as acquired:
        yield acquired


@pytest.mark.parametrize(("number", "lines", "output"), [(0, 5, "42\n"), (1, 12, "0 1 2 3 4 5 6 7 8 9\n")])
def test_the_first_examples_of_the_page_work(engine: Way, number: int, lines: int, output: str) -> None:
    code = re.findall(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)[number]
    assert len(code.splitlines()) == lines
    before = engine.names()
    program = code.replace("docker.io/library/python:3.13-slim", IMAGE)
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, timeout=120, check=False)
    assert (done.returncode, done.stdout) == (0, output), done.stderr
    assert engine.names() == before


def test_a_cancelled_acquire_in_a_loop_leaves_nothing(engine: Way) -> None:
    before = engine.names()

    async def cancelled(seconds: float) -> None:
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(seconds), await AsyncSandbox.acquire(image=IMAGE, ready_timeout="120s"):
                pass

    for hundredths in range(0, 100, 10):
        asyncio.run(cancelled(hundredths / 100))
    assert engine.names() == before


def test_programs_run_with_input_output_and_environment(sandbox: Sandbox) -> None:
    pieces: list[bytes] = []
    done = sandbox.run(["cat"], stdin="in", on_stdout=pieces.append)
    assert (done.stdout, b"".join(pieces)) == (b"in", b"in")
    done = sandbox.run("echo $A; pwd; echo no >&2; exit 3", env={"A": "b"}, cwd="/tmp", stdin=None)
    assert (done.rc, done.stdout_text, done.stderr_text) == (3, "b\n/tmp\n", "no\n")
    with pytest.raises(CommandFailedError) as caught:
        sandbox.run("echo no >&2; exit 3", check=True)
    assert (caught.value.reason, caught.value.execution.rc) == ("non-zero-rc", 3)
    with pytest.raises(CommandFailedError) as caught:
        sandbox.run("sleep 99", check=True, timeout=0.2)
    assert caught.value.reason == "timeout"


def test_files_go_both_ways(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    sandbox.files.write("deep/er/file", "text", mode=0o640)
    assert sandbox.files.read("deep/er/file") == b"text"
    (tmp_path / "program").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "program").chmod(0o755)
    sandbox.files.upload(tmp_path / "program", "program")
    assert sandbox.run("./program", check=True).stdout == b"ran\n"
    sandbox.files.download("deep/er/file", tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "text"
    with pytest.raises(SandboxError):
        sandbox.files.download("nothing", tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "text"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["copy", "program"]


def test_folders_go_both_ways_and_are_worked_on(sandbox: Sandbox, tmp_path: pathlib.Path) -> None:
    (tmp_path / "source" / "sub").mkdir(parents=True)
    (tmp_path / "source" / "sub" / "program").write_text("#!/bin/sh\necho ran\n")
    (tmp_path / "source" / "sub" / "program").chmod(0o755)
    assert sandbox.files.upload_tree(tmp_path / "source", "tree").count == 2
    assert sandbox.run("tree/sub/program", check=True).stdout == b"ran\n"
    sandbox.run("ln -s /etc tree/out; ln -s sub tree/in; mkfifo tree/pipe", check=True)
    report = sandbox.files.download_tree("tree", tmp_path / "back")
    assert sorted(skipped.path for skipped in report.skipped) == ["out", "pipe"]
    assert (tmp_path / "back" / "in" / "program").stat().st_mode & 0o777 == 0o755
    with sandbox.files.watch("tree", interval=0.1) as changes:
        sandbox.files.move("tree/sub", "tree/moved")
        assert {next(changes).path, next(changes).path} == {"sub", "moved"}
    assert sandbox.files.remove("tree", recursive=True) == 6
    with pytest.raises(FileNotFoundError):
        sandbox.files.list("tree")
    with pytest.raises(PermissionError):
        sandbox.files.mkdir("/usr/new")


def test_a_cancelled_program_ends(sandbox: Sandbox) -> None:
    cancellation = Cancellation()
    threading.Timer(0.5, cancellation.cancel).start()
    with pytest.raises(SandboxError):
        sandbox.run("exec sleep 4242", cancellation=cancellation)
    until(lambda: sandbox.run("grep -l 42[4]2 /proc/[0-9]*/cmdline").stdout == b"")


def test_a_program_in_the_background_is_followed_found_again_and_killed(sandbox: Sandbox) -> None:
    pieces: list[bytes] = []
    started = sandbox.start("cat; echo done >&2", stdin="in", env={"A": "b"})
    done = started.wait(60, on_stderr=pieces.append)
    assert (done.rc, done.stdout, b"".join(pieces)) == (0, b"in", b"done\n")
    assert sandbox.process(started.id).wait(60).stdout == b"in"
    endless = sandbox.start(["sleep", "4711"])
    with pytest.raises(ExecutionDetachedError):
        endless.wait(0.2)
    assert sandbox.process(endless.id).kill(grace=0)
    assert endless.wait(60).rc != 0


def test_a_terminal_and_a_port_of_the_sandbox(sandbox: Sandbox) -> None:
    with sandbox.terminal(["stty", "size"], rows=40, columns=120) as terminal:
        output = b""
        while (piece := terminal.read(Deadline(60.0))) is not None:
            output += piece[1]
    assert output == b"40 120\r\n"
    serve = (
        "import socket; server = socket.create_server(('127.0.0.1', 0)); "
        "print(server.getsockname()[1], flush=True); server.accept()[0].sendall(b'hello')"
    )
    port: list[bytes] = []
    started = threading.Event()

    def on_stdout(data: bytes) -> None:
        port.append(data)
        if data.endswith(b"\n"):
            started.set()

    server = sandbox.start(["python3", "-c", serve])
    follower = threading.Thread(target=server.wait, kwargs={"on_stdout": on_stdout}, daemon=True)
    follower.start()
    assert started.wait(60)
    with sandbox.forward(int(b"".join(port))) as local, socket.create_connection(local.address, 60) as connection:
        assert connection.recv(5, socket.MSG_WAITALL) == b"hello"
    follower.join(60)


def test_a_cancelled_acquire_leaves_nothing(engine: Way) -> None:
    before = engine.names()
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(SandboxError):
        Sandbox.acquire(image=IMAGE, cancellation=cancellation)
    assert engine.names() == before


def test_it_is_found_listed_extended_and_released(engine: Way, sandbox: Sandbox) -> None:
    with Sandbox.connect(sandbox.name, uid=sandbox.uid, backend="container") as found:
        assert found.run("echo 1").stdout == b"1\n"
    assert sandbox.name in {one["name"] for one in Sandbox.list(backend="container")}
    sandbox.extend("1h")
    (listed,) = (one for one in Sandbox.list(backend="container") if one["name"] == sandbox.name)
    assert listed["lease_left"] > 3000
    sandbox.release()
    assert sandbox.name not in engine.names()
    sandbox.release()


def test_the_lease_is_renewed_while_the_program_lives_and_ends_when_it_was_killed(engine: Way) -> None:
    program = (
        "import sys, time\n"
        "from ansible_collections.namzu.sandbox.plugins.module_utils.api import Sandbox\n"
        f"sandbox = Sandbox.acquire(image={IMAGE!r}, ttl=12, ready_timeout='120s')\n"
        "print(sandbox.name, flush=True)\n"
        "time.sleep(600)\n"
    )
    with subprocess.Popen([sys.executable, "-c", program], stdout=subprocess.PIPE, text=True) as child:
        try:
            assert child.stdout is not None
            name = child.stdout.readline().strip()
            time.sleep(15)
            assert name in engine.names()
        finally:
            child.kill()
    until(lambda: Sandbox.list(backend="container") == [] or name not in running(), 60.0)


def running() -> set[str]:
    return {one["name"] for one in Sandbox.list(backend="container") if one["phase"] == "ready"}


def test_several_are_acquired_at_once_all_or_none(engine: Way) -> None:
    before = engine.names()
    sandboxes = Sandbox.acquire_many(3, image=IMAGE, ready_timeout="120s")
    try:
        assert len({one.run("hostname").stdout for one in sandboxes}) == 3
    finally:
        for one in sandboxes:
            one.release()
    assert engine.names() == before


def test_what_cannot_be_is_refused(engine: Way) -> None:
    with pytest.raises(TypeError, match="colour"):
        Sandbox.acquire(image=IMAGE, colour="red")
    with pytest.raises(SandboxError) as caught:
        Sandbox.acquire(image=IMAGE, pool="python")
    assert caught.value.reason == "invalid-input"
    with pytest.raises(SandboxError) as caught:
        Sandbox.connect("nobody", backend="container")
    assert caught.value.reason == "not-found"
