# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Users that log in by a program: run by the official client, used as any other credential."""

from __future__ import annotations

import datetime
import json
import pathlib
import subprocess
import sys
import time
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access, resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.credentials import LibraryCredential
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.exec_plugin import ExecPlugin
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import AccessError

from ...front.playing import play
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


@pytest.mark.parametrize(
    "entry",
    [
        {"args": ["a\0b"]},
        {"args": "text"},
        {"args": [["nested"]]},
        {"env": ["NAME=value"]},
        {"env": {"NAME": "value"}},
        {"env": [{"name": "A\0", "value": "b"}]},
        {"env": [{"name": "A=B", "value": "c"}]},
        {"env": [{"name": "", "value": "c"}]},
        {"command": "a\0b"},
    ],
)
def test_entry_that_no_program_can_be_started_from_is_refused(plugin: Plugin, entry: dict[str, t.Any]) -> None:
    config = plugin.config()
    config["users"][0]["user"]["exec"].update(entry)
    with pytest.raises(AccessError, match="could not log in"):
        resolve_access({"kubeconfig": config}, {})


def test_plugin_that_prints_without_end_is_stopped(plugin: Plugin) -> None:
    config = plugin.config()
    config["users"][0]["user"]["exec"].update(command="yes", args=[SECRET])
    with pytest.raises(AccessError, match="printed more than") as caught:
        resolve_access({"kubeconfig": config}, {})
    assert SECRET not in str(caught.value)


def test_extension_of_the_cluster_that_is_no_mapping_is_ignored(plugin: Plugin) -> None:
    plugin.says(token=SECRET)
    config = plugin.config()
    config["users"][0]["user"]["exec"]["provideClusterInfo"] = True
    config["clusters"][0]["cluster"]["extensions"] = ["text"]
    assert header(resolve_access({"kubeconfig": config}, {})) == f"Bearer {SECRET}"


def test_renewal_that_fails_is_refused_unquoted() -> None:
    class Configuration:
        api_key: t.ClassVar[dict[str, str]] = {}

        @staticmethod
        def refresh_api_key_hook(_configuration: object) -> t.NoReturn:
            raise ValueError(SECRET)

    with pytest.raises(AccessError) as caught:
        LibraryCredential(Configuration()).header()
    assert SECRET not in str(caught.value)


def hanging(folder: pathlib.Path) -> tuple[dict[str, t.Any], pathlib.Path]:
    """A kubeconfig whose login program hangs with a child of its own, and the file with the pids of both."""
    pids = folder / "pids"
    script = f"sleep 600 & echo $! $$ > {pids}.new; mv {pids}.new {pids}; wait"
    run = {"apiVersion": "client.authentication.k8s.io/v1", "command": "sh", "args": ["-c", script]}
    config = {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}],
        "users": [{"name": "u", "user": {"exec": run}}],
    }
    return config, pids


def assert_ended(pids: pathlib.Path) -> None:
    for pid in pids.read_text().split():
        state = pathlib.Path("/proc", pid, "status")
        until = time.monotonic() + 20.0
        while state.exists() and "State:\tZ" not in state.read_text() and time.monotonic() < until:
            time.sleep(0.01)
        assert not state.exists() or "State:\tZ" in state.read_text()


def test_program_that_hangs_is_ended_with_its_process_group(tmp_path: pathlib.Path) -> None:
    config, pids = hanging(tmp_path)
    with pytest.raises(AccessError) as caught:
        resolve_access({"kubeconfig": config}, {}, seconds=1.0)
    assert (caught.value.reason, caught.value.retryable) == ("access", False)
    assert_ended(pids)


def test_renewal_that_hangs_is_ended_within_the_request(plugin: Plugin, tmp_path: pathlib.Path) -> None:
    earlier = datetime.datetime.now(datetime.UTC) - datetime.timedelta(hours=1)
    plugin.says(token="old", expirationTimestamp=earlier.strftime("%Y-%m-%dT%H:%M:%SZ"))
    config, (hang, pids) = plugin.config(), hanging(tmp_path)
    access = resolve_access({"kubeconfig": config}, {})
    config["users"][0]["user"]["exec"].update(hang["users"][0]["user"]["exec"])
    credential = access.credential
    assert isinstance(credential, ExecPlugin)
    credential._argv = ["sh", *hang["users"][0]["user"]["exec"]["args"]]
    with Client(access, request_timeout=1.0) as client, pytest.raises(AccessError):
        client.get(CLAIM.ref("team-a", "one"))
    assert_ended(pids)


@pytest.mark.parametrize("connection", ["local", "elsewhere"])
def test_task_fails_in_time(tmp_path: pathlib.Path, connection: str) -> None:
    config, pids = hanging(tmp_path)
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    options = {"kubeconfig": str(tmp_path / "config"), "request_timeout": "1s", "namespace": "team-a"}
    over = {
        "ansible_connection": "namzu.sandbox.sandbox",
        "ansible_sandbox_name": "a",
        "ansible_sandbox_namespace": "team-a",
        "ansible_sandbox_kubeconfig": options["kubeconfig"],
        "ansible_sandbox_request_timeout": 1,
    }
    tasks = [
        {"namzu.sandbox.sandbox_info": options},
        {"ansible.builtin.raw": "true", "vars": over, "ignore_unreachable": True},
    ]
    played = play(tmp_path / "play", tasks, connection=connection)
    assert (played.results[0]["failed"], played.results[0]["reason"]) == (True, "access")
    assert "did not end within 1 s" in played.results[1]["msg"]
    assert_ended(pids)


def test_inventory_fails_in_time(tmp_path: pathlib.Path) -> None:
    config, pids = hanging(tmp_path)
    (tmp_path / "config").write_text(yaml.safe_dump(config))
    source = {"plugin": "namzu.sandbox.sandboxes", "kubeconfig": str(tmp_path / "config"), "request_timeout": "1s"}
    (tmp_path / "a.sandboxes.yml").write_text(yaml.safe_dump(source))
    done = subprocess.run(
        [sys.executable, "-m", "ansible", "inventory", "-i", "a.sandboxes.yml", "--list"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "ANSIBLE_NOCOLOR": "true", "LANG": "C.UTF-8"},
        capture_output=True,
        text=True,
        timeout=120,
        check=False,
    )
    assert "did not end within 1 s" in done.stdout + done.stderr
    assert_ended(pids)
