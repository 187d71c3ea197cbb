# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many that are cancelled while their requests hang: these end at once, and the clean-up has its own time."""

from __future__ import annotations

import math
import signal
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Cancellation
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import PartialAcquireError, acquire_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.context import held
from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.open import open_workspace

from .fake.cluster import FakeCluster
from .fake.plan import Fault, How, Request, status
from .traffic import CREATE, GET_POD, GET_SANDBOX
from .workspace import ground as workspace_ground

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

COUNT = 4
HANG = Fault(How.HANG)
#: Seconds of an acquire that nobody calls off, and those that "at once" may take, the look for a late POST included.
LONG = 60.0
AT_ONCE = 6.0


@pytest.fixture
def patient(cluster: FakeCluster) -> t.Iterator[Client]:
    """A client that waits for an answer as long as it may."""
    with cluster.client(request_timeout=LONG) as made:
        yield made


def cancelled(client: Client, cluster: FakeCluster) -> PartialAcquireError:
    """The error of an acquire of some, of which one fails."""
    began = time.monotonic()
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(client, cluster.request(ready_timeout=LONG, name="build"), COUNT)
    assert time.monotonic() - began < AT_ONCE
    return caught.value


def only_one_failed(error: PartialAcquireError, reason: str) -> None:
    """One has that reason, and all others were cancelled."""
    reasons = sorted(outcome.error.reason for outcome in error.outcomes if outcome.error is not None)
    assert reasons == sorted([reason, *["cancelled"] * (COUNT - 1)])
    assert error.reason == reason


@pytest.mark.parametrize("request_kind", [CREATE, GET_POD, GET_SANDBOX], ids=str)
def test_requests_that_hang_end_when_another_one_fails(
    cluster: FakeCluster, patient: Client, request_kind: Request
) -> None:
    """Found: they were waited for until their own bound."""
    cluster.plan.add(HANG, request_kind, times=COUNT - 1)
    cluster.plan.add(status(403), request_kind)
    only_one_failed(cancelled(patient, cluster), "forbidden")
    assert cluster.claims() == []


def test_probes_that_hang_end_when_another_one_fails(cluster: FakeCluster, patient: Client) -> None:
    cluster.agent.answers = False
    cluster.plan.add(status(403), GET_SANDBOX, nth=COUNT)
    only_one_failed(cancelled(patient, cluster), "forbidden")
    assert cluster.claims() == []


def test_diagnosis_of_what_was_cancelled_is_not_waited_for(cluster: FakeCluster, patient: Client) -> None:
    cluster.controller.ready = {"type": "Ready", "status": "False", "reason": "SandboxNotReady", "message": "not yet"}
    cluster.plan.add(HANG, GET_POD, times=math.inf)
    cluster.plan.add(status(403), CREATE, nth=COUNT)
    only_one_failed(cancelled(patient, cluster), "forbidden")
    assert cluster.claims() == []


@pytest.mark.parametrize("request_kind", [CREATE, GET_POD, GET_SANDBOX], ids=str)
def test_sigint_while_requests_hang_leaves_nothing(
    cluster: FakeCluster, patient: Client, request_kind: Request
) -> None:
    cluster.plan.add(HANG, request_kind, times=COUNT)
    main = threading.get_ident()
    cluster.server.later(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        acquire_many(patient, cluster.request(ready_timeout=LONG), COUNT)
    assert time.monotonic() - began < AT_ONCE
    assert cluster.claims() == []


HANGING = [CREATE, GET_POD, GET_SANDBOX]


def cancel_soon(cluster: FakeCluster) -> Cancellation:
    """A cancellation that another thread cancels while requests hang."""
    cancellation = Cancellation()
    cluster.server.later(0.3, cancellation.cancel)
    return cancellation


@pytest.mark.parametrize("request_kind", HANGING, ids=str)
def test_caller_cancels_an_acquire(cluster: FakeCluster, patient: Client, request_kind: Request) -> None:
    cluster.plan.add(HANG, request_kind)
    with pytest.raises(SandboxError) as caught:
        acquire(patient, cluster.request(ready_timeout=LONG), cancellation=cancel_soon(cluster))
    assert (caught.value.reason, caught.value.retryable, cluster.claims()) == ("cancelled", True, [])


def test_caller_cancels_an_acquire_that_waits_for_the_controller(cluster: FakeCluster, patient: Client) -> None:
    cluster.controller.ready = None
    with pytest.raises(SandboxError) as caught:
        acquire(patient, cluster.request(ready_timeout=LONG), cancellation=cancel_soon(cluster))
    assert (caught.value.reason, cluster.claims()) == ("cancelled", [])


def test_caller_cancels_an_acquire_before_it_begins(cluster: FakeCluster, patient: Client) -> None:
    cancellation = Cancellation()
    cancellation.cancel()
    with pytest.raises(SandboxError) as caught:
        acquire(patient, cluster.request(), cancellation=cancellation)
    assert (caught.value.reason, cluster.claims()) == ("cancelled", [])


@pytest.mark.parametrize("hangs", [True, False], ids=["requests-hang", "controller-is-slow"])
@pytest.mark.parametrize("name", ["build", None])
def test_caller_cancels_many(cluster: FakeCluster, patient: Client, hangs: bool, name: str | None) -> None:
    if hangs:
        cluster.plan.add(HANG, CREATE, times=COUNT)
    else:
        cluster.controller.ready = None
    cancellation = cancel_soon(cluster)
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(patient, cluster.request(ready_timeout=LONG, name=name), COUNT, cancellation=cancellation)
    reasons = {outcome.error.reason for outcome in caught.value.outcomes if outcome.error is not None}
    assert (caught.value.reason, reasons, cluster.claims()) == ("cancelled", {"cancelled"}, [])


def test_many_that_fail_leave_the_callers_cancellation_alone(cluster: FakeCluster, patient: Client) -> None:
    cancellation = Cancellation()
    cluster.plan.add(status(403), CREATE)
    with pytest.raises(PartialAcquireError):
        acquire_many(patient, cluster.request(), COUNT, cancellation=cancellation)
    assert not cancellation.cancelled


def test_caller_cancels_a_block_before_it_begins(cluster: FakeCluster, patient: Client) -> None:
    cluster.controller.ready = None
    with (
        pytest.raises(SandboxError) as caught,
        held(patient, cluster.request(ready_timeout=LONG), cancellation=cancel_soon(cluster)),
    ):
        pytest.fail("the block runs")
    assert (caught.value.reason, cluster.claims()) == ("cancelled", [])


def test_caller_cancels_the_opening_of_a_workspace(cluster: FakeCluster, patient: Client) -> None:
    workspace_ground.prepare(cluster)
    cluster.controller.workspaces.starts = False
    request = workspace_ground.request(cluster, ready_timeout=LONG)
    with pytest.raises(SandboxError) as caught:
        open_workspace(patient, request, cancellation=cancel_soon(cluster))
    assert caught.value.reason == "cancelled"
    assert workspace_ground.mode(cluster) == "Suspended"
