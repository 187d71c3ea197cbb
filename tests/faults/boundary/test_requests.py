# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a verification asks of the API server, how often, and every fault that it meets there."""

from __future__ import annotations

import math
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import acquire_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError, BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification import verify as verification
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import IngressBoundary

from ..bounded import (
    ANYONE,
    GET_POOL,
    GROUP,
    LIST_ADMIN,
    LIST_NAMESPACES,
    LIST_POLICIES,
    TEMPLATE_LABEL,
    VERIFY,
    add,
    failure_of,
    ours,
    wanted,
)
from ..fake.cluster import FakeCluster
from ..fake.plan import Fault, How, Request, status
from ..traffic import ACQUIRE, CREATE, PASSING, TOO_LATE

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client


def test_verification_costs_two_requests_and_two_more_where_the_administrators_have_policies(
    bounded: FakeCluster, client: Client
) -> None:
    acquire(client, wanted(bounded, name="a"))
    first = bounded.plan.received()
    assert [request for request in first if request in VERIFY] == [*VERIFY]
    # A name that was asked for is looked up twice among the other kind.
    assert len(first) <= 5 + 2 + len(VERIFY)
    bounded.plan.clear()
    acquire(client, wanted(bounded, name="b"))
    # Which kinds are served is remembered.
    assert [request for request in bounded.plan.received() if request in VERIFY] == [
        LIST_POLICIES,
        LIST_ADMIN,
        LIST_NAMESPACES,
    ]


def test_verification_costs_one_request_where_the_administrators_have_no_policies(
    cluster: FakeCluster, client: Client
) -> None:
    counts = []
    for _time in range(2):
        cluster.plan.clear()
        acquire(client, cluster.request(ingress=IngressBoundary()))
        counts.append(len([request for request in cluster.plan.received() if request not in ACQUIRE]))
    assert counts == [2, 1]


def test_nothing_is_read_when_nothing_is_asked(bounded: FakeCluster, client: Client) -> None:
    acquire(client, wanted(bounded, egress=None, ingress="unverified"))
    assert not set(VERIFY) & set(bounded.plan.received())


def test_policies_are_read_once_for_many(bounded: FakeCluster, real_time_client: Client) -> None:
    acquired = acquire_many(real_time_client, wanted(bounded, name="build"), 10)
    assert [bounded.plan.received().count(request) for request in VERIFY] == [1, 1, 1, 1]
    assert all(one.verdict.boundary.egress for one in acquired)


def test_old_reading_is_no_ground_for_a_verdict(
    bounded: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(verification, "MAXIMUM_AGE", 0.2)
    bounded.controller.bind_delay = 0.5
    acquire(client, wanted(bounded))
    assert bounded.plan.received().count(LIST_POLICIES) == 2


@pytest.mark.parametrize("change", ["widened", "replaced", "deleted", "added", "of-the-cluster"])
def test_verdict_never_outlives_a_change_of_a_policy(bounded: FakeCluster, client: Client, change: str) -> None:
    acquire(client, wanted(bounded, name="before"))
    store, key = bounded.store, bounded.key("networkpolicies", "namzu-python-egress")
    wide = {**ours()["spec"], "egress": [{}]}
    changes: dict[str, t.Callable[[], object]] = {
        "widened": lambda: store.patch(key, {"spec": wide}),
        "replaced": lambda: store.replace(key, {"spec": wide}),
        "deleted": lambda: store.delete(key),
        "added": lambda: add(bounded, "another", {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}),
        "of-the-cluster": lambda: store.create("clusternetworkpolicies", "", ADMIN_ACCEPTS),
    }
    changes[change]()
    assert isinstance(failure_of(client, wanted(bounded)), BoundaryError)


ADMIN_ACCEPTS = {
    "metadata": {"name": "accepts"},
    "spec": {
        "tier": "Admin",
        "priority": 2,
        "subject": {"namespaces": {}},
        "egress": [{"action": "Accept", "to": [{"namespaces": {}}]}],
    },
}


def test_policies_that_stayed_the_same_are_not_judged_again(
    bounded: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    acquire(client, wanted(bounded))
    monkeypatch.setattr(verification.World, "read", lambda *_given, **_named: pytest.fail("read again"))
    assert acquire(client, wanted(bounded)).verdict.boundary.egress


def test_what_is_remembered_is_forgotten_after_five_minutes(bounded: FakeCluster, client: Client) -> None:
    acquire(client, wanted(bounded, name="a"))
    client.clock.sleep(verification.KEPT_SECONDS + 1)
    bounded.plan.clear()
    acquire(client, wanted(bounded, name="b"))
    assert GROUP in bounded.plan.received()


@pytest.mark.parametrize(
    ("fault", "request_kind"),
    [*((fault, LIST_POLICIES) for fault in PASSING), *((status(503), request_kind) for request_kind in VERIFY[1:])],
    ids=str,
)
def test_fault_that_passes_is_outlived_with_one_claim(
    bounded: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    bounded.plan.add(fault, request_kind)
    acquired = acquire(client, wanted(bounded))
    assert bounded.claims() == [acquired.name]
    assert acquired.verdict.boundary.egress
    assert acquired.verdict.boundary.egress.unread == ()


@pytest.mark.parametrize("request_kind", [LIST_POLICIES, GET_POOL], ids=str)
@pytest.mark.parametrize(
    ("fault", "reason"),
    [
        (status(401), "forbidden"),
        (status(403), "forbidden"),
        (status(400), "rejected"),
        (status(404), "not-found"),
        (status(410), "not-found"),
        (status(409), "conflict"),
        (status(429), "api-unreachable"),
        (status(503), "api-unreachable"),
        (Fault(How.CUT_AFTER), "api-unreachable"),
        (Fault(How.NO_JSON), "api-unreachable"),
        (Fault(How.HANG), "api-timeout"),
        *((fault, "api-unreachable") for fault in TOO_LATE),
    ],
    ids=lambda value: str(value)[:30],
)
def test_needed_read_that_fails_for_good_leaves_nothing(
    bounded: FakeCluster, client: Client, fault: Fault, reason: str, request_kind: Request
) -> None:
    bounded.plan.add(fault, request_kind, times=math.inf)
    labels = {} if request_kind == GET_POOL else {TEMPLATE_LABEL: "python"}
    request = wanted(bounded, ready_timeout=1.0, pod_labels=labels)
    error = failure_of(client, request)
    assert error.reason == reason
    assert bounded.claims() == []
    if reason == "forbidden":
        assert isinstance(error, AcquireError)


@pytest.mark.parametrize("request_kind", [GROUP, LIST_ADMIN], ids=str)
@pytest.mark.parametrize("fault", [status(403), status(500), Fault(How.CUT_BEFORE)], ids=str)
def test_optional_policies_that_cannot_be_read_are_named_in_both_verdicts(
    bounded: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    bounded.plan.add(fault, request_kind, times=math.inf)
    boundary = acquire(client, wanted(bounded, ready_timeout=20.0)).verdict.boundary
    for verdict in (boundary.egress, boundary.ingress):
        assert verdict is not None
        assert any(source.startswith("ClusterNetworkPolicy ") for source in verdict.unread)


@pytest.mark.parametrize("request_kind", ACQUIRE, ids=str)
@pytest.mark.parametrize("fault", [status(403), status(422)], ids=str)
def test_acquire_that_fails_elsewhere_does_not_wait_for_the_policies(
    bounded: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    bounded.plan.add(Fault(How.HANG), LIST_POLICIES, times=math.inf)
    bounded.plan.add(fault, request_kind)
    failure_of(client, wanted(bounded))
    assert bounded.claims() == []
    assert not [thread for thread in threading.enumerate() if thread.name == "namzu-policies"]


def test_no_error_or_result_tells_the_bind_token(bounded: FakeCluster, client: Client) -> None:
    acquired = acquire(client, wanted(bounded, name="a"))
    add(bounded, "open", ANYONE)
    error = failure_of(client, wanted(bounded, name="b"))
    for text in (repr(acquired), str(error), repr(error.fields()), repr(error.__dict__)):
        assert acquired.agent.token not in text


def test_create_comes_before_the_policies_are_read(bounded: FakeCluster, client: Client) -> None:
    acquire(client, wanted(bounded))
    received = bounded.plan.received()
    assert received.index(CREATE) < received.index(LIST_POLICIES)
