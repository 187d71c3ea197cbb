# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What one sandbox may reach is set, changed and taken away; what would not hold is refused with the cause."""

from __future__ import annotations

import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError, InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.egress.change import EgressTargetError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import (
    AcquireError,
    BoundaryError,
    ClaimMismatchError,
    ReplacedError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.timestamps import timestamp
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import EgressBoundary

from .. import bounded
from ..fake.controller import NAMESPACE
from . import ground as egress_ground
from .ground import HELD, INTERNET, LABEL, NARROWER, give, hold, hold_directly, own_policies, specs, take

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

    from ..fake.cluster import FakeCluster

ANYWHERE: dict[str, t.Any] = {"podSelector": {}, "policyTypes": ["Egress"], "egress": [{}]}


@pytest.fixture
def fenced(bounded: FakeCluster) -> FakeCluster:
    """A cluster with the operator's fence."""
    egress_ground.fence(bounded)
    return bounded


@pytest.mark.parametrize("hold_one", [hold, hold_directly], ids=["claim", "direct"])
def test_policy_selects_one_sandbox_and_belongs_to_it(fenced: FakeCluster, client: Client, hold_one: t.Any) -> None:
    acquired = hold_one(fenced, client)
    change = give(client)
    ((name, policy),) = own_policies(fenced).items()
    assert name == acquired.labels[LABEL] == str(change.policy).rpartition("/")[2]
    assert policy["spec"]["podSelector"] == {"matchLabels": {LABEL: name}}
    assert policy["spec"]["policyTypes"] == ["Egress"]
    (owner,) = policy["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["name"], owner["uid"]) == (change.ref.kind.name, HELD, acquired.uid)
    assert owner.keys() == {"apiVersion", "kind", "name", "uid"}
    assert change.changed
    assert change.verdict is not None
    assert change.verdict.holds
    assert change.fence is not None
    assert change.fence.held
    assert f"NetworkPolicy {NAMESPACE}/{name}" in change.verdict.policies


def test_second_time_changes_nothing(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    give(client)
    before = own_policies(fenced)
    change = give(client)
    assert (change.changed, own_policies(fenced)) == (False, before)
    assert change.before == change.after


def test_another_request_changes_the_policy(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    first = give(client)
    change = give(client, NARROWER)
    assert change.changed
    assert (change.before, specs(fenced)) == (first.after, [change.after])
    closed = give(client, EgressBoundary.of("dns_only"))
    assert specs(fenced) == [closed.after]


def test_what_was_set_is_taken_away_once(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    given = give(client)
    taken = take(client)
    assert (taken.changed, taken.before, taken.after, taken.policy) == (True, given.after, None, given.policy)
    assert own_policies(fenced) == {}
    assert not take(client).changed


def test_cilium_gets_its_own_kind(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    change = give(client, EgressBoundary.of({"kind": "hosts", "hosts": ["example.com"], "engine": "cilium"}))
    assert str(change.policy).startswith("CiliumNetworkPolicy ")
    assert own_policies(fenced) == {}
    assert len(own_policies(fenced, "ciliumnetworkpolicies")) == 1
    assert take(client).changed
    assert own_policies(fenced, "ciliumnetworkpolicies") == {}


def test_check_mode_judges_and_writes_nothing(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    change = give(client, dry_run=True)
    assert (change.changed, change.before, own_policies(fenced)) == (True, None, {})
    assert change.verdict is not None
    given = give(client)
    assert not give(client, dry_run=True).changed
    assert take(client, dry_run=True).changed
    assert specs(fenced) == [given.after]


def test_sandbox_of_the_same_name_later_is_another_one(fenced: FakeCluster, client: Client) -> None:
    first = hold(fenced, client)
    give(client)
    fenced.store.delete(fenced.key("sandboxclaims", HELD))
    second = hold(fenced, client)
    assert first.labels[LABEL] != second.labels[LABEL]
    give(client)
    assert sorted(own_policies(fenced)) == sorted([first.labels[LABEL], second.labels[LABEL]])


def test_each_of_many_has_a_policy_of_its_own(fenced: FakeCluster, client: Client) -> None:
    labels = {hold(fenced, client, name=f"many-{number}").labels[LABEL] for number in range(3)}
    assert len(labels) == 3


def test_labelled_sandbox_is_found_again_and_an_unlabelled_one_is_another(fenced: FakeCluster, client: Client) -> None:
    first = hold(fenced, client)
    again = hold(fenced, client)
    assert (again.created, again.labels[LABEL]) == (False, first.labels[LABEL])
    hold(fenced, client, name="plain", per_sandbox_egress=False)
    with pytest.raises(ClaimMismatchError, match="per_sandbox_egress"):
        hold(fenced, client, name="plain")


def test_label_is_not_for_the_caller_to_choose(fenced: FakeCluster) -> None:
    with pytest.raises(InputError, match="per_sandbox_egress sets it"):
        bounded.wanted(fenced, pod_labels={LABEL: "namzu-egress-of-another"})


@pytest.mark.parametrize("act", [give, take])
def test_another_one_of_that_name_is_refused(fenced: FakeCluster, client: Client, act: t.Any) -> None:
    hold(fenced, client)
    with pytest.raises(ReplacedError) as caught:
        act(client, uid="of-another")
    assert (caught.value.reason, caught.value.retryable) == ("replaced", False)


def past() -> str:
    return timestamp(datetime.datetime.now(datetime.UTC) - datetime.timedelta(seconds=5))


UNFIT: dict[str, tuple[dict[str, t.Any], str]] = {
    "its lease has ended": ({"spec": {"lifecycle": {"shutdownTime": past()}}}, "expired"),
    "it is being deleted": ({"metadata": {"deletionTimestamp": past()}}, "expired"),
    "it has no label": ({"spec": {"additionalPodMetadata": None}}, "unlabelled"),
    "its label is no policy's name": ({"spec": {"additionalPodMetadata": {"labels": {LABEL: "wide"}}}}, "unlabelled"),
}


@pytest.mark.parametrize(("patch", "reason"), UNFIT.values(), ids=UNFIT)
def test_sandbox_that_cannot_have_one_is_refused(
    fenced: FakeCluster, client: Client, patch: dict[str, t.Any], reason: str
) -> None:
    hold(fenced, client)
    fenced.store.patch(fenced.key("sandboxclaims", HELD), patch)
    with pytest.raises(EgressTargetError) as caught:
        give(client)
    assert caught.value.reason == reason
    assert own_policies(fenced) == {}


def test_controllers_word_that_a_claim_has_expired_counts(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    ended = {"type": "Ready", "status": "False", "reason": "ClaimExpired", "message": "over"}
    fenced.store.patch(fenced.key("sandboxclaims", HELD), {"status": {"conditions": [ended]}})
    with pytest.raises(AcquireError, match="ClaimExpired"):
        give(client)


def test_workspace_is_refused(fenced: FakeCluster, client: Client) -> None:
    fenced.store.create("sandboxes", NAMESPACE, {"metadata": {"name": HELD, "ownerReferences": []}, "spec": {}})
    with pytest.raises(EgressTargetError, match="workspace") as caught:
        give(client)
    assert caught.value.reason == "workspace"


def test_nobody_is_refused_and_has_nothing_to_take_away(fenced: FakeCluster, client: Client) -> None:
    with pytest.raises(GoneError):
        give(client)
    assert not take(client).changed


def test_policy_that_opens_more_is_named_and_nothing_is_written(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    bounded.add(fenced, "open", ANYWHERE)
    with pytest.raises(BoundaryError) as caught:
        give(client)
    assert caught.value.object == f"NetworkPolicy {NAMESPACE}/open"
    assert caught.value.fields()["findings"][0]["policy"] == caught.value.object
    assert own_policies(fenced) == {}


def test_boundary_of_the_template_that_is_wider_than_the_request_is_named(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    with pytest.raises(BoundaryError) as caught:
        give(client, EgressBoundary.of("no_network"))
    assert caught.value.object == f"NetworkPolicy {NAMESPACE}/namzu-python-egress"
    assert "dns_only or no_network" in str(caught.value)


def test_pod_that_nothing_else_closes_is_refused(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    fenced.store.delete(fenced.key("networkpolicies", "namzu-python-egress"))
    with pytest.raises(BoundaryError, match="No other policy closes"):
        give(client)
    assert own_policies(fenced) == {}


def test_taking_away_what_alone_closes_a_pod_is_refused(fenced: FakeCluster, client: Client) -> None:
    hold(fenced, client)
    given = give(client)
    fenced.store.delete(fenced.key("networkpolicies", "namzu-python-egress"))
    with pytest.raises(BoundaryError, match="would be open without"):
        take(client)
    assert specs(fenced) == [given.after]


@pytest.mark.parametrize("before", [None, NARROWER], ids=["none", "another"])
def test_policy_that_no_longer_holds_is_put_back_as_it_was(
    fenced: FakeCluster, client: Client, before: EgressBoundary | None
) -> None:
    hold(fenced, client)
    if before is not None:
        give(client, before)
    stood = specs(fenced)
    with (
        egress_ground.when_written(fenced, lambda: bounded.add(fenced, "open", ANYWHERE)),
        pytest.raises(BoundaryError) as caught,
    ):
        give(client)
    assert caught.value.object == f"NetworkPolicy {NAMESPACE}/open"
    assert (specs(fenced), caught.value.leftover) == (stood, None)


def test_policy_of_that_name_that_is_another_sandboxs_is_left_alone(fenced: FakeCluster, client: Client) -> None:
    acquired = hold(fenced, client)
    owner = {"kind": "SandboxClaim", "name": "other", "uid": "of-another"}
    metadata = {"name": acquired.labels[LABEL], "ownerReferences": [owner]}
    fenced.store.create("networkpolicies", NAMESPACE, {"metadata": metadata, "spec": ANYWHERE})
    with pytest.raises(EgressTargetError) as caught:
        give(client)
    assert caught.value.reason == "conflict"
    assert specs(fenced) == [ANYWHERE]
    assert not take(client).changed


def test_acquire_without_the_option_asks_for_no_label(fenced: FakeCluster, client: Client) -> None:
    assert LABEL not in hold(fenced, client, per_sandbox_egress=False).labels
    with pytest.raises(EgressTargetError, match="per_sandbox_egress"):
        give(client, INTERNET)


def test_pod_whose_label_does_not_appear_is_not_handed_out(fenced: FakeCluster, client: Client) -> None:
    request = bounded.wanted(fenced, name=HELD, per_sandbox_egress=True, egress=None, ingress="unverified")
    usual = fenced.controller.__class__._start_sandbox

    def without_labels(controller: t.Any, event: t.Any) -> str:
        name = usual(controller, event)
        pod = fenced.key("pods", name)
        fenced.store.patch(pod, {"metadata": {"labels": {LABEL: None}}})
        return name

    fenced.controller._start_sandbox = without_labels.__get__(fenced.controller)  # type: ignore[method-assign]
    with pytest.raises(AcquireError, match=LABEL):
        acquire(client, request)
    assert fenced.claims() == []
