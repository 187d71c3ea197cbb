# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""An egress request as the CiliumNetworkPolicy that grants it, and nothing more.

- ``no_network`` is ``egress: [{}]``: an empty list would do nothing, an empty item closes everything.
- DNS goes to the cluster's DNS pods alone, never to port 53 of the world, which would be a tunnel.
- For ``hosts`` the DNS rule carries ``rules.dns`` with the very names of the request: Cilium's DNS proxy has to see the
  answers to know the addresses of ``toFQDNs``, and it lets no other name be asked, so that the cluster's resolver is no
  tunnel either. It refuses names with the cluster's search suffixes, on which a resolver goes on to the next one.
- The public internet is given by CIDR, so it holds no pod and no node, whatever their addresses.
- No field is used that v1.14 lacks: an older API server would drop it, and the live policy would differ.

Sources: ``Documentation/security/policy/layer3.rst`` and ``layer7.rst`` of Cilium v1.20.2.
"""

from __future__ import annotations

import collections.abc as c
import ipaddress

from ..cilium.ports import MOST_PORTS
from ..cilium.selectors import NAMESPACE_KEY, in_identity
from ..errors import QuestionError
from ..reach.requests import (
    ALLOW_ALL,
    DNS_PORT,
    HOSTS,
    NO_NETWORK,
    PUBLIC_INTERNET,
    DnsTarget,
    HostRule,
    Request,
    public_blocks,
)
from ..world.objects import Body


def translate_cilium(request: Request, *, name: str, namespace: str, selector_labels: c.Mapping[str, str]) -> Body:
    """The CiliumNetworkPolicy of an egress request.

    Args:
        request: what the sandbox may reach.
        name, namespace: of the object.
        selector_labels: of the pods that it selects.

    Returns:
        The object as plain data.

    Raises:
        QuestionError: Cilium leaves one of the labels out of a pod's identity, so the policy would select nothing.
    """
    for key in selector_labels:
        if not in_identity(key):
            raise QuestionError(
                f"Cilium does not select pods by the label {key}.",
                next_step="Select the pods by a label of your own domain.",
            )
    return {
        "apiVersion": "cilium.io/v2",
        "kind": "CiliumNetworkPolicy",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"endpointSelector": {"matchLabels": dict(selector_labels)}, "egress": _egress(request)},
    }


def _egress(request: Request) -> list[Body]:
    if request.kind == NO_NETWORK:
        return [{}]
    if request.kind == ALLOW_ALL:
        return [{"toEntities": ["all"]}]
    if request.kind == HOSTS:
        return [*_dns(request.dns, [host.pattern for host in request.hosts]), *_hosts(request.hosts)]
    rules = _dns(request.dns, request.dns.names)
    blocks = public_blocks(request.except_cidrs) if request.kind == PUBLIC_INTERNET else []
    if blocks:
        rules.append({"toCIDRSet": blocks, **({"toPorts": _ports(request.ports)} if request.ports else {})})
    return rules


def _dns(dns: DnsTarget, names: c.Iterable[str]) -> list[Body]:
    """DNS to the cluster's servers, for these names alone; for any name without them."""
    patterns = list(map(_name, dict.fromkeys(names)))
    limit = {"rules": {"dns": patterns}} if patterns else {}
    ports = [{"port": str(DNS_PORT), "protocol": protocol} for protocol in ("UDP", "TCP")]
    labels = {f"k8s:{NAMESPACE_KEY}": dns.namespace, **{f"k8s:{key}": value for key, value in dns.labels}}
    rules: list[Body] = [{"toEndpoints": [{"matchLabels": labels}], "toPorts": [{"ports": ports, **limit}]}]
    if dns.addresses:
        blocks = [str(ipaddress.ip_network(text, strict=False)) for text in dns.addresses]
        rules.append({"toCIDR": blocks, "toPorts": [{"ports": ports, **limit}]})
    return rules


def _hosts(hosts: tuple[HostRule, ...]) -> list[Body]:
    """The names, those with the same ports in one rule."""
    by_ports: dict[tuple[tuple[str, int], ...], list[Body]] = {}
    for host in hosts:
        names = by_ports.setdefault(tuple(dict.fromkeys(host.ports)), [])
        if _name(host.pattern) not in names:
            names.append(_name(host.pattern))
    return [{"toFQDNs": names, "toPorts": _ports(ports)} for ports, names in by_ports.items()]


def _ports(ports: tuple[tuple[str, int], ...]) -> list[Body]:
    items = [{"port": str(number), "protocol": protocol} for protocol, number in ports]
    return [{"ports": items[at : at + MOST_PORTS]} for at in range(0, len(items), MOST_PORTS)]


def _name(pattern: str) -> Body:
    return {"matchPattern": pattern} if "*" in pattern else {"matchName": pattern}
