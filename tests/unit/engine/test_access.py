# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Which engine is used, out of options and environment."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import engine_access
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import AccessError, InputError


def test_default_is_the_socket_of_docker() -> None:
    access = engine_access(environ={})
    assert (access.socket_path, access.encrypted, access.api_version) == ("/var/run/docker.sock", False, "auto")


def test_environment_is_that_of_docker_and_options_win() -> None:
    environ = {"DOCKER_HOST": "tcp://engine:2376", "DOCKER_TLS_VERIFY": "1", "DOCKER_TIMEOUT": "7.5"}
    access = engine_access({"timeout": None}, environ)
    assert (access.address, access.encrypted, access.validate_certs, access.timeout) == (
        ("engine", 2376),
        True,
        True,
        7.5,
    )
    assert engine_access({"docker_host": "unix:///run/other.sock"}, environ).socket_path == "/run/other.sock"
    assert not engine_access({"validate_certs": False, "tls": False}, environ).encrypted


def test_certificates_are_found_in_the_folder_of_docker(tmp_path: pathlib.Path) -> None:
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).touch()
    access = engine_access({"client_cert": "/own/cert.pem"}, {"DOCKER_CERT_PATH": str(tmp_path)})
    assert access.ca_path == str(tmp_path / "ca.pem")
    assert (access.client_cert, access.client_key) == ("/own/cert.pem", str(tmp_path / "key.pem"))


@pytest.mark.parametrize("port", ["tcp://engine", "tcp://[::1]:2375", "https://engine"])
def test_port_of_docker_is_the_default(port: str) -> None:
    access = engine_access({"docker_host": port}, {})
    assert access.address[1] == (2376 if access.encrypted else 2375)


@pytest.mark.parametrize("host", ["ssh://root@engine", "npipe:////./pipe/docker", "unix://", "tcp://", "tcp://a:b", ""])
def test_engine_that_cannot_be_used_is_refused(host: str) -> None:
    with pytest.raises(AccessError):
        engine_access({"docker_host": host}, {}).address  # noqa: B018 - the property raises


@pytest.mark.parametrize("options", [{"timeout": 0.5}, {"timeout": "soon"}, {"client_cert": "cert.pem"}])
def test_options_that_cannot_be_used_are_refused(options: dict[str, object]) -> None:
    with pytest.raises(InputError):
        engine_access(options, {})


def test_certificate_that_cannot_be_read_is_named() -> None:
    access = engine_access({"docker_host": "tcp://a", "tls": True, "ca_path": "/nowhere/ca.pem"}, {})
    with pytest.raises(AccessError) as raised:
        access.ssl_context()
    assert raised.value.next_step is not None
