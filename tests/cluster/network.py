# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bridge that is the node's address and the pods' gateway."""

from __future__ import annotations

import ipaddress
import json
from contextlib import suppress

from . import commands
from .failures import ClusterError
from .layout import Layout


def create_bridge(layout: Layout) -> None:
    """Make the bridge with the node's address; the CNI plugin finds and uses it."""
    if layout.bridge not in _links():
        commands.run(["ip", "link", "add", layout.bridge, "type", "bridge"])
    prefix = ipaddress.ip_network(layout.pod_subnet).prefixlen
    commands.run(["ip", "address", "replace", f"{layout.node_address}/{prefix}", "dev", layout.bridge])
    commands.run(["ip", "link", "set", layout.bridge, "up"])


def interfaces(layout: Layout) -> list[str]:
    """The bridge and the host's ends of the pods' links."""
    links = _links()
    ports = sorted(name for name, master in links.items() if master == layout.bridge)
    return [*ports, *([layout.bridge] if layout.bridge in links else [])]


def _links() -> dict[str, str | None]:
    # Not from /sys/class/net: that may show the interfaces of another network namespace.
    listed = json.loads(commands.run(["ip", "-json", "link", "show"]))
    return {link["ifname"]: link.get("master") for link in listed}


def remove_interfaces(layout: Layout) -> None:
    """Delete the links and the bridge; a link whose pod has just gone may vanish by itself."""
    for interface in interfaces(layout):
        with suppress(ClusterError):
            commands.run(["ip", "link", "delete", interface])


def overlapping_route(layout: Layout) -> str | None:
    """Another interface's route that our pod addresses would collide with."""
    ours = ipaddress.ip_network(layout.pod_subnet)
    for route in json.loads(commands.run(["ip", "-json", "-4", "route", "show", "table", "main"]) or "[]"):
        if route.get("dst", "default") == "default" or route.get("dev") == layout.bridge:
            continue
        if ipaddress.ip_network(route["dst"], strict=False).overlaps(ours):
            return f"{route['dst']} on {route.get('dev', '?')}"
    return None
