# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Real engines for the tests: a private Docker (or the one of DOCKER_HOST), and Podman where it is installed.

``way`` runs a test on every pair of an engine and a runtime, and both channels to the agent.
"""

from __future__ import annotations

import contextlib
import dataclasses
import os
import pathlib
import shutil
import signal
import subprocess
import sys
import tempfile
import time
import typing as t
import uuid

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.names import NAME_LABEL
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import labels_of, release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.request import (
    Channel,
    ContainerRequest,
    ContainerSandbox,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine import containers
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import EngineAccess, engine_access
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.execution.stream import Execution

from .dockerd import OF_A_WORKER, own_engine

ROOT = pathlib.Path(__file__).resolve().parents[2]
IMAGE = os.environ.get("NAMZU_TEST_IMAGE") or "localhost/namzu/python:3"
PATIENCE = 120.0

#: Podman's default limits need a capability that the root of a container may lack.
PODMAN_CONFIGURATION = """
[engine]
cgroup_manager = "cgroupfs"
events_logger = "file"
exit_command_delay = 1
[containers]
default_ulimits = ["nofile=4096:4096", "nproc=4096:4096"]
"""


@dataclasses.dataclass(frozen=True)
class Way:
    """An engine, a runtime and a channel."""

    client: EngineClient
    runtime: str | None
    channel: Channel

    def request(self, **options: t.Any) -> ContainerRequest:
        settings: dict[str, t.Any] = {
            "image": IMAGE,
            "name": f"test-{uuid.uuid4().hex[:8]}",
            "ttl": 300.0,
            "ready_timeout": PATIENCE,
            "runtime": self.runtime,
            "channel": self.channel,
        }
        return ContainerRequest(**{**settings, **options})

    @contextlib.contextmanager
    def sandbox(self, **options: t.Any) -> t.Iterator[ContainerSandbox]:
        """A sandbox that is released at the end."""
        acquired = acquire_container(self.client, self.request(**options))
        try:
            yield acquired
        finally:
            release_container(self.client, acquired.name, Deadline(PATIENCE))

    def limits(self, **limits: t.Any) -> dict[str, t.Any]:
        """These limits, or none where the runtime enforces none: the private engine's gVisor has no cgroups."""
        return {} if self.runtime == "runsc" else limits

    def names(self) -> set[str]:
        """The sandboxes that the engine has."""
        found = containers.list_labelled(self.client, [NAME_LABEL], Deadline(PATIENCE))
        return {labels_of(one)[NAME_LABEL] for one in found}

    def volumes(self) -> int:
        """How many volumes the engine has."""
        answer = self.client.request("GET", "/volumes", Deadline(PATIENCE), subject="Volumes").json()
        return len(answer["Volumes"] or [])


def run(sandbox: ContainerSandbox, *argv: str, **options: t.Any) -> Execution:
    return Agent(sandbox.agent).execute(argv, deadline=Deadline(PATIENCE), **options)


def until(condition: t.Callable[[], object], seconds: float = PATIENCE) -> None:
    limit = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < limit, "what the test waits for did not happen"
        time.sleep(0.1)


@pytest.fixture(scope="session")
def docker_host() -> t.Iterator[str]:
    """The engine of DOCKER_HOST, or a private one for this session or for this worker of pytest-xdist."""
    if host := os.environ.get("DOCKER_HOST"):
        yield host
        return
    if "PYTEST_XDIST_WORKER" in os.environ:
        with own_engine(OF_A_WORKER) as (_engine, host):
            yield host
        return
    command = [sys.executable, "-m", "tools.engine"]
    was_up = subprocess.run([*command, "status"], cwd=ROOT, capture_output=True, check=False).returncode == 0
    subprocess.run([*command, "up"], cwd=ROOT, check=True)
    shown = subprocess.run([*command, "env"], cwd=ROOT, check=True, capture_output=True, text=True).stdout
    (host,) = (line.partition("=")[2] for line in shown.splitlines() if "DOCKER_HOST=" in line)
    yield host
    if not was_up:
        subprocess.run([*command, "down"], cwd=ROOT, check=True)


@pytest.fixture(scope="session")
def docker(docker_host: str) -> EngineClient:
    return EngineClient(engine_access({"docker_host": docker_host, "timeout": PATIENCE}, {}))


@pytest.fixture(scope="session")
def podman(docker: EngineClient) -> t.Iterator[EngineClient]:
    """Podman's service for this session, with the image of the Docker engine."""
    program, runtime = shutil.which("podman"), shutil.which("runc", path="/usr/sbin:/usr/bin:/sbin:/bin")
    if program is None or runtime is None or os.geteuid() != 0:
        pytest.skip("podman and runc are not installed, or this is not root")
    with tempfile.TemporaryDirectory(prefix="nz-podman-") as folder:
        (pathlib.Path(folder) / "containers.conf").write_text(PODMAN_CONFIGURATION)
        address = f"{folder}/podman.sock"
        options = ["--root", f"{folder}/root", "--runroot", f"{folder}/run", "--runtime", runtime]
        options += ["--cgroup-manager", "cgroupfs"]
        variables = {**os.environ, "CONTAINERS_CONF": f"{folder}/containers.conf"}
        service = subprocess.Popen(
            [program, *options, "system", "service", "--time=0", f"unix://{address}"], env=variables,
            stderr=subprocess.DEVNULL, start_new_session=True, cwd=folder,
        )  # fmt: skip
        try:
            client = EngineClient(EngineAccess(f"unix://{address}", timeout=PATIENCE))
            until(lambda: os.path.exists(address))
            copy_image(docker, client)
            yield client
        finally:
            service.send_signal(signal.SIGTERM)
            service.wait(30)
            subprocess.run([program, *options, "system", "reset", "--force"], env=variables, check=False,
                           capture_output=True)  # fmt: skip


def copy_image(source: EngineClient, target: EngineClient) -> None:
    """Give one engine an image of another one."""
    limit = Deadline(PATIENCE)
    with source.open("GET", f"/images/{IMAGE}/get", limit, subject=IMAGE, whole=True) as opened:
        archive = opened.response.read()
    target.request("POST", "/images/load", limit, subject=IMAGE, content=archive)


WAYS = ("docker-runc-socket", "docker-runc-relay", "docker-runsc-auto", "podman-runc-socket", "podman-runc-relay")


@pytest.fixture(params=WAYS)
def way(request: pytest.FixtureRequest) -> Way:
    """Every way in which a sandbox can run and be reached."""
    return make_way(request, str(request.param))


@pytest.fixture(params=("docker-runc-socket", "docker-runsc-auto", "podman-runc-socket"))
def engine_way(request: pytest.FixtureRequest) -> Way:
    """Every engine and runtime, each over its usual channel."""
    return make_way(request, str(request.param))


@pytest.fixture
def usual(request: pytest.FixtureRequest) -> Way:
    """Docker with its usual runtime."""
    return make_way(request, WAYS[0])


def make_way(request: pytest.FixtureRequest, name: str) -> Way:
    engine, runtime, channel = name.split("-")
    client: EngineClient = request.getfixturevalue(engine)
    if runtime == "runsc" and "runsc" not in containers.read_info(client, Deadline(PATIENCE)).get("Runtimes", {}):
        pytest.skip("the engine has no runtime runsc")
    # Podman's API offers the runtime that it was started with.
    chosen = runtime if engine == "docker" else None
    return Way(client, chosen, t.cast("Channel", channel))


@pytest.fixture(scope="session")
def wheel(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The programs of an environment with the wheel, all its extras in the pinned versions, and pytest."""
    folder = tmp_path_factory.mktemp("wheel")
    uv, pins = ROOT / ".venv" / "bin" / "uv", ROOT / "requirements" / "wheel.txt"
    subprocess.run([uv, "build", "--quiet", "--wheel", "--out-dir", folder, ROOT], check=True)
    (built,) = folder.glob("*.whl")
    subprocess.run([uv, "venv", "--quiet", "--python", sys.executable, folder / "env"], check=True)
    install = [uv, "pip", "install", "--quiet", "--python", folder / "env" / "bin" / "python", "--constraint", pins]
    subprocess.run([*install, f"namzu-sandbox[mcp,inspect] @ {built.as_uri()}", "pytest"], check=True)
    return folder / "env" / "bin"
