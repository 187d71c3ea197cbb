# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product's messages in one file that a reviewer reads from top to bottom; ``make expected`` writes it again."""

from __future__ import annotations

import functools
import pathlib
import re
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.agent_address import locate
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.capacity import read_capacity
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.diagnosis import not_ready
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.status import raise_if_decided
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release

from ..unit.expected import assert_expected
from .fake.agent import PRIVILEGED
from .fake.cluster import FakeCluster
from .fake.controller import NAMESPACE
from .fake.plan import Fault, How, Request, status

FILE = pathlib.Path(__file__).parents[1] / "golden" / "messages.txt"
REF = CLAIM.ref(NAMESPACE, "build-7")

_HEAD = """# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
#
# What a user reads when something fails. Written by tests/faults/test_messages.py; `make expected` writes it again.
"""

CONTROLLER = {
    "WarmPoolNotFound": 'SandboxWarmPool "python" not found',
    "TemplateNotFound": 'SandboxTemplate "python" not found',
    "InvalidMetadata": "label domain example.com is not allowed",
    "EnvVarsInjectionRejected": "the template does not allow env",
    "VolumeClaimTemplatesError": "the template does not allow volumeClaimTemplates",
    "ClaimExpired": "the claim has expired",
    "PodFailed": "pod has failed",
    "PodSucceeded": "pod has completed",
    "MultiplePods": "found 2 pods",
}

PODS: dict[str, Body] = {
    "no node has room": {
        "status": {
            "conditions": [
                {
                    "type": "PodScheduled",
                    "status": "False",
                    "reason": "Unschedulable",
                    "message": "0/3 nodes are available: 3 Insufficient cpu.",
                }
            ]
        }
    },
    "a scheduling gate": {"spec": {"schedulingGates": [{"name": "example.com/hold"}]}, "status": {"phase": "Pending"}},
    "an image that cannot be pulled": {
        "status": {
            "containerStatuses": [
                {
                    "name": "sandbox",
                    "image": "registry.example/missing:1",
                    "state": {"waiting": {"reason": "ErrImagePull", "message": "manifest unknown"}},
                }
            ]
        }
    },
    "a container that is killed for its memory": {
        "status": {
            "containerStatuses": [
                {
                    "name": "sandbox",
                    "restartCount": 3,
                    "lastState": {"terminated": {"exitCode": 137, "reason": "OOMKilled"}},
                }
            ]
        }
    },
    "nothing that explains it": {"status": {"phase": "Running"}},
}

API = {
    "a right that is missing": Fault(
        How.STATUS, 403, message='User "u" cannot list resource "networkpolicies" in API group "networking.k8s.io"'
    ),
    "a token that has expired": status(401),
    "a kind that is not served": Fault(How.STATUS, 404, name=None),
    "an object that is refused": Fault(How.STATUS, 422, message="metadata.name: must not contain '..'"),
    "a server that cannot serve": status(503),
}


def test_messages(cluster: FakeCluster, client: Client) -> None:
    lines: list[str] = []
    for title, call in _cases(cluster, client):
        error = _error_of(call)
        word = "retryable" if error.retryable else "final"
        lines += ["", f"## {title}", f"[{error.reason}, {word}] {_stable(str(error), cluster)}"]
    assert_expected(FILE, _HEAD + "\n".join(lines) + "\n")


def _error_of(call: t.Callable[[], object]) -> SandboxError:
    try:
        call()
    except SandboxError as error:
        return error
    raise AssertionError("it did not fail")


def _stable(text: str, cluster: FakeCluster) -> str:
    """A message without what differs from run to run."""
    text = text.replace(cluster.server.url, "https://api.example:6443").replace(str(cluster.agent.port), "1024")
    return re.sub(r"It was tried \d+ times in [\d.]+ s", "It was tried N times in N s", text)


def _cases(cluster: FakeCluster, client: Client) -> t.Iterator[tuple[str, t.Callable[[], object]]]:
    for title, config in {
        "kubeconfig without the context": {"current-context": "prod", "contexts": []},
        "kubeconfig with a login program that does not exist": _login({"command": "/no/such/login"}),
        "kubeconfig with a login program that fails": _login({"command": "false"}),
        "kubeconfig with a login program that hangs": _login({"command": "sleep", "args": ["600"]}),
    }.items():
        yield title, functools.partial(resolve_access, {"kubeconfig": config}, {}, seconds=0.2)
    for reason, message in CONTROLLER.items():
        body = _claim(reason, message)
        yield f"claim: the controller reports {reason}", functools.partial(raise_if_decided, body, REF)
    yield "claim: Ready without a sandbox", lambda: raise_if_decided(_claim("DependenciesReady", "ok", "True"), REF)
    quota = 'pods "build-7" is forbidden: exceeded quota: compute, requested: pods=1, used: pods=4, limited: pods=4'
    yield "claim: a quota is used up", lambda: _raise(client, _claim("ReconcilerError", quota))
    for title, pod in PODS.items():
        cluster.store.create("pods", NAMESPACE, {**pod, "metadata": {"name": "member"}})
        body = _claim("DependenciesNotReady", "pod is not ready", sandbox="member")
        yield f"claim: its pod has {title}", functools.partial(_raise, client, body)
        cluster.store.delete(cluster.key("pods", "member"))
    for title, fault in API.items():
        cluster.plan.add(fault, Request("create", "sandboxclaims"), times=1000)
        yield f"acquire: {title}", lambda: acquire(client, cluster.request(name="build-7"))
        cluster.plan.clear()
    cluster.agent.status = PRIVILEGED
    yield "acquire: the sandbox has privileges", lambda: acquire(client, cluster.request(name="build-7"))
    deadline = Deadline(9.0, client.clock)
    yield "locate: nothing has the name", lambda: _locate(client)
    yield "capacity: there is no such pool", lambda: read_capacity(client, NAMESPACE, "go", deadline)
    cluster.plan.add(status(403), Request("delete", "sandboxclaims"))
    yield "release: it is not allowed", lambda: release(client, NAMESPACE, "build-7", deadline)


def _login(spec: Body) -> Body:
    run = {"apiVersion": "client.authentication.k8s.io/v1", **spec}
    return {
        "current-context": "prod",
        "contexts": [{"name": "prod", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://api.example:6443"}}],
        "users": [{"name": "u", "user": {"exec": run}}],
    }


def _claim(reason: str, message: str, ready: str = "False", sandbox: str | None = None) -> Body:
    condition = {"type": "Ready", "status": ready, "reason": reason, "message": message}
    return {
        "metadata": {"name": REF.name},
        "spec": {"additionalPodMetadata": {"labels": {"example.com/team": "a"}}},
        "status": {"conditions": [condition], "sandbox": {"name": sandbox}},
    }


def _raise(client: Client, body: Body) -> None:
    raise not_ready(client, REF, body, Deadline(60.0, client.clock))


def _locate(client: Client) -> object:
    return locate(client, NAMESPACE, "build-7", port=1024, mode="pod_ip", deadline=Deadline(9.0, client.clock))
