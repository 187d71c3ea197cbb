# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The agent as a process: how it starts, what it hides, and what it does as PID 1."""

from __future__ import annotations

import ast
import os
import pathlib
import re
import shutil
import signal
import socket
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestUnreachableError
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    FOLDER,
    PYTHON,
    TOKEN,
    RunningAgent,
    eventually,
    process_namespace,
    running_agent,
    runs,
    within,
    without_privileges,
)

NAMES = ("environ", "mem", "maps", "fd/0", "auxv")
READ_AS_THE_AGENT = """
import sys
for name in sys.argv[2:]:
    path = f"/proc/{sys.argv[1]}/{name}"
    try:
        print(name, open(path, "rb").read(0 if name == "mem" else 10))
    except OSError as error:
        print(name, error.strerror)
"""


@pytest.fixture(scope="module", params=["subreaper", "pid 1"])
def init(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    prefix = process_namespace() if request.param == "pid 1" else []
    with running_agent(workspace=tmp_path_factory.mktemp("workspace"), prefix=prefix) as started:
        yield started


def start(environment: dict[str, str]) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [PYTHON, "-I", "-B", str(FOLDER)],
        env=environment,
        capture_output=True,
        text=True,
        check=False,
        timeout=60,
    )


@pytest.mark.parametrize("environment", [{}, {"NAMZU_AGENT_BIND_TOKEN": ""}, {"NAMZU_AGENT_BIND_TOKEN": " \n"}])
def test_it_does_not_start_without_a_token(environment: dict[str, str]) -> None:
    ended = start(environment)
    assert ended.returncode == 1
    assert ended.stderr.count("\n") == 1
    assert "NAMZU_AGENT_BIND_TOKEN is not set: give it the pod's uid by the downward API" in ended.stderr


@pytest.mark.parametrize(
    ("variables", "words"),
    [
        ({"NAMZU_AGENT_PORT": "x"}, "NAMZU_AGENT_PORT is 'x'"),
        ({"NAMZU_AGENT_PORT": "65536"}, "NAMZU_AGENT_PORT is '65536'"),
        ({"NAMZU_AGENT_ADDRESS": "localhost"}, "cannot start"),
        ({"NAMZU_AGENT_ADDRESS": "192.0.2.1"}, "cannot start"),
    ],
)
def test_a_setting_that_cannot_be_used_ends_it_with_a_line(variables: dict[str, str], words: str) -> None:
    ended = start({"NAMZU_AGENT_BIND_TOKEN": TOKEN, **variables})
    assert ended.returncode == 1
    assert words in ended.stderr
    assert ended.stderr.count("\n") == 1
    assert TOKEN not in ended.stderr


def test_the_token_is_neither_in_its_environment_nor_in_a_commands_nor_on_its_command_line(
    init: RunningAgent,
) -> None:
    assert TOKEN not in init.client.execute(["env"], deadline=within()).stdout_text
    assert TOKEN.encode() not in pathlib.Path(f"/proc/{init.pid}/cmdline").read_bytes()


def test_the_kernel_shows_no_token_even_where_it_cannot_be_hidden(tmp_path: pathlib.Path) -> None:
    # Without ctypes the environment stays readable. A ctypes that fails to import stands for an image without it.
    shutil.copytree(FOLDER, tmp_path / "agent", ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "agent" / "ctypes.py").write_text("raise ImportError\n", encoding="utf-8")
    with running_agent(workspace=tmp_path, folder=tmp_path / "agent") as agent:
        environment = pathlib.Path(f"/proc/{agent.pid}/environ").read_bytes()
        assert b"NAMZU_WORKSPACE=" in environment
        assert TOKEN.encode() not in environment
        assert agent.client.execute(["true"], deadline=within()).rc == 0


def test_a_command_of_the_same_user_cannot_look_into_it_but_into_itself(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, prefix=without_privileges()) as agent:

        def look_at(pid: str) -> list[str]:
            argv = [PYTHON, "-I", "-S", "-c", READ_AS_THE_AGENT, pid, *NAMES]
            return agent.client.execute(argv, deadline=within()).stdout_text.splitlines()

        assert look_at(str(agent.pid)) == [f"{name} Permission denied" for name in NAMES]
        assert not any("denied" in line for line in look_at("self"))


def test_orphans_are_collected(init: RunningAgent) -> None:
    before = init.children()
    script = "(sleep 1000 >/dev/null 2>&1 & echo $!); (true &) ; (sh -c '(exit 3 &)' &)"
    execution = init.client.execute(["sh", "-c", script], deadline=within())
    orphan = int(execution.stdout)
    # It is the agent's child now; its death must leave nothing.
    eventually(lambda: init.children().keys() - before.keys())
    init.client.execute(["kill", "-9", str(orphan)], deadline=within())
    eventually(lambda: init.children() == before)


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
@pytest.mark.parametrize("namespace", [False, True])
def test_it_ends_on_a_signal_and_leaves_nothing(
    tmp_path: pathlib.Path, number: signal.Signals, namespace: bool
) -> None:
    with running_agent(workspace=tmp_path, prefix=process_namespace() if namespace else []) as agent:
        script = "trap '' TERM INT; (setsid sleep 1000 &); sleep 1000 & echo up; while :; do wait; done"
        with agent.connect().request("execute", {"argv": ["sh", "-c", script]}) as wire:
            assert "started" in wire.json()
            assert wire.frame() == b"\x01up\n"
            eventually(lambda: len(descendants(agent.pid)) >= 3)
            below = descendants(agent.pid)
            send(agent.pid, number)
            eventually(lambda: not runs(agent.pid))
        assert agent.process.wait(60) == 0
        eventually(lambda: not any(map(runs, below)))
        with pytest.raises(GuestUnreachableError):
            agent.client.healthz(within())


def test_a_command_that_obeys_sigterm_gets_to_say_so(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path) as agent:
        script = "trap 'echo bye; exit 5' TERM; echo up; while :; do sleep 1000 & wait; done"
        with agent.connect().request("execute", {"argv": ["sh", "-c", script]}) as wire:
            assert "started" in wire.json()
            assert wire.frame() == b"\x01up\n"
            send(agent.pid, signal.SIGTERM)
            assert wire.frame() == b"\x01bye\n"
            end = wire.end()
            assert (end["exit"], end["stopped"]) == (5, True)


def test_a_signal_before_it_listens_is_not_lost(tmp_path: pathlib.Path) -> None:
    # Blocked while the program starts again, as the first stage leaves it.
    patch = "import os, signal; signal.pthread_sigmask(signal.SIG_BLOCK, [15]); os.kill(os.getpid(), 15)"
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        assert agent.process.wait(60) == 0


def test_it_runs_from_a_config_map_that_nobody_can_write(tmp_path: pathlib.Path) -> None:
    # The kubelet's layout: ..data is a link to a dated folder, and every file is a link into ..data.
    dated = tmp_path / "..2026_01_01"
    shutil.copytree(FOLDER, dated, ignore=shutil.ignore_patterns("__pycache__"))
    (tmp_path / "..data").symlink_to(dated.name)
    for file in dated.iterdir():
        file.chmod(0o444)
        (tmp_path / file.name).symlink_to(f"..data/{file.name}")
    for folder in (dated, tmp_path):
        folder.chmod(0o555)
    with running_agent(folder=tmp_path, workspace=pathlib.Path("/")) as agent:
        assert agent.client.execute(["pwd"], deadline=within()).stdout == b"/\n"
    assert not list(tmp_path.rglob("__pycache__"))


def test_it_listens_on_ipv6_and_ipv4_where_both_are(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, env={"NAMZU_AGENT_ADDRESS": ""}) as agent:
        assert agent.client.healthz(within()).protocol == 1
        try:
            socket.create_connection(("::1", agent.port)).close()
        except OSError:
            return
        assert Agent(AgentAddress("::1", agent.port, TOKEN)).healthz(within()).protocol == 1


def test_listed_variables_of_the_container_are_passed_on(tmp_path: pathlib.Path) -> None:
    env = {"NAMZU_AGENT_PASS": "JAVA_HOME, http_proxy", "JAVA_HOME": "/java", "SECRET": "x", "LC_ALL": "C", "TZ": "UTC"}
    with running_agent(workspace=tmp_path, env=env) as agent:
        lines = agent.client.execute(["env"], deadline=within()).stdout_text.splitlines()
    assert {"JAVA_HOME=/java", "LC_ALL=C", "TZ=UTC"} <= set(lines)
    assert not [line for line in lines if line.startswith(("SECRET", "NAMZU_AGENT", "http_proxy"))]


@pytest.mark.parametrize("path", sorted(FOLDER.glob("*.py")), ids=lambda path: path.name)
def test_its_files_are_small_and_of_python_3_8(path: pathlib.Path) -> None:
    text = path.read_text(encoding="utf-8")
    ast.parse(text, feature_version=(3, 8))
    assert len(text.splitlines()) <= 250
    assert "from __future__ import annotations\n" in text
    imported = set(re.findall(r"^(?:from|import) (\w+)", text, re.MULTILINE))
    assert imported <= sys.stdlib_module_names | {file.stem for file in FOLDER.glob("*.py")}


def test_its_modules_hide_none_of_the_standard_library() -> None:
    assert not {file.stem for file in FOLDER.glob("*.py")} & sys.stdlib_module_names


def test_it_imports_nothing_slow() -> None:
    program = f"import sys; sys.path.insert(0, {str(FOLDER)!r}); import server, init; print(*sys.modules)"
    arguments = [PYTHON, "-I", "-S", "-B", "-c", program]
    loaded = subprocess.run(arguments, capture_output=True, check=True, text=True).stdout.split()
    assert not {"typing", "dataclasses", "inspect", "traceback", "hashlib", "asyncio", "logging"} & set(loaded)


def send(pid: int, number: int) -> None:
    os.kill(pid, number)


def descendants(pid: int) -> list[int]:
    found = []
    for task in pathlib.Path(f"/proc/{pid}/task").iterdir():
        for child in map(int, (task / "children").read_text(encoding="utf-8").split()):
            found += [child, *descendants(child)]
    return found
