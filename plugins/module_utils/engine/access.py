# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Where the Docker Engine API is, out of options and the variables of Docker's own tools."""

from __future__ import annotations

import dataclasses
import os
import pathlib
import ssl
import typing as t
import urllib.parse

from ..errors import AccessError, InputError

DEFAULT_HOST = "unix:///var/run/docker.sock"
#: The ports that Docker registered with IANA.
PORTS = {"tcp": 2375, "http": 2375, "https": 2376}
TLS_PORT = 2376
#: Seconds that one request may take, of the many that an operation makes.
DEFAULT_TIMEOUT = 60.0

#: Option to its variable; those of the collection community.docker.
ENVIRONMENT: dict[str, str] = {
    "docker_host": "DOCKER_HOST",
    "tls": "DOCKER_TLS",
    "validate_certs": "DOCKER_TLS_VERIFY",
    "tls_hostname": "DOCKER_TLS_HOSTNAME",
    "api_version": "DOCKER_API_VERSION",
    "timeout": "DOCKER_TIMEOUT",
}
#: Files below DOCKER_CERT_PATH, where the options name none.
CERTIFICATES = {"ca_path": "ca.pem", "client_cert": "cert.pem", "client_key": "key.pem"}
_TRUE = frozenset(("1", "true", "yes", "on", "y", "t"))


@dataclasses.dataclass(frozen=True)
class EngineAccess:
    """One engine, and how it is reached.

    Attributes:
        docker_host: ``unix:///path``, ``tcp://host:port`` or ``https://host:port``.
        tls: whether the connection is encrypted.
        validate_certs: whether the engine's certificate is checked.
        ca_path, client_cert, client_key: paths of PEM files, or None.
        tls_hostname: the name that the certificate must have, or None for the host's.
        api_version: version of the API (``1.41``), or ``auto`` for the newest that the engine serves.
        timeout: seconds of one request (at least 1).
    """

    docker_host: str = DEFAULT_HOST
    tls: bool = False
    validate_certs: bool = False
    ca_path: str | None = None
    client_cert: str | None = None
    client_key: str | None = None
    tls_hostname: str | None = None
    api_version: str = "auto"
    timeout: float = DEFAULT_TIMEOUT

    def __post_init__(self) -> None:
        scheme = urllib.parse.urlsplit(self.docker_host).scheme
        if scheme not in ("unix", *PORTS):
            raise AccessError(
                f"docker_host is {self.docker_host!r}: only unix, tcp, http and https addresses can be used.",
                next_step="Forward the socket of an engine behind SSH: ssh -N -L /tmp/d.sock:/run/docker.sock HOST",
            )
        if self.socket_path == "" or (self.socket_path is None and not self.address[0]):
            raise AccessError(f"docker_host is {self.docker_host!r}, which names no socket and no host.")
        if (self.client_cert is None) != (self.client_key is None):
            raise InputError("client_cert and client_key are given together or not at all.")
        if self.timeout < 1:
            raise InputError(f"timeout is {self.timeout:g} s; it must be at least 1 s.")

    @property
    def server(self) -> str:
        """The engine's address."""
        return self.docker_host

    @property
    def socket_path(self) -> str | None:
        """The Unix socket, or None for an engine that is reached over TCP."""
        split = urllib.parse.urlsplit(self.docker_host)
        return (split.netloc + split.path) if split.scheme == "unix" else None

    @property
    def address(self) -> tuple[str, int]:
        """Host and port of an engine that is reached over TCP."""
        split = urllib.parse.urlsplit(self.docker_host)
        try:
            port = split.port
        except ValueError:
            raise AccessError(f"docker_host is {self.docker_host!r}, which has no valid port.") from None
        return split.hostname or "", port or (TLS_PORT if self.encrypted else PORTS.get(split.scheme, 2375))

    @property
    def encrypted(self) -> bool:
        """Whether the connection uses TLS."""
        return self.socket_path is None and (self.tls or self.validate_certs or self.docker_host.startswith("https:"))

    def ssl_context(self) -> ssl.SSLContext:
        """The settings of TLS.

        Raises:
            AccessError: a certificate file cannot be used.
        """
        context = ssl.create_default_context(ssl.Purpose.SERVER_AUTH)
        context.minimum_version = ssl.TLSVersion.TLSv1_2
        # Python 3.13 refuses certificates without a key identifier, as the documentation of Docker makes them.
        context.verify_flags &= ~ssl.VERIFY_X509_STRICT
        if not self.validate_certs:
            context.check_hostname = False
            context.verify_mode = ssl.CERT_NONE
        try:
            if self.ca_path is not None:
                context.load_verify_locations(self.ca_path)
            if self.client_cert is not None:
                context.load_cert_chain(self.client_cert, self.client_key)
        except OSError as error:
            raise AccessError(
                f"A certificate of {self.docker_host} cannot be used ({error.strerror or type(error).__name__}).",
                next_step="Look at the files that ca_path, client_cert and client_key, or DOCKER_CERT_PATH, name.",
            ) from None
        return context


def engine_access(
    options: t.Mapping[str, t.Any] | None = None, environ: t.Mapping[str, str] | None = None
) -> EngineAccess:
    """The engine that options name, completed from the environment.

    Args:
        options: ``docker_host``, ``tls``, ``validate_certs``, ``ca_path``, ``client_cert``, ``client_key``,
            ``tls_hostname``, ``api_version`` and ``timeout``, each optional.
        environ: the environment, or None for that of the process: ``DOCKER_HOST``, ``DOCKER_TLS``,
            ``DOCKER_TLS_VERIFY``, ``DOCKER_CERT_PATH``, ``DOCKER_TLS_HOSTNAME``, ``DOCKER_API_VERSION`` and
            ``DOCKER_TIMEOUT``.

    Raises:
        AccessError, InputError: they name no engine that can be used.
    """
    environ = os.environ if environ is None else environ
    given = {key: value for key, value in (options or {}).items() if value is not None}
    values: dict[str, t.Any] = {
        option: given.get(option, environ.get(name) or None) for option, name in ENVIRONMENT.items()
    }
    folder = environ.get("DOCKER_CERT_PATH")
    for option, name in CERTIFICATES.items():
        file = pathlib.Path(folder, name) if folder else None
        values[option] = given.get(option) or (str(file) if file is not None and file.is_file() else None)
    for option in ("tls", "validate_certs"):
        if isinstance(values[option], str):
            values[option] = values[option].strip().lower() in _TRUE
    if values["timeout"] is not None:
        try:
            values["timeout"] = float(values["timeout"])
        except ValueError:
            raise InputError(f"timeout is {values['timeout']!r}, which is not a number of seconds.") from None
    return EngineAccess(**{key: value for key, value in values.items() if value is not None})
