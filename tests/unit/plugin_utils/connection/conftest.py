# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A sandbox to connect to: a fake cluster that knows it, and the real agent as a process."""

from __future__ import annotations

import dataclasses
import pathlib
import socket
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Clock
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.cache import Memory
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.link import Link
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.target import Target

from ....faults.fake.agent import POD_UID
from ....faults.fake.cluster import FakeCluster
from ....faults.fake.controller import NAMESPACE, POOL
from ....faults.fake.server import TOKEN
from ...guest.running_agent import RunningAgent, running_agent

NAME = "box"
NEXT_POD_UID = "99999999-2222-4333-8444-555566667777"


@dataclasses.dataclass
class Lab:
    """One sandbox that stands, and ways to it.

    Attributes:
        cluster: the API server; ``cluster.plan`` counts what it is asked.
        port: where agents listen.
        folder: what the processes of a run share.
        workspace: the folder that tasks start in.
    """

    cluster: FakeCluster
    port: int
    folder: pathlib.Path
    workspace: pathlib.Path

    def agent(self, token: str, **options: t.Any) -> t.ContextManager[RunningAgent]:
        """The agent of a pod with that uid."""
        env = {"NAMZU_AGENT_BIND_TOKEN": token, "NAMZU_AGENT_PORT": str(self.port), "HOME": str(self.workspace)}
        return running_agent(workspace=self.workspace, env=env, **options)

    def replace_pod(self, name: str | None = None) -> None:
        """Another pod takes the place of the first, as when that was deleted; of the same name when none is given."""
        key = self.cluster.key("pods", self.pod)
        body = self.cluster.store.get(key)
        self.cluster.store.delete(key)
        metadata = {"name": name or key.name, "uid": NEXT_POD_UID, "labels": body["metadata"]["labels"]}
        self.cluster.store.create("pods", NAMESPACE, {"metadata": metadata, "status": body["status"]})

    @property
    def pod(self) -> str:
        return self.cluster.store.names("pods")[0]

    @property
    def uid(self) -> str:
        """The uid of the claim."""
        return str(self.cluster.store.get(self.cluster.key("sandboxclaims", NAME))["metadata"]["uid"])

    def target(self, **changes: t.Any) -> Target:
        wanted: dict[str, t.Any] = {
            "name": NAME,
            "workspace": None,
            "namespace": NAMESPACE,
            "uid": None,
            "port": self.port,
            "mode": "pod_ip",
            "heartbeat": 15.0,
            "follow": False,
            "connect_timeout": 20.0,
            "request_timeout": 10.0,
            "access": {"host": self.cluster.server.url, "api_key": TOKEN},
        }
        return Target(**{**wanted, **changes})

    def link(self, clock: Clock = SYSTEM_CLOCK, **changes: t.Any) -> Link:
        """A link as another process of the same run would make it."""
        target = self.target(**changes)
        return Link(target, Memory(self.folder, target.key), {}, clock)

    @property
    def asked(self) -> int:
        """How many requests the API server has had."""
        return len(self.cluster.server.headers)


def free_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        return int(listener.getsockname()[1])


@pytest.fixture
def lab(tmp_path: pathlib.Path) -> t.Iterator[Lab]:
    """A claim that is bound to a pod; no agent runs there yet."""
    with FakeCluster() as cluster:
        claim = {"metadata": {"name": NAME}, "spec": {"warmPoolRef": {"name": POOL}}}
        cluster.store.create("sandboxclaims", NAMESPACE, claim)
        wait_until_bound(cluster)
        workspace = tmp_path / "workspace"
        workspace.mkdir()
        yield Lab(cluster, free_port(), tmp_path / "run", workspace)


@pytest.fixture
def agent(lab: Lab) -> t.Iterator[RunningAgent]:
    """The agent of the pod that the claim is bound to."""
    with lab.agent(POD_UID) as running:
        yield running


def wait_until_bound(cluster: FakeCluster) -> None:
    with cluster.store.changed:
        bound = cluster.store.changed.wait_for(lambda: cluster.store.names("pods"), timeout=10.0)
    assert bound, "the fake controller bound nothing"
