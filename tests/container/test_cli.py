# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The command line ``namzu-sandbox`` from the wheel, on a real engine."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import pty
import select
import signal
import socket
import subprocess
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient

from .conftest import IMAGE, Way, until

PATIENCE = 120


class Cli:
    """Runs the command in an environment of its own."""

    def __init__(self, program: pathlib.Path, docker_host: str) -> None:
        self.program = str(program)
        self.environ = {"PATH": os.environ["PATH"], "HOME": "/nonexistent", "DOCKER_HOST": docker_host}
        self.environ |= {"NAMZU_SANDBOX_BACKEND": "container"}

    def __call__(self, *arguments: object, status: int = 0, stdin: str = "") -> str:
        words = [self.program, *map(str, arguments)]
        done = subprocess.run(
            words, env=self.environ, input=stdin, capture_output=True, text=True, timeout=PATIENCE, check=False
        )
        assert done.returncode == status, (done.returncode, done.stdout, done.stderr)
        assert "Traceback" not in done.stderr
        return done.stdout if status == 0 else done.stdout + done.stderr

    @contextlib.contextmanager
    def started(self, *arguments: object) -> t.Iterator[subprocess.Popen[str]]:
        words = [self.program, *map(str, arguments)]
        with subprocess.Popen(
            words, env=self.environ, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True
        ) as process:
            try:
                yield process
            finally:
                process.kill()


@pytest.fixture
def cli(wheel: pathlib.Path, docker: EngineClient) -> Cli:
    return Cli(wheel / "namzu-sandbox", docker.access.docker_host)


@pytest.fixture
def engine(docker: EngineClient) -> Way:
    return Way(docker, None, "auto")


@pytest.fixture
def name(cli: Cli) -> t.Iterator[str]:
    acquired = cli("acquire", "--image", IMAGE, "--ttl", "10m").strip()
    yield acquired
    cli("release", acquired)


def test_run_passes_output_and_status_on_and_leaves_nothing(cli: Cli, engine: Way) -> None:
    before = engine.names()
    shown = cli("run", "--image", IMAGE, "--", "sh", "-c", "echo out; echo err >&2; exit 7", status=7)
    assert shown == "out\nerr\n"
    assert (
        cli("run", "--image", IMAGE, "--stdin", "-e", "A=b", "--", "sh", "-c", "cat; echo $A", stdin="in\n")
        == "in\nb\n"
    )
    assert "timeout" in cli("run", "--image", IMAGE, "--timeout", "0.2", "--", "sleep", "99", status=124)
    cli("run", "--image", IMAGE, "--", "sh", "-c", "kill -9 $$", status=137)
    assert engine.names() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_a_signal_ends_run_and_releases_the_sandbox(cli: Cli, engine: Way, number: int) -> None:
    before = engine.names()
    with cli.started("run", "--image", IMAGE, "--", "sh", "-c", "echo up; exec sleep 600") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
    assert engine.names() == before


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_during_the_acquire_releases_what_exists_by_then(cli: Cli, engine: Way, number: int) -> None:
    before = engine.names()
    with cli.started("run", "--image", IMAGE, "--", "sleep", "600") as process:
        until(lambda: engine.names() != before)
        process.send_signal(number)
        assert process.wait(PATIENCE) == 128 + number
    assert engine.names() == before


def test_a_killed_run_leaves_a_sandbox_that_expires(cli: Cli, engine: Way) -> None:
    before = engine.names()
    with cli.started("run", "--image", IMAGE, "--ttl", "10s", "--", "sh", "-c", "echo up; exec sleep 600") as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "up\n"
        process.kill()

    def ended() -> bool:
        found = json.loads(cli("list", "-o", "json"))
        return all(one["phase"] != "ready" for one in found if one["name"] not in before)

    until(ended)


def test_a_sandbox_that_exists_is_used_listed_extended_and_released(cli: Cli, name: str) -> None:
    assert cli("exec", name, "--", "echo", "hi") == "hi\n"
    assert cli("exec", name, "pwd") == "/workspace\n"
    assert name in cli("list")
    cli("extend", name, "1h")
    (found,) = (one for one in json.loads(cli("list", "--output", "json")) if one["name"] == name)
    assert found["lease_left"] > 3000
    assert cli("release", name, "nobody") == f"{name} released\nnobody did not exist\n"
    assert json.loads(cli("release", name, "--output", "json")) == {"released": []}


def test_files_and_folders_are_copied_both_ways(cli: Cli, name: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "tree" / "deep").mkdir(parents=True)
    (tmp_path / "tree" / "deep" / "file").write_bytes(os.urandom(3_000_000))
    cli("cp", tmp_path / "tree", f"{name}:copied")
    assert "deep" in cli("ls", name, "copied")
    cli("cp", f"{name}:copied", tmp_path / "back")
    original = (tmp_path / "tree" / "deep" / "file").read_bytes()
    assert (tmp_path / "back" / "deep" / "file").read_bytes() == original
    cli("cp", f"{name}:copied/deep/file", tmp_path)
    assert (tmp_path / "file").read_bytes() == original
    cli("cp", tmp_path / "file", f"{name}:copied/")
    assert [one["path"] for one in json.loads(cli("ls", name, "copied", "-o", "json"))] == ["deep", "file"]
    assert "exactly one" in cli("cp", tmp_path, tmp_path, status=1)
    assert "nothing" in cli("cp", tmp_path / "nothing", f"{name}:x", status=1)
    assert "does not exist" in cli("cp", f"{name}:nothing", tmp_path / "x", status=1)


def test_a_port_is_forwarded_until_interrupted(cli: Cli, name: str) -> None:
    serve = (
        "import socket; server = socket.create_server(('127.0.0.1', 8123)); print(flush=True); "
        "server.accept()[0].sendall(b'hello')"
    )
    with cli.started("exec", name, "--", "python3", "-c", serve) as server:
        assert server.stdout is not None
        assert server.stdout.readline() == "\n"
        with cli.started("forward", name, "8123") as forwarding:
            assert forwarding.stdout is not None
            host, port = forwarding.stdout.readline().split(" ")[0].rsplit(":", 1)
            with socket.create_connection((host, int(port)), PATIENCE) as connection:
                assert connection.recv(5, socket.MSG_WAITALL) == b"hello"
            forwarding.send_signal(signal.SIGINT)
            assert forwarding.wait(PATIENCE) == 130


def test_a_shell_runs_on_the_terminal(cli: Cli, name: str) -> None:
    pid, terminal = pty.fork()
    if pid == 0:
        os.execve(cli.program, [cli.program, "shell", name], {**cli.environ, "TERM": "dumb"})  # noqa: S606
    os.write(terminal, b"echo $((6 * 7)); exit 3\n")
    shown = b""
    with contextlib.suppress(OSError):
        while select.select([terminal], [], [], PATIENCE)[0]:
            shown += os.read(terminal, 4096)
    _pid, status = os.waitpid(pid, 0)
    os.close(terminal)
    assert (os.waitstatus_to_exitcode(status), b"42" in shown) == (3, True), shown
    assert "not a terminal" in cli("shell", name, status=255)


def test_doctor_reports_each_step_and_the_next_one(cli: Cli, engine: Way) -> None:
    before = engine.names()
    found = json.loads(cli("doctor", "--image", IMAGE, "-o", "json"))
    assert [one["check"] for one in found] == [
        "access", "sandbox", "privileges", "egress", "ingress", "program", "release"
    ]  # fmt: skip
    assert {one["result"] for one in found} == {"ok"}
    shown = cli("doctor", "--image", "localhost/no/such:image", status=1)
    assert "failed (image-pull)" in shown
    assert "Look at the image's name" in shown
    assert "failed (" in cli("doctor", "--docker-host", "unix:///nonexistent.sock", status=1)
    assert engine.names() == before


POLICY = """
apiVersion: networking.k8s.io/v1
kind: NetworkPolicy
metadata: {name: closed, namespace: default}
spec: {podSelector: {}, policyTypes: [Ingress, Egress]}
---
apiVersion: v1
kind: Pod
metadata: {name: guarded, namespace: default}
spec: {containers: [{name: main, image: none}]}
"""


def test_verify_judges_manifests_and_refuses_the_container_backend(cli: Cli, tmp_path: pathlib.Path) -> None:
    (tmp_path / "objects.yml").write_text(POLICY)
    closed = ("verify", "--pod", "guarded", "--egress", "no_network", "--manifests", tmp_path / "objects.yml")
    assert "guarded: holds" in cli(*closed)
    assert json.loads(cli(*closed, "-o", "json"))["holds"] is True
    (tmp_path / "objects.yml").write_text(POLICY.replace("[Ingress, Egress]", "[Ingress]"))
    assert "guarded: does not hold" in cli(*closed, status=1)
    assert "exactly one" in cli("verify", status=1)
    assert "container" in cli("verify", "--pod", "guarded", status=1)


#: A client of the official library: the calls of its argument, one result a line.
CLIENT = """
import asyncio, json, os, sys
from mcp import ClientSession
from mcp.client.stdio import StdioServerParameters, stdio_client

async def main():
    server = StdioServerParameters(command=sys.argv[2], args=sys.argv[3:], env=dict(os.environ))
    async with stdio_client(server) as streams, ClientSession(*streams) as session:
        await session.initialize()
        print(json.dumps(sorted(tool.name for tool in (await session.list_tools()).tools)))
        results = []
        for name, arguments in json.loads(sys.argv[1]):
            if name == "wait_for_process":
                arguments["id"] = results[-1]["id"]
            found = await session.call_tool(name, arguments)
            text = found.content[0].text if found.content else ""
            results.append({"error": text} if found.is_error else found.structured_content)
            print(json.dumps(results[-1]))

asyncio.run(main())
"""


def drive(cli: Cli, calls: t.Sequence[tuple[str, dict[str, t.Any]]], *options: str) -> list[t.Any]:
    """The tools of a server, and the results of calls to it."""
    python = str(pathlib.Path(cli.program).parent / "python")
    words = [python, "-c", CLIENT, json.dumps(calls), cli.program, "mcp", "--image", IMAGE, *options]
    done = subprocess.run(words, env=cli.environ, capture_output=True, text=True, timeout=PATIENCE, check=False)
    assert done.returncode == 0, done.stderr
    return [json.loads(line) for line in done.stdout.splitlines()]


def test_an_agent_uses_a_sandbox_as_tools_and_leaves_nothing(cli: Cli, engine: Way) -> None:
    before = engine.names()
    tools, ran, started, waited, _written, read, listed, missing, late = drive(
        cli,
        [
            ("run_command", {"command": "cat; echo err >&2; exit 3", "stdin": "in"}),
            ("start_process", {"command": "echo background"}),
            ("wait_for_process", {}),
            ("write_file", {"path": "a/b", "content": "text"}),
            ("read_file", {"path": "a/b"}),
            ("list_files", {"path": "a"}),
            ("read_file", {"path": "missing"}),
            ("run_command", {"command": "true", "timeout": 99}),
        ],
        "--max-timeout",
        "60",
    )
    assert {"run_command", "start_process", "kill_process", "read_file", "write_file"} <= set(tools)
    assert (ran["exit_code"], ran["stdout"], ran["stderr"], ran["timed_out"]) == (3, "in", "err\n", False)
    assert (bool(started["id"]), waited["stdout"]) == (True, "background\n")
    assert (read, listed["result"]) == ({"result": "text"}, [{"path": "b", "kind": "file", "size": 4}])
    assert "does not exist" in missing["error"]
    assert "at most 60" in late["error"]
    assert engine.names() == before


def test_a_client_may_do_no_more_than_the_options_allow(cli: Cli) -> None:
    calls = [("run_command", {"command": "yes | head -c 100000"}), ("write_file", {"path": "a", "content": "b"})]
    tools, ran, refused = drive(cli, calls, "--allow", "run", "--max-output", "1000")
    assert tools == ["run_command"]
    assert (len(ran["stdout"]), ran["truncated"]) == (1000, True)
    assert "write_file" in refused["error"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_signal_ends_the_server_and_releases_the_sandbox(cli: Cli, engine: Way, number: int) -> None:
    before = engine.names()
    words = [cli.program, "mcp", "--image", IMAGE]
    with subprocess.Popen(words, env=cli.environ, stdin=subprocess.PIPE, stdout=subprocess.DEVNULL) as server:
        until(lambda: engine.names() != before and ready(cli, engine.names() - before))
        server.send_signal(number)
        assert server.wait(PATIENCE) == 128 + number
    assert engine.names() == before


def ready(cli: Cli, names: set[str]) -> bool:
    return any(one["phase"] == "ready" for one in json.loads(cli("list", "-o", "json")) if one["name"] in names)


def test_errors_have_a_next_step_and_no_traceback(cli: Cli) -> None:
    assert "image" in cli("run", "--", "true", status=255)
    assert "nobody" in cli("exec", "nobody", "--", "true", status=255)
    assert json.loads(cli("list", "--docker-host", "unix:///nonexistent.sock", "-o", "json", status=1))["reason"]
    assert "NAME=VALUE" in cli("run", "--image", IMAGE, "-e", "wrong", "--", "true", status=2)
