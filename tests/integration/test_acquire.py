# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Acquire, run, release on a real cluster, through the action plugin and through the module."""

from __future__ import annotations

import typing as t

import pytest

pytestmark = pytest.mark.each_ansible

CLAIMS = "/apis/extensions.agents.x-k8s.io/v1beta1/namespaces/{}/sandboxclaims"

#: ``become`` to the user we are makes Ansible run the module instead of the core in its worker.
AS_MODULE = {"become": True, "become_method": "ansible.builtin.su", "vars": {"ansible_become_exe": "su"}}


def acquire(pool: t.Any, **options: t.Any) -> dict[str, t.Any]:
    return {"name": "acquire", "namzu.sandbox.sandbox": {"warm_pool": pool.name, **pool.access, **options}}


def release(pool: t.Any, name: str, **options: t.Any) -> dict[str, t.Any]:
    task = {"namespace": pool.namespace, "name": name, "state": "absent", **options}
    return {"name": "release", "namzu.sandbox.sandbox": task}


def test_a_sandbox_is_taken_out_of_the_pool_proven_used_and_given_back(play, pool, kube):
    played = play(
        [
            {**acquire(pool, labels={"job": "4711"}), "register": "held"},
            {
                "name": "run",
                "namzu.sandbox.sandbox_exec": {
                    **pool.access,
                    "name": "{{ held.sandbox.name }}",
                    "argv": ["python3", "-c", "print(6 * 7)"],
                },
            },
            release(pool, "{{ held.sandbox.name }}", wait=True),
        ]
    )
    sandbox = played["acquire"]["sandbox"]
    assert played["acquire"]["changed"]
    assert sandbox["warm"], "the pool had members, and the claim is pristine"
    assert sandbox["sandbox"] != sandbox["name"], "a warm sandbox keeps the pool's name"
    assert sandbox["verdict"]["privileges"]["none"]
    assert sandbox["verdict"]["privileges"]["no_new_privs"]
    assert set(sandbox["timings"]) == {"claim", "ready", "bind", "probe", "boundary", "total"}
    assert played["run"]["stdout"] == "42\n"
    assert played["release"]["changed"]
    assert kube.get(f"{CLAIMS.format(pool.namespace)}/{sandbox['name']}") is None
    assert kube.get(f"/api/v1/namespaces/{pool.namespace}/pods/{sandbox['pod']}") is None


def test_the_bind_token_is_in_no_result(play, pool, kube):
    finished = play(
        [
            {**acquire(pool), "register": "held"},
            {"name": "pod", "ansible.builtin.debug": {"var": "held"}},
            release(pool, "{{ held.sandbox.name }}"),
        ]
    )
    name = finished["acquire"]["sandbox"]["pod"]
    pod = kube.get(f"/api/v1/namespaces/{pool.namespace}/pods/{name}")
    assert pod is None or pod["metadata"]["uid"] not in str(finished.tasks)


def test_a_name_is_acquired_once_and_a_second_time_left_as_it_is(play, pool):
    name = "idempotent"
    first = play([acquire(pool, name=name, labels={"a": "1"})])
    second = play([acquire(pool, name=name, labels={"a": "1"})])
    try:
        assert first["acquire"]["changed"]
        assert not second["acquire"]["changed"]
        assert first["acquire"]["sandbox"]["pod"] == second["acquire"]["sandbox"]["pod"]
    finally:
        play([release(pool, name)])


def test_another_claim_of_that_name_is_refused_and_left_alone(play, pool, kube):
    name = "taken"
    play([acquire(pool, name=name, labels={"owner": "first"})])
    try:
        refused = play([acquire(pool, name=name, labels={"owner": "second"})], may_fail=True)
        assert refused["acquire"]["failed"]
        assert refused["acquire"]["reason"] == "conflict"
        assert "owner" in refused["acquire"]["msg"]
        existing = kube.get(f"{CLAIMS.format(pool.namespace)}/{name}")
        assert existing["metadata"]["labels"] == {"owner": "first"}
    finally:
        play([release(pool, name)])


def test_releasing_what_is_gone_is_no_change(play, pool):
    assert not play([release(pool, "never-was")])["release"]["changed"]


def test_check_mode_says_what_would_happen_and_makes_nothing(play, pool, kube):
    name = "imagined"
    would = play([acquire(pool, name=name)], check=True, diff=True)
    assert would["acquire"]["changed"]
    assert [one["name"] for one in would["acquire"]["diff"]["after"]["sandboxes"]] == [name]
    assert kube.get(f"{CLAIMS.format(pool.namespace)}/{name}") is None


def test_check_mode_of_what_stands_is_no_change(play, pool):
    name = "existing"
    play([acquire(pool, name=name)])
    try:
        assert not play([acquire(pool, name=name)], check=True)["acquire"]["changed"]
        assert play([release(pool, name)], check=True)["release"]["changed"]
    finally:
        assert play([release(pool, name)])["release"]["changed"]


def test_the_module_does_what_the_action_does(play, pool):
    as_module = play([{**acquire(pool, name="as-module"), **AS_MODULE}, {**release(pool, "as-module"), **AS_MODULE}])
    as_action = play([acquire(pool, name="as-action"), release(pool, "as-action")])
    for task in ("acquire", "release"):
        # What Ansible itself adds to what a module returns.
        added = {"invocation", "ansible_facts"}
        assert set(as_module[task]) - added == set(as_action[task]) - added
    assert set(as_module["acquire"]["sandbox"]) == set(as_action["acquire"]["sandbox"])
    assert as_module["acquire"]["sandbox"]["verdict"] == as_action["acquire"]["sandbox"]["verdict"]


def test_everything_works_with_the_rules_of_the_claimant_role_alone(play, pool, claimant):
    played = play(
        [
            {**acquire(pool, **claimant), "register": "held"},
            {
                "name": "run",
                "namzu.sandbox.sandbox_exec": {
                    **pool.access,
                    **claimant,
                    "name": "{{ held.sandbox.name }}",
                    "command": "id -u",
                },
            },
            release(pool, "{{ held.sandbox.name }}", wait=True, **claimant),
        ],
        environment={"KUBECONFIG": ""},
    )
    assert played["run"]["stdout"].strip() != "0"


def test_an_agent_is_reached_through_the_api_server_where_there_is_no_route(play, pool):
    agent = {"agent": {"address": "port_forward"}}
    script = "import sys; print(len(sys.stdin.read()))"
    played = play(
        [
            {**acquire(pool, **agent), "register": "held"},
            {
                "name": "run",
                "namzu.sandbox.sandbox_exec": {
                    **pool.access,
                    **agent,
                    "name": "{{ held.sandbox.name }}",
                    "argv": ["python3", "-c", script],
                    "stdin": "{{ 'x' * 300000 }}",
                },
            },
            release(pool, "{{ held.sandbox.name }}"),
        ]
    )
    assert played["run"]["stdout"] == "300000\n"
    assert played.output == "", "the threads that carry the bytes end without a word"


@pytest.mark.parametrize(
    ("task", "expected"),
    [
        ({"argv": ["sh", "-c", "exit 3"]}, {"rc": 3, "reason": "non-zero-rc"}),
        ({"argv": ["sleep", "60"], "timeout": "1s"}, {"timed_out": True, "reason": "timeout"}),
        ({"argv": ["no-such-program"]}, {"reason": "agent-refused", "kind": "not-found"}),
    ],
    ids=["non-zero", "timeout", "not-found"],
)
def test_a_command_that_fails_says_how(play, pool, task, expected):
    played = play(
        [
            {**acquire(pool), "register": "held"},
            {
                "name": "run",
                "namzu.sandbox.sandbox_exec": {**pool.access, "name": "{{ held.sandbox.name }}", **task},
                "ignore_errors": True,
            },
            release(pool, "{{ held.sandbox.name }}"),
        ]
    )
    assert played["run"]["failed"]
    assert {key: played["run"].get(key) for key in expected} == expected


def test_stdin_environment_and_folder_reach_the_command(play, pool):
    script = "import os,sys; print(sys.stdin.read(), os.environ['GREETING'], os.getcwd())"
    task = {"argv": ["python3", "-c", script], "stdin": "in", "environment": {"GREETING": "hello"}, "chdir": "/tmp"}
    played = play(
        [
            {**acquire(pool), "register": "held"},
            {"name": "run", "namzu.sandbox.sandbox_exec": {**pool.access, "name": "{{ held.sandbox.name }}", **task}},
            release(pool, "{{ held.sandbox.name }}"),
        ]
    )
    assert played["run"]["stdout"] == "in hello /tmp\n"
