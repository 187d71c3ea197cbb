# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A second, slow reading of Cilium's rules, one identity and one port at a time, and policies to try it on.

It shares nothing with the engine: it works as Cilium's own policy map does, from the labels of each identity, and holds
no sets. Only what the strategies below can write is understood.
"""

from __future__ import annotations

import dataclasses
import ipaddress

from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import CLUSTER, Body

NAMESPACE = "io.kubernetes.pod.namespace"
TEAM = "io.cilium.k8s.namespace.labels.team"


@dataclasses.dataclass(frozen=True)
class Identity:
    """What Cilium knows of one peer."""

    labels: frozenset[tuple[str, str, str]]
    address: str | None = None
    named: tuple[tuple[str, int], ...] = ()


def _of_pod(body: Body, namespaces: dict[str, dict[str, str]]) -> Identity:
    where = body["metadata"]["namespace"]
    found = {("k8s", key, value) for key, value in body["metadata"]["labels"].items()}
    found |= {("k8s", NAMESPACE, where), ("k8s", "io.cilium.k8s.policy.cluster", "default")}
    for key, value in namespaces[where].items():
        found.add(("k8s", f"io.cilium.k8s.namespace.labels.{key}", value))
    ports = tuple((item["name"], item["containerPort"]) for item in body["spec"]["containers"][0]["ports"])
    return Identity(frozenset(found), named=ports)


def _identities() -> dict[str, tuple[Body, Identity]]:
    namespaces = {
        body["metadata"]["name"]: body["metadata"]["labels"] for body in CLUSTER if body["kind"] == "Namespace"
    }
    found = {}
    for body in CLUSTER:
        if body["kind"] == "Pod" and not body["spec"].get("hostNetwork"):
            place = f"{body['metadata']['namespace']}/{body['metadata']['name']}"
            found[place] = ({"pod": place}, _of_pod(body, namespaces))
    found["host"] = ({"node": "node-1"}, Identity(frozenset({("reserved", "host", "")})))
    found["remote"] = ({"node": "node-2"}, Identity(frozenset({("reserved", "remote-node", "")})))
    for address in ("10.1.9.9", "203.0.113.9", "198.51.100.7", "2001:db8::1"):
        found[address] = ({"ip": address}, Identity(frozenset({("reserved", "world", "")}), address))
    return found


PEERS = _identities()
PODS = ("agents/sandbox", "other/sandbox")
PORTS = ((80, "TCP"), (443, "TCP"), (443, "UDP"), (8080, "TCP"), (8081, "TCP"), (8, "ICMP"))
ENTITIES = {
    "all": None,
    "world": ("world",),
    "host": ("host",),
    "remote-node": ("remote-node",),
    "cluster": ("host", "remote-node"),
    "none": (),
}


def _label(identity: Identity, key: str) -> list[str]:
    source, colon, name = key.partition(":")
    if not colon:
        source, name = "any", key
    return [value for of, known, value in identity.labels if known == name and source in {"any", of}]


def _meets(identity: Identity, selector: Body) -> bool:
    for key, value in (selector.get("matchLabels") or {}).items():
        if value not in _label(identity, key):
            return False
    for item in selector.get("matchExpressions") or ():
        values, there = set(item.get("values") or ()), _label(identity, item["key"])
        holds = {
            "In": bool(values & set(there)),
            "NotIn": not values & set(there),
            "Exists": bool(there),
            "DoesNotExist": not there,
        }
        if not holds[item["operator"]]:
            return False
    return True


def _selects_peer(identity: Identity, selector: Body, namespace: str | None) -> bool:
    keys = [*(selector.get("matchLabels") or {}), *(item["key"] for item in selector.get("matchExpressions") or ())]
    plain = [key.partition(":")[2] if ":" in key else key for key in keys]
    if not any(key.startswith("reserved:") for key in keys):
        if "default" not in _label(identity, "k8s:io.cilium.k8s.policy.cluster"):
            return False
        if NAMESPACE not in plain:
            spoken = any(key.startswith("io.cilium.k8s.namespace.labels.") for key in plain)
            there = _label(identity, "k8s:" + NAMESPACE)
            if not there or (namespace is not None and not spoken and there != [namespace]):
                return False
    return _meets(identity, selector)


def _selects_subject(identity: Identity, selector: Body, namespace: str | None) -> bool:
    if namespace is not None and _label(identity, "k8s:" + NAMESPACE) != [namespace]:
        return False
    own = {key: value for key, value in (selector.get("matchLabels") or {}).items() if key != "k8s:" + NAMESPACE}
    return _meets(identity, {**selector, "matchLabels": own if namespace else selector.get("matchLabels")})


def _in(address: str | None, block: str) -> bool:
    return address is not None and ipaddress.ip_address(address) in ipaddress.ip_network(block)


def _entity(identity: Identity, name: str) -> bool:
    reserved = ENTITIES[name]
    pods = bool(_label(identity, "k8s:" + NAMESPACE))
    return (
        reserved is None
        or any(_label(identity, f"reserved:{each}") for each in reserved)
        or (name == "cluster" and pods)
    )


def _is_peer(identity: Identity, rule: Body, side: str, namespace: str | None) -> bool | None:
    """Whether a rule is about an identity; None where it names no peers."""
    for key, found in (
        ("Endpoints", lambda item: _selects_peer(identity, item, namespace)),
        ("Entities", lambda item: _entity(identity, item)),
        ("CIDR", lambda item: _in(identity.address, item)),
        (
            "CIDRSet",
            lambda item: (
                _in(identity.address, item["cidr"])
                and not any(_in(identity.address, block) for block in item.get("except") or ())
            ),
        ),
    ):
        if side + key in rule:
            return any(map(found, rule[side + key]))
    return None


#: The numbers that some pod has under some name: before v1.20, Cilium opens them to peers that are not pods too.
NUMBERS = {pair for _body, identity in PEERS.values() for pair in identity.named}


def _port(item: Body, port: int, protocol: str, target: Identity, *, older: bool) -> bool:
    if item.get("protocol", "ANY") not in {"ANY", protocol} or protocol not in {"TCP", "UDP", "SCTP"}:
        return False
    if not item["port"].isdigit():
        has_names = bool(_label(target, "k8s:" + NAMESPACE)) or not older
        return protocol == "TCP" and (item["port"], port) in (target.named if has_names else NUMBERS)
    low = int(item["port"])
    return low == 0 or low <= port <= max(low, item.get("endPort", 0))


def _matches(
    rule: Body,
    side: str,
    namespace: str | None,
    peer: Identity,
    me: Identity,
    port: int,
    protocol: str,
    *,
    older: bool = False,
) -> bool:
    about = _is_peer(peer, rule, side, namespace)
    limited = bool(rule.get("toPorts") or rule.get("icmps"))
    if about is False or (about is None and not limited):
        return False
    target = me if side == "from" else peer
    return (
        not limited
        or any(
            _port(item, port, protocol, target, older=older)
            for group in rule.get("toPorts") or ()
            for item in group["ports"]
        )
        or (
            protocol == "ICMP"
            and any(item["type"] == port for group in rule.get("icmps") or () for item in group["fields"])
        )
    )


def allowed(policies: list[Body], pod: str, direction: str, peer: str, port: int, protocol: str) -> bool:
    """Whether the policies of a pod let one point of traffic through, in any version of Cilium."""
    me, other = PEERS[pod][1], PEERS[peer][1]
    side = "to" if direction == "egress" else "from"
    closed = permitted = False
    for policy in policies:
        spec, namespace = policy["spec"], policy["metadata"].get("namespace")
        if not _selects_subject(me, spec["endpointSelector"], namespace):
            continue
        denies, allows = spec.get(direction + "Deny") or [], spec.get(direction) or []
        if any(_matches(rule, side, namespace, other, me, port, protocol) for rule in denies):
            return False
        if (denies or allows) and (spec.get("enableDefaultDeny") or {}).get(direction) is not False:
            closed = True
        permitted |= any(_matches(rule, side, namespace, other, me, port, protocol, older=True) for rule in allows)
    local = direction == "ingress" and ("reserved", "host", "") in other.labels
    return permitted or local or not closed


_KEYS = st.sampled_from(
    [
        "app",
        "any:app",
        "k8s:app",
        "k8s-app",
        NAMESPACE,
        "k8s:" + NAMESPACE,
        TEAM,
        "reserved:host",
        "reserved:world",
        "gone",
    ]
)
_VALUES = st.sampled_from(["sandbox", "peer", "kube-dns", "agents", "other", "ai", ""])
_EXPRESSIONS = st.one_of(
    st.builds(
        lambda key, operator, values: {"key": key, "operator": operator, "values": values},
        _KEYS,
        st.sampled_from(["In", "NotIn"]),
        st.lists(_VALUES, min_size=1, max_size=2),
    ),
    st.builds(
        lambda key, operator: {"key": key, "operator": operator}, _KEYS, st.sampled_from(["Exists", "DoesNotExist"])
    ),
)
_SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(_KEYS, _VALUES, max_size=2),
        "matchExpressions": st.lists(_EXPRESSIONS, max_size=2),
    },
)
_BLOCKS = st.sampled_from(["0.0.0.0/0", "::/0", "10.0.0.0/8", "203.0.113.0/24", "198.51.100.7/32", "192.168.0.0/16"])
_SETS = st.sampled_from(
    [
        {"cidr": "0.0.0.0/0", "except": ["203.0.113.0/24", "10.0.0.0/8"]},
        {"cidr": "203.0.113.0/24"},
        {"cidr": "::/0", "except": ["2001:db8::/32"]},
    ]
)
_NUMBERS = st.one_of(
    st.sampled_from(["0", "80", "443", "agent"]).map(lambda port: {"port": port}),
    st.just({"port": "80", "endPort": 443}),
    st.just({"port": "443", "endPort": 80}),
)
_PORT = st.builds(
    lambda port, protocol: {**port, **protocol},
    _NUMBERS,
    st.sampled_from([{}, {"protocol": "ANY"}, {"protocol": "TCP"}, {"protocol": "UDP"}]),
)
_LIMITS = st.one_of(
    st.just({}),
    st.lists(st.lists(_PORT, max_size=2).map(lambda items: {"ports": items}), max_size=2).map(
        lambda items: {"toPorts": items}
    ),
    st.just({"icmps": [{"fields": [{"type": 8, "family": "IPv4"}]}]}),
)


def _rules(side: str) -> st.SearchStrategy[Body]:
    peers = st.one_of(
        st.just({}),
        st.lists(_SELECTORS, max_size=2).map(lambda items: {side + "Endpoints": items}),
        st.lists(st.sampled_from(sorted(ENTITIES)), max_size=2).map(lambda items: {side + "Entities": items}),
        st.lists(_BLOCKS, max_size=2).map(lambda items: {side + "CIDR": items}),
        st.lists(_SETS, max_size=2).map(lambda items: {side + "CIDRSet": items}),
    )
    return st.builds(lambda peer, limit: {**peer, **limit}, peers, _LIMITS)


def _policy(number: int, kind: str, namespace: str | None, spec: Body) -> Body:
    where = {} if namespace is None else {"namespace": namespace}
    return {
        "apiVersion": "cilium.io/v2",
        "kind": kind,
        "metadata": {"name": f"p{number}", **where},
        "spec": spec,
    }


_SPECS = st.fixed_dictionaries(
    {"endpointSelector": st.one_of(st.just({}), st.just({"matchLabels": {"app": "sandbox"}}), _SELECTORS)},
    optional={
        "egress": st.lists(_rules("to"), min_size=1, max_size=2),
        "egressDeny": st.lists(_rules("to"), min_size=1, max_size=1),
        "ingress": st.lists(_rules("from"), min_size=1, max_size=2),
        "ingressDeny": st.lists(_rules("from"), min_size=1, max_size=1),
        "enableDefaultDeny": st.sampled_from([{"egress": False}, {"ingress": False}, {"egress": True}]),
    },
).filter(lambda spec: any(spec.get(name) for name in ("egress", "egressDeny", "ingress", "ingressDeny")))

_PLACES = st.sampled_from(
    [("CiliumNetworkPolicy", "agents"), ("CiliumNetworkPolicy", "other"), ("CiliumClusterwideNetworkPolicy", None)]
)

POLICIES = st.lists(st.tuples(_PLACES, _SPECS), min_size=1, max_size=3).map(
    lambda drawn: [_policy(number, kind, where, spec) for number, ((kind, where), spec) in enumerate(drawn)]
)
