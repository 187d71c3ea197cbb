# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Our reading of a kubeconfig against that of the official client, for everything that both of them read."""

from __future__ import annotations

import base64
import pathlib
import typing as t

import kubernetes.client
import kubernetes.config
import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access, resolve_access

from ..authorities import Authority

AUTHORITY = Authority("test")
ISSUED = AUTHORITY.issue("client")


def encoded(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


CASES: dict[str, tuple[dict[str, t.Any], dict[str, t.Any]]] = {
    "token": ({}, {"token": "tok"}),
    "token file": ({}, {"tokenFile": "token"}),
    "token beats token file": ({}, {"token": "tok", "tokenFile": "token"}),
    "password": ({}, {"username": "ann", "password": "p:w x"}),
    "anonymous": ({}, {}),
    "user without a password": ({}, {"username": "ann"}),
    "client certificate data": (
        {},
        {"client-certificate-data": encoded(ISSUED.certificate), "client-key-data": encoded(ISSUED.key)},
    ),
    "client certificate files": ({}, {"client-certificate": "cert.pem", "client-key": "key.pem"}),
    "client certificate and token": (
        {},
        {"token": "tok", "client-certificate": "cert.pem", "client-key": "key.pem"},
    ),
    "authority data": ({"certificate-authority-data": encoded(AUTHORITY.pem)}, {"token": "tok"}),
    "authority file": ({"certificate-authority": "ca.pem"}, {"token": "tok"}),
    "authority data beats file": (
        {"certificate-authority-data": encoded(AUTHORITY.pem), "certificate-authority": "token"},
        {"token": "tok"},
    ),
    "not verified": ({"insecure-skip-tls-verify": True}, {"token": "tok"}),
    "verified": ({"insecure-skip-tls-verify": False}, {"token": "tok"}),
    "server name": ({"tls-server-name": "kubernetes.default"}, {"token": "tok"}),
    "proxy": ({"proxy-url": "http://proxy:3128"}, {"token": "tok"}),
    "path": ({"server": "https://rancher/k8s/clusters/c-1"}, {"token": "tok"}),
    "slash at the end": ({"server": "https://h:6443/"}, {"token": "tok"}),
    "plain": ({"server": "http://127.0.0.1:8001"}, {"token": "tok"}),
}

Summary = dict[str, t.Any]


@pytest.fixture(params=list(CASES), ids=[name.replace(" ", "-") for name in CASES])
def path(request: pytest.FixtureRequest, tmp_path: pathlib.Path) -> str:
    """A kubeconfig of a case, with the files that it names beside it."""
    cluster, user = CASES[request.param]
    files = {"token": "tok-of-file", "ca.pem": AUTHORITY.pem, "cert.pem": ISSUED.certificate, "key.pem": ISSUED.key}
    for name, content in files.items():
        (tmp_path / name).write_text(content)
    config = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "main",
        "contexts": [{"name": "main", "context": {"cluster": "c", "user": "u", "namespace": "team-a"}}],
        "clusters": [{"name": "c", "cluster": {"server": "https://h:6443", **cluster}}],
        "users": [{"name": "u", "user": user}],
    }
    file = tmp_path / "config"
    file.write_text(yaml.safe_dump(config))
    return str(file)


def theirs(path: str) -> Summary:
    configuration = kubernetes.client.Configuration()
    configuration.proxy = None
    kubernetes.config.load_kube_config(path, client_configuration=configuration, persist_config=False)
    client_pem = None
    if configuration.cert_file:
        certificate, key = pathlib.Path(configuration.cert_file), pathlib.Path(configuration.key_file)
        client_pem = f"{certificate.read_text()}\n{key.read_text()}"
    authority = configuration.ssl_ca_cert
    return {
        "server": configuration.host.rstrip("/"),
        "authorization": configuration.get_api_key_with_prefix("BearerToken", alias="authorization"),
        "authority": pathlib.Path(authority).read_text() if authority else None,
        "client": client_pem,
        "verify": configuration.verify_ssl,
        "server name": configuration.tls_server_name,
        "proxy": configuration.proxy,
    }


def ours(access: Access) -> Summary:
    return {
        "server": access.server,
        "authorization": access.credential.header() if access.credential else None,
        "authority": access.ca_pem,
        "client": access.client_pem,
        "verify": access.verify,
        "server name": access.server_name,
        "proxy": access.proxy,
    }


def test_file_is_read_as_the_official_client_reads_it(path: str) -> None:
    assert ours(resolve_access({"kubeconfig": path}, {})) == theirs(path)


def test_dictionary_is_read_as_the_file(path: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(pathlib.Path(path).parent)
    content = yaml.safe_load(pathlib.Path(path).read_text())
    assert ours(resolve_access({"kubeconfig": content}, {})) == ours(resolve_access({"kubeconfig": path}, {}))
