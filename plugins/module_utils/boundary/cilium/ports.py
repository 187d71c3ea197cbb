# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``toPorts`` and ``icmps`` of a Cilium rule, as sets of ports with their limits above.

Facts of v1.20.2 (``pkg/policy/api/l4.go``, ``icmp.go``, ``rule_validation.go``, ``pkg/policy/rule.go`` and ``l4.go``):

- A rule without any of both is about everything, ICMP too. With ``toPorts`` it is about TCP, UDP and SCTP alone.
- A protocol left out or ``ANY`` is each of TCP, UDP and SCTP. Port ``"0"`` is every port.
- An item of ``toPorts`` without ports is about nothing.
- ``endPort`` is inclusive; where it is not above the port, and for a named port, it does not count.
- Port numbers are read as Go reads them: ``"010"`` is 8.
- ``icmps`` must not be beside ``toPorts``; a family left out is IPv4.
"""

from __future__ import annotations

import dataclasses
import functools
import re

from ..engines.model import PortName
from ..sets.ports import NO_PORTS, TRANSPORTS, PortSet, union_of
from ..world.strict_reader import Reader
from .errors import Refused
from .l7 import NO_LIMIT, Layer7, read_layer7

MOST_PORTS = 40
"""Cilium refuses more ports or ICMP fields in one item."""

_NAME = re.compile(r"(?=.{1,15}\Z)(?:[a-z0-9]+-)*[a-z0-9]*[a-z][a-z0-9]*(?:-[a-z0-9]+)*\Z")
_WITHOUT_PORTS = frozenset({"VRRP", "IGMP", "GRE", "IPIP", "IPV6", "ESP", "AH"})
_FAMILIES = {"IPv4": "ICMP", "IPv6": "ICMPv6"}

# The names of message types (RFC 792, RFC 4443 and others), as pkg/policy/api/icmp.go takes them.
_TYPES: dict[str, dict[str, int]] = {
    "ICMP": {
        "EchoReply": 0, "DestinationUnreachable": 3, "Redirect": 5, "Echo": 8, "EchoRequest": 8,
        "RouterAdvertisement": 9, "RouterSelection": 10,
        "TimeExceeded": 11, "ParameterProblem": 12, "Timestamp": 13, "TimestampReply": 14,
        "Photuris": 40, "ExtendedEchoRequest": 42, "ExtendedEchoReply": 43,
    },
    "ICMPv6": {
        "DestinationUnreachable": 1, "PacketTooBig": 2, "TimeExceeded": 3, "ParameterProblem": 4, "EchoRequest": 128,
        "EchoReply": 129, "MulticastListenerQuery": 130, "MulticastListenerReport": 131, "MulticastListenerDone": 132,
        "RouterSolicitation": 133, "RouterAdvertisement": 134, "NeighborSolicitation": 135,
        "NeighborAdvertisement": 136, "RedirectMessage": 137, "RouterRenumbering": 138,
        "ICMPNodeInformationQuery": 139, "ICMPNodeInformationResponse": 140,
        "InverseNeighborDiscoverySolicitation": 141, "InverseNeighborDiscoveryAdvertisement": 142,
        "HomeAgentAddressDiscoveryRequest": 144, "HomeAgentAddressDiscoveryReply": 145, "MobilePrefixSolicitation": 146,
        "MobilePrefixAdvertisement": 147, "DuplicateAddressRequestCodeSuffix": 157,
        "DuplicateAddressConfirmationCodeSuffix": 158, "ExtendedEchoRequest": 160, "ExtendedEchoReply": 161,
    },
}  # fmt: skip


@dataclasses.dataclass(frozen=True, slots=True)
class PortItem:
    """Ports that share one limit.

    Attributes:
        ports: by number.
        names: by name.
        layer7: what passes on them.
        odd: why the ports may be wider than that, or None.
    """

    ports: PortSet
    names: tuple[PortName, ...] = ()
    layer7: Layer7 = NO_LIMIT
    odd: str | None = None


def read_ports(rule: Reader, *, ingress: bool, deny: bool) -> list[PortItem] | None:
    """The ports of a rule, or None for a rule that is about every port and protocol.

    Raises:
        PolicyError: a field of the wrong type.
        Refused: what Cilium does not import.
    """
    to_ports, icmps = rule.items("toPorts") or [], rule.items("icmps") or []
    if to_ports and icmps:
        raise Refused(f"{rule.at('icmps')} must not be beside toPorts")
    if not to_ports and not icmps:
        return None
    found = [_icmp(item) for item in icmps]
    found += [_item(item, ingress=ingress, deny=deny) for item in to_ports]
    return _merged(found)


def _merged(items: list[PortItem]) -> list[PortItem]:
    """The items, those without limits in one."""
    plain = [item for item in items if not item.layer7.limits]
    rest = [item for item in items if item.layer7.limits]
    if not plain:
        return rest
    names = tuple(name for item in plain for name in item.names)
    odd = next((item.odd for item in plain if item.odd), None)
    uncertain = tuple(reason for item in plain for reason in item.layer7.undecided)
    layer7 = Layer7(undecided=uncertain) if uncertain else NO_LIMIT
    held = plain[0].ports if len(plain) == 1 else union_of(item.ports for item in plain)
    return [PortItem(held, names, layer7, odd), *rest]


def _item(item: Reader, *, ingress: bool, deny: bool) -> PortItem:
    ports = item.items("ports") or []
    if len(ports) > MOST_PORTS:
        raise Refused(f"{item.at('ports')} has {len(ports)} items, at most {MOST_PORTS} are allowed")
    try:
        layer7 = NO_LIMIT if deny else read_layer7(item.body)
    except ValueError as exc:
        raise Refused(f"{item.path}: {exc}") from exc
    held, names, odd = NO_PORTS, [], None
    if deny:
        odd = next(iter(f"unknown field {path}" for path in item.unknown({"ports"})), None)
    sets = []
    for port in ports:
        for path in port.unknown({"port", "endPort", "protocol"}):
            odd = f"unknown field {path}"
        found = _port(port, layer7)
        if isinstance(found, PortSet):
            sets.append(found)
        elif found is not None:
            names.append(found)
    if sets:
        held = sets[0] if len(sets) == 1 else union_of(sets)
    _check(item, layer7, ingress=ingress, empty=not ports)
    return PortItem(held, tuple(names), layer7, odd)


def _check(item: Reader, layer7: Layer7, *, ingress: bool, empty: bool) -> None:
    """Refuse what Cilium refuses of a limited item."""
    if ingress and layer7.dns is not None:
        raise Refused(f"{item.at('rules')}: DNS rules are for egress")
    if ingress and item.has("listener"):
        raise Refused(f"{item.at('listener')}: a listener is for egress")
    if layer7.dns is not None and empty:
        raise Refused(f"{item.at('rules')}: DNS rules need a port")
    if layer7.sni is not None and (layer7.http or layer7.dns) and not layer7.terminates:
        raise Refused(f"{item.at('serverNames')}: server names beside other rules need terminatingTLS")


def _port(port: Reader, layer7: Layer7) -> PortSet | PortName | None:
    """One port: a set, a name with its protocol, or None for a protocol that the algebra does not hold."""
    text, protocol = port.text("port") or "", (port.text("protocol") or "ANY").upper()
    if protocol not in {*TRANSPORTS, "ANY"} | _WITHOUT_PORTS:
        raise Refused(f"{port.at('protocol')}: {protocol!r} is not a protocol of Cilium")
    if layer7.http is not None and protocol != "TCP":
        raise Refused(f"{port.at('protocol')}: HTTP rules are for TCP, not {protocol}")
    end = port.number("endPort", 0, 65535) or 0
    if _NAME.match(text.lower()):
        return None if protocol in _WITHOUT_PORTS else (text.lower(), None if protocol == "ANY" else protocol)
    if protocol in _WITHOUT_PORTS:
        return None
    number = _number(port, text)
    if layer7.limits and number == 0 and (layer7.http or layer7.dns):
        raise Refused(f"{port.at('port')}: rules above the port need a port, not 0")
    if layer7.dns is not None and end > number:
        raise Refused(f"{port.at('endPort')}: DNS rules do not take ranges")
    return _range(protocol, number, max(end, number))


@functools.lru_cache(maxsize=4096)
def _range(protocol: str, low: int, high: int) -> PortSet:
    each = TRANSPORTS if protocol == "ANY" else (protocol,)
    return union_of(PortSet.of(name, low or None, high if low else None) for name in each)


def _number(port: Reader, text: str) -> int:
    """A port number as Go's ``strconv.ParseUint`` with base 0 reads it; names were taken out before."""
    if not text:
        raise Refused(f"{port.at('port')}: a port must be given")
    octal = len(text) > 1 and text[0] == "0"
    if not text.isascii() or not text.isdigit() or len(text) > 8 or (octal and set(text) & {"8", "9"}):
        raise Refused(f"{port.at('port')}: {text!r} is neither a number nor a name")
    number = int(text, 8 if octal else 10)
    if number > 65535:
        raise Refused(f"{port.at('port')}: {text} is above 65535")
    return number


def _icmp(item: Reader) -> PortItem:
    fields = item.items("fields") or []
    if len(fields) > MOST_PORTS:
        raise Refused(f"{item.at('fields')} has {len(fields)} items, at most {MOST_PORTS} are allowed")
    odd = next(iter(f"unknown field {path}" for path in item.unknown({"fields"})), None)
    sets = []
    for field in fields:
        for path in field.unknown({"family", "type"}):
            odd = f"unknown field {path}"
        family = field.text("family") or "IPv4"
        if family not in _FAMILIES:
            raise Refused(f"{field.at('family')}: {family!r} is neither IPv4 nor IPv6")
        protocol = _FAMILIES[family]
        sets.append(PortSet.of(protocol, _type(field, protocol)))
    return PortItem(union_of(sets), odd=odd)


def _type(field: Reader, protocol: str) -> int:
    value = field.body.get("type")
    if isinstance(value, str) and value in _TYPES[protocol]:
        return _TYPES[protocol][value]
    if isinstance(value, str) and value.isascii() and value.isdigit() and len(value) <= 3:
        value = int(value)
    if not isinstance(value, int) or isinstance(value, bool) or not 0 <= value <= 255:
        raise Refused(f"{field.at('type')}: {value!r} is not a type of {protocol}")
    return value
