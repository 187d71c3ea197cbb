# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What went wrong for others, tried on our acquires; the issues of agent-sandbox are named by their numbers."""

from __future__ import annotations

import threading
import time
import typing as t

import pytest

GROUP = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"
PODS = "/api/v1/namespaces/{}/pods"

#: Seconds that Ansible's start, one attempt and the clean-up may take on two busy cores.
SLACK = 30.0


@pytest.fixture
def make(kube, pool):
    """Make templates, by a copy of the pool's own, and pools beside it; they go when the test ends."""
    root, made = GROUP.format(pool.namespace), []

    def post(kind: str, plural: str, name: str, spec: dict[str, t.Any]) -> None:
        body = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": kind, "metadata": {"name": name}}
        kube.request("POST", f"{root}/{plural}", {**body, "spec": spec})
        made.append(f"{root}/{plural}/{name}")

    def template(name: str, **metadata: t.Any) -> None:
        spec = kube.get(f"{root}/sandboxtemplates/{pool.template}")["spec"]
        pod = {**spec["podTemplate"], "metadata": {**spec["podTemplate"].get("metadata", {}), **metadata}}
        post("SandboxTemplate", "sandboxtemplates", name, {**spec, "podTemplate": pod})

    def warm_pool(name: str, template: str, replicas: int) -> None:
        spec = {"replicas": replicas, "sandboxTemplateRef": {"name": template}}
        post("SandboxWarmPool", "sandboxwarmpools", name, spec)
        kube.until(
            f"{root}/sandboxwarmpools/{name}",
            lambda body: replicas == 0 or ((body or {}).get("status") or {}).get("readyReplicas") == replicas,
        )

    post_of = {"template": template, "warm_pool": warm_pool}
    yield lambda what, *arguments, **keywords: post_of[what](*arguments, **keywords)
    for path in reversed(made):
        kube.delete(path)


@pytest.fixture
def sandbox(pool):
    """A task about a sandbox of the pool's namespace."""

    def task(name: str, /, **options: t.Any) -> dict[str, t.Any]:
        wanted = {**pool.access, "ingress": "unverified", "ready_timeout": "90s", **options}
        if options.get("state") == "absent":
            wanted = {"namespace": pool.namespace, **options}
        return {"name": name, "namzu.sandbox.sandbox": wanted}

    return task


def test_444_template_that_comes_five_seconds_late_is_waited_for(play, kube, pool, make, sandbox):
    make("warm_pool", "late", "late", 0)
    coming = threading.Timer(5.0, make, ("template", "late"))
    coming.start()
    began = time.monotonic()
    try:
        held = {**sandbox("acquire", warm_pool="late", wait_for_template=True), "register": "held"}
        played = play([held, sandbox("release", state="absent", name="{{ held.sandbox.name }}")])
    finally:
        coming.join()
    assert played["acquire"]["sandbox"]["timings"]["total"] > 1000
    assert time.monotonic() - began < 5 + SLACK, "and not after the minute in which the controller looks again"


def test_764_member_that_is_older_than_its_template_is_reported_or_refused(play, kube, pool, make, sandbox):
    make("template", "edited")
    make("warm_pool", "edited", "edited", 2)
    container = kube.get(f"{GROUP.format(pool.namespace)}/sandboxtemplates/edited")["spec"]["podTemplate"]["spec"]
    container["containers"][0]["env"].append({"name": "EDITED", "value": "1"})
    patch = {"spec": {"podTemplate": {"spec": container}}}
    kube.request("PATCH", f"{GROUP.format(pool.namespace)}/sandboxtemplates/edited", patch)
    played = play(
        [
            sandbox("fresh", warm_pool=pool.name, name="fresh", on_stale="report"),
            sandbox("reported", warm_pool="edited", name="reported", on_stale="report"),
            {**sandbox("refused", warm_pool="edited", name="refused", on_stale="refuse"), "ignore_errors": True},
            sandbox("release", state="absent", names=["fresh", "reported", "refused"]),
        ]
    )
    assert played["fresh"]["sandbox"]["stale"] is False, "what the controller adds by itself is no difference"
    assert (played["reported"]["sandbox"]["warm"], played["reported"]["sandbox"]["stale"]) == (True, True)
    assert played["reported"]["warnings"] == ["Sandbox reported is older than its template."]
    assert (played["refused"]["reason"], played["refused"]["retryable"]) == ("stale", True)
    assert "podTemplate.spec.containers" in played["refused"]["msg"]
    assert played["release"]["released"] == ["fresh", "reported"], "the refused one was given back already"


def test_1422_and_two_pools_of_one_template_give_the_member_that_was_asked_for(play, kube, pool, make, sandbox):
    make("warm_pool", "twin", pool.template, 1)
    played = play([sandbox("acquire", warm_pool="twin", name="of-twin")])
    acquired = played["acquire"]["sandbox"]
    try:
        assert acquired["sandbox"].startswith("twin-")
        body = kube.get(f"{SANDBOXES.format(pool.namespace)}/{acquired['sandbox']}")
        assert [owner["uid"] for owner in body["metadata"]["ownerReferences"]] == [acquired["uid"]]
        assert not [label for label in acquired["labels"] if "claim-uid" in label], "a pod does not say whose it is"
    finally:
        play([sandbox("release", state="absent", name="of-twin")])


def test_1367_six_cold_claims_at_once_all_bind(play, kube, pool, make, sandbox):
    make("warm_pool", "cold", pool.template, 0)
    played = play(
        [
            sandbox("acquire", warm_pool="cold", name="six", count=6),
            sandbox("release", state="absent", names=[f"six-{number}" for number in range(6)]),
        ]
    )
    assert len({one["pod"] for one in played["acquire"]["sandboxes"]}) == 6
    assert not any(one["warm"] for one in played["acquire"]["sandboxes"])
    claims = kube.items(f"{GROUP.format(pool.namespace)}/sandboxclaims")
    assert not [body for body in claims if body["metadata"]["name"].startswith("six-")]


def test_418_second_pod_of_a_sandbox_is_refused(play, kube, pool, sandbox):
    played = play([sandbox("acquire", warm_pool=pool.name, name="doubled")])
    acquired = played["acquire"]["sandbox"]
    pod = kube.get(f"{PODS.format(pool.namespace)}/{acquired['pod']}")
    kept = ("name", "image", "imagePullPolicy", "securityContext", "resources")
    container = {key: value for key, value in pod["spec"]["containers"][0].items() if key in kept}
    spec = {"containers": [container], "securityContext": pod["spec"]["securityContext"], "restartPolicy": "Never"}
    metadata = {key: pod["metadata"][key] for key in ("labels", "ownerReferences")}
    second = {"metadata": {**metadata, "name": "second"}, "spec": {**spec, "automountServiceAccountToken": False}}
    try:
        kube.request("POST", PODS.format(pool.namespace), second)
        claim = f"{GROUP.format(pool.namespace)}/sandboxclaims/doubled"
        kube.until(claim, lambda body: "MultiplePods" in str((body or {}).get("status")))
        again = {"name": "exec", "namzu.sandbox.sandbox_exec": {**pool.access, "name": "doubled", "command": "true"}}
        info = {"name": "info", "namzu.sandbox.sandbox_info": {"namespace": pool.namespace, "name": "doubled"}}
        refused = play(
            [
                {**sandbox("acquire", warm_pool=pool.name, name="doubled"), "ignore_errors": True},
                {**again, "ignore_errors": True},
                info,
            ]
        )
        for task in ("acquire", "exec"):
            assert (refused[task]["reason"], refused[task]["controller_reason"]) == ("not-ready", "MultiplePods")
        (line,) = refused["info"]["sandboxes"]
        assert (line["phase"], line["reason"]) == ("failed", "MultiplePods")
    finally:
        play([sandbox("release", state="absent", name="doubled")])
        kube.delete(f"{PODS.format(pool.namespace)}/second")


def test_574_label_that_the_template_has_with_another_value_fails_at_once(play, kube, pool, make, sandbox):
    make("template", "labelled", labels={"sandbox.users.io/team": "a"})
    make("warm_pool", "labelled", "labelled", 0)
    task = sandbox("acquire", warm_pool="labelled", name="conflict", pod_labels={"sandbox.users.io/team": "b"})
    began = time.monotonic()
    result = play([task], may_fail=True)["acquire"]
    assert time.monotonic() - began < SLACK, "and not at the end of its ninety seconds"
    assert (result["reason"], result["retryable"]) == ("claim-rejected", False)
    assert result["controller_reason"] == "ReconcilerError"
    assert 'claim requests "b"' in result["controller_message"]
    assert kube.get(f"{GROUP.format(pool.namespace)}/sandboxclaims/conflict") is None


def test_inventory_tells_unmanaged_and_rejected_ones_from_those_that_were_acquired(play, kube, pool):
    root, claims = SANDBOXES.format(pool.namespace), f"{GROUP.format(pool.namespace)}/sandboxclaims"
    pod = {"spec": {"containers": [{"name": "agent", "image": "localhost/none:1", "imagePullPolicy": "Never"}]}}
    made = {"apiVersion": "agents.x-k8s.io/v1beta1", "kind": "Sandbox", "metadata": {"name": "by-hand"}}
    claim = {"apiVersion": "extensions.agents.x-k8s.io/v1beta1", "kind": "SandboxClaim", "metadata": {"name": "lost"}}
    try:
        kube.request("POST", root, {**made, "spec": {"podTemplate": pod}})
        kube.request("POST", claims, {**claim, "spec": {"warmPoolRef": {"name": "nowhere"}}})
        kube.until(f"{claims}/lost", lambda body: "WarmPoolNotFound" in str((body or {}).get("status")))
        info = {"name": "info", "namzu.sandbox.sandbox_info": {"namespace": pool.namespace}}
        found = {one["name"]: one for one in play([info])["info"]["sandboxes"]}
        assert found["by-hand"]["kind"] == "unmanaged"
        assert (found["lost"]["kind"], found["lost"]["phase"]) == ("claim", "rejected")
        assert (found["lost"]["reason"], "nowhere" in found["lost"]["message"]) == ("WarmPoolNotFound", True)
    finally:
        kube.delete(f"{root}/by-hand")
        kube.delete(f"{claims}/lost")
