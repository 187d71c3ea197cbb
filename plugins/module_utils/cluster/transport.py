# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The wire to the API server: one pool of connections, with TLS, proxy and bounds set once."""

from __future__ import annotations

import os
import ssl
import tempfile
import typing as t
import urllib.parse
import urllib.request

from .access import Access
from .errors import AccessError, MissingDependencyError

try:
    import urllib3
except ImportError:  # reported when a connection is made: sanity imports this file without libraries
    HAS_URLLIB3 = False
else:
    HAS_URLLIB3 = True

#: Connections kept open to the server; a request beyond them opens another and closes it afterwards.
POOL_SIZE = 16


def open_pool(access: Access) -> urllib3.PoolManager:
    """Make the pool of connections for an access; nothing is sent yet.

    Raises:
        AccessError: a certificate or key is not what its name says.
        MissingDependencyError: urllib3 is not installed here.
    """
    if not HAS_URLLIB3:
        raise MissingDependencyError(
            "The Python library urllib3 is needed to talk to the API server.",
            next_step="Install urllib3 (it comes with kubernetes) for the Python that runs this.",
        )
    settings: dict[str, t.Any] = {"maxsize": POOL_SIZE, "block": False, "retries": False}
    if access.server.startswith("https://"):
        settings["ssl_context"] = _ssl_context(access)
        if access.server_name:
            settings["server_hostname"] = access.server_name
            settings["assert_hostname"] = access.server_name if access.verify else False
    proxy = access.proxy or _proxy_from_environment(access.server)
    if proxy is None:
        return urllib3.PoolManager(**settings)
    return urllib3.ProxyManager(proxy, **settings)


def _ssl_context(access: Access) -> ssl.SSLContext:
    try:
        context = ssl.create_default_context(cadata=access.ca_pem)
    except (ssl.SSLError, ValueError):
        raise AccessError(
            f"The certificate authority of the {access.source} is not a PEM certificate.",
            next_step="Check ca_cert, or certificate-authority in the kubeconfig.",
        ) from None
    # Python 3.13 asks for key usage extensions that cluster CAs made by common tools do not carry; kubectl does not.
    context.verify_flags &= ~getattr(ssl, "VERIFY_X509_STRICT", 0)
    if not access.verify:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if access.client_pem:
        _load_client_pem(context, access)
    return context


def _load_client_pem(context: ssl.SSLContext, access: Access) -> None:
    # OpenSSL reads a key from a file only; the file lives for the moment of the reading, readable to us alone.
    descriptor, path = tempfile.mkstemp(prefix="namzu-", suffix=".pem")
    try:
        with os.fdopen(descriptor, "w", encoding="ascii") as stream:
            stream.write(access.client_pem or "")
        context.load_cert_chain(path)
    except (ssl.SSLError, OSError, ValueError):
        raise AccessError(
            f"The client certificate and key of the {access.source} do not belong together, or are no PEM texts.",
            next_step="Check client_cert and client_key, or client-certificate and client-key in the kubeconfig.",
        ) from None
    finally:
        os.unlink(path)


def _proxy_from_environment(server: str) -> str | None:
    parts = urllib.parse.urlsplit(server)
    if urllib.request.proxy_bypass(parts.netloc.rpartition("@")[2]):
        return None
    return urllib.request.getproxies().get(parts.scheme)
