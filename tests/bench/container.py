# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container backend against the bare requests that it makes, and against community.docker."""

from __future__ import annotations

import http.client
import json
import pathlib
import shutil
import socket
import sys
import tempfile
import time
import typing as t
import urllib.parse
import uuid

import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import ContainerRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import engine_access
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress

from .measure import command, side_by_side
from .rows import Ratio

BIN = pathlib.Path(sys.executable).parent
ITEMS = 20
SECONDS = 120.0


class Recorder(EngineClient):
    """Records what it sends."""

    def __init__(self, docker_host: str) -> None:
        super().__init__(engine_access({"docker_host": docker_host}, {}))
        self.sent: list[tuple[str, str, dict[str, t.Any]]] = []

    def open(self, method: str, path: str, deadline: Deadline, **options: t.Any) -> t.Any:
        self.sent.append((method, path, options))
        return super().open(method, path, deadline, **options)


class Bare:
    """The requests of one acquire and its release again, each on a connection of its own, as http.client sends them.

    Names, ids and the folder of the socket are those of each round. The agent is used by its own protocol for the two
    programs that an acquire and the measured command run.
    """

    def __init__(self, docker_host: str, image: str) -> None:
        self._socket = docker_host.removeprefix("unix://")
        recorder = Recorder(docker_host)
        self._folder = pathlib.Path(tempfile.mkdtemp(prefix="nz-bench-"))
        sandbox = acquire_container(recorder, ContainerRequest(image=image, name="bench-recorded"))
        release_container(recorder, sandbox.name, Deadline(SECONDS))
        self._uid, self._token = sandbox.uid, sandbox.agent.token
        self._requests = [one for one in recorder.sent if not one[1].startswith(("/version", "/volumes"))]

    def close(self) -> None:
        shutil.rmtree(self._folder)

    def __call__(self) -> None:
        uid, execution, name = "", "", f"namzu-bench-{uuid.uuid4().hex[:8]}"
        folder = self._folder / name
        folder.mkdir()
        folder.chmod(0o777)
        for method, path, options in self._requests:
            body = json.dumps(options["body"]) if options.get("body") is not None else None
            if path == "/containers/create":
                spec = json.loads(str(body))
                for mount in spec["HostConfig"]["Mounts"]:
                    if mount["Type"] == "bind":
                        mount["Source"] = str(folder)
                body = json.dumps(spec)
            where = path.replace(self._uid, uid).replace("namzu-bench-recorded", name)
            where = f"/exec/{execution}/start" if where.startswith("/exec/") else where
            if method == "GET" and where == f"/containers/{uid}/json" and not (folder / "agent.sock").exists():
                while not (folder / "agent.sock").exists():
                    time.sleep(0.001)
            if method == "GET" and where == f"/containers/{name}/json":
                self._use(folder / "agent.sock")
            query = {"name": name} if path == "/containers/create" else options.get("query") or {}
            answer = self._send(method, where, query, body, options.get("content"))
            if path == "/containers/create":
                uid = answer["Id"]
            elif where.endswith("/exec"):
                execution = answer["Id"]

    def _use(self, path: pathlib.Path) -> None:
        def dial(_deadline: Deadline) -> socket.socket:
            sock = socket.socket(socket.AF_UNIX)
            sock.connect(str(path))
            return sock

        agent = Agent(AgentAddress("bench", 0, self._token, dial=dial))
        for argv in (["cat", "/proc/self/status"], ["true"]):
            assert agent.execute(argv, deadline=Deadline(SECONDS)).rc == 0

    def _send(
        self, method: str, path: str, query: dict[str, t.Any], body: str | None, archive: bytes | None
    ) -> dict[str, t.Any]:
        connection = http.client.HTTPConnection("docker")
        connection.sock = socket.socket(socket.AF_UNIX)
        connection.sock.connect(self._socket)
        values = {key: value if isinstance(value, str) else json.dumps(value) for key, value in query.items()}
        content = archive or (body.encode() if body else None)
        kind = "application/x-tar" if archive else "application/json"
        target = f"/v1.41{path}?{urllib.parse.urlencode(values)}"
        connection.request(method, target, content, {"Content-Type": kind})
        response = connection.getresponse()
        data = response.read()
        connection.close()
        if response.status >= 300:
            raise SystemExit(f"{method} {path}: {response.status} {data[:300]!r}")
        return t.cast("dict[str, t.Any]", json.loads(data)) if data[:1] == b"{" else {}


def core_acquire(docker_host: str, image: str, rounds: int = 15) -> list[Ratio]:
    """Acquire, one command and release in Python, against the same requests to the engine from a bare script."""
    client = EngineClient(engine_access({"docker_host": docker_host}, {}))
    bare = Bare(docker_host, image)

    def ours() -> None:
        sandbox = acquire_container(client, ContainerRequest(image=image))
        assert Agent(sandbox.agent).execute(["true"], deadline=Deadline(SECONDS)).rc == 0
        release_container(client, sandbox.name, Deadline(SECONDS))

    try:
        measured = side_by_side({"ours": ours, "bare": bare}, rounds, lambda: None)
    finally:
        bare.close()
    detail = ", ".join(f"{name} {one.median * 1000:.0f} ms" for name, one in measured.items())
    ratio = measured["ours"].median / measured["bare"].median
    return [Ratio("container: acquire + exec + release / the same requests bare", ratio, 1.15, detail)]


def play(docker_host: str, image: str, rounds: int = 3) -> list[Ratio]:
    """Acquire, one command and release in one play, against the three modules of community.docker."""
    name = f"bench-{uuid.uuid4().hex[:8]}"
    theirs = {"docker_host": docker_host, "api_version": "1.41"}
    plays: dict[str, list[dict[str, t.Any]]] = {
        "ours": [
            {"namzu.sandbox.sandbox": {"image": image}, "register": "made"},
            {"namzu.sandbox.sandbox_exec": {"sandbox": "{{ made.sandbox }}", "argv": ["true"]}},
            {"namzu.sandbox.sandbox": {"sandbox": "{{ made.sandbox }}", "state": "absent"}},
        ],
        "community.docker": [
            {"community.docker.docker_container": {
                **theirs, "name": name, "image": image, "command": ["sleep", "600"], "network_mode": "none",
                "cap_drop": ["ALL"], "security_opts": ["no-new-privileges"], "read_only": True, "user": "1000:1000"}},
            {"community.docker.docker_container_exec": {**theirs, "container": name, "argv": ["true"]}},
            {"community.docker.docker_container": {**theirs, "name": name, "state": "absent", "force_kill": True}},
        ],
    }  # fmt: skip
    with tempfile.TemporaryDirectory() as folder:
        runs = {key: _play(pathlib.Path(folder), key, "localhost", tasks, docker_host) for key, tasks in plays.items()}
        measured = side_by_side(runs, rounds, lambda: None)
    detail = ", ".join(f"{key} {one.median:.2f} s" for key, one in measured.items())
    ratio = measured["ours"].median / measured["community.docker"].median
    return [Ratio("container: play / docker_container + docker_container_exec + removal", ratio, 0.5, detail)]


def connection(docker_host: str, image: str, rounds: int = 3) -> list[Ratio]:
    """Twenty items of ``command`` over our connection, against community.docker's on the same container."""
    client = EngineClient(engine_access({"docker_host": docker_host}, {}))
    sandbox = acquire_container(client, ContainerRequest(image=image, ttl=1800.0))
    both = {"ansible_python_interpreter": "/usr/bin/python3", "ansible_remote_tmp": "/tmp/ansible"}
    ways = {
        "ours": {"ansible_connection": "namzu.sandbox.sandbox", "ansible_sandbox_backend": "container",
                 "ansible_sandbox_name": sandbox.name, "ansible_sandbox_docker_host": docker_host},
        "community.docker": {"ansible_connection": "community.docker.docker", "ansible_host": sandbox.container,
                             "ansible_docker_docker_host": docker_host, "ansible_user": "1000:1000",
                             "ansible_docker_extra_args": f"-H {docker_host}"},
    }  # fmt: skip
    task = [{"ansible.builtin.command": "true", "loop": list(range(ITEMS))}]
    try:
        with tempfile.TemporaryDirectory() as folder:
            runs = {key: _play(pathlib.Path(folder), key, "box", task, docker_host, {**both, **way})
                    for key, way in ways.items()}  # fmt: skip
            measured = side_by_side(runs, rounds, lambda: None)
    finally:
        release_container(client, sandbox.name, Deadline(SECONDS))
    detail = ", ".join(f"{key} {one.median:.2f} s" for key, one in measured.items())
    ratio = measured["ours"].median / measured["community.docker"].median
    return [Ratio(f"container: {ITEMS} items / connection community.docker.docker", ratio, 0.3, detail)]


def _play(
    folder: pathlib.Path, key: str, host: str, tasks: list[dict[str, t.Any]], docker_host: str,
    host_vars: dict[str, t.Any] | None = None,
) -> t.Callable[[], None]:  # fmt: skip
    book, inventory = folder / f"{key}.yml", folder / f"{key}.hosts.yml"
    book.write_text(yaml.safe_dump([{"hosts": host, "gather_facts": False, "tasks": tasks}]), encoding="utf-8")
    variables = {"ansible_connection": "local", "ansible_python_interpreter": sys.executable, **(host_vars or {})}
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {host: variables}}}), encoding="utf-8")
    environ = {"DOCKER_HOST": docker_host, "NAMZU_SANDBOX_BACKEND": "container"}
    assignments = [f"{name}={value}" for name, value in environ.items()]
    return command(["env", *assignments, str(BIN / "ansible-playbook"), "-i", str(inventory), str(book)])


CONTAINER_ROWS: dict[str, t.Callable[..., list[Ratio]]] = {
    "container_acquire": core_acquire,
    "container_play": play,
    "container_connection": connection,
}
