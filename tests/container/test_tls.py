# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A real dockerd over TCP with TLS, which asks for the client's certificate."""

from __future__ import annotations

import dataclasses
import pathlib
import socket
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.container.acquire import acquire_container
from ansible_collections.namzu.sandbox.plugins.module_utils.container.lease import renew_lease
from ansible_collections.namzu.sandbox.plugins.module_utils.container.release import release_container
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.engine import containers
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import engine_access
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.tests.unit.cluster.authorities import Authority, Issued

from .conftest import PATIENCE, Way, run
from .dockerd import OF_A_MODULE, own_engine


@dataclasses.dataclass(frozen=True)
class Encrypted:
    """An engine over TLS, and the folder with the certificates that it takes (DOCKER_CERT_PATH)."""

    docker_host: str
    folder: pathlib.Path

    def client(self, options: t.Mapping[str, t.Any] | None = None, **environ: str) -> EngineClient:
        """A client by the variables of Docker, without those that are empty."""
        variables = {"DOCKER_HOST": self.docker_host, "DOCKER_TLS_VERIFY": "1", "DOCKER_CERT_PATH": str(self.folder)}
        given = {name: value for name, value in {**variables, **environ}.items() if value}
        return EngineClient(engine_access(options, given))


def write(folder: pathlib.Path, issued: Issued) -> None:
    (folder / "cert.pem").write_text(issued.certificate)
    (folder / "key.pem").write_text(issued.key)


@pytest.fixture(scope="module")
def encrypted(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[Encrypted]:
    authority = Authority("engines")
    server, folder = tmp_path_factory.mktemp("server"), tmp_path_factory.mktemp("client")
    write(server, authority.issue("engine.test", address="127.0.0.1"))
    write(folder, authority.issue("client"))
    for place in (server, folder):
        (place / "ca.pem").write_text(authority.pem)
    with socket.create_server(("127.0.0.1", 0)) as free:
        port = free.getsockname()[1]
    flags = [f"--host=tcp://127.0.0.1:{port}", "--tlsverify", f"--tlscacert={server}/ca.pem"]
    with own_engine(OF_A_MODULE, *flags, f"--tlscert={server}/cert.pem", f"--tlskey={server}/key.pem"):
        yield Encrypted(f"tcp://127.0.0.1:{port}", folder)


def test_sandbox_from_acquire_to_release(encrypted: Encrypted) -> None:
    client = encrypted.client()
    assert client.access.encrypted
    way = Way(client, "runc", "auto")
    sandbox = acquire_container(client, way.request(network_probe=True))
    try:
        assert run(sandbox, "sh", "-c", "cat", stdin=b"over the relay").stdout == b"over the relay"
        assert renew_lease(client, sandbox.name, 3600.0, Deadline(PATIENCE), uid=sandbox.uid).changed
    finally:
        assert release_container(client, sandbox.name, Deadline(PATIENCE)).existed
    assert way.names() == set()


def refused(client: EngineClient) -> SandboxError:
    with pytest.raises(SandboxError) as raised:
        containers.read_info(client, Deadline(PATIENCE))
    return raised.value


def test_engine_of_another_authority_is_refused(encrypted: Encrypted, tmp_path: pathlib.Path) -> None:
    (tmp_path / "ca.pem").write_text(Authority("another").pem)
    error = refused(encrypted.client({"ca_path": str(tmp_path / "ca.pem")}))
    assert (error.reason, "certificate" in error.message.lower()) == ("api-unreachable", True), error


def test_name_of_the_certificate_is_compared(encrypted: Encrypted) -> None:
    assert "certificate" in refused(encrypted.client({"tls_hostname": "other.test"})).message.lower()
    assert containers.read_info(encrypted.client({"tls_hostname": "engine.test"}), Deadline(PATIENCE))["ID"]


def test_engine_refuses_a_client_without_a_certificate(encrypted: Encrypted) -> None:
    options = {"ca_path": str(encrypted.folder / "ca.pem")}
    error = refused(encrypted.client(options, DOCKER_CERT_PATH=""))
    assert error.reason == "api-unreachable", error


def test_engine_with_tls_refuses_a_client_without(encrypted: Encrypted) -> None:
    error = refused(encrypted.client(DOCKER_TLS_VERIFY="", DOCKER_CERT_PATH=""))
    # Go's server answers in plain text: "Client sent an HTTP request to an HTTPS server."
    assert "HTTPS" in error.message, error
