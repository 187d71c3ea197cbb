# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The terminal for people: the real command on a real pseudo terminal, by a fake cluster to the real agent."""

from __future__ import annotations

import contextlib
import fcntl
import os
import pty
import re
import select
import signal
import struct
import subprocess
import sys
import termios
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.front import terminal
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import ACCESS
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire

from ...faults.fake.agent import POD_UID
from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE
from ...faults.fake.server import TOKEN
from ..guest.running_agent import PATIENCE, RunningAgent, eventually, running_agent, runs

SIZE = (31, 97)


@pytest.fixture(scope="module")
def cluster() -> t.Iterator[FakeCluster]:
    with FakeCluster() as made:
        with made.client() as client:
            acquire(client, made.request(name="build-1"))
        yield made


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace"), token=POD_UID) as started:
        yield started


def arguments(cluster: FakeCluster, port: int, *more: str) -> list[str]:
    """The command, which is given where the cluster and the agent are, and ``more``."""
    where = ["--host", cluster.server.url, "-n", NAMESPACE, "--agent-port", str(port), "--agent-address", "pod_ip"]
    return [sys.executable, "-m", terminal.__name__, *where, *more]


def environment() -> dict[str, str]:
    """Without what leads elsewhere; a token belongs here, where no other user of the machine sees it."""
    clean = {name: value for name, value in os.environ.items() if not name.startswith("K8S_AUTH_")}
    return {**clean, "K8S_AUTH_API_KEY": TOKEN, "TERM": "vt220", "KUBECONFIG": "/nonexistent"}


class Seat:
    """A person before a pseudo terminal, in which a command runs. A context manager."""

    def __init__(self, command: list[str]) -> None:
        self.screen, self._theirs = pty.openpty()
        self.resize(*SIZE)
        self.before = termios.tcgetattr(self._theirs)
        self.process = subprocess.Popen(
            ["setsid", "--ctty", *command],
            stdin=self._theirs,
            stdout=self._theirs,
            stderr=self._theirs,
            env=environment(),
        )
        self.shown = b""

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.process.kill()
        self.process.wait()
        self.leave()

    def resize(self, rows: int, columns: int) -> None:
        fcntl.ioctl(self._theirs, termios.TIOCSWINSZ, struct.pack("HHHH", rows, columns, 0, 0))

    def type(self, text: str) -> None:
        os.write(self.screen, text.encode())

    def sees(self, pattern: str) -> re.Match[bytes]:
        """Wait until this is shown; what was shown until then is done with."""
        until = time.monotonic() + PATIENCE
        while (found := re.search(pattern.encode(), self.shown)) is None:
            left = until - time.monotonic()
            assert left > 0, self.shown
            assert select.select([self.screen], [], [], left)[0], self.shown
            self.shown += os.read(self.screen, 65536)
        self.shown = self.shown[found.end() :]
        return found

    def status(self) -> int:
        return self.process.wait(PATIENCE)

    def settings(self) -> list[t.Any]:
        return termios.tcgetattr(self._theirs)

    def leave(self) -> None:
        """Close the window."""
        for end in (self.screen, self._theirs):
            with contextlib.suppress(OSError):
                os.close(end)


@pytest.fixture
def seat(cluster: FakeCluster, agent: RunningAgent) -> t.Iterator[t.Callable[..., Seat]]:
    with contextlib.ExitStack() as taken:
        yield lambda *more, port=agent.port: taken.enter_context(Seat(arguments(cluster, port, "build-1", *more)))


def test_a_person_works_in_a_shell_and_the_status_is_the_shells(seat: t.Callable[..., Seat]) -> None:
    person = seat()
    person.type("echo $((40 + 2)) $TERM; stty size\r")
    person.sees(f"42 vt220\r\n{SIZE[0]} {SIZE[1]}\r\n")
    assert person.settings() != person.before, "raw, so that every key arrives there"
    person.type("sh -c 'echo ready; exec sleep 1000'\r")
    person.sees("\rready\r\n")
    person.type("\x03")
    person.sees(r"\^C")
    person.type("echo back\r")
    person.sees("\rback\r\n")
    person.resize(50, 132)
    person.type("until [ \"$(stty size)\" = '50 132' ]; do sleep 0.01; done; echo grown\r")
    person.sees("\rgrown\r\n")
    person.type("exit 7\r")
    assert person.status() == 7
    assert person.settings() == person.before


def test_a_command_of_ones_own_runs_where_it_shall(seat: t.Callable[..., Seat], agent: RunningAgent) -> None:
    (agent.workspace / "below").mkdir()
    person = seat(
        "--chdir", "below", "--", "sh", "-c", 'basename "$PWD"; printf "%s." "$@"; kill -9 $$', "-", "--", "a b"
    )
    person.sees(r"below\r\n--\.a b\.")
    assert person.status() == 128 + signal.SIGKILL
    assert person.settings() == person.before


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGHUP, signal.SIGINT])
def test_a_signal_ends_it_and_the_terminal_is_what_it_was(seat: t.Callable[..., Seat], number: int) -> None:
    person = seat("--", "sh", "-c", "echo up $$; exec sleep 1000")
    pid = int(person.sees(r"up (\d+)\r\n")[1])
    assert person.settings() != person.before
    person.process.send_signal(number)
    assert person.status() == (-number if number == signal.SIGINT else 128 + number)
    assert person.settings() == person.before
    eventually(lambda: not runs(pid))


def test_an_agent_that_is_lost_is_said_and_the_terminal_is_what_it_was(
    seat: t.Callable[..., Seat], agent: RunningAgent
) -> None:
    with running_agent(workspace=agent.workspace, token=POD_UID) as other:
        person = seat("--", "sh", "-c", "echo up; exec sleep 1000", port=other.port)
        person.sees("up\r\n")
        os.kill(other.pid, signal.SIGKILL)
        person.sees("open-terminal at .* the connection")
    assert person.status() == terminal.FAILED
    assert person.settings() == person.before


def test_a_window_that_is_closed_hangs_up(seat: t.Callable[..., Seat]) -> None:
    person = seat("--", "sh", "-c", "echo up $$; exec sleep 1000")
    pid = int(person.sees(r"up (\d+)\r\n")[1])
    person.leave()
    assert person.status() == 128 + signal.SIGHUP
    eventually(lambda: not runs(pid))


def test_what_cannot_be_opened_is_said(seat: t.Callable[..., Seat], cluster: FakeCluster, agent: RunningAgent) -> None:
    for command, words in (
        (arguments(cluster, agent.port, "nobody"), f"{NAMESPACE}/nobody"),
        (arguments(cluster, agent.port, "build-1", "--", "no-such-program"), "not-found: no-such-program"),
    ):
        with Seat(command) as person:
            person.sees(words)
            assert person.status() == terminal.FAILED
            assert person.settings() == person.before


def test_without_a_terminal_it_is_refused_before_anything_is_asked(cluster: FakeCluster, agent: RunningAgent) -> None:
    cluster.plan.clear()
    done = subprocess.run(
        arguments(cluster, agent.port, "build-1"),
        env=environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    assert done.returncode == terminal.FAILED
    assert "not a terminal" in done.stderr
    assert "sandbox_exec" in done.stderr
    assert cluster.plan.received() == []


@pytest.mark.parametrize("words", [[], ["one", "--workspace", "two"], ["one", "--api-key", "x"], ["--", "sh"]])
def test_a_wrong_command_line_is_explained(words: list[str], capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit) as caught:
        terminal.main(words)
    assert caught.value.code == 2
    assert "usage:" in capsys.readouterr().err


def test_it_has_the_access_options_of_the_verbs_but_for_the_secret(capsys: pytest.CaptureFixture[str]) -> None:
    with pytest.raises(SystemExit):
        terminal.main(["--help"])
    said = capsys.readouterr().out
    for option in ACCESS:
        assert (f"--{option.replace('_', '-')}" in said) == (option != "api_key")
    assert "K8S_AUTH_API_KEY" in said
