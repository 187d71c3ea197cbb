# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The proxy that the environment names for an address.

``HTTPS_PROXY``, ``HTTP_PROXY`` and ``NO_PROXY`` as kubectl reads them (golang.org/x/net/http/httpproxy): names,
domains, addresses and networks, each with an optional port; the lower-case variables are read too and come first.
"""

from __future__ import annotations

import ipaddress
import typing as t
import urllib.parse


def proxy_from_environment(server: str, environ: t.Mapping[str, str]) -> str | None:
    """The proxy's URL for requests to ``server``, or None to go there directly."""
    parts = urllib.parse.urlsplit(server)
    proxy = _variable(environ, f"{parts.scheme}_proxy")
    if not proxy or _excluded(
        parts.hostname or "", parts.port or (443 if parts.scheme == "https" else 80), _variable(environ, "no_proxy")
    ):
        return None
    return proxy if "://" in proxy else f"http://{proxy}"


def _variable(environ: t.Mapping[str, str], name: str) -> str:
    return environ.get(name) or environ.get(name.upper()) or ""


def _excluded(host: str, port: int, no_proxy: str) -> bool:
    if host == "localhost" or _is_loopback(host):
        return True
    return any(_matches(host, port, entry.strip().lower()) for entry in no_proxy.split(",") if entry.strip())


def _matches(host: str, port: int, entry: str) -> bool:
    if entry == "*":
        return True
    name, colon, number = entry.rpartition(":")
    if colon and number.isdigit() and (":" not in name or name.endswith("]")):
        if int(number) != port:
            return False
        entry = name
    entry = entry.strip("[]")
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(entry, strict=False)
        except ValueError:
            return False
    domain = entry.removeprefix("*").removeprefix(".")
    return host.endswith(f".{domain}") or (host == domain and not entry.startswith((".", "*")))


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return address is not None and address.is_loopback


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
