# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The options of the connection are those of the verbs, and what a verb returns for a host fits them."""

from __future__ import annotations

import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.connection import sandbox as plugin
from ansible_collections.namzu.sandbox.plugins.doc_fragments import connection_backend
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import ENVIRONMENT
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import ACCESS, AGENT, BACKEND
from ansible_collections.namzu.sandbox.plugins.module_utils.front.results.host_vars import (
    container_host_vars,
    host_vars,
)
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.target import target_from

OPTIONS: dict[str, dict[str, t.Any]] = {
    **yaml.safe_load(plugin.DOCUMENTATION)["options"],
    **yaml.safe_load(connection_backend.ModuleDocFragment.DOCUMENTATION)["options"],
}
SANDBOX = {"name": "box", "namespace": "agents", "uid": "5f0c"}
SECRET = "very-secret-token-5f1d"


def values(**changes: t.Any) -> t.Callable[[str], t.Any]:
    """What ``get_option`` gives when nothing is set but ``changes``."""
    given = {name: option.get("default") for name, option in OPTIONS.items()} | {"name": "box"} | changes
    return given.__getitem__


@pytest.mark.parametrize("name", ACCESS)
def test_every_access_option_of_the_verbs_is_one_of_the_connection(name: str) -> None:
    assert OPTIONS[name]["type"] == ACCESS[name]["type"]
    assert OPTIONS[name].get("default") == ACCESS[name].get("default")


@pytest.mark.parametrize("name", AGENT["agent"]["options"])
def test_every_agent_option_of_the_verbs_is_one_of_the_connection(name: str) -> None:
    wanted = AGENT["agent"]["options"][name]
    assert {key: OPTIONS[f"agent_{name}"].get(key) for key in wanted} == wanted


@pytest.mark.parametrize("name", OPTIONS)
def test_every_option_can_be_a_variable_of_the_host(name: str) -> None:
    assert f"ansible_sandbox_{name}" in [one["name"] for one in OPTIONS[name]["vars"]]


@pytest.mark.parametrize("name", sorted(set(ENVIRONMENT) - {"api_key", "proxy"}))
def test_the_environment_variables_are_those_of_the_verbs(name: str) -> None:
    assert [one["name"] for one in OPTIONS[name]["env"]] == list(ENVIRONMENT[name])


@pytest.mark.parametrize("name", ["api_key", "proxy"])
def test_what_may_be_a_secret_is_no_setting_that_ansible_config_lists(name: str) -> None:
    assert not {"env", "ini"} & set(OPTIONS[name])


def test_host_vars_are_options_of_the_connection() -> None:
    known = {one["name"] for option in OPTIONS.values() for one in option["vars"]}
    params = dict.fromkeys(ACCESS, "x") | {"agent": {"port": 2048, "address": "pod_ip"}}
    made = host_vars(SANDBOX, params, {})
    assert made.pop("ansible_connection") == "namzu.sandbox.sandbox"
    # Without it Ansible looks for an interpreter, and warns.
    assert made.pop("ansible_python_interpreter") == "python3"
    assert set(made) <= known
    assert (made["ansible_sandbox_agent_port"], made["ansible_sandbox_agent_address"]) == (2048, "pod_ip")


@pytest.mark.parametrize("name", BACKEND)
def test_every_backend_option_of_the_verbs_is_one_of_the_connection(name: str) -> None:
    assert OPTIONS[name]["type"] == BACKEND[name]["type"]
    assert OPTIONS[name].get("choices") == BACKEND[name].get("choices")


def test_host_vars_carry_paths_and_names_and_no_secret() -> None:
    params = {"api_key": SECRET, "proxy": f"http://user:{SECRET}@proxy", "kubeconfig": {"token": SECRET}, "host": "h"}
    made = host_vars(SANDBOX, params, {"K8S_AUTH_API_KEY": SECRET, "K8S_AUTH_CONTEXT": "there"})
    assert SECRET not in str(made)
    assert (made["ansible_sandbox_host"], made["ansible_sandbox_context"]) == ("h", "there")


@pytest.mark.parametrize(
    ("params", "environ", "path"),
    [
        ({"kubeconfig": "/option"}, {"K8S_AUTH_KUBECONFIG": "/auth", "KUBECONFIG": "/kube"}, "/option"),
        ({}, {"K8S_AUTH_KUBECONFIG": "/auth", "KUBECONFIG": "/kube"}, "/auth"),
        ({}, {"KUBECONFIG": "/kube"}, "/kube"),
        ({"kubeconfig": {"content": "x"}}, {"KUBECONFIG": "/kube"}, None),
        ({"host": "h"}, {"KUBECONFIG": "/kube"}, "/kube"),
        ({"host": "h", "api_key": "x"}, {"KUBECONFIG": "/kube"}, None),
        ({"host": "h"}, {"K8S_AUTH_API_KEY": "x", "KUBECONFIG": "/kube"}, None),
        ({"host": "h", "client_cert": "/c", "client_key": "/k"}, {"KUBECONFIG": "/kube"}, None),
        ({}, {}, None),
    ],
)
def test_the_kubeconfig_of_a_host_is_the_one_that_the_task_used(
    params: dict[str, t.Any], environ: dict[str, str], path: str | None
) -> None:
    assert host_vars(SANDBOX, params, environ).get("ansible_sandbox_kubeconfig") == path


def test_a_sandbox_of_an_engine_has_the_engine_and_no_namespace() -> None:
    made = container_host_vars(
        {"name": "box", "uid": "5f0c", "namespace": None}, {"tls": None}, {"DOCKER_HOST": "unix:///run/d.sock"}
    )
    assert made == {
        "ansible_connection": "namzu.sandbox.sandbox",
        "ansible_python_interpreter": "python3",
        "ansible_sandbox_backend": "container",
        "ansible_sandbox_name": "box",
        "ansible_sandbox_uid": "5f0c",
        "ansible_sandbox_agent_heartbeat": "15s",
        "ansible_sandbox_docker_host": "unix:///run/d.sock",
    }


def test_the_defaults_make_a_target() -> None:
    target = target_from(values())
    assert (target.name, target.port, target.mode, target.follow) == ("box", 1024, "service", False)
    assert (target.connect_timeout, target.request_timeout) == (30.0, 30.0)


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"connect_timeout": "0"}, "connect_timeout"),
        ({"request_timeout": "0.5s"}, "request_timeout"),
        ({"connect_timeout": "soon"}, "connect_timeout"),
        ({"agent_port": 0}, "agent_port"),
        ({"agent_port": 65536}, "agent_port"),
    ],
)
def test_what_cannot_be_honoured_is_refused_by_its_name(change: dict[str, t.Any], word: str) -> None:
    with pytest.raises(InputError, match=word):
        target_from(values(**change))


def test_the_heartbeat_of_a_host_is_read_and_checked() -> None:
    assert target_from(values()).heartbeat == 15.0
    assert target_from(values(agent_heartbeat="2m")).heartbeat == 120.0
    for value in ("0.01s", "2h", "often"):
        with pytest.raises(InputError, match="agent_heartbeat"):
            target_from(values(agent_heartbeat=value))


def test_the_heartbeat_of_a_task_is_one_of_the_host_that_it_returns() -> None:
    made = host_vars(SANDBOX, {"agent": {"heartbeat": "2m"}}, {})
    assert made["ansible_sandbox_agent_heartbeat"] == "2m"
    assert target_from(values(agent_heartbeat=made["ansible_sandbox_agent_heartbeat"])).heartbeat == 120.0
