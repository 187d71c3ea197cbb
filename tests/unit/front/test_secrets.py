# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No secret in what a play prints at any verbosity, in its results, or in the log of the machine."""

from __future__ import annotations

import base64
import contextlib
import json
import typing as t
from unittest import mock

import pytest
from ansible.module_utils import basic

from ansible_collections.namzu.sandbox.plugins.module_utils.front import module as module_front
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import sensitive_values
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox import VERB

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE
from ...faults.fake.plan import Fault, How, Request
from ...faults.fake.server import TOKEN
from .playing import Played, Task, access, play, present

try:
    from ansible.module_utils.testing import patch_module_args
except ImportError:  # ansible-core 2.18

    @contextlib.contextmanager
    def patch_module_args(args: dict[str, t.Any]) -> t.Iterator[None]:
        """What later versions do: these are the arguments of the module that runs in the block."""
        with mock.patch.object(basic, "_ANSIBLE_ARGS", json.dumps({"ANSIBLE_MODULE_ARGS": args}).encode()):
            yield


KEY = base64.b64encode(b"-----BEGIN PRIVATE KEY----- hush").decode()
PASSWORD = "pass-hush-word"
SECRETS = (TOKEN, KEY, PASSWORD, "wrong-token-hush")


def kubeconfig(cluster: FakeCluster, token: str = TOKEN) -> dict[str, t.Any]:
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": NAMESPACE}}],
        "clusters": [{"name": "c", "cluster": {"server": cluster.server.url}}],
        "users": [{"name": "u", "user": {"token": token, "client-key-data": KEY, "password": PASSWORD}}],
    }


def tasks(cluster: FakeCluster) -> list[Task]:
    """Successes, failures of the server, and wrong options, each with a secret in another place."""
    by_dict = {**present(cluster), "kubeconfig": kubeconfig(cluster)}
    del by_dict["host"], by_dict["api_key"]

    def sandbox(**options: t.Any) -> Task:
        return {"namzu.sandbox.sandbox": options}

    return [
        sandbox(**present(cluster)),
        sandbox(**by_dict),
        sandbox(**{**by_dict, "kubeconfig": kubeconfig(cluster, "wrong-token-hush")}),
        sandbox(**{**present(cluster), "api_key": "wrong-token-hush"}),
        sandbox(**{**by_dict, "no_such_option": 1}),
        sandbox(**{**present(cluster), "no_such_option": 1}),
        sandbox(**{**by_dict, "state": "there"}),
        sandbox(**{**by_dict, "agent": {"port": "many"}}),
        sandbox(**{**by_dict, "context": "other"}),
        sandbox(**{**present(cluster), "proxy": f"http://ann:{PASSWORD}@127.0.0.1:1", "ready_timeout": "1s"}),
        sandbox(**{**present(cluster), "proxy": f"ftp://ann:{PASSWORD}@127.0.0.1:1"}),
        {"namzu.sandbox.sandbox_exec": {**access(cluster), "name": "none", "argv": ["true"]}},
    ]


@pytest.fixture(scope="module", params=["local", "elsewhere"])
def played(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Played:
    with FakeCluster() as cluster:
        return play(tmp_path_factory.mktemp("secrets"), tasks(cluster), connection=request.param, verbosity=3)


def test_tasks_fail_and_succeed_as_they_should(played: Played) -> None:
    assert [bool(result["failed"]) for result in played.results] == [False] * 2 + [True] * 10


@pytest.mark.parametrize("secret", SECRETS)
def test_output_at_verbosity_three_shows_no_secret(played: Played, secret: str) -> None:
    assert secret not in played.output


@pytest.mark.parametrize("secret", SECRETS)
def test_result_shows_no_secret(played: Played, secret: str) -> None:
    assert secret not in str(played.results)


def test_credential_in_the_environment_of_the_task_is_not_shown(tmp_path_factory: pytest.TempPathFactory) -> None:
    with FakeCluster() as cluster:
        environment = {"K8S_AUTH_HOST": cluster.server.url, "K8S_AUTH_API_KEY": TOKEN}
        options = {"name": "build-1", "namespace": NAMESPACE, "state": "absent"}
        refused = Fault(How.STATUS, 403)
        cluster.plan.add(refused, Request("delete", "sandboxclaims"), nth=2)
        task = {"namzu.sandbox.sandbox": options, "environment": environment}
        done = play(tmp_path_factory.mktemp("environment"), [task, task], verbosity=3)
    assert [result["failed"] for result in done.results] == [False, True]
    assert TOKEN not in done.output + str(done.results)


class Left(Exception):
    """The module has ended."""


def logged_by(arguments: dict[str, t.Any], monkeypatch: pytest.MonkeyPatch) -> str:
    """What a module writes to the machine's log."""
    lines: list[str] = []

    def log(_module: object, message: str, log_args: object = None) -> None:
        lines.append(f"{message} {log_args}")

    def leave(*_: object, **__: object) -> t.NoReturn:
        raise Left

    monkeypatch.setattr(basic.AnsibleModule, "log", log)
    monkeypatch.setattr(module_front, "perform", leave)
    with patch_module_args(arguments), pytest.raises(Left):
        module_front.run_module(VERB)
    return "\n".join(lines)


@pytest.mark.parametrize("secret", SECRETS[:3])
def test_log_of_the_machine_shows_no_secret(monkeypatch: pytest.MonkeyPatch, secret: str) -> None:
    with FakeCluster() as cluster:
        arguments = {
            "warm_pool": "p",
            "kubeconfig": kubeconfig(cluster),
            "api_key": TOKEN,
            "proxy": f"http://a:{PASSWORD}@h",
        }
    logged = logged_by(arguments, monkeypatch)
    assert "warm_pool=p" in logged
    assert secret not in logged


VARIABLES = [{"name": "AWS_SECRET_ACCESS_KEY", "value": "of-the-key"}, {"name": "AWS_PROFILE", "value": "default"}]


@pytest.mark.parametrize(
    ("params", "values"),
    [
        ({}, set()),
        ({"api_key": None, "kubeconfig": None, "proxy": None}, set()),
        ({"api_key": "k"}, {"k"}),
        ({"kubeconfig": "/path"}, set()),
        (
            {"kubeconfig": {"users": [{"user": {"token": "a", "password": "b", "client-key-data": "c"}}]}},
            {"a", "b", "c"},
        ),
        ({"kubeconfig": {"users": [{"user": {"auth-provider": {"config": {"id-token": "a"}}}}]}}, {"a"}),
        ({"kubeconfig": {"users": [{"user": {"token": ""}}]}}, set()),
        ({"kubeconfig": {"users": "none", "token": 7}}, {"7"}),
        ({"proxy": "http://h:1"}, set()),
        ({"proxy": "http://u:p@h:1"}, {"p"}),
        ({"proxy": "http://u:p/w@h:1"}, {"p/w"}),
        ({"proxy": "http://u@h:1"}, set()),
        ({"kubeconfig": {"clusters": [{"cluster": {"proxy-url": "http://u:p@h"}}]}}, {"p"}),
        ({"proxy": "http://u:p%2Fw@h:1"}, {"p%2Fw", "p/w"}),
        ({"kubeconfig": {"users": [{"user": {"exec": {"env": VARIABLES}}}]}}, {"of-the-key"}),
    ],
    ids=lambda value: str(sorted(value) if isinstance(value, set) else value),
)
def test_values_that_must_appear_nowhere(params: dict[str, t.Any], values: set[str]) -> None:
    assert sensitive_values(params) == values
