# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Every request of a boundary check meets every fault."""

from __future__ import annotations

import dataclasses
import math
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    ApiTimeoutError,
    CredentialError,
    GoneError,
    SandboxError,
    UnavailableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.check.check import Asked, Checked, Live, check
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import IngressBoundary

from ..bounded import DNS_ONLY, GET_POOL, GROUP, LIST_ADMIN, LIST_NAMESPACES, LIST_POLICIES, TEMPLATE_LABEL, wanted
from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE, POOL
from ..fake.plan import Fault, How, Request, status
from ..traffic import GET_CLAIM, GET_POD, PASSING

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

GET_TEMPLATE = Request("get", "sandboxtemplates")
LIST_PODS = Request("list", "pods")
LIST_NODES = Request("list", "nodes")
NAME = "build-1"
IN_TIME = 8.0

#: Without these there is no verdict.
NEEDED = {"sandbox": (LIST_POLICIES, GET_CLAIM, GET_POD), "pool": (LIST_POLICIES, GET_POOL, GET_TEMPLATE)}
#: Without these a verdict says less.
MORE = (LIST_NAMESPACES, LIST_NODES)

ASKED = Asked(DNS_ONLY, IngressBoundary())


@pytest.fixture
def held(bounded: FakeCluster, client: Client) -> FakeCluster:
    """A bounded sandbox that is held."""
    acquire(client, wanted(bounded, name=NAME))
    bounded.plan.clear()
    return bounded


def checked(client: Client, subject: str = "sandbox", seconds: float = 5.0, **options: t.Any) -> tuple[Checked, Live]:
    began = time.monotonic()
    try:
        live = Live(client, NAMESPACE, Deadline(seconds, client.clock), engine="core", **options)
        found = live.sandbox(NAME) if subject == "sandbox" else live.pooled(POOL, {TEMPLATE_LABEL: "python"})
        return check(live.world, found, ASKED), live
    finally:
        assert time.monotonic() - began < IN_TIME


def test_a_check_reads_each_source_once_and_writes_nothing(held: FakeCluster, client: Client) -> None:
    found, _live = checked(client)
    assert found.holds
    received = held.plan.received()
    assert sorted(map(str, received)) == sorted(
        map(str, (LIST_POLICIES, GROUP, LIST_ADMIN, LIST_PODS, LIST_NAMESPACES, LIST_NODES, GET_CLAIM, GET_POD))
    )


@pytest.mark.parametrize("request_kind", [LIST_POLICIES, GET_CLAIM], ids=str)
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_changes_no_verdict(
    held: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    held.plan.add(fault, request_kind)
    found, live = checked(client)
    assert found.holds
    assert live.world.unread == ()


@pytest.mark.parametrize(
    ("subject", "request_kind"), [(name, kind) for name, kinds in NEEDED.items() for kind in kinds], ids=str
)
@pytest.mark.parametrize("code", [401, 403])
def test_what_is_needed_and_may_not_be_read_refuses(
    held: FakeCluster, client: Client, subject: str, request_kind: Request, code: int
) -> None:
    held.plan.add(status(code), request_kind, times=math.inf)
    with pytest.raises(CredentialError):
        checked(client, subject)


@pytest.mark.parametrize(
    ("fault", "kind"), [(status(503), UnavailableError), (Fault(How.HANG), ApiTimeoutError)], ids=str
)
@pytest.mark.parametrize(
    ("subject", "request_kind"), [(name, kind) for name, kinds in NEEDED.items() for kind in kinds], ids=str
)
def test_what_is_needed_and_does_not_answer_is_given_up_at_the_deadline(
    held: FakeCluster,
    client: Client,
    subject: str,
    request_kind: Request,
    fault: Fault,
    kind: type[SandboxError],
) -> None:
    held.plan.add(fault, request_kind, times=math.inf)
    with pytest.raises(kind):
        checked(client, subject, 1.0)


def test_a_policy_source_that_may_not_be_read_is_named_or_refused_when_it_is_required(
    held: FakeCluster, client: Client
) -> None:
    held.plan.add(status(403), LIST_ADMIN, times=math.inf)
    found, live = checked(client)
    assert found.holds
    assert any("ClusterNetworkPolicy" in source for source in live.world.unread)
    with pytest.raises(CredentialError, match="ClusterNetworkPolicy"):
        checked(client, required=["ClusterNetworkPolicy"])


@pytest.mark.parametrize("request_kind", MORE, ids=str)
def test_what_only_names_things_may_stay_unread(held: FakeCluster, client: Client, request_kind: Request) -> None:
    held.plan.add(status(403), request_kind, times=math.inf)
    assert checked(client)[0].holds


def test_pods_that_may_not_be_read_leave_no_sandbox_to_check(held: FakeCluster, client: Client) -> None:
    held.plan.add(status(403), LIST_PODS, times=math.inf)
    with pytest.raises(GoneError, match="can be read"):
        checked(client)
    assert checked(client, "pool")[0].subject.template == "python"


def test_who_runs_the_check_is_told_whether_the_agent_lets_it_in(held: FakeCluster, client: Client) -> None:
    _found, live = checked(client)
    subject = live.sandbox(NAME)
    asked = dataclasses.replace(ASKED, host="192.0.2.7")
    assert check(live.world, subject, asked).host_allowed is False
    spec = {
        "podSelector": {},
        "policyTypes": ["Ingress"],
        "ingress": [{"from": [{"ipBlock": {"cidr": "192.0.2.7/32"}}]}],
    }
    held.store.create("networkpolicies", NAMESPACE, {"metadata": {"name": "lets-us-in"}, "spec": spec})
    _found, live = checked(client)
    opened = check(live.world, subject, asked)
    assert opened.host_allowed is True
    assert [finding.policy for finding in opened.reached_by] == [f"NetworkPolicy {NAMESPACE}/lets-us-in"]


def test_nothing_is_remembered_from_one_check_to_the_next(held: FakeCluster, client: Client) -> None:
    assert checked(client)[0].holds
    held.store.patch(held.key("networkpolicies", "namzu-python-egress"), {"spec": {"egress": [{}]}})
    found, _live = checked(client)
    assert not found.holds
    assert any("namzu-python-egress" in line for line in found.problems)
