# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workspace whose API server is killed at each step, and whose controller stops: its disk is the same to the byte.

Each kill costs ten seconds and more, as kubelets and schedulers find a server again the later, the more often it was
away. So one step of each verb is enough for every day; NAMZU_TEST_EVERY_STEP=1 takes all of them.
"""

from __future__ import annotations

import hashlib
import os
import re
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import POD, SANDBOX, VOLUME_CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import WorkspaceSuspendTimeoutError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.handle import Workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.open import open_workspace
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.request import (
    Opened,
    SuspendRequest,
    WorkspaceRequest,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.suspend import suspend_workspace

from .outage import API_SERVER, CONTROLLER, NAMESPACE, SOON, Component, Supervisor, make_desk

#: More than a frame of the agent's wire, and no text.
DATA = b"".join(hashlib.sha256(bytes([number % 256])).digest() * 64 for number in range(1200))
DIGEST = hashlib.sha256(DATA).hexdigest()
#: Seconds for a verb while an API server comes back, and all who talk to it find it again, on a busy machine.
LONG = 150.0
WRITE = "import sys; open('/workspace/kept', 'wb').write(sys.stdin.buffer.read())"

EVERY_STEP = bool(os.environ.get("NAMZU_TEST_EVERY_STEP"))

#: A step of a verb: its first request of this method on this kind, after the workspace was changed or before.
Step = tuple[str, str, bool]
#: Where it is written, and where it is waited; tests/faults has every request, simulated.
CREATE: list[Step] = [("POST", "sandboxes", False), ("GET", "sandboxes", True)]
SUSPEND: list[Step] = [("PATCH", "sandboxes", False), ("GET", "pods", True)]
RESUME: list[Step] = [("PATCH", "sandboxes", False), ("GET", "sandboxes", True)]


class InterruptedClient(Client):
    """A client whose API server is killed right before a step, and started again.

    Attributes:
        kills: how often that happened.
    """

    def __init__(self, like: Client, server: Component, step: Step) -> None:
        super().__init__(like.access)
        self.kills = 0
        self._server, self._step = server, step
        self._has_changed = False

    def _open(self, method: str, path: str, *rest: t.Any) -> t.Any:
        kind = re.search(r"/namespaces/[^/]+/([a-z]+)", path)
        if (method, kind and kind[1], self._has_changed) == self._step and not self.kills:
            self.kills += 1
            self._server.kill()
        answer = super()._open(method, path, *rest)
        self._has_changed = self._has_changed or method != "GET"
        return answer


@pytest.fixture(scope="module")
def supervisor(client: Client) -> t.Iterator[Supervisor]:
    """Has what depends on the API server started again when it ends; the template is there."""
    make_desk(client)
    with Supervisor(API_SERVER, CONTROLLER, "kube-scheduler", "kube-controller-manager") as made:
        yield made


@pytest.fixture(scope="module")
def server(supervisor: Supervisor) -> Component:
    """The API server, which is started again when it ends."""
    return supervisor.components[API_SERVER]


@pytest.fixture(scope="module")
def controller(supervisor: Supervisor) -> Component:
    """The controller of Sandboxes, which is started again when it ends."""
    return supervisor.components[CONTROLLER]


def request(workspace_id: str) -> WorkspaceRequest:
    return WorkspaceRequest(
        NAMESPACE,
        workspace_id,
        template="desk",
        ready_timeout=LONG,
        agent_address="pod_ip",
        ingress="unverified",
        holder_epoch=7,
    )


def suspend_request(workspace_id: str, timeout: float = LONG) -> SuspendRequest:
    return SuspendRequest(NAMESPACE, workspace_id, holder_epoch=7, timeout=timeout, agent_address="pod_ip")


def opened(client: Client, workspace_id: str) -> Opened:
    return open_workspace(client, request(workspace_id))


def handle(client: Client, opened: Opened) -> Workspace:
    return Workspace(client, request(opened.workspace_id), opened)


def write(workspace: Workspace) -> None:
    done = workspace.execute(["python3", "-c", WRITE], deadline=Deadline(SOON), stdin=DATA)
    assert done.rc == 0, done.stderr_text


def digest(workspace: Workspace) -> str:
    done = workspace.execute(["sha256sum", "/workspace/kept"], deadline=Deadline(SOON))
    assert done.rc == 0, done.stderr_text
    return done.stdout_text.split()[0]


def claim_uid(client: Client, name: str) -> str:
    return str(client.get(VOLUME_CLAIM.ref(NAMESPACE, f"workspace-{name}"))["metadata"]["uid"])


@pytest.mark.parametrize("number", range(len(CREATE) if EVERY_STEP else 1))
def test_api_server_that_is_killed_at_a_step_of_a_create_costs_one_workspace_of_one_disk(
    client: Client, server: Component, number: int
) -> None:
    workspace_id = f"made-{number}"
    with InterruptedClient(client, server, CREATE[number]) as interrupted:
        made = opened(interrupted, workspace_id)
        assert interrupted.kills == 1
    assert made.origin == "created"
    write(handle(client, made))
    assert digest(handle(client, opened(client, workspace_id))) == DIGEST
    named = [one["metadata"]["uid"] for one in client.list(SANDBOX, NAMESPACE)["items"] if is_of(one, made.name)]
    assert named == [made.uid]


def is_of(body: dict[str, t.Any], name: str) -> bool:
    return bool(body["metadata"]["name"] == name)


@pytest.mark.parametrize("number", range(len(SUSPEND) if EVERY_STEP else 1))
def test_api_server_that_is_killed_at_a_step_of_a_suspend_and_of_a_resume_costs_no_byte(
    client: Client, server: Component, number: int
) -> None:
    before = opened(client, "kept")
    if before.origin == "created":
        write(handle(client, before))
    disk = claim_uid(client, before.name)
    with InterruptedClient(client, server, SUSPEND[number]) as interrupted:
        done = suspend_workspace(interrupted, suspend_request("kept"))
        assert interrupted.kills == 1
    assert done.flushed is not None
    assert before.name not in [one["metadata"]["name"] for one in client.list(POD, NAMESPACE)["items"]]
    with InterruptedClient(client, server, RESUME[number]) as interrupted:
        after = opened(interrupted, "kept")
        assert interrupted.kills == 1
    assert (after.origin, after.uid, claim_uid(client, after.name)) == ("resumed", before.uid, disk)
    assert digest(handle(client, after)) == DIGEST


def test_controller_that_stands_still_or_is_killed_and_started_again_costs_no_byte(
    client: Client, controller: Component
) -> None:
    before = opened(client, "kept")
    if before.origin == "created":
        write(handle(client, before))
    with controller.stopped():
        with pytest.raises(WorkspaceSuspendTimeoutError):
            suspend_workspace(client, suspend_request("kept", timeout=2.0))
        assert client.get(SANDBOX.ref(NAMESPACE, before.name))["spec"]["operatingMode"] == "Suspended"
    assert not suspend_workspace(client, suspend_request("kept")).changed
    controller.kill()
    after = opened(client, "kept")
    assert after.origin == "resumed"
    assert digest(handle(client, after)) == DIGEST
    # It is ended and started again while everything runs: nothing happens to what runs.
    controller.kill()
    assert opened(client, "kept").origin == "adopted"
    assert digest(handle(client, after)) == DIGEST
    assert claim_uid(client, after.name) in {disk.uid for disk in before.disks}
