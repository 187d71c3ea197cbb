# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A play inside a pod of the cluster, as in an AWX job pod: mounted service account, service names, no kubeconfig.

The image has ansible-core and the collection as it is now. `python -m tools.cluster runner-image` gives one to the
local cluster; on a cluster of your own, name yours in NAMZU_TEST_RUNNER_IMAGE.
"""

from __future__ import annotations

import json
import os
import pathlib
import subprocess
import sys
import typing as t

import kubernetes
import pytest
import yaml

Body = dict[str, t.Any]

REPOSITORY = pathlib.Path(__file__).resolve().parents[2]
CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"
RUNNER = {"namzu-test": "runner"}
POD_SECONDS = 180.0

#: Whoever runs the collection sees this play's results as the last line of the pod's log.
SCRIPT = "ansible-playbook /play/play.yml; code=$?; cat /tmp/said.json; exit $code"

#: No namespace, no host, no credential, no agent.address: all of them are what the pod has.
TASKS = [
    {"name": "acquire", "namzu.sandbox.sandbox": {"warm_pool": "python"}, "register": "held"},
    {
        "name": "run",
        "namzu.sandbox.sandbox_exec": {
            "name": "{{ held.sandbox.name }}",
            "argv": ["python3", "-c", "import os; print(6 * 7, os.uname().nodename)"],
        },
        "register": "ran",
    },
    {
        "name": "release",
        "namzu.sandbox.sandbox": {"name": "{{ held.sandbox.name }}", "state": "absent", "wait": True},
        "register": "released",
    },
    {
        "name": "report",
        "ansible.builtin.copy": {
            "dest": "/tmp/said.json",
            "mode": "0600",
            "content": "{{ {'held': held.sandbox, 'ran': ran.stdout, 'released': released.released} | to_json }}",
        },
    },
]


# Before the pool: without an image there is nothing to wait for.
pytestmark = pytest.mark.usefixtures("runner_image")


class Job:
    """A pod that ran the play."""

    def __init__(self, phase: str, log: str) -> None:
        self.phase = phase
        self.log = log

    @property
    def said(self) -> Body:
        return dict(json.loads(self.log.splitlines()[-1]))


@pytest.fixture(scope="session")
def runner_image() -> str:
    """An image that runs plays with this collection."""
    named = os.environ.get("NAMZU_TEST_RUNNER_IMAGE")
    if named:
        return named
    command = [sys.executable, "-m", "tools.cluster", "runner-image"]
    made = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, timeout=600, check=False)
    if made.returncode != 0:
        pytest.fail(made.stderr.strip().splitlines()[-1], pytrace=False)
    return made.stdout.strip()


@pytest.fixture
def admitted(kube, pool) -> t.Iterator[None]:
    """The pods of this test may reach the agents while it runs: the pool's own policy admits nobody."""
    path = f"/apis/networking.k8s.io/v1/namespaces/{pool.namespace}/networkpolicies"
    ingress = {"from": [{"podSelector": {"matchLabels": RUNNER}}], "ports": [{"port": 1024, "protocol": "TCP"}]}
    spec = {"podSelector": {}, "policyTypes": ["Ingress"], "ingress": [ingress]}
    kube.request("POST", path, {"metadata": {"name": "runner"}, "spec": spec})
    yield
    kube.delete(f"{path}/runner")


@pytest.fixture
def job(kube, pool, claimant, kubeconfig, runner_image, admitted) -> t.Callable[..., Job]:
    """Runs the play in a pod with the service account that holds the claimant's rules."""
    play = yaml.safe_dump([{"hosts": "localhost", "connection": "local", "gather_facts": False, "tasks": TASKS}])

    def run(name: str, **spec: t.Any) -> Job:
        core = f"/api/v1/namespaces/{pool.namespace}"
        kube.request("POST", f"{core}/configmaps", {"metadata": {"name": name}, "data": {"play.yml": play}})
        kube.request("POST", f"{core}/pods", pod(name, runner_image, **spec))
        ended = kube.until(f"{core}/pods/{name}", has_ended, POD_SECONDS)
        return Job(ended, log_of(kubeconfig, pool.namespace, name))

    return run


def pod(name: str, image: str, **spec: t.Any) -> Body:
    """A pod as the strictest Pod Security level wants it."""
    container = {
        "name": "runner",
        "image": image,
        "imagePullPolicy": "IfNotPresent",
        "command": ["sh", "-c", SCRIPT],
        "env": [
            {"name": "HOME", "value": "/tmp"},
            {"name": "LANG", "value": "C.UTF-8"},
            {"name": "ANSIBLE_NOCOLOR", "value": "true"},
        ],
        "volumeMounts": [{"name": "play", "mountPath": "/play"}, {"name": "tmp", "mountPath": "/tmp"}],
        "securityContext": {"allowPrivilegeEscalation": False, "capabilities": {"drop": ["ALL"]}},
    }
    volumes = [{"name": "play", "configMap": {"name": name}}, {"name": "tmp", "emptyDir": {}}]
    user = {"runAsNonRoot": True, "runAsUser": 1000, "seccompProfile": {"type": "RuntimeDefault"}}
    defaults = {
        "serviceAccountName": "tester",
        "restartPolicy": "Never",
        "terminationGracePeriodSeconds": 0,
        "securityContext": user,
        "volumes": volumes,
        "containers": [container],
    }
    return {"metadata": {"name": name, "labels": RUNNER}, "spec": {**defaults, **spec}}


def has_ended(body: Body | None) -> str | None:
    phase = ((body or {}).get("status") or {}).get("phase")
    return phase if phase in ("Succeeded", "Failed") else None


def log_of(kubeconfig: str, namespace: str, name: str) -> str:
    api = kubernetes.config.new_client_from_config(config_file=kubeconfig)
    core = kubernetes.client.CoreV1Api(api)
    try:
        # As text: the client would otherwise read a log that looks like JSON.
        return str(core.read_namespaced_pod_log(name, namespace, _preload_content=False).data.decode())
    finally:
        api.rest_client.pool_manager.clear()


def test_a_play_in_a_pod_needs_nothing_but_what_the_pod_has(job, kube, pool):
    done = job("in-pod")
    assert done.phase == "Succeeded", done.log
    held = done.said["held"]
    assert held["namespace"] == pool.namespace, "the service account's namespace is the default"
    assert held["address"]["host"].startswith(f"{held['sandbox']}.{pool.namespace}.svc"), "the service's name was used"
    assert done.said["ran"].split() == ["42", held["pod"]]
    assert done.said["released"] == [held["name"]]
    assert kube.get(f"{CLAIMS.format(pool.namespace)}/{held['name']}") is None


def test_without_the_mounted_service_account_the_same_play_has_no_credentials(job, kube, pool):
    before = {claim["metadata"]["name"] for claim in kube.items(CLAIMS.format(pool.namespace))}
    refused = job("without-account", automountServiceAccountToken=False)
    assert refused.phase == "Failed"
    assert "[acquire]" in refused.log
    assert "kubeconfig" in refused.log
    assert {claim["metadata"]["name"] for claim in kube.items(CLAIMS.format(pool.namespace))} == before
