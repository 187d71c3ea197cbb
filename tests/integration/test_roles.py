# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The roles on a real cluster: what they make, that a second run changes nothing, and that a removal leaves nothing."""

from __future__ import annotations

import typing as t

import pytest

ROLES = ("namespace", "template", "boundary", "warm_pool", "claimant")
AGENTS = "/apis/agents.x-k8s.io/v1beta1/namespaces"
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces"
POLICIES = "/apis/networking.k8s.io/v1/namespaces"
RBAC = "/apis/rbac.authorization.k8s.io/v1/namespaces"

#: Role -> the objects that it makes, beside the template's agent whose name follows its content.
MADE = {
    "template": [f"{EXTENSIONS}/{{}}/sandboxtemplates/python"],
    "boundary": [f"{POLICIES}/{{}}/networkpolicies/namzu-python-{way}" for way in ("egress", "ingress")],
    "warm_pool": [f"{EXTENSIONS}/{{}}/sandboxwarmpools/python"],
    "claimant": [
        "/api/v1/namespaces/{}/serviceaccounts/tester",
        f"{RBAC}/{{}}/roles/tester",
        f"{RBAC}/{{}}/rolebindings/tester",
    ],
}


def variables(namespace: str, image: str, **more: t.Any) -> dict[str, t.Any]:
    """What all roles need, for a template and a pool called ``python``."""
    return {
        "namespace_name": namespace,
        "template_namespace": namespace,
        "template_name": "python",
        "template_image": image,
        "boundary_namespace": namespace,
        "boundary_template": "python",
        "warm_pool_namespace": namespace,
        "warm_pool_name": "python",
        "warm_pool_template": "python",
        "warm_pool_replicas": 0,
        "claimant_namespace": namespace,
        "claimant_name": "tester",
        **more,
    }


def include(*roles: str, **given: t.Any) -> list[dict[str, t.Any]]:
    return [{"ansible.builtin.include_role": {"name": f"namzu.sandbox.{role}"}, "vars": given} for role in roles]


def agents_of(kube, namespace: str) -> list[dict[str, t.Any]]:
    """The ConfigMaps that hold agents; the namespace has others."""
    found = kube.items(f"/api/v1/namespaces/{namespace}/configmaps?labelSelector=sandbox.namzu.ai/template")
    return sorted(found, key=lambda item: item["metadata"]["name"])


def test_a_check_on_an_empty_cluster_predicts_every_change_and_makes_none(play, kube, namespace_name, image) -> None:
    names = variables(namespace_name, image, warm_pool_replicas=1, warm_pool_wait_for=1)
    checked = play(include(*ROLES), variables=names, check=True)
    assert checked.changed == len(ROLES)
    assert kube.get(f"/api/v1/namespaces/{namespace_name}") is None


@pytest.mark.parametrize("role", MADE)
def test_a_role_changes_once_and_its_removal_leaves_nothing(play, kube, namespace, image, role: str) -> None:
    remove = include(role, **{f"{role}_state": "absent"})
    in_check_mode = {"block": remove, "check_mode": True}
    played = play(
        [*include(role), *include(role), in_check_mode, *remove, *remove], variables=variables(namespace, image)
    )
    changed = [
        result["changed"]
        for task, result in played.tasks
        if (" : Apply" in task or " : Remove" in task) and "whole cluster" not in task
    ]
    assert changed == [True, False, True, True, False]
    for path in MADE[role]:
        assert kube.get(path.format(namespace)) is None
    assert agents_of(kube, namespace) == []


def test_a_removed_namespace_is_gone_when_the_role_ends(play, kube, namespace_name) -> None:
    play.role("namespace", namespace_name=namespace_name)
    found = kube.get(f"/api/v1/namespaces/{namespace_name}")
    assert found["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "restricted"
    play.role("namespace", namespace_name=namespace_name, namespace_state="absent")
    assert kube.get(f"/api/v1/namespaces/{namespace_name}") is None


def test_a_namespace_whose_labels_somebody_else_holds_is_left_as_it_is(play, kube, namespace_name) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "baseline"}
    kube.request("POST", "/api/v1/namespaces", {"metadata": {"name": namespace_name, "labels": labels}})
    refused = play.role("namespace", namespace_name=namespace_name, may_fail=True)
    assert "conflict" in refused["Apply the namespace"]["msg"]
    found = kube.get(f"/api/v1/namespaces/{namespace_name}")
    assert found["metadata"]["labels"]["pod-security.kubernetes.io/enforce"] == "baseline"


def test_pods_of_the_template_pass_the_strictest_pod_security_level(kube, pool) -> None:
    pods = kube.items(f"/api/v1/namespaces/{pool.namespace}/pods?labelSelector=sandbox.namzu.ai/template=python")
    assert len(pods) >= 2
    for pod in pods:
        spec, container = pod["spec"], pod["spec"]["containers"][0]
        assert spec["automountServiceAccountToken"] is False
        assert container["securityContext"]["readOnlyRootFilesystem"] is True
        assert container["securityContext"]["capabilities"] == {"drop": ["ALL"]}
        mounts = [mount["mountPath"] for mount in container["volumeMounts"]]
        assert mounts == ["/opt/namzu/agent", "/tmp", "/workspace"]  # and no service account's token


def test_the_template_takes_every_option(play, kube, namespace, image) -> None:
    options = {
        "template_agent_port": 2024,
        "template_run_as_user": 4711,
        "template_agent_roots": ["/workspace", "/tmp"],
        "template_env": [{"name": "GREETING", "value": "hello {{ '{{' }} braces"}],
        "template_volumes": [{"name": "scratch", "emptyDir": {}}],
        "template_volume_mounts": [{"name": "scratch", "mountPath": "/scratch"}],
        "template_volume_claim_templates": [
            {
                "metadata": {"name": "workspace"},
                "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
            }
        ],
        "template_runtime_class": "gvisor",
        "template_node_selector": {"pool": "sandboxes"},
        "template_tolerations": [{"key": "sandboxes", "operator": "Exists"}],
        "template_image_pull_secrets": ["registry"],
        "template_network_policy_management": "Managed",
        "template_network_policy": {"egress": [{"ports": [{"port": 443, "protocol": "TCP"}]}]},
        "template_labels": {"team": "a"},
        "template_annotations": {"note": "b"},
        "template_pod_labels": {"team": "c"},
        "template_pod_annotations": {"note": "d"},
    }
    names = variables(namespace, image, **options)
    assert play(include("template"), variables=names).changed == 1
    assert play(include("template"), variables=names).changes == []
    spec = kube.get(f"{EXTENSIONS}/{namespace}/sandboxtemplates/python")["spec"]
    pod, container = spec["podTemplate"]["spec"], spec["podTemplate"]["spec"]["containers"][0]
    assert spec["volumeClaimTemplates"][0]["metadata"]["name"] == "workspace"
    assert [volume["name"] for volume in pod["volumes"]] == ["namzu-agent", "namzu-tmp", "scratch"]
    assert pod["securityContext"]["runAsUser"] == 4711
    assert (pod["runtimeClassName"], pod["imagePullSecrets"]) == ("gvisor", [{"name": "registry"}])
    environment = {entry["name"]: entry.get("value") for entry in container["env"]}
    assert environment["NAMZU_AGENT_PASS"] == "GREETING"
    assert environment["NAMZU_AGENT_PORT"] == "2024"
    assert environment["NAMZU_AGENT_ROOTS"] == "/workspace:/tmp"
    assert spec["podTemplate"]["metadata"]["labels"] == {"team": "c", "sandbox.namzu.ai/template": "python"}


def test_a_changed_template_keeps_the_agent_and_a_removed_one_takes_every_agent_with_it(
    play, kube, namespace, image
) -> None:
    play(include("template"), variables=variables(namespace, image))
    (agent,) = agents_of(kube, namespace)
    older = {"metadata": {"name": "python-agent-0123456789", "labels": agent["metadata"]["labels"]}}
    kube.request("POST", f"/api/v1/namespaces/{namespace}/configmaps", older)
    changed = play(include("template"), variables=variables(namespace, image, template_tmp_size="1Mi"))
    assert changed.changed == 1
    assert [item["metadata"]["name"] for item in agents_of(kube, namespace)] == sorted(
        ["python-agent-0123456789", agent["metadata"]["name"]]
    )
    play(include("template"), variables=variables(namespace, image, template_state="absent"))
    assert agents_of(kube, namespace) == []


def test_a_pool_that_was_waited_for_is_warm(play, kube, namespace, image) -> None:
    names = variables(namespace, image, warm_pool_replicas=2, warm_pool_wait_for=2)
    play(include("template", "warm_pool"), variables=names)
    assert kube.get(f"{EXTENSIONS}/{namespace}/sandboxwarmpools/python")["status"]["readyReplicas"] == 2
    again = play(include("warm_pool"), variables=names)
    assert again["Wait until enough members are ready"].get("skipped")


def test_waiting_for_a_pool_that_never_gets_warm_ends(play, namespace, image) -> None:
    names = variables(namespace, "localhost/no/such:image", template_image_pull_policy="Never")
    names.update(warm_pool_replicas=1, warm_pool_wait_for=1, warm_pool_wait_timeout=3)
    waited = play(include("template", "warm_pool"), variables=names, may_fail=True)
    message = waited["Fail with the reason"]["msg"]
    assert "0 of 1 members are ready after 3 s: the image localhost/no/such:image" in message


def test_a_changed_template_replaces_the_members_of_its_pool(play, kube, namespace, image) -> None:
    names = variables(namespace, image, warm_pool_replicas=1, warm_pool_wait_for=1)
    play(include("template", "warm_pool"), variables=names)
    (before,) = kube.items(f"{AGENTS}/{namespace}/sandboxes")
    play(include("template"), variables={**names, "template_tmp_size": "1Mi"})
    kube.until_gone(f"{AGENTS}/{namespace}/sandboxes/{before['metadata']['name']}", 30)


def test_a_claimant_takes_uses_and_releases_a_sandbox(play, pool, claimant) -> None:
    access = {**pool.access, **claimant}
    name = "{{ acquired.sandbox.name }}"
    done = play(
        [
            {"name": "acquire", "namzu.sandbox.sandbox": {"warm_pool": pool.name, **access}, "register": "acquired"},
            {"name": "run", "namzu.sandbox.sandbox_exec": {"name": name, "command": "echo hello", **access}},
            {"name": "release", "namzu.sandbox.sandbox": {"state": "absent", "name": name, "wait": True, **access}},
        ]
    )
    assert done["run"]["stdout"] == "hello\n"
    assert done["release"]["changed"]


@pytest.mark.parametrize(
    "forbidden",
    [
        {"verb": "create", "resource": "pods"},
        {"verb": "create", "resource": "pods", "subresource": "exec"},
        {"verb": "create", "resource": "pods", "subresource": "portforward"},
        {"verb": "list", "resource": "secrets"},
        {"verb": "create", "group": "agents.x-k8s.io", "resource": "sandboxes"},
        {"verb": "patch", "group": "extensions.agents.x-k8s.io", "resource": "sandboxtemplates"},
        {"verb": "delete", "group": "networking.k8s.io", "resource": "networkpolicies"},
    ],
    ids=lambda action: "-".join(action.values()),
)
@pytest.mark.usefixtures("claimant")
def test_a_claimant_may_do_nothing_else(kube, pool, forbidden: dict[str, str]) -> None:
    asked = {
        "user": f"system:serviceaccount:{pool.namespace}:tester",
        "resourceAttributes": {"namespace": pool.namespace, **forbidden},
    }
    body = {"apiVersion": "authorization.k8s.io/v1", "kind": "SubjectAccessReview", "spec": asked}
    answer = kube.request("POST", "/apis/authorization.k8s.io/v1/subjectaccessreviews", body)
    assert answer["status"]["allowed"] is False


def test_a_template_without_an_image_is_refused(play, kube, namespace, image) -> None:
    names = variables(namespace, image)
    del names["template_image"]
    refused = play(include("template"), variables=names, may_fail=True)
    assert refused.rc != 0
    assert kube.get(f"{EXTENSIONS}/{namespace}/sandboxtemplates/python") is None


def test_the_site_playbook_makes_and_removes_everything(play, kube, namespace_name, image) -> None:
    # The cluster has its controller, and a fence of other tests; test_site.py has both.
    ours = {"site_controller": False, "site_fence": False}
    names = {"site_namespace": namespace_name, "template_image": image, "warm_pool_replicas": 0, **ours}
    assert play.playbook("namzu.sandbox.site", variables=names).changed == len(ROLES)
    removed = play.playbook("namzu.sandbox.site", variables={**names, "site_state": "absent"})
    assert removed.changed == len(MADE)
    for objects in MADE.values():
        for path in objects:
            assert kube.get(path.format(namespace_name).replace("/tester", "/claimant")) is None
    # More may be in the namespace, so it stays.
    assert kube.get(f"/api/v1/namespaces/{namespace_name}") is not None
