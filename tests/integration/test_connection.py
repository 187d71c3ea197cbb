# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection plugin on real pods: what any host can do, and what happens when a pod is not what it was."""

from __future__ import annotations

import base64
import hashlib
import os
import pathlib
import typing as t

import pytest
import yaml

from .conftest import ADDRESS, Body, Kube, Play, Played, Pool

pytestmark = pytest.mark.each_ansible

HERE = pathlib.Path(__file__).parent / "connection"
ODD = "汉语-['foo bar'].txt"
API = "/apis/extensions.agents.x-k8s.io/v1beta1"


@pytest.fixture(scope="module")
def box(play: Play, pool: Pool) -> t.Iterator[Body]:
    """A sandbox that the tests of this file share, as the module returned it."""
    options = {"warm_pool": pool.name, "name": "connected", "ttl": "15m", **pool.access}
    yield play([{"name": "acquire", "namzu.sandbox.sandbox": options}])["acquire"]["sandbox"]
    play([{"namzu.sandbox.sandbox": {"name": "connected", "state": "absent", "namespace": pool.namespace}}])


@pytest.fixture
def on(play: Play, tmp_path: pathlib.Path) -> t.Callable[..., Played]:
    """Runs tasks on a host that has these variables."""

    def run(host_vars: Body, tasks: list[Body], **more: t.Any) -> Played:
        inventory = tmp_path / "inventory.yml"
        inventory.write_text(yaml.safe_dump({"all": {"hosts": {"box": host_vars}}}))
        book = tmp_path / "play.yml"
        book.write_text(yaml.safe_dump([{"hosts": "box", "gather_facts": False, "tasks": tasks}]))
        return play.playbook(str(book), environment={"ANSIBLE_INVENTORY": str(inventory)}, **more)

    return run


def test_all_that_ansible_does_on_a_host_works_in_a_sandbox(play: Play, box: Body, tmp_path: pathlib.Path) -> None:
    (tmp_path / ODD).write_text("汉语\n")
    variables = {"host_vars": box["host_vars"], "local": str(tmp_path)}
    done = play.playbook(str(HERE / "builtins.yml"), variables=variables)

    assert done["raw"]["stdout"].strip() == "汉语"
    assert done["find the interpreter and gather facts"]["ansible_facts"]["ansible_system"] == "Linux"
    assert (done["command"]["rc"], done["command"]["stdout"]) == (3, "中文 'and' \"quotes\"")
    assert done["shell"]["stdout"].startswith("environment-")
    assert not done["shell"]["stdout"].endswith("-0")
    assert done["script"]["stdout"] == "one|two words|"
    assert done["copy of an odd name"]["changed"]
    assert not done["the same copy"]["changed"]
    made = ["above.sh", "content", "template", "under.sh", ODD]
    assert sorted(path.rpartition("/")[2] for path in done["list"]["stdout_lines"]) == sorted(made)
    assert (tmp_path / "fetched").read_text() == "汉语\n"
    assert base64.b64decode(done["slurp"]["content"]).decode().strip() == "汉语 box"
    assert done["async status"]["stdout"] == "begun\nended"
    assert done["without pipelining"]["stdout"] == "copied"
    assert [item["stdout"] for item in done["items"]["results"]] == ["1", "2", "3"]
    assert done["become"]["failed"]
    assert "no privileges" in done["become"]["msg"]
    assert done["still there"]["ping"] == "pong"


def test_a_large_file_goes_in_and_comes_back(on: t.Callable[..., Played], box: Body, tmp_path: pathlib.Path) -> None:
    block = os.urandom(1 << 20)
    with (tmp_path / "large").open("wb") as file:
        for number in range(20):
            file.write(block[number:] + block[:number])
    done = on(
        box["host_vars"],
        [
            {"name": "in", "ansible.builtin.copy": {"src": str(tmp_path / "large"), "dest": "large", "mode": "0600"}},
            {"name": "out", "ansible.builtin.fetch": {"src": "large", "dest": str(tmp_path / "back"), "flat": True}},
            {"name": "away", "ansible.builtin.file": {"path": "large", "state": "absent"}},
        ],
    )
    assert done["in"]["changed"]
    digests = [hashlib.sha256((tmp_path / name).read_bytes()).hexdigest() for name in ("large", "back")]
    assert digests[0] == digests[1]


def test_a_pod_that_there_is_no_route_to_is_reached_through_the_api_server(
    on: t.Callable[..., Played], box: Body
) -> None:
    host_vars = {**box["host_vars"], "ansible_sandbox_agent_address": "port_forward"}
    done = on(host_vars, [{"name": "say", "ansible.builtin.raw": "echo through the API server"}])
    assert done["say"]["stdout"].strip() == "through the API server"


def test_a_sandbox_that_is_not_there_makes_the_host_unreachable_by_name(
    on: t.Callable[..., Played], pool: Pool
) -> None:
    host_vars = {
        "ansible_connection": "namzu.sandbox.sandbox",
        "ansible_sandbox_namespace": pool.namespace,
        "ansible_sandbox_name": "nobody",
    }
    done = on(host_vars, [{"name": "try", "ansible.builtin.ping": {}}], may_fail=True)
    assert done["try"]["unreachable"]
    assert f"{pool.namespace}/nobody" in done["try"]["msg"]


def test_another_sandbox_under_the_name_is_refused(on: t.Callable[..., Played], box: Body) -> None:
    host_vars = {**box["host_vars"], "ansible_sandbox_uid": "00000000-0000-4000-8000-000000000000"}
    done = on(host_vars, [{"name": "try", "ansible.builtin.ping": {}}], may_fail=True)
    assert done["try"]["unreachable"]
    assert "is not the object with uid '00000000-" in done["try"]["msg"]


def test_no_secret_shows_at_any_verbosity(
    play: Play, box: Body, pool: Pool, claimant: Body, kube: Kube, tmp_path: pathlib.Path
) -> None:
    host_vars = {
        "ansible_connection": "namzu.sandbox.sandbox",
        **{
            key: value
            for key, value in box["host_vars"].items()
            if key.endswith(("_name", "_namespace", "_agent_address", "_uid"))
        },
        **{f"ansible_sandbox_{option}": value for option, value in claimant.items()},
    }
    inventory, book = tmp_path / "inventory.yml", tmp_path / "play.yml"
    inventory.write_text(yaml.safe_dump({"all": {"hosts": {"box": host_vars}}}))
    tasks = [{"ansible.builtin.copy": {"content": "x", "dest": "x", "mode": "0600"}}]
    book.write_text(yaml.safe_dump([{"hosts": "box", "gather_facts": False, "tasks": tasks}]))
    done = play.command("-vvvvvv", "-i", str(inventory), str(book))
    assert done.returncode == 0, done.stdout + done.stderr
    said = done.stdout + done.stderr
    assert "EXEC" in said, "the play was not verbose"
    pod = kube.get(f"/api/v1/namespaces/{pool.namespace}/pods/{box['pod']}")
    assert pod is not None
    assert pod["metadata"]["uid"] not in said
    assert claimant["api_key"] not in said


def test_a_new_pod_is_taken_when_the_play_says_so_and_not_before(
    on: t.Callable[..., Played], play: Play, pool: Pool, kube: Kube
) -> None:
    options = {"warm_pool": pool.name, "name": "moved", "ttl": "10m", **pool.access}
    moved = play([{"name": "acquire", "namzu.sandbox.sandbox": options}])["acquire"]["sandbox"]
    claim = f"{API}/namespaces/{pool.namespace}/sandboxclaims/moved"
    first = kube.get(f"/api/v1/namespaces/{pool.namespace}/pods/{moved['pod']}")
    assert first is not None
    pod = {"kind": "Pod", "namespace": pool.namespace, "name": moved["pod"]}
    bound = {"api_version": API.removeprefix("/apis/"), "kind": "SandboxClaim", "namespace": pool.namespace}
    here = {
        "delegate_to": "localhost",
        "vars": {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"},
    }
    again = {"register": "found", "retries": 100, "delay": 1, **here}
    another = f"found.resources | rejectattr('metadata.uid', 'eq', '{first['metadata']['uid']}') | list"
    ready = (
        "| map(attribute='status.conditions') | flatten | selectattr('type', 'eq', 'Ready') | map(attribute='status')"
    )
    try:
        done = on(
            moved["host_vars"],
            [
                {"name": "before", "ansible.builtin.raw": "echo before"},
                {"name": "delete", "kubernetes.core.k8s": {**pod, "state": "absent"}, **here},
                {"name": "pod", "kubernetes.core.k8s_info": pod, "until": f"'True' in ({another} {ready})", **again},
                {
                    "name": "claim",
                    "kubernetes.core.k8s_info": {**bound, "name": "moved"},
                    "until": f"'True' in (found.resources {ready})",
                    **again,
                },
                {"name": "refused", "ansible.builtin.raw": "echo in vain", "ignore_unreachable": True},
                {"ansible.builtin.meta": "reset_connection"},
                {"name": "after", "ansible.builtin.raw": "echo after"},
            ],
        )
        assert done["before"]["stdout"].strip() == "before"
        assert done["refused"]["unreachable"]
        assert "ansible_sandbox_follow" in done["refused"]["msg"]
        assert done["after"]["stdout"].strip() == "after"
    finally:
        kube.delete(claim)


def test_the_address_of_the_tests_is_what_the_module_put_into_host_vars(box: Body) -> None:
    assert box["host_vars"]["ansible_sandbox_agent_address"] == ADDRESS
