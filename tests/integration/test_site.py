# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Playbook ``site`` from an empty cluster and back: the controller's release, the fence, and everything of a team.

The cluster is an API server alone, so that nothing else is in it and everything that is left over shows. What serves
sandboxes is shown where pods run, in extensions/molecule/. With NAMZU_TEST_WHOLE_RELEASE the kinds have upstream's own
schemas, which take some seconds more with every run.
"""

from __future__ import annotations

import os
import typing as t

import pytest

from .bare import bare_cluster, write_release
from .conftest import Kube, Play

INSTANCE = "7"
PARTS = ("controller", "admission_fence", "namespace", "template", "boundary", "warm_pool", "claimant")
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1"
TEMPLATE = f"{EXTENSIONS}/namespaces/team-a/sandboxtemplates/python"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/team-a/sandboxes"
DISKS = "/api/v1/namespaces/team-a/persistentvolumeclaims"
#: Everything that any of the roles makes, and what sandboxes are made of, in all namespaces.
LISTS = (
    "/api/v1/namespaces",
    "/api/v1/configmaps",
    "/api/v1/persistentvolumeclaims",
    "/api/v1/serviceaccounts",
    "/api/v1/services",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicies",
    "/apis/admissionregistration.k8s.io/v1/validatingadmissionpolicybindings",
    "/apis/agents.x-k8s.io/v1beta1/sandboxes",
    "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
    "/apis/apps/v1/deployments",
    f"{EXTENSIONS}/sandboxclaims",
    f"{EXTENSIONS}/sandboxtemplates",
    f"{EXTENSIONS}/sandboxwarmpools",
    "/apis/networking.k8s.io/v1/networkpolicies",
    *(f"/apis/rbac.authorization.k8s.io/v1/{kind}" for kind in ("clusterroles", "clusterrolebindings", "roles")),
    "/apis/rbac.authorization.k8s.io/v1/rolebindings",
)
#: What stays of a site on purpose: the kinds, and the namespace with its workspaces and their disks.
KEPT = {
    "customresourcedefinitions//sandboxclaims.extensions.agents.x-k8s.io",
    "customresourcedefinitions//sandboxes.agents.x-k8s.io",
    "customresourcedefinitions//sandboxtemplates.extensions.agents.x-k8s.io",
    "customresourcedefinitions//sandboxwarmpools.extensions.agents.x-k8s.io",
    "namespaces//team-a",
    "persistentvolumeclaims/team-a/workspace-analysis",
    "sandboxes/team-a/analysis",
}


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[tuple[Kube, Play]]:
    """An API server without anything of agent-sandbox."""
    with bare_cluster(INSTANCE, tmp_path_factory.mktemp("site")) as made:
        yield made


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> dict[str, t.Any]:
    """What a team keeps in its inventory."""
    manifests = write_release(tmp_path_factory.mktemp("release"), whole="NAMZU_TEST_WHOLE_RELEASE" in os.environ)
    return {
        "controller_manifests": [{"src": str(path)} for path in manifests],
        "controller_wait": False,  # nothing runs the controller's pod, nor takes its namespace away
        "site_namespace": "team-a",
        "template_image": "registry.example.com/python:3",
    }


def existing(kube: Kube) -> set[str]:
    """Kind, namespace and name of everything that is not on its way out."""
    return {
        f"{path.rsplit('/', 1)[-1]}/{item['metadata'].get('namespace', '')}/{item['metadata']['name']}"
        for path in LISTS
        for item in kube.items(path)
        if "deletionTimestamp" not in item["metadata"]
    }


def changed_roles(played: t.Any) -> set[str]:
    """The roles that changed something, without the collection's name."""
    return {task.partition(" : ")[0].rpartition(".")[2] for task in played.changes}


def test_what_is_missing_is_said_before_anything_is_touched(bare) -> None:
    kube, play = bare
    before = existing(kube)
    lacking = play.playbook("namzu.sandbox.site", may_fail=True)
    assert "Set template_image, the image of the sandboxes" in str(lacking.failures)
    assert "controller_checksum of the release that you reviewed" in str(lacking.failures)
    elsewhere = {"template_image": "python:3", "site_controller": False}
    unserved = play.playbook("namzu.sandbox.site", variables=elsewhere, may_fail=True)
    assert "does not serve SandboxTemplate" in str(unserved.failures)
    open_to_what = {**elsewhere, "boundary_egress": "nonsense"}
    wrong = play.playbook("namzu.sandbox.site", variables=open_to_what, may_fail=True)
    assert "got 'nonsense'" in str(wrong.failures)
    assert existing(kube) == before


def test_a_site_is_foreseen_made_once_edited_where_it_was_edited_and_removed_without_a_trace(bare, site) -> None:
    kube, play = bare
    before = existing(kube)

    foreseen = play.playbook("namzu.sandbox.site", variables=site, check=True)
    assert changed_roles(foreseen) == set(PARTS)
    assert existing(kube) == before

    assert changed_roles(play.playbook("namzu.sandbox.site", variables=site)) == set(PARTS)
    again = play.playbook("namzu.sandbox.site", variables=site)
    assert (again.changed, again.changes) == (0, [])

    edited = {**site, "site_controller": False, "template_termination_grace_period": 30}
    shown = play.playbook("namzu.sandbox.site", variables=edited, check=True, diff=True)
    (applied,) = [result for _task, result in shown.tasks if result.get("changed")]
    (difference,) = [result["diff"] for result in applied["results"] if result["changed"]]
    field = {"spec": {"podTemplate": {"spec": {"terminationGracePeriodSeconds": 30}}}}
    assert difference["after"].items() >= field.items()
    assert not difference["after"].get("metadata")
    assert kube.get(TEMPLATE)["spec"]["podTemplate"]["spec"]["terminationGracePeriodSeconds"] == 5

    workspace = {
        "apiVersion": "agents.x-k8s.io/v1beta1",
        "kind": "Sandbox",
        "metadata": {"name": "analysis"},
        "spec": {"operatingMode": "Suspended", "podTemplate": kube.get(TEMPLATE)["spec"]["podTemplate"]},
    }
    disk = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": "workspace-analysis"},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}},
    }
    kube.request("POST", SANDBOXES, workspace)
    kube.request("POST", DISKS, disk)

    removed = play.playbook("namzu.sandbox.site", variables={**site, "site_state": "absent"})
    assert changed_roles(removed) == set(PARTS) - {"namespace"}
    assert existing(kube) - before == KEPT
    assert before - existing(kube) == set()
