# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A template that comes late: fails at once, or is waited for, as asked (agent-sandbox issue 444)."""

from __future__ import annotations

import math
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import wait_for_template as late
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import PartialAcquireError, acquire_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..traffic import CREATE, DELETE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

MISSING = {"type": "Ready", "status": "False", "reason": "TemplateNotFound", "message": "its words"}
READY = {"type": "Ready", "status": "True", "reason": "DependenciesReady", "message": "ok"}
GET_TEMPLATE = Request("get", "sandboxtemplates")
PATIENT: dict[str, t.Any] = {"wait_for_template": True, "ready_timeout": 30.0}
DIRECT: dict[str, t.Any] = {"warm_pool": None, "template": "python"}


@pytest.fixture
def in_a_hurry(monkeypatch: pytest.MonkeyPatch) -> None:
    """Less between two attempts, for tests on the machine's own clock."""
    monkeypatch.setattr(late, "AGAIN", 0.1)


def there_at_claim(cluster: FakeCluster, number: int) -> None:
    """The template comes before the controller sees that claim, counted from 1."""
    cluster.controller.ready = MISSING
    bind, seen = cluster.controller._bind, [0]

    def counting(event: t.Any) -> None:
        seen[0] += 1
        if seen[0] >= number:
            cluster.controller.ready = READY
        bind(event)

    cluster.controller._bind = counting  # type: ignore[method-assign]


def make_template(cluster: FakeCluster) -> None:
    spec = {"podTemplate": {"spec": {"containers": []}}}
    cluster.store.create("sandboxtemplates", NAMESPACE, {"metadata": {"name": "python"}, "spec": spec})


def failure_of(client: Client, cluster: FakeCluster, **request: t.Any) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        acquire(client, cluster.request(**request))
    return caught.value


def test_missing_template_fails_at_once_unless_it_is_waited_for(cluster: FakeCluster, client: Client) -> None:
    there_at_claim(cluster, 2)
    error = failure_of(client, cluster, ready_timeout=60.0)
    assert isinstance(error, AcquireError)
    assert (error.reason, error.controller_reason) == ("claim-rejected", "TemplateNotFound")
    assert (cluster.plan.received().count(CREATE), cluster.claims()) == (1, [])


@pytest.mark.parametrize("name", [None, "build-1"])
def test_template_that_comes_late_is_waited_for_with_one_claim_in_the_end(
    cluster: FakeCluster, client: Client, name: str | None
) -> None:
    there_at_claim(cluster, 6)
    acquired = acquire(client, cluster.request(name=name, **PATIENT))
    assert acquired.created
    assert cluster.claims() == [acquired.name]
    assert (cluster.plan.received().count(CREATE), cluster.plan.received().count(DELETE)) == (6, 5)


def test_template_that_never_comes_is_given_up_at_the_deadline(cluster: FakeCluster, client: Client) -> None:
    cluster.controller.ready = MISSING
    error = failure_of(client, cluster, **PATIENT)
    assert isinstance(error, AcquireError)
    assert error.controller_reason == "TemplateNotFound"
    assert 20 <= cluster.plan.received().count(CREATE) <= 30
    assert cluster.claims() == []


def test_claim_that_cannot_be_deleted_ends_the_wait(cluster: FakeCluster, client: Client) -> None:
    cluster.controller.ready = MISSING
    cluster.plan.add(status(403), DELETE, times=math.inf)
    error = failure_of(client, cluster, name="build-1", **PATIENT)
    assert error.leftover == "SandboxClaim team-a/build-1"
    assert cluster.plan.received().count(CREATE) == 1


@pytest.mark.parametrize("reason", ["WarmPoolNotFound", "InvalidMetadata", "EnvVarsInjectionRejected"])
def test_no_other_decision_is_waited_for(cluster: FakeCluster, client: Client, reason: str) -> None:
    cluster.controller.ready = {**MISSING, "reason": reason}
    failure_of(client, cluster, **PATIENT)
    assert cluster.plan.received().count(CREATE) == 1


@pytest.mark.usefixtures("in_a_hurry")
def test_template_of_a_direct_sandbox_is_waited_for_too(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.server.later(0.3, lambda: make_template(cluster))
    acquired = acquire(real_time_client, cluster.request(**DIRECT, **PATIENT))
    assert cluster.store.names("sandboxes") == [acquired.name]


@pytest.mark.usefixtures("in_a_hurry")
def test_template_of_many_is_waited_for_by_all(cluster: FakeCluster, real_time_client: Client) -> None:
    there_at_claim(cluster, 3)
    acquired = acquire_many(real_time_client, cluster.request(name="build", **PATIENT), 3)
    assert cluster.claims() == [one.name for one in acquired] == ["build-0", "build-1", "build-2"]


def test_wait_of_many_ends_when_another_one_fails(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.ready = MISSING
    cluster.plan.add(status(403), CREATE, nth=3)
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(real_time_client, cluster.request(**PATIENT), 3)
    assert "forbidden" in {outcome.error.reason for outcome in caught.value.outcomes if outcome.error}
    assert cluster.claims() == []


@pytest.mark.parametrize("name", [None, "python"], ids=["kind is not served", "template is missing"])
def test_kind_that_is_not_served_is_not_waited_for(cluster: FakeCluster, client: Client, name: str | None) -> None:
    cluster.plan.add(Fault(How.STATUS, 404, name=name), GET_TEMPLATE, times=math.inf)
    assert failure_of(client, cluster, **DIRECT, **PATIENT).reason == ("not-served" if name is None else "not-found")
    assert (cluster.plan.received().count(GET_TEMPLATE) == 1) == (name is None)
