# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sandboxes and workspaces of RuntimeClass gvisor, and what ``isolation`` refuses, on a real cluster."""

from __future__ import annotations

import dataclasses
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.workspace.names import workspace_ref

from ..conftest import ADDRESS, IMAGE, Body, Kube, Play, Pool
from ..workspace_ground import disk, usable_class

RUNTIME_CLASS = "gvisor"
CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"
EXTENSIONS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/{}"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"
CONFIG_MAPS = "/api/v1/namespaces/{}/configmaps"

#: What the agent of a hostile image answers: the kernel of gVisor, wherever it runs.
CLAIMS_GVISOR = """

import types
claimed = types.SimpleNamespace(release="4.19.0-gvisor", version="#1 SMP Sun Jan 10 15:06:54 PST 2016")
os = types.SimpleNamespace(**{**vars(os), "uname": lambda: claimed})
"""


@dataclasses.dataclass(frozen=True)
class Ground:
    """A namespace with a gVisor pool, a gVisor template with a disk, and a claimant."""

    pool: Pool
    desk: str
    claimant: Body = dataclasses.field(repr=False)

    @property
    def options(self) -> Body:
        return {**self.pool.access, **self.claimant, "ready_timeout": "90s"}


def include(role: str, **variables: t.Any) -> Body:
    return {"ansible.builtin.include_role": {"name": f"namzu.sandbox.{role}"}, "vars": variables}


def template(namespace: str, name: str, **variables: t.Any) -> list[Body]:
    """A template with a closed boundary."""
    options = {f"template_{key}": value for key, value in variables.items()}
    return [
        include("template", template_namespace=namespace, template_name=name, template_image=IMAGE, **options),
        include("boundary", boundary_namespace=namespace, boundary_template=name),
    ]


@pytest.fixture(scope="session")
def gvisor(play: Play, kube: Kube, new_namespace: t.Callable[[], str]) -> Ground:
    if kube.get(f"{CLASSES}/{RUNTIME_CLASS}") is None:
        pytest.skip(f"the cluster has no RuntimeClass {RUNTIME_CLASS}")
    namespace = new_namespace()
    pool = {"namespace": namespace, "name": "python", "template": "python", "replicas": 1, "wait_for": 1}
    rights = ("direct", "workspaces", "runtime_classes")
    play(
        [
            include("namespace", namespace_name=namespace),
            *template(namespace, "python", runtime_class=RUNTIME_CLASS),
            *template(
                namespace, "desk", runtime_class=RUNTIME_CLASS, volume_claim_templates=[disk(usable_class(kube))]
            ),
            *template(namespace, "plain"),
            include("warm_pool", **{f"warm_pool_{key}": value for key, value in pool.items()}),
            include(
                "claimant",
                claimant_namespace=namespace,
                claimant_name="tester",
                **{f"claimant_{right}": True for right in rights},
            ),
        ]
    )
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/tester/token"
    token = kube.request("POST", path, {"spec": {"expirationSeconds": 3600}})
    assert token is not None
    access = {"host": kube.server, "api_key": token["status"]["token"], "ca_cert": kube.ca_cert}
    made = Pool(namespace, "python", "python", access={"namespace": namespace, "agent": {"address": ADDRESS}})
    return Ground(made, "desk", access)


def acquire(task: str, gvisor: Ground, **options: t.Any) -> Body:
    return {"name": task, "namzu.sandbox.sandbox": {**gvisor.options, **options}, "register": "acquired"}


def release(gvisor: Ground, name: str) -> Body:
    access = {**gvisor.claimant, "namespace": gvisor.pool.namespace}
    return {"name": "release", "namzu.sandbox.sandbox": {**access, "state": "absent", "name": name, "wait": True}}


def make_pool(kube: Kube, namespace: str, template: str, *, replicas: int) -> str:
    """A warm pool with the name of its template; returns its path."""
    pools = EXTENSIONS.format(namespace, "sandboxwarmpools")
    head = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxWarmPool"}
    spec = {"sandboxTemplateRef": {"name": template}, "replicas": replicas}
    kube.request("POST", pools, {**head, "metadata": {"name": template}, "spec": spec})
    return f"{pools}/{template}"


def assert_gvisor(verdict: Body) -> None:
    assert verdict["privileges"]["none"]
    found = {key: verdict["isolation"][key] for key in ("level", "kernel", "runtime_class", "handler", "overhead")}
    assert found == {
        "level": "gvisor", "kernel": "gvisor", "runtime_class": RUNTIME_CLASS, "handler": RUNTIME_CLASS,
        "overhead": {"memory": "64Mi"},
    }  # fmt: skip
    assert verdict["isolation"]["host_namespaces"] == []
    assert verdict["isolation"]["seccomp"] == "RuntimeDefault"


def test_pool_serves_commands_files_sessions_tasks_and_a_lease(play: Play, gvisor: Ground) -> None:
    access = {**gvisor.pool.access, **gvisor.claimant, "name": "pooled"}
    session = {**access, "session": "counter"}
    renewal = {key: value for key, value in access.items() if key != "agent"}
    boundary = {"egress": "no_network", "network_probe": True, "isolation": "gvisor"}
    played = play(
        [
            acquire("acquire", gvisor, warm_pool="python", name="pooled", **boundary),
            acquire("again", gvisor, warm_pool="python", name="pooled", **boundary),
            {"name": "run", "namzu.sandbox.sandbox_exec": {**access, "command": "id -u; cat", "stdin": "given"}},
            {
                "name": "host",
                "ansible.builtin.add_host": "{{ {'name': 'inside'} | combine(acquired.sandbox.host_vars) }}",
            },
            {
                "name": "copy",
                "ansible.builtin.copy": {"content": "copied\n", "dest": "/workspace/copied"},
                "delegate_to": "inside",
            },
            {"name": "read", "namzu.sandbox.sandbox_exec": {**access, "command": "cat copied"}},
            {"name": "start", "namzu.sandbox.sandbox_session": {**session, "command": "echo began; sleep 600"}},
            {
                "name": "session",
                "namzu.sandbox.sandbox_session_info": session,
                "register": "shown",
                "until": "'began' in shown | string",
                "retries": 30,
                "delay": 1,
            },
            {"name": "stop", "namzu.sandbox.sandbox_session": {**session, "state": "stopped"}},
            {"name": "renew", "namzu.sandbox.sandbox_lease": {**renewal, "remaining": "2h"}},
            {"name": "check", "namzu.sandbox.boundary_check": {**access, "isolation": "gvisor"}},
            release(gvisor, "pooled"),
        ]
    )
    sandbox = played["acquire"]["sandbox"]
    assert sandbox["warm"]
    assert_gvisor(sandbox["verdict"])
    assert sandbox["verdict"]["network_probe"]["holds"], "policies are enforced"
    assert not played["again"]["changed"]
    assert played["run"]["stdout"] == "1000\ngiven"
    assert played["read"]["stdout"] == "copied\n"
    assert played["stop"]["changed"]
    assert played["renew"]["changed"]
    assert played["check"]["checks"][0]["isolation"]["level"] == "gvisor"
    assert played["release"]["released"] == ["pooled"]


def test_template_with_the_class_serves_a_direct_sandbox(play: Play, kube: Kube, gvisor: Ground) -> None:
    played = play(
        [
            acquire("acquire", gvisor, template="python", name="direct", isolation="gvisor"),
            acquire(
                "by option", gvisor, template="plain", name="chosen", isolation="gvisor", runtime_class=RUNTIME_CLASS
            ),
            release(gvisor, "direct"),
            release(gvisor, "chosen"),
        ]
    )
    for task in ("acquire", "by option"):
        assert_gvisor(played[task]["sandbox"]["verdict"])
    assert kube.get(f"{SANDBOXES.format(gvisor.pool.namespace)}/direct") is None


def test_workspace_keeps_its_disk_over_a_suspend(play: Play, gvisor: Ground) -> None:
    options = {**gvisor.options, "workspace_id": "desk/1"}

    def workspace(name: str, **more: t.Any) -> Body:
        return {"name": name, "namzu.sandbox.workspace": {**options, **more}, "register": "made"}

    def execute(name: str, command: str) -> Body:
        held = {**gvisor.pool.access, **gvisor.claimant, "workspace_id": "desk/1", "command": command}
        return {"name": name, "namzu.sandbox.sandbox_exec": held}

    running = {"template": gvisor.desk, "isolation": "gvisor"}
    played = play(
        [
            workspace("create", **running),
            execute("write", "head -c 1000000 /dev/urandom > kept; sha256sum kept"),
            workspace("suspend", state="suspended", quiesce=True),
            workspace("resume", **running),
            execute("read", "sha256sum kept"),
            workspace("delete", state="absent", delete_disk=True, wait=True),
        ]
    )
    assert [played[name]["origin"] for name in ("create", "resume")] == ["created", "resumed"]
    assert played["read"]["stdout"] == played["write"]["stdout"]
    assert played["suspend"]["workspace"]["flushed"]["path"] == "/workspace"
    for task in ("create", "resume"):
        assert_gvisor(played[task]["workspace"]["verdict"])


def test_runc_is_refused_before_anything_is_created(play: Play, kube: Kube, gvisor: Ground) -> None:
    """A template without the class, the pool of such a template, and a class that does not exist."""
    namespace = gvisor.pool.namespace
    make_pool(kube, namespace, "plain", replicas=0)
    attempts = {
        "template": {**gvisor.options, "template": "plain"},
        "pool": {**gvisor.options, "warm_pool": "plain"},
        "class": {**gvisor.options, "template": "plain", "runtime_class": "nowhere"},
    }
    tasks = [
        {
            "name": name,
            "namzu.sandbox.sandbox": {**options, "name": "weak", "isolation": "gvisor"},
            "ignore_errors": True,
        }
        for name, options in attempts.items()
    ]
    desk = {**gvisor.options, "workspace_id": "weak", "template": "desk", "isolation": "vm"}
    tasks.append({"name": "workspace", "namzu.sandbox.workspace": desk, "ignore_errors": True})
    checked = {**gvisor.claimant, "namespace": namespace, "template": "plain", "isolation": "gvisor"}
    tasks.append({"name": "check", "namzu.sandbox.boundary_check": checked, "ignore_errors": True})
    played = play(tasks)
    reasons = {name: played[name]["reason"] for name in (*attempts, "workspace", "check")}
    assert reasons == {
        "template": "isolation", "pool": "isolation", "class": "invalid-input", "workspace": "isolation",
        "check": "isolation",
    }  # fmt: skip
    names = {one["metadata"]["name"] for one in kube.items(SANDBOXES.format(namespace))}
    assert names.isdisjoint({"weak", workspace_ref(namespace, "weak").name})
    assert kube.items(EXTENSIONS.format(namespace, "sandboxclaims")) == []


def test_agent_that_claims_gvisor_on_runc_is_refused(play: Play, kube: Kube, gvisor: Ground) -> None:
    """Also where its template has the class by now: the member of the pool is older than that edit."""
    namespace = gvisor.pool.namespace
    templates = EXTENSIONS.format(namespace, "sandboxtemplates")
    body = kube.get(f"{templates}/plain")
    assert body is not None
    pod = body["spec"]["podTemplate"]
    (volume,) = [one for one in pod["spec"]["volumes"] if one["name"] == "namzu-agent"]
    original = kube.get(f"{CONFIG_MAPS.format(namespace)}/{volume['configMap']['name']}")
    assert original is not None
    data = {**original["data"], "privileges.py": original["data"]["privileges.py"] + CLAIMS_GVISOR}
    kube.request("POST", CONFIG_MAPS.format(namespace), {"metadata": {"name": "hostile"}, "data": data})
    volume["configMap"]["name"] = "hostile"
    head = {"apiVersion": body["apiVersion"], "metadata": {"name": "hostile"}}
    kube.request("POST", templates, {**head, "kind": body["kind"], "spec": body["spec"]})
    pool = make_pool(kube, namespace, "hostile", replicas=2)
    kube.until(pool, lambda found: found and (found.get("status") or {}).get("readyReplicas") == 2)
    options = {"warm_pool": "hostile", "ingress": "unverified"}
    liar = play([acquire("acquire", gvisor, **options, name="liar"), release(gvisor, "liar")])
    isolation = liar["acquire"]["sandbox"]["verdict"]["isolation"]
    assert (isolation["kernel"], isolation["level"], isolation["handler"]) == ("gvisor", "container", None)
    edited = {"spec": {"podTemplate": {"spec": {"runtimeClassName": RUNTIME_CLASS}}}}
    kube.request("PATCH", f"{templates}/hostile", edited)
    refused = play([acquire("acquire", gvisor, **options, name="liar-2", isolation="gvisor")], may_fail=True)
    assert (refused["acquire"]["failed"], refused["acquire"]["reason"]) == (True, "isolation")
    assert refused["acquire"]["object"].startswith("Pod "), "the template has the class, and the pod does not"
    assert kube.get(f"{EXTENSIONS.format(namespace, 'sandboxclaims')}/liar-2") is None
    kube.delete(pool)
