# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No fence, no policy; and every request about a policy meets every fault: in bounded time, with nothing half done."""

from __future__ import annotations

import math
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import CLEANUP_SECONDS
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import (
    CredentialError,
    NotServedError,
    SandboxError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress.fence import FENCE_NAME, FenceError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import EgressBoundary

from ..fake.plan import Fault, How, Request, status
from ..fake.store import Key, Refusal
from ..test_every_request import LASTING, PASSING, TOO_LATE
from ..traffic import GET_CLAIM, GET_POD
from . import ground as egress_ground
from .ground import BINDINGS, INTERNET, NARROWER, POLICIES, give, hold, own_policies, specs, take

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

    from ..fake.clock import SkippingClock
    from ..fake.cluster import FakeCluster

Act = t.Callable[["Client"], object]

GET_FENCE, GET_BINDING = Request("get", POLICIES), Request("get", BINDINGS)
LIST, CREATE = Request("list", "networkpolicies"), Request("create", "networkpolicies")
PATCH, DELETE = Request("patch", "networkpolicies"), Request("delete", "networkpolicies")
GET, GET_CILIUM = Request("get", "networkpolicies"), Request("get", "ciliumnetworkpolicies")

#: Seconds of the machine's that none may take.
IN_TIME = 8.0
SECONDS = 20.0


@pytest.fixture
def fenced(bounded: FakeCluster) -> FakeCluster:
    """A cluster with the operator's fence."""
    egress_ground.fence(bounded)
    return bounded


# The fence.


def patch_fence(plural: str, patch: dict[str, t.Any]) -> t.Callable[[FakeCluster], object]:
    return lambda cluster: cluster.store.patch(Key(plural, "", FENCE_NAME), patch)


def drop(plural: str) -> t.Callable[[FakeCluster], object]:
    return lambda cluster: cluster.store.delete(Key(plural, "", FENCE_NAME))


def forbid(request: Request) -> t.Callable[[FakeCluster], object]:
    return lambda cluster: cluster.plan.add(status(403), request, times=math.inf)


def enforce_nothing(cluster: FakeCluster) -> None:
    usual = cluster.server.admission
    cluster.server.admission = lambda verb, plural, body: usual(verb, plural, body) if plural == POLICIES else None


def refuse_for_another_reason(cluster: FakeCluster) -> None:
    def admit(_verb: str, _plural: str, _body: object) -> None:
        raise Refusal(422, "Invalid", "admission webhook said no")

    cluster.server.admission = admit


def leave_out(cluster: FakeCluster) -> None:
    elsewhere = {"key": "kubernetes.io/metadata.name", "operator": "In", "values": ["elsewhere"]}
    selector = {"namespaceSelector": {"matchExpressions": [elsewhere]}}
    patch_fence(BINDINGS, {"spec": {"matchResources": selector}})(cluster)


GONE = {"metadata": {"deletionTimestamp": "2026-01-01T00:00:00Z"}}

FAULTY: dict[str, tuple[t.Callable[[FakeCluster], object], str]] = {
    "no policy": (drop(POLICIES), "fence-missing"),
    "a policy that is being deleted": (patch_fence(POLICIES, GONE), "fence-missing"),
    "no binding": (drop(BINDINGS), "fence-unbound"),
    "a binding that is being deleted": (patch_fence(BINDINGS, GONE), "fence-unbound"),
    "a binding that only audits": (
        patch_fence(BINDINGS, {"spec": {"validationActions": ["Audit"]}}),
        "fence-not-denying",
    ),
    "a policy that may not be read": (forbid(GET_FENCE), "fence-unreadable"),
    "a binding that may not be read": (forbid(GET_BINDING), "fence-unreadable"),
    "a policy without expressions": (patch_fence(POLICIES, {"spec": {"validations": None}}), "fence-weakened"),
    "a policy that lets errors through": (
        patch_fence(POLICIES, {"spec": {"failurePolicy": "Ignore"}}),
        "fence-weakened",
    ),
    "another namespace": (leave_out, "fence-elsewhere"),
    "an API server that enforces nothing": (enforce_nothing, "fence-not-held"),
    "an API server that refuses for another reason": (refuse_for_another_reason, "fence-not-held"),
}


@pytest.mark.parametrize(("weaken", "reason"), FAULTY.values(), ids=FAULTY)
def test_without_a_fence_that_holds_nothing_is_written(
    fenced: FakeCluster, client: Client, weaken: t.Any, reason: str
) -> None:
    hold(fenced, client)
    weaken(fenced)
    with pytest.raises(FenceError) as caught:
        give(client)
    assert (caught.value.reason, caught.value.retryable) == (reason, False)
    assert caught.value.object is not None
    assert caught.value.next_step is not None
    assert own_policies(fenced) == {}


def test_each_failure_of_the_fence_is_a_class_of_its_own() -> None:
    reasons = [one.reason for one in FenceError.__subclasses__()]
    assert set(reasons) == {reason for _weaken, reason in FAULTY.values()}
    assert len(reasons) == len(set(reasons))


def test_who_may_change_the_fence_is_not_held_and_that_is_told(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    fenced.server.admission = lambda _verb, _plural, _body: None
    change = give(client)
    assert change.fence is not None
    assert (change.changed, change.fence.held) == (True, False)
    assert len(own_policies(fenced)) == 1


def test_widest_policy_is_asked_for_in_a_dry_run_alone(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    fenced.server.admission = lambda _verb, _plural, _body: None
    give(client)
    assert "namzu-fence-probe" not in fenced.store.names("networkpolicies")


def test_who_may_not_create_policies_is_told_which_rule_lacks(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    fenced.plan.add(status(403), CREATE, times=math.inf)
    with pytest.raises(CredentialError) as caught:
        give(client)
    assert caught.value.reason == "forbidden"


def test_taking_away_needs_no_fence(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    give(client)
    drop(POLICIES)(fenced)
    assert take(client).changed


# Faults.


class Step(t.NamedTuple):
    """One request of an operation: what it is, and the how-many-th of its kind."""

    name: str
    request: Request
    nth: int = 1

    def __str__(self) -> str:
        return f"{self.name}-{self.request}-{self.nth}"


STEPS = [
    *(Step("set", one) for one in (GET_CLAIM, GET_POD, GET_FENCE, GET_BINDING, LIST, CREATE)),
    Step("set", CREATE, 2),
    Step("set", LIST, 2),
    Step("change", PATCH),
    Step("change", LIST, 2),
    *(Step("remove", one) for one in (GET_CLAIM, GET, GET_CILIUM, GET_POD, LIST, DELETE)),
]
WRITES = [Step("set", CREATE, 2), Step("change", PATCH), Step("remove", DELETE)]


def each_step(some: t.Sequence[t.Any], rest: t.Sequence[t.Any]) -> pytest.MarkDecorator:
    """Each write with all faults, and each read with some, as all reads are repeated alike."""
    pairs = [(step, fault) for step in STEPS for fault in (some if step in WRITES else rest)]
    return pytest.mark.parametrize(("step", "fault"), pairs, ids=lambda value: str(value)[:40])


ACTS: dict[str, Act] = {
    "set": lambda client: give(client, seconds=SECONDS),
    "change": lambda client: give(client, NARROWER, seconds=SECONDS),
    "remove": lambda client: take(client, seconds=SECONDS),
}


@pytest.fixture
def run(fenced: FakeCluster, client: Client, clock: SkippingClock) -> t.Callable[..., SandboxError | None]:
    """Let an operation meet a fault; returns its error, after looking at the time, the request and what stands."""

    def go(step: Step, fault: Fault, times: float) -> SandboxError | None:
        hold(fenced, client)
        if step.name != "set":
            give(client)
        before = specs(fenced)
        fenced.plan.clear()
        fenced.plan.add(fault, step.request, nth=step.nth, times=times)
        began, really = clock.monotonic(), time.monotonic()
        error: SandboxError | None = None
        try:
            ACTS[step.name](client)
        except SandboxError as failure:
            error = failure
        assert time.monotonic() - really < IN_TIME
        assert clock.monotonic() - began < SECONDS + CLEANUP_SECONDS + 2.0
        assert fenced.plan.received().count(step.request) >= step.nth, "the operation does not make this request"
        if isinstance(error, NotServedError):
            # The DELETE was applied; its repetition got a 404 that names no object, which proves nothing.
            assert (fault.how, step.request.verb, specs(fenced)) == (How.NO_JSON, "delete", [])
        else:
            assert_whole(error, before)
        return error

    def assert_whole(error: SandboxError | None, before: list[dict[str, t.Any]]) -> None:
        after = specs(fenced)
        if error is not None and error.leftover is None:
            assert after == before
        assert len(after) <= 1
        for policy in own_policies(fenced).values():
            assert [one["kind"] for one in policy["metadata"]["ownerReferences"]] == ["SandboxClaim"]

    return go


@each_step(PASSING, [status(503), Fault(How.CUT_AFTER)])
def test_fault_that_passes_is_outlived(run: t.Any, fenced: FakeCluster, step: Step, fault: Fault) -> None:
    error = run(step, fault, 1)
    assert error is None, error
    wanted = {"set": INTERNET, "change": NARROWER}.get(step.name)
    assert len(specs(fenced)) == (0 if wanted is None else 1)
    if wanted is not None:
        assert ("203.0.113.0/24" in str(specs(fenced))) == (step.name == "change")


@each_step(TOO_LATE[:1], TOO_LATE[:1])
def test_wait_that_there_is_no_room_for_fails_at_once(run: t.Any, step: Step, fault: Fault) -> None:
    error = run(step, fault, 1)
    assert (error.reason, error.retryable) == ("api-unreachable", True)


@each_step([*LASTING], [status(503)])
def test_fault_that_lasts_is_given_up_at_the_deadline(run: t.Any, step: Step, fault: Fault) -> None:
    error = run(step, fault, math.inf)
    if isinstance(error, NotServedError):
        return
    if error is None:
        assert fault.how is How.NO_JSON
        assert step.request.verb in ("create", "patch", "delete"), "it was done, and that is found out"
        return
    assert (error.reason, error.retryable) == ("api-unreachable", True)


@each_step([status(401), status(403)], [status(403)])
def test_refused_credential_is_forbidden_or_cannot_read_the_fence(run: t.Any, step: Step, fault: Fault) -> None:
    error = run(step, fault, math.inf)
    if step.request is GET_CILIUM:
        assert error is None, "where Cilium's policies may not be read, none was written"
        return
    unreadable = step.request in (GET_FENCE, GET_BINDING)
    assert error.reason == ("fence-unreadable" if unreadable else "forbidden")
    assert not error.retryable


#: A decision that stands for nothing to do, or that is met by looking again.
MET = {
    ("set", CREATE, 409),
    ("set", CREATE, 404),
    ("set", CREATE, 410),
    ("change", PATCH, 404),
    ("change", PATCH, 409),
    ("change", PATCH, 410),
    *(("remove", one, code) for one in (GET, GET_CILIUM, DELETE) for code in (404, 410)),
    ("remove", GET_CLAIM, 404),
    ("remove", GET_POD, 404),
}


@each_step([status(code) for code in (404, 409, 410, 422)], [status(404)])
def test_decision_is_met_or_told(run: t.Any, step: Step, fault: Fault) -> None:
    error = run(step, fault, 1)
    if error is None:
        assert (step.name, step.request, fault.status) in MET or step.request in (GET_POD, GET_CLAIM)
    else:
        assert not error.retryable or error.reason == "not-ready"


def test_server_that_hangs_is_given_up(
    run: t.Any, client: Client, monkeypatch: pytest.MonkeyPatch, fenced: FakeCluster
) -> None:
    monkeypatch.setattr(client, "_request_timeout", 0.15)
    assert run(Step("set", CREATE, 2), Fault(How.HANG), 1) is None
    assert len(own_policies(fenced)) == 1


def test_what_cannot_be_put_back_is_named(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    open_all = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}
    fenced.plan.add(status(403), DELETE, times=math.inf)
    with (
        egress_ground.when_written(
            fenced,
            lambda: fenced.store.create("networkpolicies", "team-a", {"metadata": {"name": "open"}, "spec": open_all}),
        ),
        pytest.raises(SandboxError) as caught,
    ):
        give(client, EgressBoundary.of("public_internet"))
    assert caught.value.leftover is not None
    assert "could not be put back" in str(caught.value)
