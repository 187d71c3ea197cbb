# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Where the API server is and who we are: which source wins, and what is refused."""

from __future__ import annotations

import pathlib
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import (
    ENVIRONMENT,
    Access,
    resolve_access,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import AccessError


def kubeconfig(server: str, token: str | None = None, **user: t.Any) -> dict[str, t.Any]:
    """A kubeconfig with one context, ``main``."""
    return {
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": f"of-{server}"}}],
        "clusters": [{"name": "c", "cluster": {"server": f"https://{server}"}}],
        "users": [{"name": "u", "user": {"token": token or f"token-of-{server}", **user}}],
    }


class Machine:
    """A machine with every source there is; tests take away what they do not want."""

    def __init__(self, folder: pathlib.Path) -> None:
        self.folder = folder
        self.account = folder / "account"
        self.home = folder / "home"
        (self.home / ".kube").mkdir(parents=True)
        (self.home / ".kube" / "config").write_text(yaml.safe_dump(kubeconfig("home")))
        self.account.mkdir()
        for name, content in (("token", "token-of-account\n"), ("ca.crt", "CA"), ("namespace", "of-account\n")):
            (self.account / name).write_text(content)
        self.in_pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "6443"}

    def config(self, name: str) -> str:
        """Write a kubeconfig whose server has that name, and say where."""
        path = self.folder / f"{name}.yaml"
        path.write_text(yaml.safe_dump(kubeconfig(name)))
        return str(path)

    def access(self, options: dict[str, t.Any], environ: dict[str, str]) -> Access:
        return resolve_access(options, environ, str(self.account))


@pytest.fixture
def machine(tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch) -> Machine:
    made = Machine(tmp_path)
    monkeypatch.setenv("HOME", str(made.home))
    return made


def who(access: Access) -> tuple[str, str | None]:
    """Server and Authorization header."""
    return access.server, access.credential.header() if access.credential else None


SOURCES = ["option-host", "variable-host", "option-file", "variable-file", "KUBECONFIG", "service-account", "home"]
SERVERS = {
    "option-host": ("https://option", "Bearer option-key"),
    "variable-host": ("https://variable", "Bearer variable-key"),
    "option-file": ("https://option-file", "Bearer token-of-option-file"),
    "variable-file": ("https://variable-file", "Bearer token-of-variable-file"),
    "KUBECONFIG": ("https://kubeconfig-file", "Bearer token-of-kubeconfig-file"),
    "service-account": ("https://10.0.0.1:6443", "Bearer token-of-account"),
    "home": ("https://home", "Bearer token-of-home"),
}


@pytest.mark.parametrize("first", range(len(SOURCES)), ids=SOURCES)
def test_first_source_that_is_there_wins(machine: Machine, first: int) -> None:
    options: dict[str, t.Any] = {}
    environ: dict[str, str] = {}
    for source in SOURCES[first:]:
        if source == "option-host":
            options |= {"host": "https://option", "api_key": "option-key"}
        elif source == "variable-host":
            environ |= {"K8S_AUTH_HOST": "https://variable", "K8S_AUTH_API_KEY": "variable-key"}
        elif source == "option-file":
            options |= {"kubeconfig": machine.config("option-file")}
        elif source == "variable-file":
            environ |= {"K8S_AUTH_KUBECONFIG": machine.config("variable-file")}
        elif source == "KUBECONFIG":
            environ |= {"KUBECONFIG": machine.config("kubeconfig-file")}
        elif source == "service-account":
            environ |= machine.in_pod
    assert who(machine.access(options, environ)) == SERVERS[SOURCES[first]]


def test_host_with_a_credential_reads_no_file(machine: Machine) -> None:
    options = {"host": "https://h", "api_key": "k", "kubeconfig": "/no/such/file", "context": "none"}
    assert who(machine.access(options, {"KUBECONFIG": "/nor/this"})) == ("https://h", "Bearer k")


def test_host_without_a_credential_takes_the_rest_from_the_kubeconfig(machine: Machine) -> None:
    options = {"host": "https://h", "kubeconfig": machine.config("file")}
    assert who(machine.access(options, {})) == ("https://h", "Bearer token-of-file")


def test_host_alone_is_anonymous(machine: Machine) -> None:
    (machine.home / ".kube" / "config").unlink()
    assert who(machine.access({"host": "https://h"}, {})) == ("https://h", None)


def test_named_context_looks_into_the_home_and_not_at_the_service_account(machine: Machine) -> None:
    assert who(machine.access({"context": "main"}, machine.in_pod))[0] == "https://home"


def test_service_account_over_ipv6_is_bracketed(machine: Machine) -> None:
    environ = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    assert machine.access({}, environ).server == "https://[fd00::1]:443"


def test_service_account_names_namespace_and_authority(machine: Machine) -> None:
    access = machine.access({}, machine.in_pod)
    assert (access.namespace, access.ca_pem) == ("of-account", "CA")


def test_service_account_without_a_cluster_around_is_no_source(machine: Machine) -> None:
    assert who(machine.access({}, {}))[0] == "https://home"


def test_nothing_at_all_says_what_was_looked_for(machine: Machine) -> None:
    (machine.home / ".kube" / "config").unlink()
    with pytest.raises(AccessError) as caught:
        machine.access({}, {})
    for word in ("K8S_AUTH_KUBECONFIG", "KUBECONFIG", "~/.kube/config", "service account"):
        assert word in str(caught.value)


@pytest.mark.parametrize(
    ("variable", "value", "field", "expected"),
    [
        ("K8S_AUTH_VALIDATE_CERTS", "no", "verify", False),
        ("K8S_AUTH_VERIFY_SSL", "False", "verify", False),
        ("K8S_AUTH_VERIFY_SSL", "0", "verify", False),
        ("K8S_AUTH_VERIFY_SSL", "yes", "verify", True),
        ("K8S_AUTH_PROXY", "http://p:1", "proxy", "http://p:1"),
        ("K8S_AUTH_IMPERSONATE_USER", "ann", "impersonate_user", "ann"),
        ("K8S_AUTH_IMPERSONATE_GROUPS", "a,b,", "impersonate_groups", ("a", "b")),
    ],
)
def test_variable_stands_for_its_option(
    machine: Machine, variable: str, value: str, field: str, expected: object
) -> None:
    assert getattr(machine.access({}, {variable: value}), field) == expected


@pytest.mark.parametrize(
    ("option", "value", "field", "expected"),
    [
        ("validate_certs", True, "verify", True),
        ("proxy", "http://option:1", "proxy", "http://option:1"),
        ("impersonate_user", "option", "impersonate_user", "option"),
        ("impersonate_groups", ["option"], "impersonate_groups", ("option",)),
    ],
)
def test_option_wins_over_its_variable(
    machine: Machine, option: str, value: object, field: str, expected: object
) -> None:
    environ = dict.fromkeys(ENVIRONMENT[option], "0")
    assert getattr(machine.access({option: value}, environ), field) == expected


def test_empty_variable_counts_as_none(machine: Machine) -> None:
    environ = {name: "" for names in ENVIRONMENT.values() for name in names}
    assert who(machine.access({}, environ))[0] == "https://home"


@pytest.mark.parametrize("variable", ENVIRONMENT["ca_cert"])
def test_authority_is_read_from_the_file_that_is_named(machine: Machine, variable: str) -> None:
    path = machine.folder / "ca.pem"
    path.write_text("AUTHORITY")
    assert machine.access({}, {variable: str(path)}).ca_pem == "AUTHORITY"


def test_client_certificate_and_key_are_read_from_their_files(machine: Machine) -> None:
    for name in ("cert", "key"):
        (machine.folder / name).write_text(name.upper())
    environ = {"K8S_AUTH_CERT_FILE": str(machine.folder / "cert"), "K8S_AUTH_KEY_FILE": str(machine.folder / "key")}
    assert machine.access({"host": "h"}, environ).client_pem == "CERT\nKEY"


@pytest.mark.parametrize("option", ["client_cert", "client_key"])
def test_half_a_client_certificate_is_refused(machine: Machine, option: str) -> None:
    with pytest.raises(AccessError, match="belong together"):
        machine.access({option: "/x"}, {})


@pytest.mark.parametrize("option", ["ca_cert", "client_cert"])
def test_file_that_cannot_be_read_is_named(machine: Machine, option: str) -> None:
    options = {"client_key": "/nor/this", option: "/no/such/file"}
    options = options if option == "client_cert" else {option: "/no/such/file"}
    with pytest.raises(AccessError) as caught:
        machine.access(options, {})
    assert "/no/such/file" in str(caught.value)
    assert "No such file" in str(caught.value)


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ("h", "https://h"),
        ("h:6443", "https://h:6443"),
        ("https://h/", "https://h"),
        ("http://127.0.0.1:8001", "http://127.0.0.1:8001"),
        ("https://[fd00::1]:6443", "https://[fd00::1]:6443"),
        ("https://rancher/k8s/clusters/c-1/", "https://rancher/k8s/clusters/c-1"),
    ],
)
def test_address_is_completed(machine: Machine, given: str, server: str) -> None:
    assert machine.access({"host": given, "api_key": "k"}, {}).server == server


@pytest.mark.parametrize(
    "given",
    [
        "ftp://h",
        "https://",
        "https://h:port",
        "https://h:99999",
        "https://[fd00::1",
        "https://u:hush@h",
        "https://h?a=b",
    ],
)
def test_address_that_is_none_is_refused_unquoted(machine: Machine, given: str) -> None:
    with pytest.raises(AccessError) as caught:
        machine.access({"host": given, "api_key": "k"}, {})
    assert "hush" not in str(caught.value)


def test_kubeconfig_without_a_server_is_refused(machine: Machine) -> None:
    config = kubeconfig("x")
    config["clusters"][0]["cluster"] = {}
    with pytest.raises(AccessError, match="No API server is named"):
        machine.access({"kubeconfig": config}, {})


def test_impersonation_of_the_kubeconfig_is_overridden_by_the_option(machine: Machine) -> None:
    config = kubeconfig("x", **{"as": "file", "as-groups": ["g"]})
    access = machine.access({"kubeconfig": config, "impersonate_user": "option"}, {})
    assert (access.impersonate_user, access.impersonate_groups) == ("option", ("g",))
