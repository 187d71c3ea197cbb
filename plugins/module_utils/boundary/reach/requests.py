# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a sandbox is asked to be allowed to reach, and who is asked to be allowed to reach it.

Requests by kind: ``no_network`` (not even DNS), ``dns_only`` (the cluster's DNS servers only), ``public_internet``
(every public address, and DNS), ``hosts`` (addresses learned for DNS names, and DNS) and ``allow_all``.
"""

from __future__ import annotations

import collections.abc as c
import dataclasses
import functools
import ipaddress
import typing as t

from ..errors import QuestionError
from ..sets import boxes
from ..sets.addresses import ALL_ADDRESSES, AddressSet, parse_cidr
from ..sets.boxes import DNS_NAME, OUTSIDE, Box, Region
from ..sets.names import NameSet, Pattern, is_name
from ..sets.ports import ALL_PORTS, SPACE, TRANSPORTS, PortSet, union_of
from ..sets.selectors import Selector
from ..world.objects import Body

NO_NETWORK = "no_network"
DNS_ONLY = "dns_only"
PUBLIC_INTERNET = "public_internet"
HOSTS = "hosts"
ALLOW_ALL = "allow_all"
REQUEST_KINDS = (NO_NETWORK, DNS_ONLY, PUBLIC_INTERNET, HOSTS, ALLOW_ALL)

#: What is not the public internet, for each IP version, and where that is written.
NOT_PUBLIC: tuple[str, ...] = (
    "10.0.0.0/8",  # RFC 1918
    "100.64.0.0/10",  # RFC 6598, carrier-grade NAT
    "127.0.0.0/8",  # RFC 1122, loopback
    "168.63.129.16/32",  # a cloud's platform endpoint, public by number only
    "169.254.0.0/16",  # RFC 3927, link-local, also the metadata services
    "172.16.0.0/12",  # RFC 1918
    "192.168.0.0/16",  # RFC 1918
    "::1/128",  # RFC 4291, loopback
    "fc00::/7",  # RFC 4193, unique-local
    "fe80::/10",  # RFC 4291, link-local
)

DNS_PORT = 53
#: What a host rule opens when it names no port.
DEFAULT_HOST_PORTS = (("TCP", 443),)


@dataclasses.dataclass(frozen=True, slots=True)
class DnsTarget:
    """The cluster's DNS servers.

    Attributes:
        namespace: their namespace.
        labels: the labels of their pods, as pairs.
        addresses: CIDR blocks of DNS servers that are not pods (a node-local cache: ``169.254.20.10/32``).
        names: the only names that may be looked up, each a name, or ``*.`` and a name: exactly one label more; empty
            for any name. A resolver that answers for any name is a tunnel to whoever serves the name.
    """

    namespace: str = "kube-system"
    labels: tuple[tuple[str, str], ...] = (("k8s-app", "kube-dns"),)
    addresses: tuple[str, ...] = ()
    names: tuple[str, ...] = ()


@dataclasses.dataclass(frozen=True, slots=True)
class HostRule:
    """A DNS name that may be reached.

    Attributes:
        pattern: a name, or ``*.`` and a name: exactly one label more.
        ports: protocol and port, at least one.
    """

    pattern: str
    ports: tuple[tuple[str, int], ...] = DEFAULT_HOST_PORTS


@dataclasses.dataclass(frozen=True, slots=True)
class Request:
    """What a sandbox is asked to be allowed to reach.

    Attributes:
        kind: one of ``REQUEST_KINDS``.
        except_cidrs: further blocks that are not the public internet, for ``public_internet``.
        hosts: the names, for ``hosts``.
        ports: the only protocols and ports of the public internet, for ``public_internet``; empty for all.
        dns: the cluster's DNS servers.
    """

    kind: str
    except_cidrs: tuple[str, ...] = ()
    hosts: tuple[HostRule, ...] = ()
    dns: DnsTarget = DnsTarget()
    ports: tuple[tuple[str, int], ...] = ()

    @classmethod
    def of(cls, value: object) -> Request:
        """A request from plain data.

        Args:
            value: a kind, or a mapping with ``kind`` and, where the kind has them, ``except_cidrs`` (a list), ``hosts``
                (names, or mappings with ``host`` and ``ports``), ``ports`` (of the public internet, or for every host
                that has none; numbers, or texts such as ``53/UDP``) and ``dns`` (``namespace``, ``labels``,
                ``addresses``, ``names``); or a Request.

        Raises:
            QuestionError: the value is not a valid request.
        """
        if isinstance(value, Request):
            return value
        body = {"kind": value} if isinstance(value, str) else value
        if not isinstance(body, c.Mapping):
            raise QuestionError(f"A request is a kind or a mapping with a kind, got {value!r}.")
        kind = body.get("kind")
        if kind not in REQUEST_KINDS:
            raise QuestionError(f"A request's kind is one of {', '.join(REQUEST_KINDS)}, got {kind!r}.")
        taken = {"kind", "dns", *_FIELDS.get(t.cast("str", kind), ())}
        for field in body:
            if field not in taken:
                raise QuestionError(f"A {kind} request has no {field!r}.")
        hosts = tuple(_host(item, _ports(body.get("ports"))) for item in _listed(body, "hosts"))
        if (kind == HOSTS) != bool(hosts):
            raise QuestionError("A hosts request names at least one host.")
        dns = _dns(body)
        if dns.names and kind not in {DNS_ONLY, PUBLIC_INTERNET}:
            raise QuestionError(
                f"A {kind} request has no dns.names.",
                next_step="Use kind hosts, which looks up its own hosts alone, or kind dns_only or public_internet.",
            )
        blocks = tuple(_block(item) for item in _listed(body, "except_cidrs"))
        ports = _ports(body.get("ports")) if kind == PUBLIC_INTERNET and body.get("ports") is not None else ()
        return cls(t.cast("str", kind), blocks, hosts, dns, ports)

    def as_dict(self) -> dict[str, t.Any]:
        """The request as plain data, from which ``of`` makes it again."""
        dns: dict[str, t.Any] = {
            "namespace": self.dns.namespace,
            "labels": dict(self.dns.labels),
            "addresses": list(self.dns.addresses),
            **({"names": list(self.dns.names)} if self.dns.names else {}),
        }
        hosts = [{"host": rule.pattern, "ports": _as_texts(rule.ports)} for rule in self.hosts]
        return {
            "kind": self.kind,
            **({"except_cidrs": list(self.except_cidrs)} if self.except_cidrs else {}),
            **({"hosts": hosts} if hosts else {}),
            **({"ports": _as_texts(self.ports)} if self.ports else {}),
            "dns": dns,
        }

    def region(self) -> Region:
        """Everything that the request allows; without DNS where it limits names, which are not a matter of regions."""
        return list(_region(self))

    def __str__(self) -> str:
        text = self.kind
        if self.hosts:
            text += f" {', '.join(host.pattern for host in self.hosts)}"
        if self.ports:
            text += f" on {', '.join(_as_texts(self.ports))}"
        if self.except_cidrs:
            text += f" except {', '.join(self.except_cidrs)}"
        return f"{text} with DNS names {', '.join(self.dns.names)}" if self.dns.names else text


def _as_texts(ports: c.Iterable[tuple[str, int]]) -> list[str]:
    return [f"{number}/{protocol}" for protocol, number in ports]


_FIELDS = {PUBLIC_INTERNET: ("except_cidrs", "ports"), HOSTS: ("hosts", "ports")}


@functools.lru_cache(maxsize=256)
def _region(request: Request) -> tuple[Box, ...]:
    if request.kind == NO_NETWORK:
        return ()
    if request.kind == ALLOW_ALL:
        return (boxes.EVERYTHING,)
    found = [] if request.dns.names else dns_region(request.dns)
    if request.kind == PUBLIC_INTERNET:
        on = union_of(PortSet.of(*port) for port in request.ports) if request.ports else ALL_PORTS
        found.extend(boxes.addresses(public(request.except_cidrs), ports=on))
    for host in request.hosts:
        ports = union_of(PortSet.of(protocol, port) for protocol, port in host.ports)
        found.append(Box(frozenset({OUTSIDE}), {DNS_NAME: names_of([host.pattern])}, ports))
    return tuple(found)


def names_of(patterns: c.Iterable[str]) -> NameSet:
    """The names that some names, or ``*.`` and a name, stand for."""
    return NameSet.of(*map(Pattern.glob, patterns))


def public(except_cidrs: c.Iterable[str] = ()) -> AddressSet:
    """The public internet: every address but ``NOT_PUBLIC`` and further blocks."""
    return ALL_ADDRESSES.minus(AddressSet.of(*NOT_PUBLIC, *except_cidrs))


def dns_region(dns: DnsTarget) -> Region:
    """The cluster's DNS servers on port 53, UDP and TCP."""
    ports = PortSet.of("UDP", DNS_PORT).union(PortSet.of("TCP", DNS_PORT))
    found = boxes.pods(None, Selector(frozenset(dns.labels)), namespace=dns.namespace, ports=ports)
    return [*found, *boxes.addresses(AddressSet.of(*dns.addresses), ports=ports)]


def _listed(body: c.Mapping[str, t.Any], field: str) -> list[t.Any]:
    value = body.get(field)
    if value is None:
        return []
    if not isinstance(value, (list, tuple)):
        raise QuestionError(f"A request's {field} is a list, got {value!r}.")
    return list(value)


def _block(value: object) -> str:
    if not isinstance(value, str):
        raise QuestionError(f"A request's blocks are texts, got {value!r}.")
    try:
        parse_cidr(value)
    except ValueError as exc:
        raise QuestionError(f"A request's blocks: {exc}.") from exc
    return value


def _host(value: object, ports: tuple[tuple[str, int], ...]) -> HostRule:
    if isinstance(value, c.Mapping):
        if not value.keys() <= {"host", "ports"}:
            raise QuestionError(f"A host is a name, or a mapping with host and ports, got {value!r}.")
        ports = _ports(value.get("ports")) if value.get("ports") else ports
        value = value.get("host")
    return HostRule(_pattern(value), ports)


def _pattern(value: object) -> str:
    if not isinstance(value, str) or not is_name(value.removeprefix("*.")):
        raise QuestionError(f"A host is a DNS name, or *. and a DNS name, got {value!r}.")
    return value.lower().rstrip(".")


def _ports(value: object) -> tuple[tuple[str, int], ...]:
    if value is None:
        return DEFAULT_HOST_PORTS
    if not isinstance(value, (list, tuple)) or not value:
        raise QuestionError(f"A request's ports are a list with at least one, got {value!r}.")
    return tuple(parse_port(item) for item in value)


def parse_port(value: object) -> tuple[str, int]:
    """``443`` (TCP), ``"443"`` or ``"53/UDP"`` as protocol and port; raises QuestionError."""
    number, _unused, protocol = str(value).partition("/")
    protocol = protocol.upper() or "TCP"
    if isinstance(value, bool) or not (number.isascii() and number.isdecimal()) or protocol not in TRANSPORTS:
        raise QuestionError(f"A port is a number, or a number, a slash and a protocol, got {value!r}.")
    low, high = SPACE[protocol]
    if not low <= int(number) <= high:
        raise QuestionError(f"A port is between {low} and {high}, got {value!r}.")
    return protocol, int(number)


def _dns(body: c.Mapping[str, t.Any]) -> DnsTarget:
    value = body.get("dns")
    if value is None:
        return DnsTarget()
    if isinstance(value, DnsTarget):
        return value
    if not isinstance(value, c.Mapping) or not value.keys() <= {"namespace", "labels", "addresses", "names"}:
        raise QuestionError(f"A request's dns has namespace, labels, addresses and names, got {value!r}.")
    plain = DnsTarget()
    labels = value.get("labels", dict(plain.labels))
    namespace = value.get("namespace", plain.namespace)
    if not isinstance(namespace, str) or not isinstance(labels, c.Mapping):
        raise QuestionError(f"A request's dns has a namespace and a mapping of labels, got {value!r}.")
    pairs = tuple(sorted((str(key), str(item)) for key, item in labels.items()))
    addresses = tuple(_block(item) for item in _listed(value, "addresses"))
    return DnsTarget(namespace, pairs, addresses, tuple(map(_pattern, _listed(value, "names"))))


def public_blocks(except_cidrs: c.Iterable[str]) -> list[Body]:
    """The public internet as blocks with exceptions, one for each IP version that is left."""
    out: list[Body] = []
    networks = [ipaddress.ip_network(text, strict=False) for text in (*NOT_PUBLIC, *except_cidrs)]
    four = [network for network in networks if isinstance(network, ipaddress.IPv4Network)]
    six = [network for network in networks if isinstance(network, ipaddress.IPv6Network)]
    for cidr, excluded in (
        ("0.0.0.0/0", [str(network) for network in ipaddress.collapse_addresses(four)]),
        ("::/0", [str(network) for network in ipaddress.collapse_addresses(six)]),
    ):
        if cidr not in excluded:
            out.append({"cidr": cidr, "except": excluded})
    return out
