# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A workspace as what people work in: its sessions, as a host of the inventory and by its id, and through a suspend."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest
import yaml

Task = dict[str, t.Any]

ADDRESS = os.environ.get("NAMZU_TEST_AGENT_ADDRESS") or "pod_ip"
WORKSPACE = "user/17"
#: The cluster's default class serves; what is asked for is small.
DISK = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "16Mi"}}}
ROLES = ("namespace", "template", "boundary")

#: For a task that is not the host's.
HERE = {
    "delegate_to": "localhost",
    "vars": {"ansible_connection": "local", "ansible_python_interpreter": "{{ ansible_playbook_python }}"},
}


@pytest.fixture(scope="module")
def lived(play: t.Any, new_namespace: t.Any, image: str, tmp_path_factory: pytest.TempPathFactory) -> t.Any:
    """One run over the workspace's life."""
    folder = tmp_path_factory.mktemp("lived")
    namespace = new_namespace()
    where = {"namespace": namespace, "workspace_id": WORKSPACE, "agent": {"address": ADDRESS}}
    names = {
        "namespace_name": namespace,
        "template_namespace": namespace,
        "template_name": "desk",
        "template_image": image,
        "template_agent_roots": ["/workspace", "/tmp"],
        "template_volume_claim_templates": [{"metadata": {"name": "workspace"}, "spec": DISK}],
        "boundary_namespace": namespace,
        "boundary_template": "desk",
    }

    def workspace(name: str, **options: t.Any) -> Task:
        return {"name": name, "namzu.sandbox.workspace": {**where, "template": "desk", **options}}

    def session(name: str, **options: t.Any) -> Task:
        given = {**where, "session": "serve", **options}
        return {"name": name, "namzu.sandbox.sandbox_session": given, "diff": True}

    def read(name: str, **options: t.Any) -> Task:
        return {"name": name, "namzu.sandbox.sandbox_session_info": {**where, **options}}

    def say(name: str, words: str, **more: t.Any) -> Task:
        return {"name": name, "ansible.builtin.raw": f"echo {words}", "changed_when": False, **more}

    serve = {"command": "echo up; exec sleep 1000", "chdir": "/tmp", "environment": {"A": "1"}}
    before = [
        *({"ansible.builtin.include_role": {"name": f"namzu.sandbox.{role}"}} for role in ROLES),
        workspace("make"),
        {**session("would start", **serve), "check_mode": True},
        session("start", **serve),
        session("start again", **serve),
        {**session("start another", **{**serve, "environment": {"A": "2"}}), "ignore_errors": True},
        {**read("said", session="serve"), "register": "said", "until": "said.offset > 0", "retries": 50, "delay": 0.2},
        {"name": "in the workspace", "namzu.sandbox.sandbox_exec": {**where, "argv": ["pwd"]}},
        {"ansible.builtin.meta": "refresh_inventory"},
        {
            "ansible.builtin.add_host": {
                "name": "by-id",
                "ansible_connection": "namzu.sandbox.sandbox",
                "ansible_sandbox_namespace": namespace,
                "ansible_sandbox_workspace": WORKSPACE,
                "ansible_sandbox_agent_address": ADDRESS,
            }
        },
    ]
    listed = [
        say("as listed", "{{ sandbox_kind }} $PWD"),
        {**workspace("sleep", state="suspended"), **HERE},
        {**session("start asleep", **serve), **HERE, "ignore_errors": True},
        {**workspace("wake"), **HERE},
        say("refused", "in vain", ignore_unreachable=True),
        say("followed", "followed", vars={"ansible_sandbox_follow": True}),
        say("the same since", "here"),
    ]
    by_id = [
        {"name": "command", "ansible.builtin.command": "pwd"},
        {"name": "copy", "ansible.builtin.copy": {"content": "kept", "dest": "kept", "mode": "0600"}},
        {"name": "fetch", "ansible.builtin.fetch": {"src": "kept", "dest": str(folder / "kept"), "flat": True}},
        {
            "name": "fetch from outside",
            "ansible.builtin.fetch": {"src": "/etc/passwd", "dest": str(folder / "passwd"), "flat": True},
            "ignore_errors": True,
        },
    ]
    after = [
        read("none in the new pod"),
        session("start anew", **serve),
        session("stop", state="stopped"),
        session("stop again", state="stopped"),
        workspace("delete", state="absent", delete_disk=True, wait=True),
    ]
    here = {"connection": "local", "hosts": "localhost", "vars": names}
    plays = [
        {**here, "tasks": before},
        {"hosts": "listed", "tasks": listed},
        {"hosts": "by-id", "tasks": by_id},
        {**here, "tasks": after},
    ]
    inventory = folder / "desks.sandboxes.yml"
    options = {"plugin": "namzu.sandbox.sandboxes", "namespaces": [namespace], "agent": {"address": ADDRESS}}
    inventory.write_text(yaml.safe_dump({**options, "groups": {"listed": True}}))
    book = folder / "play.yml"
    book.write_text(yaml.safe_dump([{"gather_facts": False, **one} for one in plays], sort_keys=False))
    done = play.playbook(str(book), environment={"ANSIBLE_INVENTORY": str(inventory)}, may_fail=True)
    assert "delete" in [name for name, _result in done.tasks], (done.failures, done.output[-3000:])
    return done, folder


def test_a_session_runs_once_under_its_name_and_says_what_it_does(lived: tuple[t.Any, pathlib.Path]) -> None:
    done, _folder = lived
    assert [done[name]["changed"] for name in ("would start", "start", "start again")] == [True, True, False]
    assert done["would start"]["session"] is None
    assert done["start again"]["session"]["id"] == done["start"]["session"]["id"]
    assert done["start another"]["reason"] == "conflict"
    assert (done["said"]["stdout"], done["said"]["offset"], done["said"]["lost"]) == ("up\n", 3, 0)
    assert done["in the workspace"]["stdout"] == "/workspace\n"


def test_no_session_survives_its_pod_and_one_is_started_anew(lived: tuple[t.Any, pathlib.Path]) -> None:
    done, _folder = lived
    assert done["start asleep"]["reason"] == "suspended"
    assert done["none in the new pod"]["sessions"] == []
    assert done["start anew"]["changed"]
    assert done["start anew"]["session"]["id"] != done["start"]["session"]["id"]
    assert (done["stop"]["changed"], done["stop again"]["changed"]) == (True, False)
    assert done["stop"]["session"]["running"] is False


def test_the_inventory_lists_it_and_a_new_pod_is_followed_when_told_to_only(lived: tuple[t.Any, pathlib.Path]) -> None:
    done, _folder = lived
    assert done["as listed"]["stdout"].strip() == "workspace /workspace"
    assert done["refused"]["unreachable"]
    assert "ansible_sandbox_follow" in done["refused"]["msg"]
    assert done["followed"]["stdout"].strip() == "followed"
    assert done["the same since"]["stdout"].strip() == "here"


def test_a_host_by_its_workspace_id_works_and_keeps_to_the_roots(lived: tuple[t.Any, pathlib.Path]) -> None:
    done, folder = lived
    assert done["command"]["stdout"] == "/workspace"
    assert done["copy"]["changed"]
    assert (folder / "kept").read_text() == "kept"
    assert done["fetch from outside"]["failed"]
    assert "outside" in done["fetch from outside"]["msg"]
    assert not (folder / "passwd").exists()
