# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request of every workspace verb meets every fault: time is bounded, errors have names, and no disk is lost."""

from __future__ import annotations

import concurrent.futures
import math
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.direct import Template
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.errors import WorkspaceSuspendTimeoutError
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.inventory import list_workspaces
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.manifest import workspace_body

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from .ground import TEMPLATE, delete, edit_template, key, prepare, refresh, request, run, sandbox, suspend

GET, PATCH = Request("get", "sandboxes"), Request("patch", "sandboxes")
CREATE, WATCH, DELETE = Request("create", "sandboxes"), Request("watch", "sandboxes"), Request("delete", "sandboxes")
GET_POD, GET_TEMPLATE = Request("get", "pods"), Request("get", "sandboxtemplates")
GET_CLAIM = Request("get", "persistentvolumeclaims")
LIST, LIST_CLAIMS = Request("list", "sandboxes"), Request("list", "persistentvolumeclaims")
LIST_TEMPLATES = Request("list", "sandboxtemplates")


class Case(t.NamedTuple):
    """A verb, what stands before, and what it asks of the API server, each at least once."""

    verb: t.Callable[..., object]
    before: tuple[t.Callable[..., object], ...]
    requests: tuple[Request, ...]


def edited(cluster: FakeCluster, client: Client) -> None:
    del client
    edit_template(cluster)


def inventory(cluster: FakeCluster, client: Client) -> object:
    del cluster
    return list_workspaces(client, NAMESPACE, Deadline(5.0, client.clock))


CASES = {
    "create": Case(run, (), (GET, GET_TEMPLATE, CREATE, WATCH, GET_POD, GET_CLAIM, PATCH)),
    "adopt": Case(run, (run,), (GET, GET_TEMPLATE, GET_POD, GET_CLAIM)),
    "resume": Case(run, (run, suspend), (GET, GET_TEMPLATE, GET_CLAIM, PATCH, WATCH, GET_POD)),
    "refresh": Case(refresh, (run, edited), (GET, GET_TEMPLATE, GET_CLAIM, PATCH, WATCH, GET_POD)),
    "suspend": Case(suspend, (run,), (GET, GET_POD, GET_CLAIM, PATCH)),
    "delete": Case(delete, (run,), (GET, DELETE)),
    "list": Case(inventory, (run,), (LIST, LIST_CLAIMS, LIST_TEMPLATES)),
}

#: What passes: the same request succeeds when it is made again, or was carried out already.
PASSING = (
    status(503), Fault(How.STATUS_AFTER_ACTING, 504), Fault(How.CUT_BEFORE), Fault(How.CUT_AFTER), Fault(How.TRUNCATED),
)  # fmt: skip

MEETINGS = [pytest.param(name, asked, id=f"{name}-{asked}") for name in CASES for asked in CASES[name].requests]


def ready(cluster: FakeCluster, client: Client, case: Case) -> str | None:
    """Bring about what stands before, and say which disk there is."""
    prepare(cluster)
    for step in case.before:
        step(cluster, client)
    cluster.plan.clear()
    claims = cluster.store.names("persistentvolumeclaims")
    return uid_of_claim(cluster) if claims else None


def uid_of_claim(cluster: FakeCluster) -> str:
    return str(cluster.store.get(key("persistentvolumeclaims"))["metadata"]["uid"])


@pytest.mark.parametrize("fault", PASSING, ids=str)
@pytest.mark.parametrize(("name", "request_met"), MEETINGS)
def test_what_passes_is_passed_through(
    cluster: FakeCluster, client: Client, name: str, request_met: Request, fault: Fault
) -> None:
    """An API server that is restarted at any step shows itself as one of these."""
    case = CASES[name]
    disk = ready(cluster, client, case)
    cluster.plan.add(fault, request_met)
    case.verb(cluster, client)
    assert request_met in cluster.plan.received()
    if name == "delete":
        assert key().name not in cluster.store.names("sandboxes")
        return
    assert disk in (None, uid_of_claim(cluster))
    mode = sandbox(cluster)["spec"]["operatingMode"]
    assert mode == ("Suspended" if name == "suspend" else "Running")
    assert cluster.store.names("sandboxes") == [key().name]


@pytest.mark.parametrize("fault", [status(403)], ids=str)
@pytest.mark.parametrize(("name", "request_met"), MEETINGS)
def test_what_is_refused_is_told_and_leaves_no_pod_unproven(
    cluster: FakeCluster, client: Client, name: str, request_met: Request, fault: Fault
) -> None:
    case = CASES[name]
    disk = ready(cluster, client, case)
    before = sandbox(cluster)["spec"]["operatingMode"] if disk else None
    cluster.plan.add(fault, request_met)
    with pytest.raises(SandboxError) as refused:
        case.verb(cluster, client)
    assert refused.value.reason in ("forbidden", "rejected", "source-unreadable")
    if disk is None:
        existing = cluster.store.names("sandboxes")
        assert not existing or sandbox(cluster)["spec"]["operatingMode"] == "Suspended", "it may not run on unproven"
        return
    assert uid_of_claim(cluster) == disk
    assert sandbox(cluster)["spec"]["operatingMode"] in (before, "Suspended")


@pytest.mark.parametrize("fault", [Fault(How.HANG), status(503), Fault(How.CUT_BEFORE)], ids=str)
@pytest.mark.parametrize("name", CASES)
def test_server_that_stays_away_is_given_up_in_time(
    cluster: FakeCluster, client: Client, name: str, fault: Fault
) -> None:
    case = CASES[name]
    disk = ready(cluster, client, case)
    cluster.plan.add(fault, times=math.inf)
    began, on_clock = time.monotonic(), client.clock.monotonic()
    with pytest.raises(SandboxError) as lost:
        case.verb(cluster, client)
    assert lost.value.reason in ("api-unreachable", "api-timeout")
    assert client.clock.monotonic() - on_clock < 5.0 + 12.0 + 2.0
    assert time.monotonic() - began < 15.0
    assert disk is None or uid_of_claim(cluster) == disk


def test_lost_answer_to_the_post_is_found_again_by_its_name(cluster: FakeCluster, client: Client) -> None:
    prepare(cluster)
    cluster.plan.add(Fault(How.CUT_AFTER), CREATE)
    opened = run(cluster, client)
    assert (opened.origin, opened.changed) == ("created", True)
    assert cluster.plan.received().count(CREATE) == 1


def test_two_that_make_the_same_workspace_have_one(cluster: FakeCluster, client: Client) -> None:
    prepare(cluster)
    asked = request(cluster)
    body = cluster.store.get(cluster.key("sandboxtemplates", TEMPLATE))["spec"]
    made_of = Template(TEMPLATE, body["podTemplate"], body["volumeClaimTemplates"])
    others = workspace_body(asked, asked.ref, made_of, "another", client.clock.now())
    cluster.store.after_read(
        cluster.key("sandboxtemplates", TEMPLATE), lambda: cluster.store.create("sandboxes", NAMESPACE, others)
    )
    assert run(cluster, client).origin == "adopted"
    assert cluster.plan.received().count(CREATE) == 1


@pytest.mark.parametrize("name", CASES)
def test_api_server_that_is_restarted_at_any_step_changes_nothing_about_the_end(
    cluster: FakeCluster, client: Client, name: str
) -> None:
    """It is away for three requests in a row, beginning with each one that the verb makes."""
    case = CASES[name]
    at = 1
    while True:
        ready(cluster, client, case)
        cluster.plan.add(Fault(How.CUT_BEFORE), nth=at, times=3)
        case.verb(cluster, client)
        if len(cluster.plan.received()) < at:
            break
        assert (key().name in cluster.store.names("sandboxes")) == (name != "delete")
        cluster.plan.clear()
        if name != "delete":
            delete(cluster, client)
        for plural in ("pods", "persistentvolumeclaims"):
            with cluster.store.changed:
                assert cluster.store.changed.wait_for(lambda p=plural: cluster.store.names(p) == [], 10.0)
        cluster.store.delete(cluster.key("sandboxtemplates", TEMPLATE))
        at += 1
    assert at > 2


def test_controller_that_is_restarted_finds_everything_as_it_was_told(cluster: FakeCluster, client: Client) -> None:
    prepare(cluster)
    run(cluster, client)
    disk, controller = uid_of_claim(cluster), cluster.controller.workspaces
    controller.away = True
    with pytest.raises(WorkspaceSuspendTimeoutError):
        suspend(cluster, client)
    controller.back()
    assert not suspend(cluster, client).changed
    controller.away = True
    with cluster.client(request_timeout=5.0) as patient, pytest.raises(AcquireError, match="It was suspended"):
        run(cluster, patient, ready_timeout=1.0)
    controller.back()
    assert run(cluster, client).origin == "resumed"
    assert uid_of_claim(cluster) == disk


def test_word_about_the_pod_before_is_not_taken_for_one_about_the_new_pod(cluster: FakeCluster) -> None:
    """Resumed while its pod was still stopping, the controller says once more that it has ended: the former one has."""
    prepare(cluster)
    store, controller = cluster.store, cluster.controller.workspaces
    ended = {"type": "Ready", "status": "False", "reason": "PodSucceeded", "message": "Pod completed successfully"}
    with cluster.client(request_timeout=5.0) as patient, concurrent.futures.ThreadPoolExecutor(1) as threads:
        run(cluster, patient)
        pod = store.get(key("pods"))
        suspend(cluster, patient)
        controller.away = True
        cluster.plan.clear()
        resuming = threads.submit(run, cluster, patient)
        with store.changed:
            assert store.changed.wait_for(lambda: sandbox(cluster)["spec"]["operatingMode"] == "Running", 10.0)
            store.create("pods", NAMESPACE, pod)
            store.patch(key(), {"status": {"conditions": [ended]}})
        until = time.monotonic() + 10.0
        while GET_POD not in cluster.plan.received() and time.monotonic() < until and not resuming.done():
            threading.Event().wait(0.001)
        controller.back()
        assert resuming.result(10.0).origin == "resumed"
