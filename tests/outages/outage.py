# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose parts are stopped and restarted under the product's feet: an instance of its own. Needs root.

It is NAMZU_LIFECYCLE_INSTANCE, 9 unless told otherwise, as in tools/cluster/tests/lifecycle/test_lifecycle.py.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any, Self

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, TEMPLATE, WARM_POOL, Kind
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError

ROOT = pathlib.Path(__file__).resolve().parents[2]
AGENT = ROOT / "roles" / "template" / "files" / "agent"
INSTANCE = os.environ.get("NAMZU_LIFECYCLE_INSTANCE", "9")
NAMESPACE = "default"
CONFIG_MAP = Kind("", "v1", "ConfigMap", "configmaps")
CONTROLLER = "agent-sandbox-controller"
API_SERVER = "kube-apiserver"

#: Seconds for what takes a few on two busy cores.
SOON = 60.0
POLL = 0.1


def command(verb: str, *options: str, healthy: bool = True) -> str:
    environment = {**os.environ, "NAMZU_CLUSTER": "local", "NAMZU_CLUSTER_INSTANCE": INSTANCE}
    done = subprocess.run(
        [sys.executable, "-m", "tools.cluster", verb, *options],
        cwd=ROOT,
        env=environment,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0 or not healthy, f"tools.cluster {verb} says:\n{done.stdout}{done.stderr}"
    return done.stdout


def pid_of(component: str) -> int:
    lines = [line.split() for line in command("status", healthy=False).splitlines()]
    return next(int(words[2]) for words in lines if words[0] == component)


def until(condition: Any, what: str) -> Any:
    """Ask again and again until something true is said."""
    end = time.monotonic() + SOON
    while not (said := condition()):
        assert time.monotonic() < end, f"{what} did not come within {SOON:g} s"
        time.sleep(POLL)
    return said


@contextlib.contextmanager
def stopped(component: str) -> Iterator[None]:
    """Let a component stand still inside the block."""
    pid = pid_of(component)
    os.kill(pid, signal.SIGSTOP)
    try:
        yield
    finally:
        os.kill(pid, signal.SIGCONT)


def is_alive(pid: int) -> bool:
    """Whether a process runs; one that nobody has waited for does not."""
    try:
        stat = pathlib.Path(f"/proc/{pid}/stat").read_text(encoding="utf-8")
    except OSError:
        return False
    return stat.rpartition(") ")[2].split()[0] != "Z"


class Component:
    """A part of the cluster that can be ended at once and started again, with the words that it was started with."""

    def __init__(self, name: str) -> None:
        self._pid = pid_of(name)
        folder = pathlib.Path(f"/proc/{self._pid}")
        self._words = folder.joinpath("cmdline").read_bytes().decode().split("\0")[:-1]
        pairs = folder.joinpath("environ").read_bytes().decode().split("\0")
        self._environment = dict(pair.split("=", 1) for pair in pairs if pair)
        self._where = os.readlink(folder / "cwd")
        self._ours: subprocess.Popen[bytes] | None = None

    @property
    def is_alive(self) -> bool:
        return is_alive(self._pid)

    def kill(self) -> None:
        pid = self._pid
        os.kill(pid, signal.SIGKILL)
        until(lambda: not is_alive(pid), "its end")

    def start(self) -> None:
        self._reap()
        log = subprocess.DEVNULL
        self._ours = subprocess.Popen(
            self._words, env=self._environment, cwd=self._where, stdout=log, stderr=log, start_new_session=True
        )
        self._pid = self._ours.pid

    @contextlib.contextmanager
    def stopped(self) -> Iterator[None]:
        """Let it stand still inside the block."""
        os.kill(self._pid, signal.SIGSTOP)
        try:
            yield
        finally:
            os.kill(self._pid, signal.SIGCONT)

    def close(self) -> None:
        """End what was started here; what takes the cluster down does not know of it."""
        if self._ours is not None and self.is_alive:
            self.kill()
        self._reap()

    def _reap(self) -> None:
        if self._ours is not None:
            self._ours.wait()


class Supervisor:
    """Starts components again that have ended, as a kubelet does: some end without their API server, or its port."""

    def __init__(self, *names: str) -> None:
        self.components = {name: Component(name) for name in names}
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name="supervisor")

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_exc: object) -> None:
        self._over.set()
        self._thread.join()
        for component in self.components.values():
            component.close()

    def _run(self) -> None:
        while not self._over.wait(0.5):
            for component in self.components.values():
                if not component.is_alive:
                    component.start()


@contextlib.contextmanager
def restarted_api_server(client: Client) -> Iterator[None]:
    """End the API server at once, and start it again with the same words; the block may use it."""

    def answers() -> bool:
        with contextlib.suppress(SandboxError):
            return bool(client.list(CLAIM, NAMESPACE))
        return False

    with Supervisor(API_SERVER) as supervisor:
        supervisor.components[API_SERVER].kill()
        until(answers, "the API server")
        yield


def make(client: Client, kind: Kind, name: str, **content: Any) -> None:
    metadata = {"name": name, "namespace": NAMESPACE}
    client.create(
        kind.ref(NAMESPACE, name),
        {"apiVersion": kind.api_version, "kind": kind.name, "metadata": metadata, **content},
    )


def agent_pod(*mounts: Any) -> dict[str, Any]:
    """The spec of a pod with the agent."""
    container = {
        "name": "agent",
        "image": "localhost/namzu/python:3",
        "imagePullPolicy": "Never",
        "command": ["python3", "-I", "/opt/namzu/agent"],
        "env": [{"name": "NAMZU_AGENT_BIND_TOKEN", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}}],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "runAsNonRoot": True,
            "runAsUser": 1000,
            "capabilities": {"drop": ["ALL"]},
        },
        "readinessProbe": {"tcpSocket": {"port": 1024}, "periodSeconds": 1},
        "volumeMounts": [{"name": "agent", "mountPath": "/opt/namzu/agent"}, *mounts],
    }
    return {
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "containers": [container],
        "volumes": [{"name": "agent", "configMap": {"name": "agent"}}],
    }


def make_agent(client: Client) -> None:
    """The agent's program, for every pod."""
    make(client, CONFIG_MAP, "agent", data={file.name: file.read_text(encoding="utf-8") for file in AGENT.glob("*.py")})


def make_pool(client: Client) -> None:
    """A template with the agent, and a pool of it."""
    make_agent(client)
    template = {"networkPolicyManagement": "Unmanaged", "service": True, "podTemplate": {"spec": agent_pod()}}
    make(client, TEMPLATE, "python", spec=template)
    make(client, WARM_POOL, "python", spec={"replicas": 1, "sandboxTemplateRef": {"name": "python"}})


def make_desk(client: Client) -> None:
    """A template with the agent and a disk."""
    pod = agent_pod({"name": "workspace", "mountPath": "/workspace"})
    pod["containers"][0]["workingDir"] = "/workspace"
    disk = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}}
    template = {
        "networkPolicyManagement": "Unmanaged",
        "service": True,
        "podTemplate": {"spec": pod},
        "volumeClaimTemplates": [{"metadata": {"name": "workspace"}, "spec": disk}],
    }
    make(client, TEMPLATE, "desk", spec=template)


def wait_for_member(client: Client) -> None:
    ref = WARM_POOL.ref(NAMESPACE, "python")
    until(lambda: (client.get(ref).get("status") or {}).get("readyReplicas") == 1, "a ready member")
