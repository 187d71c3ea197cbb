# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Health checks of components: each returns None for a healthy component, else the reason."""

from __future__ import annotations

import socket
import ssl
from collections.abc import Callable
from pathlib import Path
from typing import Any

from ..api import Api, ApiError, administrator_api
from ..failures import ClusterError
from ..host import network
from ..layout import NODE_NAME, Layout

Check = Callable[[], "str | None"]

TIMEOUT = 3.0  # seconds for one question


def http(port: int, path: str, authority: Path | None = None, *, host: str = "localhost") -> Check:
    """The component answers 200 on its health path."""

    def check() -> str | None:
        scheme = "http" if authority is None else "https"
        try:
            tls = None if authority is None else ssl.create_default_context(cafile=str(authority))
            Api(f"{scheme}://{host}:{port}", tls, {}).request("GET", path, timeout=TIMEOUT)
        except (ApiError, OSError) as error:
            return _brief(error)
        return None

    return check


def api_server(layout: Layout) -> Check:
    """The API server reports that it is ready, to the administrator credential of this start."""

    def check() -> str | None:
        try:
            administrator_api(layout.kubeconfig).request("GET", "/readyz", timeout=TIMEOUT)
        except (ApiError, OSError) as error:
            return _brief(error)
        return None

    return check


def unix_socket(path: Path) -> Check:
    """The component accepts connections on its socket."""

    def check() -> str | None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as client:
            client.settimeout(TIMEOUT)
            try:
                client.connect(str(path))
            except OSError as error:
                return f"{path}: {error.strerror or error}"
        return None

    return check


def node_registered(layout: Layout) -> Check:
    """The node object exists."""
    return _node(layout, lambda _node: None)


def node_ready(layout: Layout) -> Check:
    """The node has the condition Ready."""
    return _node(layout, _readiness)


def _readiness(node: dict[str, Any]) -> str | None:
    for condition in node.get("status", {}).get("conditions") or ():
        if condition["type"] == "Ready":
            return None if condition["status"] == "True" else f"node not ready: {condition['message'][:200]}"
    return "node has no Ready condition yet"


def _node(layout: Layout, judge: Callable[[dict[str, Any]], str | None]) -> Check:
    def check() -> str | None:
        try:
            node = administrator_api(layout.kubeconfig).request("GET", f"/api/v1/nodes/{NODE_NAME}", timeout=TIMEOUT)
        except ApiError as error:
            return "node not registered yet" if error.status == 404 else _brief(error)
        except OSError as error:
            return _brief(error)
        return judge(node)

    return check


def firewall_chain(layout: Layout) -> Check:
    """Packets pass kube-router's chain."""

    def check() -> str | None:
        try:
            forwarded = network.inside(layout, "iptables", "--wait", "--list-rules", "FORWARD")
        except ClusterError as error:
            return _brief(error)
        return None if "KUBE-ROUTER-FORWARD" in forwarded else "its rules are not in place"

    return check


def service_rules(layout: Layout) -> Check:
    """Packets to the address of the API server's service reach the API server."""

    def check() -> str | None:
        try:
            rules = network.inside(layout, "iptables", "--wait", "--table", "nat", "--list-rules", "KUBE-SERVICES")
        except ClusterError as error:
            return _brief(error)
        return None if f"-d {layout.service_address}/32" in rules else "the rules of services are missing"

    return check


def both(first: Check, second: Check) -> Check:
    """Both checks pass; else the reason of the first that fails."""
    return lambda: first() or second()


def _brief(error: Exception) -> str:
    reason = getattr(error, "strerror", None) or str(error)
    return str(reason).strip().splitlines()[0][:200] if str(reason).strip() else type(error).__name__
