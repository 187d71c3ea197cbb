# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role ``admission_fence``: what the API server refuses to whom, and what it lets through."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import TEMPLATE_LABEL

from .asking import Answer, Asking, Body
from .conftest import Fenced, fence_task, until
from .hostile import (
    ANOTHER_UID,
    CILIUM_POLICIES,
    CORE_POLICIES,
    DISK,
    EGRESS,
    HOLDERS,
    PODS,
    POLICIES,
    Hostile,
    changed,
    claim,
    renamed,
)

REGISTRATION = "/apis/admissionregistration.k8s.io/v1"
FENCES = ("namzu-fence-claims", "namzu-fence-egress", "namzu-fence-pods")


def refused(answer: Answer, field: str) -> bool:
    """Whether the fence refused, and because of that field."""
    return answer.by_fence and field in answer.message.partition("denied request: ")[2]


def each(*tables: Hostile) -> t.Any:
    """A parameter for each change, called by its name."""
    return pytest.mark.parametrize(
        ("changes", "field"), [pytest.param(*case, id=name) for table in tables for name, case in table.items()]
    )


@pytest.mark.parametrize("resource", ["sandboxtemplates", "sandboxes"])
@each(PODS)
def test_hostile_pod_is_refused_by_the_field_that_makes_it_so(fenced, resource, changes, field) -> None:
    good = fenced.template if resource == "sandboxtemplates" else fenced.sandbox
    body = changed(good, {f"spec/podTemplate/{path}": value for path, value in changes.items()})
    answer = fenced.held("POST", fenced.path(resource), body)
    assert refused(answer, field), answer


@each(HOLDERS)
def test_sandbox_that_takes_what_is_not_its_own_is_refused(fenced, changes, field) -> None:
    answer = fenced.held("POST", fenced.path("sandboxes"), changed(fenced.sandbox, changes))
    assert refused(answer, field), answer


def test_existing_objects_cannot_be_changed_into_hostile_ones(fenced) -> None:
    hostile = {"spec": {"podTemplate": {"spec": {"hostNetwork": True}}}}
    for path in (fenced.path("sandboxes", "existing-desk"), fenced.path("sandboxtemplates", "python")):
        assert refused(fenced.held("PATCH", path, hostile), "hostNetwork")


def test_sandbox_cannot_be_put_into_a_pool_by_its_owner_or_its_label(fenced, kube) -> None:
    """A pool takes what it controls and what carries its label, and hands it out as its own."""
    path = fenced.path("sandboxes", "existing-desk")
    owner = kube.get(path)["metadata"]["ownerReferences"][0]
    controlled = {"metadata": {"ownerReferences": [{**owner, "controller": True}]}}
    labelled = {"metadata": {"labels": {"agents.x-k8s.io/warm-pool-sandbox": "00000000"}}}
    assert refused(fenced.held("PATCH", path, controlled), "ownerReferences.controller")
    assert refused(fenced.held("PATCH", path, labelled), "metadata.labels")
    assert fenced.held("PATCH", path, {"metadata": {"labels": {"a": "b"}}}).status == 200


def test_member_of_a_pool_cannot_be_given_another_pod(fenced, kube) -> None:
    members = kube.items(fenced.path("sandboxes"))
    # The desk of the fixture has an owner as well, but none that controls it.
    controlled = (
        one["metadata"]["name"]
        for one in members
        if any(owner.get("controller") for owner in one["metadata"].get("ownerReferences", []))
    )
    member = next(controlled)
    path = fenced.path("sandboxes", member)
    another = {"spec": {"podTemplate": {"metadata": {"labels": {"sandbox.namzu.ai/template": "other"}}}}}
    assert refused(fenced.held("PATCH", path, another), "belongs to a claim or a pool")
    assert fenced.held("PATCH", path, {"metadata": {"labels": {"a": "b"}}}).status == 200


def test_claim_cannot_move_its_pod_to_another_boundary_or_copy_a_disk(fenced) -> None:
    claims = fenced.path("sandboxclaims")
    mine = {"sandbox.users.io/team": "a"}
    copied = changed(DISK, {"spec/dataSource": {"kind": "PersistentVolumeClaim", "name": "other"}})
    stray = fenced.held("POST", claims, claim({"sandbox.namzu.ai/template": "other"}))
    assert refused(stray, "spec.additionalPodMetadata.labels")
    assert refused(fenced.held("POST", claims, claim(mine, volumeClaimTemplates=[copied])), "dataSource")
    assert fenced.held("POST", claims, claim(mine, volumeClaimTemplates=[DISK])).status == 201


@pytest.mark.parametrize("resource", ["networkpolicies", "ciliumnetworkpolicies"])
@each(POLICIES)
def test_policy_that_is_not_of_one_sandbox_is_refused_by_the_field(fenced, resource, changes, field) -> None:
    answer = fenced.held("POST", fenced.path(resource), changed(fenced.policies[resource], changes))
    assert refused(answer, field), answer


@each(CORE_POLICIES)
def test_policy_about_more_than_its_pods_egress_is_refused(fenced, changes, field) -> None:
    body = changed(fenced.policies["networkpolicies"], changes)
    answer = fenced.held("POST", fenced.path("networkpolicies"), body)
    assert refused(answer, field), answer


@each(CILIUM_POLICIES)
def test_cilium_policy_about_more_than_its_pods_egress_is_refused(fenced, changes, field) -> None:
    body = changed(fenced.policies["ciliumnetworkpolicies"], changes)
    answer = fenced.held("POST", fenced.path("ciliumnetworkpolicies"), body)
    assert refused(answer, field), answer


def test_existing_policy_cannot_be_turned_to_other_pods_or_owners(fenced) -> None:
    path = fenced.path("networkpolicies", EGRESS)
    wider = {"spec": {"podSelector": {"matchLabels": None}}}
    owner = {**fenced.policies["networkpolicies"]["metadata"]["ownerReferences"][0], "uid": ANOTHER_UID}
    assert refused(fenced.held("PATCH", path, wider), "podSelector.matchLabels")
    assert refused(fenced.held("PATCH", path, {"metadata": {"ownerReferences": [owner]}}), "ownerReferences.uid")
    assert fenced.held("PATCH", path, {"spec": {"egress": []}}).status == 200


def test_only_policies_of_one_sandbox_can_be_deleted(fenced) -> None:
    boundary = fenced.path("networkpolicies", "namzu-python-egress")
    assert refused(fenced.held("DELETE", boundary), "metadata.name")
    assert refused(fenced.held("DELETE", fenced.path("networkpolicies")), "metadata.name"), "a deletion of all"
    assert fenced.held("DELETE", fenced.path("networkpolicies", EGRESS)).status == 200


def test_what_is_good_passes(fenced) -> None:
    good: dict[str, Body] = {"sandboxtemplates": fenced.template, "sandboxes": fenced.sandbox}
    good |= {resource: renamed(body, "namzu-egress-b") for resource, body in fenced.policies.items()}
    for resource, body in good.items():
        answer = fenced.held("POST", fenced.path(resource), body)
        assert answer.status == 201, answer


def test_who_may_change_the_fence_is_not_held(fenced) -> None:
    pod = changed(fenced.template, {"spec/podTemplate/spec/hostNetwork": True})
    policy = changed(fenced.policies["networkpolicies"], {"metadata/name": "any"})
    assert fenced.admin("POST", fenced.path("sandboxtemplates"), pod).status == 201
    assert fenced.admin("POST", fenced.path("networkpolicies"), policy).status == 201
    assert fenced.admin("DELETE", fenced.path("networkpolicies", "namzu-python-egress")).status == 200


@pytest.mark.parametrize(
    ("user", "groups"),
    [
        ("system:serviceaccount:agent-sandbox-system:agent-sandbox-controller", []),
        ("system:serviceaccount:kube-system:generic-garbage-collector", ["system:serviceaccounts:kube-system"]),
        ("system:serviceaccount:kube-system:namespace-controller", ["system:serviceaccounts:kube-system"]),
    ],
)
def test_controllers_are_not_held(fenced, kubeconfig, user, groups) -> None:
    controller = Asking(kubeconfig=kubeconfig, impersonate_user=user, impersonate_groups=groups)
    boundary = fenced.path("networkpolicies", "namzu-python-egress")
    answer = controller("DELETE", boundary)
    controller.close()
    assert answer.status == 200, answer


def test_namespace_outside_of_the_fence_is_left_alone(fenced, namespace) -> None:
    policy = changed(fenced.policies["networkpolicies"], {"metadata/name": "any"})
    path = f"/apis/networking.k8s.io/v1/namespaces/{namespace}/networkpolicies"
    assert fenced.held("POST", path, policy).status == 201


def test_api_server_finds_nothing_wrong_with_the_expressions(fenced, kube) -> None:
    for name in FENCES:
        status = kube.until(f"{REGISTRATION}/validatingadmissionpolicies/{name}", checked)
        assert status["typeChecking"] == {}, status


def checked(policy: Body | None) -> Body | None:
    """The status of a policy once its expressions have been type-checked."""
    status = (policy or {}).get("status") or {}
    return status if "typeChecking" in status else None


def test_sandboxes_are_acquired_and_workspaces_made_behind_the_fence(fenced, play, kube, pool, claimants) -> None:
    def task(title: str, verb: str, who: str, **options: t.Any) -> Body:
        access = {**claimants[who][0], "namespace": pool.namespace}
        return {"name": title, f"namzu.sandbox.{verb}": {**access, **options}}

    agent = {"agent": pool.access["agent"]}
    with_disk = {"metadata/name": "desk", "spec/volumeClaimTemplates/0/metadata/name": "workspace"}
    kube.request("POST", fenced.path("sandboxtemplates"), changed(fenced.template, with_disk))
    desk = task(
        "desk", "workspace", "workspaces", workspace_id="fenced", template="desk", ingress="unverified", **agent
    )
    tasks = [
        task("warm", "sandbox", "plain", name="fenced-warm", warm_pool=pool.name, **agent),
        task("made", "sandbox", "direct", name="fenced-direct", template=pool.template, **agent),
        task("given back", "sandbox", "plain", name="fenced-warm", state="absent", wait=False),
        task("taken down", "sandbox", "direct", name="fenced-direct", state="absent", wait=False),
        # A dry run: what it would make is sent to the API server, and so to the fence.
        {**desk, "check_mode": True},
    ]
    played = play(tasks)
    assert played["warm"]["sandbox"]["verdict"]
    assert played["made"]["sandbox"]["verdict"]
    assert played["desk"]["changed"]


def test_fence_is_made_changed_and_taken_away_namespace_by_namespace(fenced, play, kube, namespace) -> None:
    path = f"{REGISTRATION}/validatingadmissionpolicybindings/namzu-fence-pods"
    task = "Apply the policies, and bind them to the namespaces"
    closed = "Close what no other policy opens to the sandboxes of the namespaces"
    opened = "Remove the closing policy from the namespaces"

    made = play([fence_task("present", namespace, **OPTIONS), fence_task("present", namespace, **OPTIONS)])
    assert titles(made.changes) == [task, closed], "the second run changes nothing"
    assert {namespace, fenced.namespace} <= namespaces_of(kube.get(path))
    see_that_options_count(fenced)

    # That the policies go with the last namespace is seen where nobody else needs them: tests/integration/test_site.py.
    taken = play([fence_task("absent", namespace)])
    assert titles(taken.changes) == [opened, task]
    left = namespaces_of(kube.get(path))
    assert fenced.namespace in left
    assert namespace not in left


#: All options that widen or narrow the fence around pods.
OPTIONS: Body = {
    "admission_fence_volumes": ["configMap", "emptyDir", "secret"],
    "admission_fence_service_accounts": [],
    "admission_fence_runtime_classes": ["gvisor"],
    "admission_fence_priority_classes": ["batch"],
}


def see_that_options_count(fenced: Fenced) -> None:
    """A pod may do what the options say, and has to do what they demand."""

    allowed = {
        "volumes/+": {"name": "secret", "secret": {"secretName": "any"}},
        "containers/0/envFrom": [{"secretRef": {"name": "any"}}],
        "runtimeClassName": "gvisor",
        "priorityClassName": "batch",
    }

    def with_pod(changes: Body) -> Body:
        pod = {f"spec/podTemplate/spec/{path}": value for path, value in {**allowed, **changes}.items()}
        return changed(fenced.sandbox, pod)

    def ask(changes: Body) -> Answer:
        return fenced.held("POST", fenced.path("sandboxes"), with_pod(changes))

    until(lambda answer: answer.status == 201, fenced.held, fenced.path("sandboxes"), with_pod({}))
    assert refused(ask({"runtimeClassName": "runc"}), "runtimeClassName: must be gvisor")
    assert refused(ask({"priorityClassName": "other"}), "priorityClassName: must not be there, or be batch")
    assert refused(ask({"serviceAccountName": "default"}), "serviceAccountName: must not be there.")
    assert refused(ask({"volumes/+": {"name": "node", "hostPath": {"path": "/"}}}), "spec.volumes")


def titles(tasks: list[str]) -> list[str]:
    return [name.partition(" : ")[2] for name in tasks]


def test_sandbox_that_names_a_template_without_a_boundary_reaches_nothing(fenced, kube) -> None:
    """Whoever may make a Sandbox may label its pod as they like, and so leave the boundary of its template."""
    head = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicy"}
    policies = [{**head, **one} for one in kube.items(fenced.path("networkpolicies"))]
    stray = Reach.for_labels(policies, fenced.namespace, {TEMPLATE_LABEL: "of-nobody"})
    assert stray.within("no_network").holds
    without = [one for one in policies if one["metadata"]["name"] != "namzu-fence-closed"]
    assert not Reach.for_labels(without, fenced.namespace, {TEMPLATE_LABEL: "of-nobody"}).within("no_network").holds


def namespaces_of(binding: Body) -> set[str]:
    return set(binding["spec"]["matchResources"]["namespaceSelector"]["matchExpressions"][0]["values"])
