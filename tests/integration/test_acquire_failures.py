# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Each way for an acquire to fail, produced for real: reason, object, next step, bounded time, nothing left."""

from __future__ import annotations

import base64
import json
import os
import pathlib
import shlex
import subprocess
import sys
import time
import typing as t
import uuid

import pytest
import yaml

GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}"
CLAIMS = GROUP + "/sandboxclaims"

#: Seconds beyond the options' own bounds: Ansible's start, and the cleanup.
SLACK = 20.0

HARDENED = {
    "allowPrivilegeEscalation": False,
    "runAsNonRoot": True,
    "runAsUser": 1000,
    "capabilities": {"drop": ["ALL"]},
}

#: Listens on the agent's port, takes the connection, and says nothing.
SILENT = "import socket\ns = socket.create_server(('', 1024))\nheld = []\nwhile True: held.append(s.accept())"
#: Something else than an agent: a web server.
WEB_SERVER = (
    "import http.server\nhttp.server.HTTPServer(('', 1024), http.server.SimpleHTTPRequestHandler).serve_forever()"
)


@pytest.fixture
def fail(play, kube, pool):
    """Run an acquire that must fail, at ``-vvv``; returns its result and everything that was printed."""

    def run(
        namespace: str | None = None, environment: dict[str, str] | None = None, **options: t.Any
    ) -> tuple[dict[str, t.Any], str]:
        where = namespace or pool.namespace
        task = {
            "warm_pool": pool.name,
            "namespace": where,
            "agent": {"address": pool.access["agent"]["address"]},
            "ready_timeout": "5s",
            **options,
        }
        began = time.monotonic()
        played = play(
            [{"name": "acquire", "namzu.sandbox.sandbox": task}],
            environment={"ANSIBLE_VERBOSITY": "3", **(environment or {})},
            may_fail=True,
        )
        took = time.monotonic() - began
        result = played["acquire"]
        assert result["failed"]
        assert took < 5 * 2 + SLACK, f"it took {took:.0f} s"
        printed = json.dumps(result) + played.output
        assert "Traceback" not in printed
        assert kube.items(CLAIMS.format(where)) == [], "the claim is still there"
        return result, printed

    return run


@pytest.fixture(scope="module")
def bare_server() -> t.Iterator[str]:
    """The kubeconfig of an API server that serves none of the controller's kinds: a second, bare local cluster."""
    command = (sys.executable, "-m", "tools.cluster")
    environment = {**os.environ, "NAMZU_CLUSTER": "local", "NAMZU_CLUSTER_INSTANCE": "8"}
    root = pathlib.Path(__file__).parents[2]

    def run(*arguments: str) -> str:
        done = subprocess.run(
            [*command, *arguments], cwd=root, env=environment, capture_output=True, text=True, check=False
        )
        assert done.returncode == 0, f"tools.cluster {arguments} says:\n{done.stdout}{done.stderr}"
        return done.stdout

    run("up", "--bare")
    try:
        exports = dict(word.split("=", 1) for word in shlex.split(run("env")) if "=" in word)
        yield exports["KUBECONFIG"].rstrip(";")
    finally:
        run("down")


@pytest.fixture
def pool_of(kube, namespace, image):
    """Make a pool of one ready member whose container runs a Python program; returns its name."""

    def make(program: str | None, security: dict[str, t.Any]) -> str:
        container: dict[str, t.Any] = {
            "name": "agent",
            "image": image,
            "imagePullPolicy": "Never",
            "securityContext": security,
            "readinessProbe": {"tcpSocket": {"port": 1024}, "periodSeconds": 1},
        }
        spec: dict[str, t.Any] = {
            "automountServiceAccountToken": False,
            "terminationGracePeriodSeconds": 1,
            "containers": [container],
        }
        if program is None:
            source = _agent_files()
            kube.request(
                "POST",
                f"/api/v1/namespaces/{namespace}/configmaps",
                {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "agent"}, "data": source},
            )
            spec["volumes"] = [{"name": "agent", "configMap": {"name": "agent"}}]
            container["command"] = ["python3", "-I", "/opt/namzu/agent"]
            container["volumeMounts"] = [{"name": "agent", "mountPath": "/opt/namzu/agent"}]
            token = {"fieldRef": {"fieldPath": "metadata.uid"}}
            container["env"] = [{"name": "NAMZU_AGENT_BIND_TOKEN", "valueFrom": token}]
        else:
            container["command"] = ["python3", "-c", program]
        template = {"networkPolicyManagement": "Unmanaged", "service": True, "podTemplate": {"spec": spec}}
        _make(kube, namespace, "SandboxTemplate", "sandboxtemplates", template)
        pool = {"replicas": 1, "sandboxTemplateRef": {"name": "made"}}
        _make(kube, namespace, "SandboxWarmPool", "sandboxwarmpools", pool)
        path = GROUP.format(namespace) + "/sandboxwarmpools/made"
        kube.until(path, lambda body: ((body or {}).get("status") or {}).get("readyReplicas") == 1)
        return "made"

    return make


def _make(kube: t.Any, namespace: str, kind: str, plural: str, spec: dict[str, t.Any]) -> None:
    body = {
        "apiVersion": "extensions.agents.x-k8s.io/v1beta1",
        "kind": kind,
        "metadata": {"name": "made", "namespace": namespace},
        "spec": spec,
    }
    kube.request("POST", f"{GROUP.format(namespace)}/{plural}", body)


def _agent_files() -> dict[str, str]:
    folder = pathlib.Path(__file__).parents[2] / "roles" / "template" / "files" / "agent"
    return {file.name: file.read_text(encoding="utf-8") for file in folder.glob("*.py")}


def test_a_context_that_does_not_exist_is_named_with_those_that_do(fail, kubeconfig):
    result, _unused = fail(context="nowhere")
    assert result["reason"] == "access"
    assert "nowhere" in result["msg"]
    with open(kubeconfig, encoding="utf-8") as stream:
        assert yaml.safe_load(stream)["contexts"][0]["name"] in result["msg"]


def test_a_server_that_is_not_there_is_unreachable(fail):
    result, printed = fail(host="https://127.0.0.1:1", api_key="a-secret-token")
    assert result["reason"] == "api-unreachable"
    assert result["retryable"]
    assert "https://127.0.0.1:1" in result["msg"]
    assert "Connection refused" in result["msg"]
    assert "a-secret-token" not in printed


def test_a_token_that_has_ended_is_forbidden_and_appears_nowhere(fail, kube, pool):
    token = _ended_token(kube, pool.namespace)
    result, printed = fail(host=kube.server, api_key=token, ca_cert=kube.ca_cert)
    assert result["reason"] == "forbidden"
    assert not result["retryable"]
    assert "401" in result["msg"]
    assert "renew the token" in result["msg"]
    assert token not in printed


def test_a_token_in_the_environment_of_the_task_appears_nowhere(fail, kube, pool):
    token = _ended_token(kube, pool.namespace)
    environment = {"K8S_AUTH_API_KEY": token, "K8S_AUTH_HOST": kube.server, "K8S_AUTH_SSL_CA_CERT": kube.ca_cert}
    result, printed = fail(environment=environment)
    assert result["reason"] == "forbidden"
    assert token not in printed


def test_secrets_of_a_kubeconfig_given_as_data_appear_nowhere(fail, kube, pool):
    token = _ended_token(kube, pool.namespace)
    with open(kube.ca_cert, "rb") as stream:
        ca_data = base64.b64encode(stream.read()).decode()
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": kube.server, "certificate-authority-data": ca_data}}],
        "users": [{"name": "u", "user": {"token": token}}],
    }
    result, printed = fail(kubeconfig=config)
    assert result["reason"] == "forbidden"
    assert token not in printed


def _ended_token(kube: t.Any, namespace: str) -> str:
    """A token that the API server itself issued and does not take any more: the Secret that it was bound to is gone."""
    secret = f"bound-{uuid.uuid4().hex[:8]}"
    root = f"/api/v1/namespaces/{namespace}"
    made = kube.request("POST", f"{root}/secrets", {"metadata": {"name": secret}})
    bound = {"kind": "Secret", "apiVersion": "v1", "name": secret, "uid": made["metadata"]["uid"]}
    body = {"spec": {"expirationSeconds": 3600, "boundObjectRef": bound}}
    answer = kube.request("POST", f"{root}/serviceaccounts/default/token", body)
    kube.delete(f"{root}/secrets/{secret}")
    return str(answer["status"]["token"])


def test_an_account_without_rules_is_forbidden_and_told_which_role_helps(fail, kube, pool):
    root = f"/api/v1/namespaces/{pool.namespace}"
    answer = kube.request("POST", f"{root}/serviceaccounts/default/token", {"spec": {"expirationSeconds": 3600}})
    result, _unused = fail(host=kube.server, api_key=answer["status"]["token"], ca_cert=kube.ca_cert)
    assert result["reason"] == "forbidden"
    assert "claimant" in result["msg"]


def test_a_namespace_that_does_not_exist_is_named(fail):
    result, _unused = fail(namespace="no-such-namespace")
    assert result["reason"] == "not-found"
    assert "no-such-namespace" in result["msg"]


def test_a_pool_that_does_not_exist_is_the_controllers_decision(fail):
    began = time.monotonic()
    result, _unused = fail(warm_pool="no-such-pool", ready_timeout="60s")
    assert time.monotonic() - began < SLACK, "a decision is not waited for"
    assert result["reason"] == "claim-rejected"
    assert result["controller_reason"] == "WarmPoolNotFound"
    assert "warm_pool" in result["msg"]


def test_a_pod_label_of_a_foreign_domain_names_the_setting_that_allows_it(fail):
    result, _unused = fail(pod_labels={"example.org/team": "a"})
    assert result["reason"] == "claim-rejected"
    assert result["controller_reason"] == "InvalidMetadata"
    assert "allowed-label-domains" in result["msg"]


def test_a_port_without_an_agent_is_unreachable(fail, pool):
    result, _unused = fail(agent={"port": 1025, "address": pool.access["agent"]["address"]})
    assert result["reason"] == "agent-unreachable"
    assert ":1025" in result["msg"]


def test_an_agent_that_hangs_is_refused_on_the_probes_own_clock(fail, pool_of, namespace):
    result, _unused = fail(namespace=namespace, warm_pool=pool_of(SILENT, HARDENED))
    assert result["reason"] == "agent-timeout"
    assert "probe" in result["msg"]


def test_something_else_behind_the_port_is_no_agent(fail, pool_of, namespace):
    result, _unused = fail(namespace=namespace, warm_pool=pool_of(WEB_SERVER, HARDENED))
    assert result["reason"] == "agent-protocol"


@pytest.mark.parametrize(
    ("security", "named"),
    [
        ({"privileged": True, "runAsUser": 0}, "CAP_SYS_ADMIN"),
        ({**HARDENED, "capabilities": {"drop": ["ALL"], "add": ["NET_RAW"]}}, "CAP_NET_RAW"),
        ({**HARDENED, "allowPrivilegeEscalation": True}, "NoNewPrivs"),
        ({"runAsUser": 1000, "allowPrivilegeEscalation": False}, "CapBnd"),
    ],
    ids=["privileged", "one capability added", "escalation allowed", "bounding set kept"],
)
def test_a_pod_with_a_privilege_is_refused_and_the_privilege_named(fail, pool_of, namespace, security, named):
    result, _unused = fail(namespace=namespace, warm_pool=pool_of(None, security))
    assert result["reason"] == "privileged"
    assert named in result["msg"]
    assert "securityContext" in result["msg"]
    assert result["object"].startswith(f"Pod {namespace}/")


def test_an_api_server_without_the_controllers_kinds_says_that_they_are_missing(fail, bare_server):
    result, _printed = fail(kubeconfig=bare_server, namespace="default")
    assert result["reason"] == "not-served"
    assert "CRDs are not installed" in result["msg"]
    assert "install the controller" in result["msg"]
