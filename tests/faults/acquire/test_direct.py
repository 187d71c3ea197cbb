# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sandboxes made from a template: one template read, one Sandbox, or none, and nobody else's is touched."""

from __future__ import annotations

import math
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError, InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import acquire as acquire_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire, would_acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.direct import TemplateError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import PartialAcquireError, acquire_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError, ClaimMismatchError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.agent_address import Located, locate
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.many import names_matching
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import Released, release

from ..fake.agent import PRIVILEGED
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..traffic import DELETE as DELETE_CLAIM
from ..traffic import GET_CLAIM, GET_POD, GET_SANDBOX

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

NAME = "build-1"
LABEL = "sandbox.namzu.ai/template"
OURS = {"sandbox.namzu.ai/acquire-id": "of-somebody"}
#: Real seconds that nothing here may take.
IN_TIME = 8.0

GET_TEMPLATE = Request("get", "sandboxtemplates")
CREATE = Request("create", "sandboxes")
WATCH = Request("watch", "sandboxes")
DELETE = Request("delete", "sandboxes")
ACQUIRE = (GET_TEMPLATE, CREATE, WATCH, GET_POD, GET_SANDBOX)
PASSING = (
    status(429, retry_after="0"),
    status(503),
    Fault(How.STATUS_AFTER_ACTING, 504),
    Fault(How.HANG),
    Fault(How.CUT_BEFORE),
    Fault(How.CUT_AFTER),
    Fault(How.TRUNCATED),
    Fault(How.NO_JSON),
)


@pytest.fixture
def templated(cluster: FakeCluster) -> FakeCluster:
    """A cluster with a template."""
    pod = {"metadata": {"labels": {"app": "python"}}, "spec": {"containers": [{"name": "agent"}]}}
    spec = {"podTemplate": pod, "volumeClaimTemplates": [{"metadata": {"name": "work"}, "spec": {"a": ["b"]}}]}
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": spec})
    return cluster


def wanted(cluster: FakeCluster, **changes: t.Any) -> t.Any:
    return cluster.request(**{"warm_pool": None, "template": "python", **changes})


def failure_of(client: Client, cluster: FakeCluster, **changes: t.Any) -> SandboxError:
    """The error of an acquire that must fail in time and leave no Sandbox."""
    began = time.monotonic()
    with pytest.raises(SandboxError) as caught:
        acquire(client, wanted(cluster, **changes))
    assert time.monotonic() - began < IN_TIME
    return caught.value


def sandboxes(cluster: FakeCluster) -> list[str]:
    return cluster.store.names("sandboxes")


def released(client: Client, name: str = NAME, *, wait: bool = False) -> Released:
    return release(client, NAMESPACE, name, Deadline(5.0, client.clock), wait=wait)


def located(client: Client, cluster: FakeCluster) -> Located:
    deadline = Deadline(5.0, client.clock)
    return locate(client, NAMESPACE, NAME, port=cluster.agent.port, mode="service", deadline=deadline)


def foreign(cluster: FakeCluster, **metadata: t.Any) -> str:
    """A Sandbox that no acquire made; its uid."""
    body = {"metadata": {"name": NAME, **metadata}, "spec": {}}
    return str(cluster.store.create("sandboxes", NAMESPACE, body)["metadata"]["uid"])


def test_sandbox_is_made_used_and_given_back(templated: FakeCluster, client: Client) -> None:
    acquired = acquire(client, wanted(templated, name=NAME, pod_labels={"tier": "low"}))
    assert (acquired.name, acquired.sandbox, acquired.pod, acquired.warm) == (NAME, NAME, NAME, False)
    assert acquired.labels == {"app": "python", "tier": "low", LABEL: "python"}
    made = templated.store.get(templated.key("sandboxes", NAME))
    assert made["spec"]["volumeClaimTemplates"] == [{"metadata": {"name": "work"}, "spec": {"a": ["b"]}}]
    assert templated.claims() == []
    assert located(client, templated).pod == NAME
    assert released(client, wait=True).existed
    assert (sandboxes(templated), templated.store.names("pods")) == ([], [])


def test_template_is_read_once_for_many(templated: FakeCluster, real_time_client: Client) -> None:
    acquired = acquire_many(real_time_client, wanted(templated, name="build"), 20)
    received = templated.plan.received()
    assert received.count(GET_TEMPLATE) == 1
    assert len(received) <= 4 * 20 + 4
    assert sandboxes(templated) == sorted(one.name for one in acquired)


def test_direct_sandbox_costs_at_most_five_requests(templated: FakeCluster, client: Client) -> None:
    acquire(client, wanted(templated))
    assert len(templated.plan.received()) <= 5


@pytest.mark.parametrize("request_kind", ACQUIRE, ids=str)
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_is_outlived_with_one_sandbox(
    templated: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    templated.plan.add(fault, request_kind)
    acquired = acquire(client, wanted(templated))
    assert sandboxes(templated) == [acquired.name]


@pytest.mark.parametrize("request_kind", ACQUIRE, ids=str)
@pytest.mark.parametrize("fault", [status(401), status(403), status(503), Fault(How.CUT_BEFORE)], ids=str)
def test_fault_that_lasts_leaves_nothing(
    templated: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    if request_kind == WATCH:
        templated.controller.ready = None
    templated.plan.add(fault, request_kind, times=math.inf)
    error = failure_of(client, templated, ready_timeout=2.0)
    assert error.reason == ("forbidden" if fault.status in (401, 403) else "api-unreachable")
    assert sandboxes(templated) == []


@pytest.mark.parametrize("fault", [Fault(How.CUT_AFTER), Fault(How.STATUS_AFTER_ACTING, 504)], ids=str)
def test_post_whose_answer_is_lost_makes_one_sandbox(templated: FakeCluster, client: Client, fault: Fault) -> None:
    templated.plan.add(fault, CREATE)
    acquired = acquire(client, wanted(templated))
    assert sandboxes(templated) == [acquired.name]
    assert templated.plan.received().count(CREATE) == 1
    assert acquired.created


def test_missing_template_leaves_nothing(cluster: FakeCluster, client: Client) -> None:
    error = failure_of(client, cluster)
    assert (type(error), error.object) == (GoneError, "SandboxTemplate team-a/python")
    assert "another namespace than team-a" in str(error.next_step)
    assert cluster.plan.received() == [GET_TEMPLATE]


@pytest.mark.parametrize(
    "spec",
    [
        None,
        "text",
        [],
        {},
        {"podTemplate": None},
        {"podTemplate": "text"},
        {"podTemplate": {}},
        {"podTemplate": {"spec": []}},
        {"podTemplate": {"spec": {}, "metadata": "text"}},
        {"podTemplate": {"spec": {}, "metadata": {"labels": ["text"]}}},
    ],
)
def test_malformed_template_leaves_nothing(cluster: FakeCluster, client: Client, spec: t.Any) -> None:
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": spec})
    error = failure_of(client, cluster)
    assert (type(error), error.reason, error.retryable) == (TemplateError, "template", False)
    assert cluster.plan.received() == [GET_TEMPLATE]


def test_pod_label_that_would_take_the_templates_away_is_refused_before_anything_is_sent(
    templated: FakeCluster, client: Client
) -> None:
    with pytest.raises(InputError, match=LABEL):
        acquire(client, wanted(templated, pod_labels={LABEL: "another"}))
    assert templated.plan.received() == []
    assert acquire(client, wanted(templated, pod_labels={LABEL: "python"})).labels[LABEL] == "python"


def test_sandbox_of_somebody_else_under_the_name_is_untouched(templated: FakeCluster, client: Client) -> None:
    uid = foreign(templated)
    assert failure_of(client, templated, name=NAME).__class__ is ClaimMismatchError
    assert templated.store.get(templated.key("sandboxes", NAME))["metadata"]["uid"] == uid
    assert DELETE not in templated.plan.received()


def test_same_request_finds_the_same_sandbox(templated: FakeCluster, client: Client) -> None:
    first = acquire(client, wanted(templated, name=NAME))
    second = acquire(client, wanted(templated, name=NAME))
    assert (second.uid, second.created) == (first.uid, False)
    assert would_acquire(client, wanted(templated, name=NAME))[1] is not None


def test_check_mode_makes_nothing(templated: FakeCluster, client: Client) -> None:
    ref, existing = would_acquire(client, wanted(templated, name=NAME))
    assert (str(ref), existing, sandboxes(templated)) == (f"Sandbox team-a/{NAME}", None, [])


@pytest.mark.parametrize("reason", ["PodFailed", "PodSucceeded", "MultiplePods"])
def test_sandbox_that_has_ended_fails_at_once(templated: FakeCluster, client: Client, reason: str) -> None:
    templated.controller.ready = {"type": "Ready", "status": "False", "reason": reason, "message": "its words"}
    error = failure_of(client, templated, ready_timeout=60.0)
    assert isinstance(error, AcquireError)
    assert (error.reason, error.controller_reason, error.controller_message) == ("not-ready", reason, "its words")
    assert sandboxes(templated) == []


def test_sandbox_with_a_capability_is_refused_and_released(templated: FakeCluster, client: Client) -> None:
    templated.agent.status = PRIVILEGED
    assert failure_of(client, templated).reason == "privileged"
    assert sandboxes(templated) == []


@pytest.mark.parametrize("stage", ["follow", "bind_pod", "agent_address", "probe_privileges"])
def test_interrupt_at_a_stage_leaves_nothing(
    templated: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch, stage: str
) -> None:
    def interrupted(*_: object, **__: object) -> t.NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(acquire_module, stage, interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire(client, wanted(templated))
    assert sandboxes(templated) == []


def test_one_that_fails_takes_the_others_back_and_names_sandboxes(templated: FakeCluster, client: Client) -> None:
    foreign(templated)
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(client, wanted(templated, name="build"), 3)
    objects = {outcome.error.object for outcome in caught.value.outcomes if outcome.error}
    assert objects == {f"Sandbox team-a/build-{number}" for number in range(3)}
    assert sandboxes(templated) == [NAME]


@pytest.mark.parametrize("wait", [False, True])
@pytest.mark.parametrize(
    "metadata",
    [{}, {"annotations": {}}, {"annotations": {"other": "1"}}, {"annotations": {"sandbox.namzu.ai/acquire-id": ""}}],
)
def test_release_by_name_never_touches_a_sandbox_that_no_acquire_made(
    cluster: FakeCluster, client: Client, wait: bool, metadata: dict[str, t.Any]
) -> None:
    foreign(cluster, **metadata)
    assert not released(client, wait=wait).existed
    assert sandboxes(cluster) == [NAME]
    assert DELETE not in cluster.plan.received()


def test_selector_chooses_only_sandboxes_that_an_acquire_made(cluster: FakeCluster, client: Client) -> None:
    foreign(cluster, labels={"job": "1"})
    ours = {"metadata": {"name": "ours", "labels": {"job": "1"}, "annotations": OURS}, "spec": {}}
    cluster.store.create("sandboxes", NAMESPACE, ours)
    assert list(names_matching(client, NAMESPACE, "job=1", Deadline(5.0, client.clock))) == ["ours"]


@pytest.mark.parametrize("request_kind", [DELETE_CLAIM, GET_SANDBOX, DELETE], ids=str)
@pytest.mark.parametrize("fault", [fault for fault in PASSING if fault.how is not How.NO_JSON], ids=str)
def test_fault_that_passes_does_not_keep_a_sandbox_from_being_released(
    templated: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    """Found: a DELETE of the claim that was cut counted as done, and the Sandbox stayed."""
    acquire(client, wanted(templated, name=NAME))
    templated.plan.add(fault, request_kind)
    assert released(client).existed
    assert sandboxes(templated) == []


def test_sandbox_that_another_one_replaced_is_not_deleted(templated: FakeCluster, client: Client) -> None:
    acquire(client, wanted(templated, name=NAME))
    key = templated.key("sandboxes", NAME)
    templated.store.after_read(key, lambda: templated.store.replace(key, {"spec": {}}))
    released(client)
    assert sandboxes(templated) == [NAME]


def test_claim_of_the_name_goes_before_the_sandbox(templated: FakeCluster, client: Client) -> None:
    acquire(client, templated.request(name=NAME))
    foreign(templated, annotations=OURS)
    assert located(client, templated).pod == "python-00001"
    assert released(client).existed
    assert (templated.claims(), NAME in sandboxes(templated)) == ([], True)


@pytest.mark.parametrize("request_kind", [GET_CLAIM, GET_SANDBOX, GET_POD], ids=str)
@pytest.mark.parametrize("fault", [status(503), Fault(How.CUT_BEFORE)], ids=str)
def test_fault_that_passes_does_not_hide_a_direct_sandbox(
    templated: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    acquire(client, wanted(templated, name=NAME))
    templated.plan.add(fault, request_kind)
    assert located(client, templated).pod == NAME


def test_direct_sandbox_that_is_not_ready_is_not_located(templated: FakeCluster, client: Client) -> None:
    foreign(templated, annotations=OURS)
    with pytest.raises(AcquireError) as caught:
        located(client, templated)
    assert (caught.value.reason, caught.value.object) == ("not-ready", f"Sandbox team-a/{NAME}")


def test_name_that_nobody_holds_is_answered_with_what_to_do(templated: FakeCluster, client: Client) -> None:
    with pytest.raises(GoneError) as caught:
        located(client, templated)
    assert "sandbox_info lists what is held" in str(caught.value.next_step)


def test_workspace_that_sleeps_is_to_be_woken(templated: FakeCluster, client: Client) -> None:
    foreign(templated, annotations=OURS)
    asleep = [{"type": "Ready", "status": "False", "reason": "SandboxSuspended"}]
    templated.store.patch(templated.key("sandboxes", NAME), {"status": {"conditions": asleep}})
    with pytest.raises(AcquireError) as caught:
        located(client, templated)
    assert "namzu.sandbox.workspace with state: running" in str(caught.value.next_step)


@pytest.mark.parametrize("fault", [status(503), Fault(How.CUT_BEFORE)], ids=str)
@pytest.mark.parametrize("reason", ["image-pull", "api-unreachable"])
def test_message_of_the_pod_wins_over_api_failures_at_the_deadline(
    templated: FakeCluster, client: Client, fault: Fault, reason: str
) -> None:
    """The watch fails until the deadline has passed, and the pod has shown long before why it does not start."""
    templated.controller.ready = None
    if reason == "image-pull":
        waiting = {"reason": "ImagePullBackOff", "message": "back-off"}
        pod_status = {"containerStatuses": [{"name": "agent", "image": "nowhere/x", "state": {"waiting": waiting}}]}
        templated.store.create("pods", NAMESPACE, {"metadata": {"name": NAME}, "status": pod_status})
    templated.plan.add(fault, WATCH, times=math.inf)
    error = failure_of(client, templated, name=NAME, ready_timeout=2.0)
    assert (error.reason, error.retryable) == (reason, reason == "api-unreachable")
    assert sandboxes(templated) == []
