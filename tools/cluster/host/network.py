# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The pods' network: a bridge in a network namespace of its own, with this machine linked to it as the node.

kube-proxy and kube-router own the iptables chains of the network namespace they run in, and see what passes its
bridge. Both get the bridge's, so that service addresses are translated before policies are asked, as on any node. So
instances do not fight over chains, this machine's rules and settings stay as they are, and nothing has to be undone:
bridge, rules and sets are gone with the namespace.
"""

from __future__ import annotations

import ipaddress
import json
import os
from contextlib import suppress
from pathlib import Path

from ..failures import CannotRun, ClusterError
from ..layout import Layout
from . import commands

BRIDGE = "pods"  # in a namespace without other interfaces
# A bridge without an address of its own has the lowest address of its ports. It changes when pods start and end, and
# neighbours send to the old address until their entry expires.
BRIDGE_ADDRESS = "02:00:00:00:00:01"
MACHINE_PORT = "machine"
NODE_TABLE = "100"
BRIDGE_PLUGIN = "bridge-in-pod-network"
BRIDGE_FILTER = Path("/proc/sys/net/bridge/bridge-nf-call-iptables")
# Packets leave by the link on which they arrived; without this setting, the kernel sends redirects.
FORWARDING = ("echo 1 > ip_forward", "echo 0 > conf/all/send_redirects", f"echo 0 > conf/{BRIDGE}/send_redirects")


def create(layout: Layout, *, enforce: bool) -> None:
    """Make the namespace, its bridge, this machine's link to it and the routes.

    `enforce` lets the rules of the namespace see what passes the bridge.
    """
    layout.pod_network.touch(mode=0o600)
    commands.run(["unshare", f"--net={layout.pod_network}", "true"])
    _create_bridge(layout)
    _make_the_machine_local(layout)
    inside(layout, "sh", "-c", f"cd /proc/sys/net/ipv4 && {' && '.join(FORWARDING)}")
    if enforce:
        inside(layout, "sh", "-c", f"echo 1 > {BRIDGE_FILTER}")
    commands.run(["ip", "route", "replace", layout.service_subnet, "via", layout.proxy_address, "dev", layout.link])


def _create_bridge(layout: Layout) -> None:
    prefix = ipaddress.ip_network(layout.pod_subnet).prefixlen
    peer = [layout.link, "netns", str(os.getpid())]
    inside(layout, "ip", "link", "add", BRIDGE, "address", BRIDGE_ADDRESS, "type", "bridge")
    inside(layout, "ip", "link", "add", MACHINE_PORT, "type", "veth", "peer", "name", *peer)
    inside(layout, "ip", "link", "set", MACHINE_PORT, "master", BRIDGE)
    # This machine may reach itself by a service address; its packets then leave by the port on which they arrived.
    inside(layout, "ip", "link", "set", MACHINE_PORT, "type", "bridge_slave", "hairpin", "on")
    inside(layout, "ip", "address", "add", f"{layout.proxy_address}/{prefix}", "dev", BRIDGE)
    for link in ("lo", MACHINE_PORT, BRIDGE):
        inside(layout, "ip", "link", "set", link, "up")
    inside(layout, "ip", "route", "add", "default", "via", layout.node_address)
    commands.run(["ip", "address", "add", f"{layout.node_address}/{prefix}", "dev", layout.link])
    commands.run(["ip", "link", "set", layout.link, "up"])


def _make_the_machine_local(layout: Layout) -> None:
    """Let rules about the node's own traffic (`addrtype LOCAL`) mean this machine, though its packets still go there.

    The address is in the table of local addresses, where such rules look, and another table, asked first, has the way.
    """
    node = layout.node_address
    inside(layout, "ip", "route", "add", node, "dev", BRIDGE, "table", NODE_TABLE)
    inside(layout, "ip", "rule", "add", "pref", "10", "to", node, "lookup", NODE_TABLE)
    inside(layout, "ip", "rule", "add", "pref", "20", "lookup", "local")
    inside(layout, "ip", "rule", "delete", "pref", "0", "lookup", "local")
    inside(layout, "ip", "route", "add", "local", node, "dev", "lo", "table", "local")


def inside(layout: Layout, *argv: str) -> str:
    """The output of a program in the pods' network."""
    return commands.run(["nsenter", f"--net={layout.pod_network}", "--", *argv])


def check_bridge_filter() -> None:
    """CannotRun when the kernel does not show bridged frames to iptables, which policies between pods need."""
    if not BRIDGE_FILTER.exists():
        raise CannotRun(
            "this kernel does not filter what passes a bridge, so nothing could enforce NetworkPolicy: load its "
            "module (modprobe br_netfilter), or go without: up --no-enforcement."
        )


def write_cni_plugins(layout: Layout, system: Path) -> None:
    """The folder of CNI plugins: the system's, and its bridge plugin started in the pods' network.

    A container's link ends where its plugin runs, and containerd runs on this machine.
    """
    layout.cni_plugins.mkdir(mode=0o700)
    for plugin in ("host-local", "loopback"):
        (layout.cni_plugins / plugin).symlink_to(system / plugin)
    script = layout.cni_plugins / BRIDGE_PLUGIN
    script.write_text(f"#!/bin/sh\nexec nsenter --net={layout.pod_network} -- {system}/bridge\n", encoding="utf-8")
    script.chmod(0o700)


def interfaces(layout: Layout) -> list[str]:
    """This machine's link to the bridge."""
    return [name for name in _links() if name == layout.link]


def _links() -> list[str]:
    # Not from /sys/class/net: that may show the interfaces of another network namespace.
    return [link["ifname"] for link in json.loads(commands.run(["ip", "-json", "link", "show"]))]


def remove_interfaces(layout: Layout) -> None:
    """Delete the link; the kernel may have deleted it with the namespace."""
    for interface in interfaces(layout):
        with suppress(ClusterError):
            commands.run(["ip", "link", "delete", interface])


def overlapping_route(layout: Layout) -> str | None:
    """Another interface's route that the addresses of our pods or services would collide with."""
    ours = [ipaddress.ip_network(subnet) for subnet in (layout.pod_subnet, layout.service_subnet)]
    for route in json.loads(commands.run(["ip", "-json", "-4", "route", "show", "table", "main"]) or "[]"):
        if route.get("dst", "default") == "default" or route.get("dev") == layout.link:
            continue
        theirs = ipaddress.ip_network(route["dst"], strict=False)
        if any(theirs.overlaps(subnet) for subnet in ours):
            return f"{route['dst']} on {route.get('dev', '?')}"
    return None
