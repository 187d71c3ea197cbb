# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The filter ``template`` makes what role ``template`` applies, and no request takes the hardening away."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml
from ansible.errors import AnsibleFilterError

from ansible_collections.namzu.sandbox.plugins.filter.template import FilterModule
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.template.hardened import DEFAULTS, REQUIRED

ROLE = pathlib.Path(__file__).parents[3] / "roles" / "template"
template = FilterModule().filters()["template"]
WANTED: dict[str, t.Any] = {"name": "python", "namespace": "agents", "image": "image:1"}


def read(part: str) -> dict[str, t.Any]:
    return dict(yaml.safe_load((ROLE / part).read_text(encoding="utf-8")))


def container(**asked: t.Any) -> dict[str, t.Any]:
    (found,) = template({**WANTED, **asked})["spec"]["podTemplate"]["spec"]["containers"]
    return dict(found)


def test_role_has_the_options_and_the_defaults_of_the_filter() -> None:
    options = {f"template_{name}" for name in (*DEFAULTS, *REQUIRED)}
    documented = read("meta/argument_specs.yml")["argument_specs"]["main"]["options"]
    assert documented.keys() - {"template_state"} == options
    asked_for = read("vars/main.yml")["template_asked_for"]
    assert {f"template_{name}" for name in asked_for} == options
    defaults = read("defaults/main.yml")
    defaults.pop("template_state")
    assert defaults == {f"template_{name}": value for name, value in DEFAULTS.items()}
    assert {name: documented[name]["default"] for name in defaults} == defaults


def test_pod_has_no_privileges() -> None:
    pod = template(WANTED)["spec"]["podTemplate"]["spec"]
    assert pod["automountServiceAccountToken"] is False
    assert pod["securityContext"]["runAsNonRoot"] is True
    assert pod["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert container()["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "privileged": False,
        "readOnlyRootFilesystem": True,
        "runAsNonRoot": True,
        "capabilities": {"drop": ["ALL"]},
    }
    assert {"hostNetwork", "hostPID", "hostIPC", "serviceAccountName"}.isdisjoint(pod)


@pytest.mark.parametrize(
    ("given", "field"),
    [
        ({}, None),
        ({"host_users": True}, None),
        ({"host_users": "true"}, None),
        ({"host_users": False}, False),
        ({"host_users": "False"}, False),
    ],
)
def test_user_namespace_is_asked_for(given: dict[str, t.Any], field: bool | None) -> None:
    pod = template({**WANTED, **given})["spec"]["podTemplate"]["spec"]
    assert pod.get("hostUsers") is field


def test_user_namespace_is_a_boolean() -> None:
    with pytest.raises(AnsibleFilterError, match="host_users"):
        template({**WANTED, "host_users": "maybe"})


def test_template_mounts_the_agent_that_the_filter_makes() -> None:
    agent = template(WANTED, object="agent")
    (volume,) = [
        one for one in template(WANTED)["spec"]["podTemplate"]["spec"]["volumes"] if one["name"] == "namzu-agent"
    ]
    assert volume["configMap"]["name"] == agent["metadata"]["name"]
    assert agent["immutable"] is True
    assert agent["data"].keys() == {path.name for path in (ROLE / "files" / "agent").glob("*.py")}
    assert (
        agent["metadata"]["labels"] == template(WANTED)["metadata"]["labels"] == {"sandbox.namzu.ai/template": "python"}
    )


def test_label_of_the_template_cannot_be_another() -> None:
    label = {"sandbox.namzu.ai/template": "other", "team": "a"}
    made = template({**WANTED, "labels": label, "pod_labels": label})
    for metadata in (made["metadata"], made["spec"]["podTemplate"]["metadata"]):
        assert metadata["labels"] == {"sandbox.namzu.ai/template": "python", "team": "a"}


def test_variables_are_passed_to_commands_by_name() -> None:
    env = [{"name": "B", "value": "1"}, {"name": "A", "value": "2"}]
    assert container(env=env)["env"][0] == {"name": "NAMZU_AGENT_PASS", "value": "A,B"}
    chosen = [{"name": "NAMZU_AGENT_PASS", "value": "A"}, *env]
    assert [entry["name"] for entry in container(env=chosen)["env"]].count("NAMZU_AGENT_PASS") == 1
    assert "NAMZU_AGENT_PASS" not in str(container()["env"])


def test_disk_of_that_name_takes_the_place_of_the_workspaces_folder() -> None:
    claims = [{"metadata": {"name": "workspace"}, "spec": {}}]
    made = template({**WANTED, "volume_claim_templates": claims})["spec"]
    assert made["volumeClaimTemplates"] == claims
    assert "workspace" not in [volume["name"] for volume in made["podTemplate"]["spec"]["volumes"]]


def test_numbers_may_come_as_texts() -> None:
    assert container(agent_port="2048")["ports"][0]["containerPort"] == 2048


@pytest.mark.parametrize(
    ("changes", "words"),
    [
        ({"image": ""}, "needs image"),
        ({"name": None}, "needs name"),
        ({"name": "n" * 64}, "name is"),
        ({"privileged": True}, "has no privileged"),
        ({"run_as_user": 0}, "run_as_user is 0"),
        ({"run_as_user": True}, "run_as_user is True"),
        ({"agent_port": 80}, "agent_port is 80"),
        ({"agent_roots": ["relative"]}, "agent_roots has 'relative'"),
    ],
)
def test_what_pods_would_not_bear_is_refused_in_words(changes: dict[str, t.Any], words: str) -> None:
    with pytest.raises(AnsibleFilterError, match=words):
        template({**WANTED, **changes})


@pytest.mark.parametrize(("value", "options"), [("python", {}), (WANTED, {"object": "pool"})])
def test_what_is_no_request_is_refused(value: t.Any, options: dict[str, str]) -> None:
    with pytest.raises(AnsibleFilterError):
        template(value, **options)
