# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Certificate authorities and certificates for the tests of TLS."""

from __future__ import annotations

import dataclasses
import datetime
import ipaddress
import pathlib
import ssl

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec

_PEM = serialization.Encoding.PEM


@dataclasses.dataclass(frozen=True)
class Issued:
    """A certificate and its key, as PEM texts."""

    certificate: str
    key: str
    encrypted_key: str


class Authority:
    """A certificate authority of its own."""

    def __init__(self, name: str) -> None:
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = self._builder(self._name, self._key).add_extension(x509.BasicConstraints(True, None), True)
        self.pem = made.sign(self._key, hashes.SHA256()).public_bytes(_PEM).decode()

    def issue(self, name: str, *, address: str | None = None) -> Issued:
        """A certificate for a name, or for an IP address as well."""
        key = ec.generate_private_key(ec.SECP256R1())
        names: list[x509.GeneralName] = [x509.DNSName(name)]
        if address is not None:
            names.append(x509.IPAddress(ipaddress.ip_address(address)))
        subject = x509.Name([x509.NameAttribute(x509.NameOID.COMMON_NAME, name)])
        made = self._builder(subject, key).add_extension(x509.SubjectAlternativeName(names), False)
        pkcs8 = serialization.PrivateFormat.PKCS8
        return Issued(
            certificate=made.sign(self._key, hashes.SHA256()).public_bytes(_PEM).decode(),
            key=key.private_bytes(_PEM, pkcs8, serialization.NoEncryption()).decode(),
            encrypted_key=key.private_bytes(_PEM, pkcs8, serialization.BestAvailableEncryption(b"secret")).decode(),
        )

    def _builder(self, subject: x509.Name, key: ec.EllipticCurvePrivateKey) -> x509.CertificateBuilder:
        now = datetime.datetime.now(datetime.UTC)
        return (
            x509.CertificateBuilder()
            .subject_name(subject)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - datetime.timedelta(hours=1))
            .not_valid_after(now + datetime.timedelta(hours=1))
        )


def server_context(folder: pathlib.Path, issued: Issued, client_authority: Authority | None = None) -> ssl.SSLContext:
    """What a server needs; with ``client_authority`` it asks for a certificate of its."""
    path = folder / "server.pem"
    path.write_text(issued.certificate + issued.key)
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_cert_chain(path)
    if client_authority is not None:
        context.verify_mode = ssl.CERT_REQUIRED
        context.load_verify_locations(cadata=client_authority.pem)
    return context
