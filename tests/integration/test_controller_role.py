# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Role ``controller`` on an API server that has nothing of agent-sandbox: what it installs, refuses and removes.

The manifests are upstream's own but for the schemas, which test_site.py installs whole. No controller starts here: an
API server alone runs no pods, so the role is told not to wait for it.
"""

from __future__ import annotations

import functools
import hashlib
import http.server
import pathlib
import threading
import typing as t

import pytest

from .bare import bare_cluster, write_release
from .conftest import Kube, Play

INSTANCE = "6"
SYSTEM = "agent-sandbox-system"
DEPLOYMENT = f"/apis/apps/v1/namespaces/{SYSTEM}/deployments/agent-sandbox-controller"
SETTINGS = f"/api/v1/namespaces/{SYSTEM}/configmaps/agent-sandbox-config"
CRDS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"
OURS = "labelSelector=app.kubernetes.io/managed-by=namzu.sandbox"
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/default/sandboxclaims"
RBAC = "/apis/rbac.authorization.k8s.io/v1"
#: Lists of everything that the role makes.
LISTS = (
    CRDS,
    "/api/v1/namespaces",
    f"/api/v1/namespaces/{SYSTEM}/configmaps",
    f"/api/v1/namespaces/{SYSTEM}/serviceaccounts",
    f"/api/v1/namespaces/{SYSTEM}/services",
    f"/apis/apps/v1/namespaces/{SYSTEM}/deployments",
    f"{RBAC}/clusterroles",
    f"{RBAC}/clusterrolebindings",
    f"{RBAC}/namespaces/{SYSTEM}/roles",
    f"{RBAC}/namespaces/{SYSTEM}/rolebindings",
)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[tuple[Kube, Play]]:
    """An API server without anything of agent-sandbox."""
    with bare_cluster(INSTANCE, tmp_path_factory.mktemp("bare")) as made:
        yield made


@pytest.fixture(scope="module")
def release(tmp_path_factory: pytest.TempPathFactory) -> tuple[pathlib.Path, pathlib.Path]:
    """The two manifests of the pinned release."""
    return write_release(tmp_path_factory.mktemp("release"), whole=False)


@pytest.fixture(scope="module")
def served(release: tuple[pathlib.Path, pathlib.Path]) -> t.Iterator[str]:
    """The address under which the folder of the release is to be had."""
    handler = functools.partial(http.server.SimpleHTTPRequestHandler, directory=str(release[0].parent))
    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
        thread.join()


def role(name: str, **variables: t.Any) -> dict[str, t.Any]:
    return {
        "name": name,
        "ansible.builtin.include_role": {"name": "namzu.sandbox.controller"},
        "vars": {"controller_wait": False, **variables},
    }


def refused(name: str, **variables: t.Any) -> dict[str, t.Any]:
    said = {"name": name, "ansible.builtin.debug": {"msg": "{{ ansible_failed_result }}"}}
    return {"block": [role(f"try {name}", **variables)], "rescue": [said]}


def existing(kube: Kube) -> list[str]:
    """Kind and name of all that carries the role's label and is not on its way out."""
    return sorted(
        f"{path.rsplit('/', 1)[-1]}/{item['metadata']['name']}"
        for path in LISTS
        for item in kube.items(f"{path}?{OURS}")
        if "deletionTimestamp" not in item["metadata"]
    )


def sha256(path: pathlib.Path) -> str:
    return hashlib.sha256(path.read_bytes()).hexdigest()


def changes(played: t.Any) -> list[bool]:
    return [bool(result["changed"]) for task, result in played.tasks if " : Apply" in task or " : Remove" in task]


def test_what_is_not_a_pinned_release_changes_nothing(bare, release, served) -> None:
    kube, play = bare
    url = f"{served}/sandbox.yaml"
    core, extensions = ({"src": str(path)} for path in release)
    played = play(
        [
            refused("default"),
            refused("unpinned", controller_manifests=[{"src": url}]),
            refused("other file", controller_manifests=[{"src": url, "sha256": "0" * 64}, extensions]),
            refused("no extensions", controller_manifests=[core]),
            refused("wrong order", controller_manifests=[extensions, core]),
        ]
    )
    words = {
        "default": "sandbox-with-extensions.yaml: has no checksum",
        "unpinned": f"{url}: has no checksum",
        "other file": f"SHA-256 {sha256(release[0])}, and {'0' * 64} was expected",
        "no extensions": "sandboxclaims.extensions.agents.x-k8s.io",
        "wrong order": "with --extensions (found: --leader-elect=true)",
    }
    for name, expected in words.items():
        assert expected in str(played[name]["msg"]), name
    assert existing(kube) == []


def test_a_release_is_installed_as_it_is_told_to(bare, release, served) -> None:
    kube, play = bare
    options = {
        "controller_manifests": [
            {"src": f"{served}/sandbox.yaml", "sha256": sha256(release[0]).upper()},
            {"src": str(release[1])},
        ],
        "controller_image": "registry.example.com/controller:1",
        "controller_replicas": 2,
        "controller_resources": {"requests": {"memory": "64Mi"}},
        "controller_args": ["--cluster-domain=example.org"],
        "controller_allowed_label_domains": ["sandbox.users.io", "example.com"],
    }
    assert changes(play([role("first", **options)])) == [True, True]
    assert existing(kube) == [
        "clusterrolebindings/agent-sandbox-controller",
        "clusterrolebindings/agent-sandbox-controller-extensions",
        "clusterroles/agent-sandbox-controller",
        "clusterroles/agent-sandbox-controller-extensions",
        "configmaps/agent-sandbox-config",
        "customresourcedefinitions/sandboxclaims.extensions.agents.x-k8s.io",
        "customresourcedefinitions/sandboxes.agents.x-k8s.io",
        "customresourcedefinitions/sandboxtemplates.extensions.agents.x-k8s.io",
        "customresourcedefinitions/sandboxwarmpools.extensions.agents.x-k8s.io",
        "deployments/agent-sandbox-controller",
        "namespaces/agent-sandbox-system",
        "rolebindings/agent-sandbox-controller",
        "roles/agent-sandbox-controller",
        "serviceaccounts/agent-sandbox-controller",
        "services/agent-sandbox-controller",
        "services/agent-sandbox-webhook-service",
    ]
    # The kinds are served as soon as the role ends.
    assert kube.get(CLAIMS)["items"] == []
    before = kube.get(DEPLOYMENT)["spec"]
    (container,) = before["template"]["spec"]["containers"]
    assert (before["replicas"], container["image"]) == (2, "registry.example.com/controller:1")
    assert container["args"] == ["--leader-elect=true", "--extensions", "--cluster-domain=example.org"]
    assert container["resources"] == {"requests": {"memory": "64Mi"}}
    assert container["volumeMounts"][0]["mountPath"] == "/etc/sandbox-config"
    assert kube.get(SETTINGS)["data"] == {"allowed-label-domains": "sandbox.users.io,example.com"}

    # The controller reads its settings once, so others are another pod.
    edited = {**options, "controller_allowed_label_domains": ["example.org"]}
    assert changes(play([role("edited", **edited)])) == [False, True]
    assert kube.get(SETTINGS)["data"] == {"allowed-label-domains": "example.org"}
    assert kube.get(DEPLOYMENT)["spec"]["template"]["metadata"] != before["template"]["metadata"]


def test_a_removal_keeps_the_kinds_and_deletes_them_only_when_nothing_is_in_use(bare) -> None:
    kube, play = bare
    claim = {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxClaim",
        "metadata": {"name": "held"},
        "spec": {"warmPoolRef": {"name": "python"}},
    }
    kube.request("POST", CLAIMS, claim)
    before = existing(kube)
    absent = {"controller_state": "absent"}
    everything = {**absent, "controller_remove_crds": True}
    played = play(
        [
            refused("in use", **everything),
            {"block": [role("foreseen", **everything, controller_force=True)], "check_mode": True},
        ]
    )
    assert "have 1 object, which would be deleted with them: SandboxClaim default/held" in str(played["in use"]["msg"])
    assert played["Show the objects that are deleted with the kinds"]["msg"] == ["SandboxClaim default/held"]
    assert changes(played)[-2:] == [True, True]
    assert existing(kube) == before

    played = play([role("removed", **absent)])
    kinds = [name for name in before if name.startswith("customresourcedefinitions/")]
    assert existing(kube) == kinds
    assert kube.get(f"{CLAIMS}/held") is not None

    played = play([role("kinds", **everything, controller_force=True)])
    assert changes(played)[-1]
    assert existing(kube) == []
    assert kube.get(CLAIMS) is None
