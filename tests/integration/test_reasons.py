# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each reason of a failed acquire that the cluster itself has to give, produced for real."""

from __future__ import annotations

import time
import typing as t

import pytest

GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}"


@pytest.fixture
def make(kube, namespace):
    """Make a template ``made`` from a container, and a pool ``made`` without members."""

    def run(container: dict[str, t.Any], **spec: t.Any) -> None:
        pod = {
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
            "containers": [{"name": "agent", "imagePullPolicy": "Never", **container}],
            **spec,
        }
        bodies = [
            ("SandboxTemplate", "sandboxtemplates", {"podTemplate": {"spec": pod}}),
            ("SandboxWarmPool", "sandboxwarmpools", {"replicas": 0, "sandboxTemplateRef": {"name": "made"}}),
        ]
        for kind, plural, content in bodies:
            body = {
                "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
                "kind": kind,
                "metadata": {"name": "made", "namespace": namespace},
                "spec": content,
            }
            kube.request("POST", f"{GROUP.format(namespace)}/{plural}", body)

    return run


@pytest.fixture
def fail(play, kube, namespace, pool):
    """An acquire in the test's namespace that must fail, and leave nothing."""

    def run(**options: t.Any) -> dict[str, t.Any]:
        task = {"namespace": namespace, "agent": pool.access["agent"], "ready_timeout": "6s"}
        # No policy closes the namespace, and the reasons here come after that would be seen.
        task |= {"ingress": "unverified", **options}
        result = play([{"name": "acquire", "namzu.sandbox.sandbox": task}], may_fail=True)["acquire"]
        assert result["failed"]
        assert kube.items(GROUP.format(namespace) + "/sandboxclaims") == []
        sandboxes = kube.items(f"/apis/agents.x-k8s.io/v1beta1/namespaces/{namespace}/sandboxes")
        assert [body for body in sandboxes if not body["metadata"].get("deletionTimestamp")] == []
        return t.cast("dict[str, t.Any]", result)

    return run


both_paths = pytest.mark.parametrize("path", ["warm_pool", "template"])


@both_paths
def test_a_pod_that_no_node_can_take_is_capacity_in_the_schedulers_words(fail, make, image, path):
    make({"image": image, "resources": {"requests": {"memory": "100Ti"}}})
    result = fail(**{path: "made"})
    assert (result["reason"], result["retryable"]) == ("capacity", True)
    assert "Insufficient memory" in result["msg"]


@both_paths
def test_an_image_that_is_not_there_is_image_pull(fail, make, path):
    make({"image": "localhost/no/such-image:1"})
    result = fail(**{path: "made"})
    assert (result["reason"], result["retryable"]) == ("image-pull", False)
    assert "localhost/no/such-image:1" in result["msg"]


@both_paths
def test_a_full_quota_is_quota_and_never_capacity(fail, make, kube, namespace, image, path):
    quota = {"metadata": {"name": "full"}, "spec": {"hard": {"pods": "0"}}}
    kube.request("POST", f"/api/v1/namespaces/{namespace}/resourcequotas", quota)
    make({"image": image})
    result = fail(**{path: "made"})
    assert (result["reason"], result["retryable"]) == ("quota", True)


def test_a_quota_on_claims_is_quota_too(fail, make, kube, namespace, image):
    hard = {"count/sandboxclaims.extensions.agents.x-k8s.io": "0"}
    path = f"/api/v1/namespaces/{namespace}/resourcequotas"
    kube.request("POST", path, {"metadata": {"name": "full"}, "spec": {"hard": hard}})
    # A quota counts only once its controller has read it.
    kube.until(f"{path}/full", lambda body: ((body or {}).get("status") or {}).get("hard"))
    make({"image": image})
    assert fail(warm_pool="made")["reason"] == "quota"


@both_paths
@pytest.mark.parametrize(("code", "condition"), [(0, "PodSucceeded"), (7, "PodFailed")])
def test_a_container_that_ends_is_told_apart_by_how_it_ended(fail, make, image, path, code, condition):
    probe = {"tcpSocket": {"port": 1024}, "periodSeconds": 1}
    make({"image": image, "command": ["sh", "-c", f"exit {code}"], "readinessProbe": probe})
    result = fail(**{path: "made"})
    assert (result["reason"], result["controller_reason"]) == ("not-ready", condition)
    assert f"container agent ended with exit code {code}" in result["msg"]


@both_paths
@pytest.mark.parametrize(
    ("probe", "reason"),
    [
        ({"readinessProbe": {"tcpSocket": {"port": 1024}, "periodSeconds": 1}}, "not-ready"),
        # Without one the pod is ready for the moment that its container runs.
        ({}, "agent-unreachable"),
    ],
    ids=["probe", "no-probe"],
)
def test_a_container_that_ends_again_and_again_says_how(fail, make, image, path, probe, reason):
    make({"image": image, "command": ["sh", "-c", "exit 7"], **probe}, restartPolicy="Always")
    result = fail(**{path: "made"})
    assert (result["reason"], result["retryable"]) == (reason, True)
    assert "container agent ended with exit code 7 (Error)" in result["msg"]


@both_paths
def test_a_container_that_is_not_started_again_is_not_waited_for(fail, make, image, path):
    """Without a probe its pod was ready for a moment, so that its end is met at any step."""
    make({"image": image, "command": ["sh", "-c", "exit 7"]})
    began = time.monotonic()
    result = fail(**{path: "made"}, ready_timeout="60s")
    assert time.monotonic() - began < 40.0
    assert "container agent ended with exit code 7 (Error)" in result["msg"]
    assert "kubectl logs" in result["msg"]


def test_a_pool_whose_template_is_missing_is_the_controllers_decision(fail, kube, namespace):
    body = {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": "SandboxWarmPool",
        "metadata": {"name": "orphan", "namespace": namespace},
        "spec": {"replicas": 0, "sandboxTemplateRef": {"name": "no-such-template"}},
    }
    kube.request("POST", f"{GROUP.format(namespace)}/sandboxwarmpools", body)
    result = fail(warm_pool="orphan")
    assert (result["reason"], result["controller_reason"]) == ("claim-rejected", "TemplateNotFound")


def test_a_template_that_is_missing_is_named(fail):
    result = fail(template="no-such-template")
    assert result["reason"] == "not-found"
    assert "no-such-template" in result["msg"]
