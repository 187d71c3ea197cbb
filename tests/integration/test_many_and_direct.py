# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Several sandboxes at once, sandboxes made from a template, and the inventory of both, on a real cluster."""

from __future__ import annotations

import typing as t

import pytest

pytestmark = pytest.mark.each_ansible

CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"
SANDBOXES = "/apis/agents.x-k8s.io/v1beta1/namespaces/{}/sandboxes"


def sandbox(task: str, /, **options: t.Any) -> dict[str, t.Any]:
    return {"name": task, "namzu.sandbox.sandbox": options}


def test_several_are_acquired_at_once_by_name_and_given_back_by_label(play, pool, kube):
    wanted = {**pool.access, "warm_pool": pool.name, "name": "worker", "count": 3, "labels": {"job": "many"}}
    played = play(
        [
            sandbox("first", **wanted),
            sandbox("again", **wanted),
            {"name": "info", "namzu.sandbox.sandbox_info": {"namespace": pool.namespace, "label_selector": "job=many"}},
            sandbox("release", namespace=pool.namespace, state="absent", label_selector="job=many", wait=True),
            sandbox("release again", namespace=pool.namespace, state="absent", label_selector="job=many"),
        ]
    )
    assert [one["name"] for one in played["first"]["sandboxes"]] == ["worker-0", "worker-1", "worker-2"]
    assert len({one["pod"] for one in played["first"]["sandboxes"]}) == 3
    assert not played["again"]["changed"]
    assert [one["phase"] for one in played["info"]["sandboxes"]] == ["ready"] * 3
    assert played["release"]["released"] == ["worker-0", "worker-1", "worker-2"]
    assert not played["release again"]["changed"]
    assert kube.items(CLAIMS.format(pool.namespace) + "?labelSelector=job%3Dmany") == []


def test_when_one_of_several_cannot_be_had_all_are_given_back(play, pool, kube):
    """One name of the batch is taken by a claim of somebody else."""
    other = {**pool.access, "warm_pool": pool.name, "name": "batch-1", "labels": {"owner": "other"}}
    ours = {**pool.access, "warm_pool": pool.name, "name": "batch", "count": 3, "labels": {"owner": "us"}}
    release = sandbox("tidy", namespace=pool.namespace, state="absent", names=["batch-0", "batch-1", "batch-2"])
    played = play([sandbox("other", **other), {**sandbox("ours", **ours), "ignore_errors": True}])
    try:
        failed = played["ours"]
        assert failed["failed"]
        assert failed["reason"] == "conflict"
        assert "batch-1" in [one["name"] for one in failed["failures"] if one["reason"] == "conflict"]
        existing = [body["metadata"]["name"] for body in kube.items(CLAIMS.format(pool.namespace))]
        assert existing == ["batch-1"], "what was made is given back, and the claim of the other one stays"
    finally:
        play([release])


def test_what_could_be_had_is_kept_when_the_task_says_so(play, pool, kube):
    other = {**pool.access, "warm_pool": pool.name, "name": "kept-1", "labels": {"owner": "other"}}
    ours = {**pool.access, "warm_pool": pool.name, "name": "kept", "count": 2, "labels": {"owner": "us"}}
    release = sandbox("tidy", namespace=pool.namespace, state="absent", names=["kept-0", "kept-1"])
    kept = sandbox("ours", **ours, on_failure="keep")
    played = play([sandbox("other", **other), {**kept, "ignore_errors": True}])
    try:
        assert played["ours"]["failed"]
        assert [one["name"] for one in played["ours"]["sandboxes"]] == ["kept-0"]
        assert [one["name"] for one in played["ours"]["failures"]] == ["kept-1"]
        existing = {body["metadata"]["name"] for body in kube.items(CLAIMS.format(pool.namespace))}
        assert existing == {"kept-0", "kept-1"}
    finally:
        play([release])


def test_an_empty_selector_releases_nothing(play, pool):
    refused = play([sandbox("release", namespace=pool.namespace, state="absent", label_selector=" ")], may_fail=True)
    assert refused["release"]["reason"] == "invalid-input"


def test_a_sandbox_is_made_from_a_template_used_and_given_back(play, pool, kube):
    wanted = {**pool.access, "template": pool.template, "name": "direct", "labels": {"job": "direct"}}
    played = play(
        [
            sandbox("first", **wanted),
            sandbox("again", **wanted),
            {"name": "run", "namzu.sandbox.sandbox_exec": {**pool.access, "name": "direct", "command": "hostname"}},
            {"name": "info", "namzu.sandbox.sandbox_info": {"namespace": pool.namespace, "name": "direct"}},
            sandbox("release", namespace=pool.namespace, state="absent", name="direct", wait=True),
            sandbox("release again", namespace=pool.namespace, state="absent", name="direct"),
        ]
    )
    made = played["first"]["sandbox"]
    assert not made["warm"]
    assert made["labels"]["sandbox.namzu.ai/template"] == pool.template, "the boundary's policies select by it"
    assert made["verdict"]["privileges"]["none"]
    assert not played["again"]["changed"]
    assert played["run"]["stdout"].strip() == made["pod"]
    assert [(one["kind"], one["template"]) for one in played["info"]["sandboxes"]] == [("direct", pool.template)]
    assert played["release"]["changed"]
    assert not played["release again"]["changed"]
    assert kube.get(f"{SANDBOXES.format(pool.namespace)}/direct") is None
    assert kube.get(f"/api/v1/namespaces/{pool.namespace}/pods/direct") is None


def test_a_member_of_a_pool_is_never_released_by_its_own_name(play, pool, kube):
    member = kube.items(SANDBOXES.format(pool.namespace))[0]["metadata"]["name"]
    released = play([sandbox("release", namespace=pool.namespace, state="absent", name=member)])
    assert not released["release"]["changed"]
    assert kube.get(f"{SANDBOXES.format(pool.namespace)}/{member}") is not None


def test_a_runtime_class_is_refused_for_a_pool_before_anything_is_made(play, pool, kube):
    options = {**pool.access, "warm_pool": pool.name, "runtime_class": "kata", "name": "classy"}
    refused = play([sandbox("acquire", **options)], may_fail=True)
    assert refused["acquire"]["failed"]
    assert kube.get(f"{CLAIMS.format(pool.namespace)}/classy") is None


def test_capacity_says_what_the_pool_can_serve(play, pool):
    task = {"namespace": pool.namespace, "warm_pool": pool.name}
    played = play([{"name": "capacity", "namzu.sandbox.capacity_info": task}])
    capacity = played["capacity"]["capacity"]
    assert capacity["desired"] >= 2
    assert 0 <= capacity["headroom"] <= capacity["ready"] <= capacity["desired"]


def test_the_inventory_can_be_queried(play, pool):
    wanted = {**pool.access, "warm_pool": pool.name, "name": "queried", "ttl": "10m"}
    query = {"namespace": pool.namespace, "query": "[?name=='queried'].lease_left | [0]"}
    played = play(
        [
            sandbox("acquire", **wanted),
            {"name": "info", "namzu.sandbox.sandbox_info": query},
            sandbox("release", namespace=pool.namespace, state="absent", name="queried"),
        ]
    )
    assert 500 < played["info"]["queried"] <= 601


def test_the_recover_playbook_gives_back_what_carries_the_label(play, pool, kube):
    wanted = {**pool.access, "warm_pool": pool.name, "name": "lost", "labels": {"host": "crashed"}}
    play([sandbox("acquire", **wanted)])
    names = {"recover_namespace": pool.namespace, "recover_selector": "host=crashed"}
    would = play.playbook("namzu.sandbox.recover", variables=names, check=True)
    assert would["Release them"]["released"] == ["lost"]
    recovered = play.playbook("namzu.sandbox.recover", variables=names)
    assert recovered["Release them"]["released"] == ["lost"]
    assert kube.get(f"{CLAIMS.format(pool.namespace)}/lost") is None


def test_the_recover_playbook_refuses_to_release_everything(play, pool):
    names = {"recover_namespace": pool.namespace, "recover_selector": " "}
    assert play.playbook("namzu.sandbox.recover", variables=names, may_fail=True).rc != 0


def test_the_capacity_gate_opens_when_there_is_room_and_fails_when_there_is_none(play, pool):
    names = {"gate_namespace": pool.namespace, "gate_warm_pool": pool.name, "gate_delay": 1}
    assert play.playbook("namzu.sandbox.capacity_gate", variables={**names, "gate_sandboxes": 1}).rc == 0
    full = {**names, "gate_sandboxes": 500, "gate_retries": 1}
    assert play.playbook("namzu.sandbox.capacity_gate", variables=full, may_fail=True).rc != 0
