# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What the verbs do against the API server, one entry an operation, with the requests that each of them makes."""

from __future__ import annotations

import dataclasses
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.kubernetes import KubernetesBackend
from ansible_collections.namzu.sandbox.plugins.module_utils.front.guests import find_guest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire, would_acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.staleness import TEMPLATE_ANNOTATION
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import acquire_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.agent_address import locate
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.capacity import read_capacity
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.inventory import list_sandboxes
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.many import names_matching
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release

from .fake.cluster import FakeCluster
from .fake.controller import NAMESPACE, POOL
from .fake.plan import Request
from .traffic import CREATE, DELETE, GET_CLAIM, GET_POD, GET_SANDBOX, WATCH
from .workspace import ground as workspace_ground

HELD = "build-1"
TEMPLATE = "python"
DIRECT: dict[str, t.Any] = {"warm_pool": None, "template": TEMPLATE}

CREATE_DIRECT = Request("create", "sandboxes")
WATCH_DIRECT = Request("watch", "sandboxes")
DELETE_DIRECT = Request("delete", "sandboxes")
GET_TEMPLATE = Request("get", "sandboxtemplates")
GET_POOL = Request("get", "sandboxwarmpools")
LIST_CLAIMS = Request("list", "sandboxclaims")
LIST_SANDBOXES = Request("list", "sandboxes")
LIST_PODS = Request("list", "pods")


@dataclasses.dataclass(frozen=True)
class Operation:
    """One thing that a verb does.

    Attributes:
        run: does it within so many seconds.
        requests: what it sends, each at least once.
        makes: whether it makes an object, which must not stay when it fails.
        holds: what stands before: a claim, a direct Sandbox of that name, a workspace, or None.
        elsewhere: whether files of their own try the faults that pass, last or come late.
    """

    run: t.Callable[[FakeCluster, Client, float], object]
    requests: tuple[Request, ...]
    makes: bool = False
    holds: t.Literal["claim", "direct", "workspace"] | None = None
    elsewhere: bool = False

    def prepare(self, cluster: FakeCluster, client: Client) -> None:
        """Make what stands before."""
        spec = {"podTemplate": {"spec": {"containers": [], "automountServiceAccountToken": False}}}
        template = {**spec, "networkPolicyManagement": "Unmanaged"}
        metadata = {"annotations": {TEMPLATE_ANNOTATION: TEMPLATE}}
        cluster.controller.member = {"metadata": metadata, "spec": spec}
        cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": TEMPLATE}, "spec": template})
        pool = {"metadata": {"name": POOL}, "spec": {"replicas": 4}, "status": {"readyReplicas": 3}}
        cluster.store.create("sandboxwarmpools", NAMESPACE, pool)
        if self.holds == "workspace":
            workspace_ground.prepare(cluster)
            workspace_ground.run(cluster, client)
        elif self.holds is not None:
            acquire(client, cluster.request(name=HELD, **(DIRECT if self.holds == "direct" else {})))
        cluster.plan.clear()


def _acquiring(**request: t.Any) -> t.Callable[[FakeCluster, Client, float], object]:
    return lambda cluster, client, seconds: acquire(client, cluster.request(ready_timeout=seconds, **request))


def _previewing(**request: t.Any) -> t.Callable[[FakeCluster, Client, float], object]:
    return lambda cluster, client, seconds: would_acquire(client, cluster.request(ready_timeout=seconds, **request))


def _many(**request: t.Any) -> t.Callable[[FakeCluster, Client, float], object]:
    return lambda cluster, client, seconds: acquire_many(
        client, cluster.request(ready_timeout=seconds, name="many", **request), 2
    )


def _releasing(*, wait: bool) -> t.Callable[[FakeCluster, Client, float], object]:
    return lambda _cluster, client, seconds: release(
        client, NAMESPACE, HELD, Deadline(seconds, client.clock), wait=wait
    )


def _listing(**query: str) -> t.Callable[[FakeCluster, Client, float], object]:
    return lambda _cluster, client, seconds: list_sandboxes(client, NAMESPACE, Deadline(seconds, client.clock), **query)


def _by_selector(cluster: FakeCluster, client: Client, seconds: float) -> object:
    """An acquire whose pod is not named like its Sandbox."""
    key = cluster.key("pods", "python-00001")

    def rename() -> None:
        body = cluster.store.get(key)
        cluster.store.delete(key)
        cluster.store.create("pods", NAMESPACE, {**body, "metadata": {**body["metadata"], "name": "another"}})

    cluster.store.before_read(key, rename)
    return acquire(client, cluster.request(ready_timeout=seconds))


def _finding_a_guest(cluster: FakeCluster, client: Client, seconds: float) -> object:
    agent = {"port": cluster.agent.port, "address": "pod_ip"}
    params = {"workspace_id": workspace_ground.ID, "namespace": NAMESPACE, "agent": agent}
    return find_guest(params, KubernetesBackend(client, params, {}), Deadline(seconds, client.clock))


OPERATIONS: dict[str, Operation] = {
    "acquire": Operation(_acquiring(), (CREATE, WATCH, GET_POD, GET_SANDBOX), makes=True, elsewhere=True),
    "acquire by selector": Operation(_by_selector, (LIST_PODS,), makes=True),
    "acquire if not stale": Operation(_acquiring(on_stale="refuse"), (GET_SANDBOX, GET_TEMPLATE), makes=True),
    "acquire again": Operation(
        _acquiring(name=HELD), (CREATE, GET_CLAIM, GET_POD, GET_SANDBOX), holds="claim", elsewhere=True
    ),
    "acquire directly": Operation(
        _acquiring(**DIRECT), (GET_TEMPLATE, CREATE_DIRECT, WATCH_DIRECT, GET_POD, GET_SANDBOX), makes=True
    ),
    "would acquire": Operation(_previewing(), (CREATE,)),
    "would find": Operation(_previewing(name=HELD), (CREATE, GET_CLAIM), holds="claim"),
    "would acquire directly": Operation(_previewing(**DIRECT), (GET_TEMPLATE, CREATE_DIRECT)),
    "acquire many": Operation(_many(), (LIST_CLAIMS, WATCH, CREATE, GET_POD, GET_SANDBOX), makes=True),
    "acquire many directly": Operation(
        _many(**DIRECT), (GET_TEMPLATE, LIST_SANDBOXES, WATCH_DIRECT, CREATE_DIRECT), makes=True
    ),
    "release": Operation(_releasing(wait=False), (DELETE,), holds="claim", elsewhere=True),
    "release and wait": Operation(
        _releasing(wait=True), (GET_CLAIM, GET_SANDBOX, GET_POD, DELETE), holds="claim", elsewhere=True
    ),
    "release a direct one": Operation(_releasing(wait=False), (DELETE, GET_SANDBOX, DELETE_DIRECT), holds="direct"),
    "choose by label": Operation(
        lambda _cluster, client, seconds: names_matching(client, NAMESPACE, "a=b", Deadline(seconds, client.clock)),
        (LIST_CLAIMS, LIST_SANDBOXES),
        holds="claim",
    ),
    "locate": Operation(
        lambda cluster, client, seconds: locate(
            client,
            NAMESPACE,
            HELD,
            port=cluster.agent.port,
            mode="service",
            deadline=Deadline(seconds, client.clock),
        ),
        (GET_CLAIM, GET_POD, GET_SANDBOX),
        holds="claim",
        elsewhere=True,
    ),
    "find the guest of a workspace": Operation(_finding_a_guest, (GET_SANDBOX, GET_POD), holds="workspace"),
    "inventory": Operation(_listing(), (LIST_CLAIMS, LIST_SANDBOXES, LIST_PODS), holds="claim"),
    "inventory by label": Operation(
        _listing(label_selector="a=b"), (LIST_CLAIMS, LIST_SANDBOXES, LIST_PODS), holds="direct"
    ),
    "capacity": Operation(
        lambda _cluster, client, seconds: read_capacity(client, NAMESPACE, POOL, Deadline(seconds, client.clock)),
        (GET_POOL, LIST_CLAIMS, LIST_PODS),
        holds="claim",
    ),
}
