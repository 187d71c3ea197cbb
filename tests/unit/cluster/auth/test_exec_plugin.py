# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users that log in by a program: run by the official client, used as any other credential."""

from __future__ import annotations

import datetime
import json
import pathlib
import sys
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access, resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.credentials import LibraryCredential
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import AccessError

from ..authorities import Authority
from ..scripted import Scripted, answer, claim

SECRET = "hush-hush-7"


class Plugin:
    """An exec plugin that prints what a test says, and counts its runs."""

    def __init__(self, folder: pathlib.Path) -> None:
        self._output = folder / "output"
        self._runs = folder / "runs"
        self._runs.write_text("")
        self._script = folder / "plugin.py"
        self._script.write_text(
            "import pathlib, sys\n"
            f"with open({str(self._runs)!r}, 'a') as stream: stream.write('x')\n"
            f"print(pathlib.Path({str(self._output)!r}).read_text())\n"
        )

    def says(self, **status: str) -> None:
        kind = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential"}
        self._output.write_text(json.dumps({**kind, "status": status}))

    def says_text(self, text: str) -> None:
        self._output.write_text(text)

    @property
    def runs(self) -> int:
        return len(self._runs.read_text())

    def config(self, server: str = "http://h") -> dict[str, t.Any]:
        run = {
            "apiVersion": "client.authentication.k8s.io/v1",
            "command": sys.executable,
            "args": [str(self._script)],
            "interactiveMode": "Never",
        }
        return {
            "current-context": "main",
            "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
            "clusters": [{"name": "c", "cluster": {"server": server}}],
            "users": [{"name": "u", "user": {"exec": run}}],
        }


@pytest.fixture
def plugin(tmp_path: pathlib.Path) -> Plugin:
    return Plugin(tmp_path)


def header(access: Access) -> str:
    assert access.credential is not None
    return access.credential.header()


@pytest.mark.parametrize("form", ["dictionary", "file"])
def test_token_of_the_plugin_is_the_credential(plugin: Plugin, tmp_path: pathlib.Path, form: str) -> None:
    plugin.says(token=SECRET)
    kubeconfig: t.Any = plugin.config()
    if form == "file":
        kubeconfig = str(tmp_path / "config")
        pathlib.Path(kubeconfig).write_text(yaml.safe_dump(plugin.config()))
    access = resolve_access({"kubeconfig": kubeconfig}, {})
    assert header(access) == f"Bearer {SECRET}"
    assert SECRET not in repr(access)


def test_token_of_the_plugin_is_sent(plugin: Plugin) -> None:
    plugin.says(token=SECRET)
    with Scripted(answer(200, claim())) as server:
        with Client(resolve_access({"kubeconfig": plugin.config(server.url)}, {})) as client:
            client.get(CLAIM.ref("team-a", "one"))
        assert server.received[0].all("Authorization") == [f"Bearer {SECRET}"]


def test_token_that_lives_is_not_asked_for_again(plugin: Plugin) -> None:
    later = datetime.datetime.now(datetime.UTC) + datetime.timedelta(hours=1)
    plugin.says(token=SECRET, expirationTimestamp=later.strftime("%Y-%m-%dT%H:%M:%SZ"))
    access = resolve_access({"kubeconfig": plugin.config()}, {})
    runs = plugin.runs
    header(access)
    header(access)
    assert plugin.runs == runs


def test_token_that_has_expired_is_asked_for_again(plugin: Plugin) -> None:
    earlier = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    plugin.says(token="old", expirationTimestamp=earlier.strftime("%Y-%m-%dT%H:%M:%SZ"))
    access = resolve_access({"kubeconfig": plugin.config()}, {})
    plugin.says(token="new")
    assert header(access) == "Bearer new"


def test_client_certificate_of_the_plugin_is_used(plugin: Plugin) -> None:
    issued = Authority("test").issue("client")
    plugin.says(clientCertificateData=issued.certificate, clientKeyData=issued.key)
    access = resolve_access({"kubeconfig": plugin.config()}, {})
    assert access.credential is None
    assert access.client_pem is not None
    assert issued.certificate.strip() in access.client_pem
    assert issued.key.strip() in access.client_pem


@pytest.mark.parametrize("text", ["", "no json", "{}", '{"status": {"token": "' + SECRET])
def test_plugin_that_gives_nothing_is_refused_unquoted(plugin: Plugin, text: str) -> None:
    plugin.says_text(text)
    with pytest.raises(AccessError) as caught:
        header(resolve_access({"kubeconfig": plugin.config()}, {}))
    assert SECRET not in str(caught.value)


def test_plugin_that_is_not_there_is_refused(plugin: Plugin) -> None:
    config = plugin.config()
    config["users"][0]["user"]["exec"]["command"] = "/no/such/program"
    with pytest.raises(AccessError, match="could not log in"):
        resolve_access({"kubeconfig": config}, {})


def test_renewal_that_fails_is_refused_unquoted() -> None:
    class Configuration:
        api_key: t.ClassVar[dict[str, str]] = {}

        @staticmethod
        def refresh_api_key_hook(_configuration: object) -> t.NoReturn:
            raise ValueError(SECRET)

    with pytest.raises(AccessError) as caught:
        LibraryCredential(Configuration()).header()
    assert SECRET not in str(caught.value)
