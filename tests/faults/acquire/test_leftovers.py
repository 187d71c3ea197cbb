# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Lost answers, interrupts at every stage, sandboxes that are no good: nothing of ours stays, nothing doubles."""

from __future__ import annotations

import math
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestTimeoutError,
    GuestUnauthorizedError,
    GuestUnreachableError,
    PrivilegeError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import acquire as acquire_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import create as ownership
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire, would_acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError, ClaimMismatchError

from ..fake.agent import PRIVILEGED
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, status
from ..traffic import CREATE, DELETE, GET_CLAIM, GET_POD, GET_SANDBOX, WATCH

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

LATE = Fault(How.CUT_THEN_ACT, delay=0.2)


def failure_of(client: Client, cluster: FakeCluster, **request: t.Any) -> SandboxError:
    with pytest.raises(SandboxError) as caught:
        acquire(client, cluster.request(**request))
    return caught.value


@pytest.mark.parametrize("fault", [Fault(How.CUT_AFTER), Fault(How.STATUS_AFTER_ACTING, 504)], ids=str)
def test_post_whose_answer_is_lost_makes_one_claim(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    cluster.plan.add(fault, CREATE)
    acquired = acquire(client, cluster.request())
    assert cluster.claims() == [acquired.name]
    assert cluster.plan.received().count(CREATE) == 1


def test_late_post_is_found_and_used(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.plan.add(Fault(How.CUT_THEN_ACT, delay=0.02), CREATE)
    acquired = acquire(real_time_client, cluster.request())
    assert cluster.claims() == [acquired.name]
    assert acquired.created


def test_late_post_of_a_failed_acquire_is_found_and_deleted(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.plan.add(LATE, CREATE)
    cluster.plan.add(status(403), GET_CLAIM)
    assert failure_of(real_time_client, cluster).reason == "forbidden"
    assert CREATE in cluster.plan.received()
    assert DELETE in cluster.plan.received()
    assert cluster.claims() == []


def test_server_that_takes_every_question_for_a_bad_one_is_not_said_to_have_made_anything(
    cluster: FakeCluster, client: Client
) -> None:
    """One of HTTPS that is spoken to in HTTP: it cuts the POST, or answers 400, as it happens."""
    cluster.plan.add(Fault(How.CUT_BEFORE), CREATE)
    cluster.plan.add(status(400), GET_CLAIM, times=math.inf)
    error = failure_of(client, cluster)
    assert (error.reason, error.leftover) == ("rejected", None)
    assert "could not be deleted" not in error.message


def test_post_that_was_never_sent_is_not_looked_for(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.plan.add(status(422), CREATE)
    failure_of(real_time_client, cluster)
    assert cluster.plan.received() == [CREATE]


def test_claim_of_somebody_else_under_the_name_is_never_deleted(cluster: FakeCluster, client: Client) -> None:
    cluster.store.create("sandboxclaims", NAMESPACE, {"metadata": {"name": "build-1"}, "spec": {}})
    error = failure_of(client, cluster, name="build-1")
    assert error.__class__ is ClaimMismatchError
    assert DELETE not in cluster.plan.received()
    assert cluster.claims() == ["build-1"]


def test_claim_that_somebody_replaces_while_we_wait_is_not_followed(cluster: FakeCluster, client: Client) -> None:
    cluster.controller.ready = None
    key = cluster.key("sandboxclaims", "build-1")
    cluster.plan.add(status(410), WATCH)
    cluster.store.before_read(key, lambda: cluster.store.replace(key, {"spec": {}}))
    assert failure_of(client, cluster, name="build-1").__class__ is GoneError
    assert cluster.claims() == ["build-1"]


def test_claim_that_somebody_deletes_while_we_wait_is_gone(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.ready = None
    cluster.server.later(0.1, lambda: cluster.store.delete(cluster.key("sandboxclaims", "build-1")))
    began = time.monotonic()
    assert failure_of(real_time_client, cluster, name="build-1").__class__ is GoneError
    assert time.monotonic() - began < 4.0


def test_claim_without_a_status_is_not_ready_at_the_deadline(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.ready = None
    began = time.monotonic()
    error = failure_of(real_time_client, cluster, ready_timeout=1.0)
    assert (type(error), error.reason, error.retryable) == (AcquireError, "not-ready", True)
    assert 0.9 < time.monotonic() - began < 3.0
    assert cluster.claims() == []


@pytest.mark.parametrize(
    "reason", ["WarmPoolNotFound", "TemplateNotFound", "InvalidMetadata", "EnvVarsInjectionRejected"]
)
def test_decision_of_the_controller_fails_at_once(cluster: FakeCluster, client: Client, reason: str) -> None:
    cluster.controller.ready = {"type": "Ready", "status": "False", "reason": reason, "message": "its words"}
    error = failure_of(client, cluster, ready_timeout=60.0)
    assert isinstance(error, AcquireError)
    assert (error.reason, error.controller_reason, error.controller_message) == ("claim-rejected", reason, "its words")
    assert cluster.claims() == []


def test_six_acquires_at_once_hold_six_sandboxes(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.bind_delay = 0.1
    names: list[str] = []
    threads = [
        threading.Thread(target=lambda: names.append(acquire(real_time_client, cluster.request()).sandbox))
        for _unused in range(6)
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len(set(names)) == len(cluster.claims()) == 6


def test_sandbox_with_a_capability_is_refused_and_released(cluster: FakeCluster, client: Client) -> None:
    cluster.agent.status = PRIVILEGED
    assert failure_of(client, cluster).__class__ is PrivilegeError
    assert cluster.claims() == []


def test_agent_of_another_pod_is_refused_and_released(cluster: FakeCluster, client: Client) -> None:
    key = cluster.key("pods", "python-00001")
    cluster.store.before_read(key, lambda: cluster.store.renew(key, "another"))
    assert failure_of(client, cluster).__class__ is GuestUnauthorizedError
    assert cluster.claims() == []


def test_agent_that_hangs_ends_with_the_probe_and_is_released(
    cluster: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(acquire_module, "PROBE_SECONDS", 0.2)
    cluster.agent.answers = False
    assert failure_of(client, cluster).__class__ is GuestTimeoutError
    assert cluster.claims() == []


def test_port_without_an_agent_is_unreachable_and_released(cluster: FakeCluster, client: Client) -> None:
    assert failure_of(client, cluster, agent_port=1).__class__ is GuestUnreachableError
    assert cluster.claims() == []


def test_requested_pod_label_that_never_appears_is_not_ready(cluster: FakeCluster, client: Client) -> None:
    key = cluster.key("pods", "python-00001")
    cluster.store.before_read(key, lambda: cluster.store.patch(key, {"metadata": {"labels": {"x.io/job": None}}}))
    error = failure_of(client, cluster, pod_labels={"x.io/job": "1"})
    assert error.reason == "not-ready"
    assert "x.io/job=1" in error.message
    assert cluster.claims() == []


@pytest.mark.parametrize("interrupt", [KeyboardInterrupt, SystemExit, MemoryError])
@pytest.mark.parametrize("stage", ["follow", "bind_pod", "agent_address", "probe_privileges"])
def test_interrupt_at_a_stage_leaves_nothing(
    cluster: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch, stage: str, interrupt: type[BaseException]
) -> None:
    def interrupted(*_: object, **__: object) -> t.NoReturn:
        raise interrupt

    monkeypatch.setattr(acquire_module, stage, interrupted)
    with pytest.raises(interrupt):
        acquire(client, cluster.request())
    assert cluster.claims() == []


def test_interrupt_between_post_and_answer_leaves_nothing(
    cluster: FakeCluster, real_time_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    post = real_time_client.create

    def interrupted(*arguments: t.Any, **keywords: t.Any) -> t.NoReturn:
        post(*arguments, **keywords)
        raise KeyboardInterrupt

    monkeypatch.setattr(real_time_client, "create", interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire(real_time_client, cluster.request())
    assert cluster.claims() == []


def test_interrupt_before_the_post_costs_no_more_than_the_look_for_a_late_one(
    cluster: FakeCluster, real_time_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    def interrupted(*_: object, **__: object) -> t.NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(ownership, "LATE_POST_SECONDS", 0.1)
    monkeypatch.setattr(real_time_client, "create", interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire(real_time_client, cluster.request())
    assert set(cluster.plan.received()) == {GET_CLAIM}


def test_interrupted_reacquire_leaves_the_existing_claim(
    cluster: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire(client, cluster.request(name="build-1"))

    def interrupted(*_: object, **__: object) -> t.NoReturn:
        raise KeyboardInterrupt

    monkeypatch.setattr(acquire_module, "bind_pod", interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire(client, cluster.request(name="build-1"))
    assert cluster.claims() == ["build-1"]


def test_object_that_took_the_name_before_the_cleanup_is_left_alone(cluster: FakeCluster, client: Client) -> None:
    claim, sandbox = cluster.key("sandboxclaims", "build-1"), cluster.key("sandboxes", "python-00001")
    cluster.agent.status = PRIVILEGED
    cluster.store.before_read(sandbox, lambda: cluster.store.replace(claim, {"spec": {}}))
    error = failure_of(client, cluster, name="build-1")
    assert cluster.claims() == ["build-1"]
    assert error.leftover is None


def test_cleanup_that_finds_no_server_ends_and_names_the_leftover(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(422), GET_POD)
    cluster.plan.add(Fault(How.CUT_BEFORE), DELETE, times=1000)
    error = failure_of(client, cluster, name="build-1")
    assert error.fields()["leftover"] == "SandboxClaim team-a/build-1"


def test_check_mode_asks_the_server_and_makes_nothing(cluster: FakeCluster, client: Client) -> None:
    _ref, existing = would_acquire(client, cluster.request(name="build-1"))
    assert existing is None
    assert cluster.plan.received() == [GET_SANDBOX, CREATE]
    assert cluster.claims() == []


def test_check_mode_finds_the_existing_claim(cluster: FakeCluster, client: Client) -> None:
    acquired = acquire(client, cluster.request(name="build-1"))
    _ref, existing = would_acquire(client, cluster.request(name="build-1"))
    assert existing is not None
    assert existing["metadata"]["uid"] == acquired.uid
