# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""No text form of anything, and no error, shows a secret."""

from __future__ import annotations

import base64
import pathlib
import traceback
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.kubeconfig import _Entry, login_from_kubeconfig
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.pod import BoundPod

from .scripted import Scripted, answer, status_object

SECRETS = st.text(st.characters(min_codepoint=33, max_codepoint=126), min_size=12, max_size=40).filter(
    lambda text: len(set(text)) > 6
)


def kubeconfig(secret: str, server: str = "https://h") -> dict[str, t.Any]:
    user = {"token": secret, "password": secret, "username": "ann"}
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": server}}],
        "users": [{"name": "u", "user": user}],
    }


def texts(thing: object) -> str:
    return f"{thing!r} {thing!s} {thing}"


@settings(max_examples=20)
@given(SECRETS)
def test_access_and_client_do_not_show_it(secret: str) -> None:
    access = resolve_access({"host": "https://h", "api_key": secret}, {})
    with Client(access) as client:
        assert secret not in texts(access) + texts(access.credential) + texts(client)


@given(SECRETS)
def test_login_does_not_show_it(secret: str) -> None:
    login = login_from_kubeconfig(kubeconfig(secret))
    assert secret not in texts(login) + texts(login.credential) + texts(_Entry("u", {"token": secret}))


@given(SECRETS)
def test_password_of_a_proxy_does_not_show(secret: str) -> None:
    assert secret not in texts(resolve_access({"host": "h", "api_key": "k", "proxy": f"http://u:{secret}@p"}, {}))


@given(SECRETS)
def test_bind_token_does_not_show(secret: str) -> None:
    address = AgentAddress("h", 1024, secret)
    pod = BoundPod(name="p", uid=secret, ip=None, labels={})
    assert secret not in texts(address) + texts(Agent(address)) + texts(pod)


@given(SECRETS)
def test_environment_of_a_verb_does_not_show(secret: str) -> None:
    assert secret not in texts(Context(check_mode=False, environ={"K8S_AUTH_API_KEY": secret}))


SECRET = "hush/hush+7=="

FAILURES: dict[str, t.Callable[[pathlib.Path], dict[str, t.Any]]] = {
    "nobody-there": lambda _: {"host": "http://127.0.0.1:1", "api_key": SECRET},
    "no-tls": lambda _: {"host": "https://127.0.0.1:1", "api_key": SECRET},
    "token-of-two-lines": lambda _: {"host": "http://127.0.0.1:1", "api_key": f"a\n{SECRET}"},
    "token-beyond-ascii": lambda _: {"host": "http://127.0.0.1:1", "api_key": f"\N{SNOWMAN}{SECRET}"},
    "password-in-the-address": lambda _: {"host": f"https://u:{SECRET}@h", "api_key": "k"},
    "password-of-a-proxy": lambda _: {"host": "https://h", "api_key": "k", "proxy": f"http://u:{SECRET}@127.0.0.1:1"},
    "malformed-proxy": lambda _: {"host": "https://h", "api_key": "k", "proxy": f"ftp://u:{SECRET}@h"},
    "no-context": lambda _: {"kubeconfig": kubeconfig(SECRET), "context": "other"},
    "no-server": lambda _: {"kubeconfig": kubeconfig(SECRET, "")},
    "wrong-type": lambda _: {"kubeconfig": {**kubeconfig(SECRET), "users": {"token": SECRET}}},
    "no-authority": lambda _: {
        "kubeconfig": kubeconfig(SECRET),
        "ca_cert": "/no/such/file",
    },
    "client-key-that-is-none": lambda folder: {
        "host": "https://h",
        "client_cert": str(folder / "secret"),
        "client_key": str(folder / "secret"),
    },
    "key-data-that-is-none": lambda _: {
        "kubeconfig": {
            **kubeconfig(SECRET),
            "users": [{"name": "u", "user": {"client-key-data": SECRET, "client-certificate-data": SECRET}}],
        }
    },
    "login-by-a-program-that-fails": lambda _: {
        "kubeconfig": {
            **kubeconfig(SECRET),
            "users": [
                {"name": "u", "user": {"exec": {"command": "/no/such", "env": [{"name": "A", "value": SECRET}]}}}
            ],
        }
    },
}


@pytest.mark.parametrize("failure", FAILURES)
def test_no_error_shows_it(failure: str, tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").write_text(SECRET)
    options = FAILURES[failure](tmp_path)
    with pytest.raises(SandboxError) as caught, Client(resolve_access(options, {})) as client:
        client.get(CLAIM.ref("team-a", "one"), Deadline(2.0))
    shown = texts(caught.value) + str(caught.value.fields()) + "".join(traceback.format_exception(caught.value))
    assert SECRET not in shown
    assert base64.b64encode(SECRET.encode()).decode() not in shown


@pytest.mark.parametrize("status", [401, 403, 404, 409, 500])
def test_no_answer_brings_it_back(status: int) -> None:
    with Scripted(answer(status, status_object(status, "Because"))) as server:
        access = resolve_access({"host": server.url, "api_key": SECRET}, {})
        with Client(access) as client, pytest.raises(SandboxError) as caught:
            client.get(CLAIM.ref("team-a", "one"))
    assert SECRET not in "".join(traceback.format_exception(caught.value))
