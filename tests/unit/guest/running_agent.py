# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The real agent as a process on loopback, and what tests ask about it."""

from __future__ import annotations

import contextlib
import json
import os
import pathlib
import select
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import FrameDecoder, encode

FOLDER = pathlib.Path(__file__).resolve().parents[3] / "roles/template/files/agent"
TOKEN = "8f7c2f0a-3b1e-4f4e-9d0c-5a2b7c6d1e90"
#: Which Python runs the agent: any from 3.8 on, while the tests run with the newest.
PYTHON = os.environ.get("NAMZU_AGENT_PYTHON", sys.executable)
#: No test needs this long; a busy machine may.
PATIENCE = 60.0

#: Starts the agent's second stage with constants changed, for limits that are too large to be met in a test.
_PATCHED = """
import os, runpy, sys
folder, token, patch = sys.argv[1:]
sys.path.insert(0, folder)
sys.dont_write_bytecode = True
exec(patch)
reading, writing = os.pipe()
os.write(writing, token.encode())
os.close(writing)
sys.argv = [folder, "--token-fd", str(reading)]
runpy.run_path(folder, run_name="__main__")
"""


class RunningAgent:
    """A started agent. ``pid`` is its process id, seen from here."""

    def __init__(
        self, process: subprocess.Popen[str], pid: int, port: int, workspace: pathlib.Path, token: str
    ) -> None:
        self.process = process
        self.pid = pid
        self.port = port
        self.workspace = workspace
        self.client = Agent(AgentAddress("127.0.0.1", port, token), subject="sandbox test/one")

    def connect(self) -> Wire:
        return Wire(self.port)

    def status(self, field: str) -> str:
        """A field of its /proc/PID/status."""
        return status_field(pathlib.Path(f"/proc/{self.pid}/status").read_text(encoding="utf-8"), field)

    def children(self) -> dict[int, str]:
        """Its children and their states; Z is a zombie."""
        found = {}
        for entry in pathlib.Path("/proc").iterdir():
            with contextlib.suppress(OSError, ValueError):
                state, parent = (entry / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()[:2]
                if int(parent) == self.pid:
                    found[int(entry.name)] = state
        return found


class Wire:
    """A raw connection, for what the client never does."""

    def __init__(self, port: int) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), PATIENCE)
        self.decoder = FrameDecoder()
        self.frames: list[bytes] = []

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def request(self, op: str, body: dict[str, t.Any] | None = None, **more: t.Any) -> t.Self:
        self.send_json({"op": op, "token": TOKEN, "body": body or {}, **more})
        return self

    def send_json(self, value: t.Any) -> None:
        self.socket.sendall(encode(json.dumps(value).encode()))

    def frame(self) -> bytes:
        while not self.frames:
            data = self.socket.recv(65536)
            assert data, "the agent closed the connection"
            self.frames += self.decoder.feed(data)
        return self.frames.pop(0)

    def json(self) -> t.Any:
        return json.loads(self.frame())

    def rest(self) -> bytes:
        """Everything until the agent closes."""
        received = b""
        while data := self.socket.recv(65536):
            received += data
        return received

    def end(self) -> dict[str, t.Any]:
        """The end event of a stream, and nothing of its output."""
        while frame := self.frame():
            if frame[0] == 3:
                end = json.loads(frame[1:])["end"]
                assert self.frame() == b""
                return t.cast("dict[str, t.Any]", end)
        raise AssertionError("the stream ended without an event")


@contextlib.contextmanager
def running_agent(
    *,
    workspace: pathlib.Path | None = None,
    folder: pathlib.Path = FOLDER,
    prefix: t.Sequence[str] = (),
    env: t.Mapping[str, str] | None = None,
    patch: str | None = None,
    token: str = TOKEN,
) -> t.Iterator[RunningAgent]:
    """Start an agent, and leave nothing of it.

    Args:
        prefix: a program that starts it, and stays its parent or becomes it.
        patch: Python statements that change its modules before it serves.
    """
    environment = {"NAMZU_AGENT_PORT": "0", "NAMZU_AGENT_ADDRESS": "127.0.0.1", "PATH": os.environ["PATH"]}
    environment |= {"NAMZU_WORKSPACE": str(workspace)} if workspace else {}
    if patch is None:
        environment["NAMZU_AGENT_BIND_TOKEN"] = token
        arguments = [PYTHON, "-I", "-S", "-B", str(folder)]
    else:
        arguments = [PYTHON, "-I", "-c", _PATCHED, str(folder), token, patch]
    with subprocess.Popen(
        [*prefix, *arguments], env={**environment, **(env or {})}, stderr=subprocess.PIPE, text=True
    ) as process:
        assert process.stderr is not None
        agent = None
        try:
            line = read_line(process.stderr)
            assert "listening on" in line, line
            port = int(line.rsplit(":", 1)[1])
            agent = RunningAgent(process, own_pid(process.pid), port, workspace or pathlib.Path.cwd(), token)
            yield agent
        finally:
            # SIGTERM lets the agent end what it still runs.
            for number in (signal.SIGTERM, signal.SIGKILL):
                with contextlib.suppress(ProcessLookupError):
                    os.kill(agent.pid if agent else process.pid, number)
                with contextlib.suppress(subprocess.TimeoutExpired):
                    process.wait(10)
                    break


def own_pid(pid: int) -> int:
    """The agent itself, below a prefix that stayed."""
    while pathlib.Path(f"/proc/{pid}/comm").read_text(encoding="utf-8").startswith("unshare"):
        pid = int(pathlib.Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="utf-8").split()[0])
    return pid


def read_line(stream: t.IO[str], seconds: float = PATIENCE) -> str:
    readable, _unused, _unused = select.select([stream], [], [], seconds)
    assert readable, "nothing was written in time"
    return stream.readline()


def status_field(text: str, field: str) -> str:
    return next(line.split(":", 1)[1].strip() for line in text.splitlines() if line.startswith(f"{field}:"))


def within(seconds: float = PATIENCE) -> Deadline:
    return Deadline(seconds)


def eventually(condition: t.Callable[[], t.Any], seconds: float = PATIENCE) -> None:
    """Look until ``condition`` holds; fail when it does not in time."""
    until = time.monotonic() + seconds
    pause = threading.Event()
    while not condition():
        assert time.monotonic() < until, "it did not happen in time"
        pause.wait(0.005)


def runs(pid: int) -> bool:
    """Whether a process is there, and no zombie."""
    try:
        text = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return text.rpartition(")")[2].split()[0] != "Z"


def without_privileges() -> list[str]:
    """A prefix that takes away what can be taken away here: all, when the tests run as root."""
    drop = ["--bounding-set=-all", "--inh-caps=-all"] if os.geteuid() == 0 else []
    return [shutil.which("setpriv") or "setpriv", *drop, "--no-new-privs"]


def process_namespace() -> list[str]:
    """A prefix that makes the agent PID 1, where the machine lets us; below it, the agent is a subreaper."""
    for user in ([], ["--user", "--map-root-user"]):
        prefix = ["unshare", *user, "--pid", "--fork", "--mount-proc"]
        if subprocess.run([*prefix, "true"], check=False, capture_output=True).returncode == 0:
            return prefix
    return []
