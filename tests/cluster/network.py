# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The bridge that is the node's address and the pods' gateway, and the namespace that service addresses lead to.

kube-proxy owns the iptables chains of the network namespace it runs in. It gets one of its own, which is the next hop
to the service addresses for the pods and for this machine. So instances do not fight over chains, this machine's rules
and settings stay as they are, and nothing has to be undone: the rules are gone with the namespace.
"""

from __future__ import annotations

import ipaddress
import json
import os
from contextlib import suppress

from . import commands
from .failures import ClusterError
from .layout import Layout

# Everything leaves by the link it came in by, which would make the kernel tell senders to go there directly.
FORWARDING = ("echo 1 > ip_forward", "echo 0 > conf/all/send_redirects", "echo 0 > conf/eth0/send_redirects")


def create_bridge(layout: Layout) -> None:
    """Make the bridge with the node's address; the CNI plugin finds and uses it."""
    if layout.bridge not in _links():
        commands.run(["ip", "link", "add", layout.bridge, "type", "bridge"])
    prefix = ipaddress.ip_network(layout.pod_subnet).prefixlen
    commands.run(["ip", "address", "replace", f"{layout.node_address}/{prefix}", "dev", layout.bridge])
    commands.run(["ip", "link", "set", layout.bridge, "up"])


def create_proxy_namespace(layout: Layout) -> None:
    """Make kube-proxy's namespace, its link to the bridge, and this machine's route to the service addresses."""
    layout.proxy_namespace.touch(mode=0o600)
    commands.run(["unshare", f"--net={layout.proxy_namespace}", "true"])
    inside = ["nsenter", f"--net={layout.proxy_namespace}", "--"]
    prefix = ipaddress.ip_network(layout.pod_subnet).prefixlen
    peer = [layout.proxy_link, "netns", str(os.getpid())]
    commands.run([*inside, "ip", "link", "add", "eth0", "type", "veth", "peer", "name", *peer])
    commands.run(["ip", "link", "set", layout.proxy_link, "master", layout.bridge, "up"])
    commands.run([*inside, "ip", "address", "add", f"{layout.proxy_address}/{prefix}", "dev", "eth0"])
    for link in ("lo", "eth0"):
        commands.run([*inside, "ip", "link", "set", link, "up"])
    commands.run([*inside, "ip", "route", "add", "default", "via", layout.node_address])
    commands.run([*inside, "sh", "-c", f"cd /proc/sys/net/ipv4 && {' && '.join(FORWARDING)}"])
    commands.run(["ip", "route", "replace", layout.service_subnet, "via", layout.proxy_address, "dev", layout.bridge])


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
    """Another interface's route that the addresses of our pods or services would collide with."""
    ours = [ipaddress.ip_network(subnet) for subnet in (layout.pod_subnet, layout.service_subnet)]
    for route in json.loads(commands.run(["ip", "-json", "-4", "route", "show", "table", "main"]) or "[]"):
        if route.get("dst", "default") == "default" or route.get("dev") == layout.bridge:
            continue
        theirs = ipaddress.ip_network(route["dst"], strict=False)
        if any(theirs.overlaps(subnet) for subnet in ours):
            return f"{route['dst']} on {route.get('dev', '?')}"
    return None
