# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Random policies against a brute-force reading of them: single decisions, containment, and what must never shrink."""

from __future__ import annotations

import itertools
import typing as t

from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import NamedPort
from ansible_collections.namzu.sandbox.tests.unit.boundary import oracle
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    cluster_policy,
    namespace,
    pod,
    policy,
)

quick = settings(max_examples=40, deadline=None, suppress_health_check=list(HealthCheck), database=None)

SUBJECT = oracle.Subject("agents", oracle.NAMESPACES["agents"], (("app", "x"),), (("web", 82, "TCP"),))
PORT_NAMES = [NamedPort(name, protocol, number) for name, number, protocol in SUBJECT.named]
KNOWN = [namespace(name, **dict(labels)) for name, labels in oracle.NAMESPACES.items()]


def selectors(key: str, *values: str) -> st.SearchStrategy[Body]:
    some = st.lists(st.sampled_from(values), min_size=1, max_size=2, unique=True)
    expression = st.one_of(
        st.builds(
            lambda verb, held: {"key": key, "operator": verb, "values": held}, st.sampled_from(["In", "NotIn"]), some
        ),
        st.sampled_from([{"key": key, "operator": verb} for verb in ("Exists", "DoesNotExist")]),
    )
    return st.one_of(
        st.just({}),
        st.builds(lambda value: {"matchLabels": {key: value}}, st.sampled_from(values)),
        st.builds(lambda item: {"matchExpressions": [item]}, expression),
    )


LABELS = selectors("app", "x", "y")
TEAMS = st.one_of(
    selectors("team", "red", "blue"),
    st.just({"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}),
)
BLOCKS = ["0.0.0.0/0", "10.0.0.0/8", "10.1.0.0/16", "192.0.2.0/24", "192.0.0.0/8", "2001:db8::/32", "::/0"]


@st.composite
def ip_blocks(draw: st.DrawFn) -> Body:
    cidr = draw(st.sampled_from(BLOCKS))
    other = [text for text in BLOCKS if (":" in text) == (":" in cidr) and text != cidr]
    excluded = draw(st.lists(st.sampled_from(other), max_size=2, unique=True))
    return {"ipBlock": {"cidr": cidr, "except": excluded} if excluded else {"cidr": cidr}}


DNS_PEER = {
    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}},
    "podSelector": {"matchLabels": {"k8s-app": "kube-dns"}},
}
PEERS = st.one_of(
    ip_blocks(),
    st.builds(lambda labels: {"podSelector": labels}, LABELS),
    st.builds(lambda teams: {"namespaceSelector": teams}, TEAMS),
    st.builds(lambda teams, labels: {"namespaceSelector": teams, "podSelector": labels}, TEAMS, LABELS),
    st.just(DNS_PEER),
)
PORTS = st.sampled_from(
    [
        {"port": 80},
        {"port": 53, "protocol": "UDP"},
        {"protocol": "UDP"},
        {"port": 80, "endPort": 82},
        {"protocol": "SCTP"},
    ]
)
NAMED = st.sampled_from([{"port": "web"}, {"port": "web", "protocol": "UDP"}])


def network_policies(direction: str, ports: st.SearchStrategy[Body]) -> st.SearchStrategy[list[Body]]:
    key = "to" if direction == "egress" else "from"
    rule = st.fixed_dictionaries({}, optional={key: st.lists(PEERS, max_size=2), "ports": st.lists(ports, max_size=2)})
    spec = st.fixed_dictionaries(
        {"podSelector": LABELS, direction: st.lists(rule, max_size=3)},
        optional={"policyTypes": st.sampled_from([["Ingress"], ["Egress"], ["Ingress", "Egress"], []])},
    )
    return st.builds(
        lambda specs: [policy(f"agents/p{number}", **spec) for number, spec in enumerate(specs)],
        st.lists(spec, max_size=3),
    )


@st.composite
def cluster_policies(draw: st.DrawFn) -> list[Body]:
    made = []
    for number in range(draw(st.integers(0, 2))):
        peer = st.one_of(
            st.builds(lambda teams: {"namespaces": teams}, TEAMS),
            st.builds(lambda cidr: {"networks": [cidr]}, st.sampled_from(BLOCKS)),
        )
        rule = st.fixed_dictionaries(
            {"action": st.sampled_from(["Accept", "Deny", "Pass"]), "to": st.lists(peer, min_size=1, max_size=2)},
            optional={
                "protocols": st.sampled_from(
                    [[{"tcp": {"destinationPort": {"number": 80}}}], [{"udp": {"destinationPort": {"number": 53}}}]]
                )
            },
        )
        made.append(
            cluster_policy(
                f"c{number}",
                priority=number,
                tier=draw(st.sampled_from(["Admin", "Baseline"])),
                subject={"namespaces": draw(TEAMS)},
                egress=draw(st.lists(rule, min_size=1, max_size=3)),
            )
        )
    return made


def reach(objects: list[Body]) -> Reach:
    return Reach.for_labels([*KNOWN, *objects], "agents", dict(SUBJECT.labels), PORT_NAMES)


def known_peers() -> list[tuple[Body, oracle.Peer]]:
    """Pods and addresses that exist: as objects, and as the oracle has them."""
    found: list[tuple[Body, oracle.Peer]] = []
    places = itertools.product(oracle.NAMESPACES.items(), ({}, {"app": "x"}, {"app": "y", "k8s-app": "kube-dns"}))
    for number, ((name, labels), carried) in enumerate(places):
        ip = f"10.{number % 3}.7.{number + 1}"
        named = (("web", 82, "TCP"),) if number % 2 else ()
        made = pod(f"{name}/pod-{number}", carried, ips=[ip], ports=named)
        found.append((made, oracle.Peer(ip, name, labels, tuple(carried.items()), named)))
    return found


@quick
@given(objects=st.builds(lambda a, b: a + b, network_policies("egress", st.one_of(PORTS, NAMED)), cluster_policies()))
def test_every_egress_decision_is_that_of_the_brute_force_reading(objects: list[Body]) -> None:
    known = known_peers()
    mine = reach([*objects, *(body for body, _unused in known)])
    peers = [({"ip": ip}, oracle.Peer(ip)) for ip in oracle.ADDRESSES[:4] + oracle.ADDRESSES[10:12]]
    peers += [({"ip": peer.ip}, peer) for _unused, peer in known]
    for (asked, peer), (protocol, port) in itertools.product(peers, oracle.PORTS):
        expected = oracle.allows(objects, SUBJECT, "egress", peer, protocol, port)
        assert mine.allows("egress", asked, port, protocol) is expected, (asked, port, protocol)


@quick
@given(objects=network_policies("ingress", st.one_of(PORTS, NAMED)))
def test_every_ingress_decision_is_that_of_the_brute_force_reading(objects: list[Body]) -> None:
    known = known_peers()
    mine = reach([*objects, *(body for body, _unused in known)])
    for (_unused, peer), (protocol, port) in itertools.product(known, oracle.PORTS):
        expected = oracle.allows(objects, SUBJECT, "ingress", peer, protocol, port)
        assert mine.allows("ingress", {"ip": peer.ip}, port, protocol) is expected, (peer, port, protocol)


PUBLIC = {"192.0.2.1", "198.51.100.1", "2001:db8::1", "2001:db9::1"}


def asked_for(kind: str, peer: oracle.Peer, protocol: str, port: int) -> bool:
    dns = peer.namespace == "kube-system" and ("k8s-app", "kube-dns") in peer.labels and port == 53
    if kind == "allow_all":
        return True
    if kind == "no_network":
        return False
    return (dns and protocol in {"TCP", "UDP"}) or (kind == "public_internet" and peer.ip in PUBLIC)


UNIVERSE = list(oracle.universe(oracle.ADDRESSES))
PRIVATE = ["10.0.0.0/8", "100.64.0.0/10", "127.0.0.0/8", "168.63.129.16/32", "169.254.0.0/16", "172.16.0.0/12"]
PRIVATE_TOO = [*PRIVATE, "192.168.0.0/16"]
LOCAL_SIX = ["::1/128", "fc00::/7", "fe80::/10"]

#: Rules near the edge of the requests: some inside, some a little beyond.
NEAR_RULES = [
    {"to": [DNS_PEER], "ports": [{"port": 53, "protocol": "UDP"}, {"port": 53}]},
    {"to": [DNS_PEER], "ports": [{"port": 53, "protocol": "UDP"}]},
    {"to": [DNS_PEER]},
    {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": PRIVATE_TOO}}]},
    {"to": [{"ipBlock": {"cidr": "0.0.0.0/0", "except": PRIVATE}}]},
    {"to": [{"ipBlock": {"cidr": "192.0.2.0/24"}}], "ports": [{"port": 80, "endPort": 82}]},
    {"to": [{"ipBlock": {"cidr": "0.0.0.0/0"}}]},
    {"to": [{"ipBlock": {"cidr": "::/0", "except": LOCAL_SIX}}]},
    {"to": [{"namespaceSelector": {}}], "ports": [{"port": 80}]},
    {"to": [{"namespaceSelector": {"matchLabels": {"team": "blue"}}, "podSelector": {"matchLabels": {"app": "x"}}}]},
    {"to": [{"namespaceSelector": {"matchLabels": {"team": "red"}}}], "ports": [{"port": "web"}]},
    {"ports": [{"port": 80}]},
    {},
]
NEAR_ADMIN_RULES = [
    {"action": "Deny", "to": [{"networks": PRIVATE_TOO}]},
    {"action": "Deny", "to": [{"networks": PRIVATE}]},
    {"action": "Deny", "to": [{"networks": ["192.168.0.0/16", *LOCAL_SIX]}]},
    {"action": "Deny", "to": [{"namespaces": {}}]},
    {"action": "Deny", "to": [{"namespaces": {"matchLabels": {"team": "blue"}}}]},
    {"action": "Pass", "to": [{"namespaces": {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}}]},
    {"action": "Deny", "to": [{"namespaces": {}}], "protocols": [{"tcp": {"destinationPort": {"number": 80}}}]},
    {"action": "Deny", "to": [{"networks": ["0.0.0.0/0", "::/0"]}]},
    {"action": "Accept", "to": [{"networks": ["192.0.2.0/24"]}]},
    {"action": "Pass", "to": [{"networks": ["10.0.0.0/8"]}]},
]


@st.composite
def nearly_within(draw: st.DrawFn) -> list[Body]:
    """Policies that often stay within a request, and often not quite."""
    rules = draw(st.lists(st.sampled_from(NEAR_RULES), max_size=3))
    objects = [policy(f"agents/p{n}", policyTypes=["Egress"], egress=[rule]) for n, rule in enumerate(rules)]
    objects.append(policy("agents/isolating", policyTypes=["Egress"], egress=[]))
    for number in range(draw(st.integers(0, 2))):
        admin = draw(st.lists(st.sampled_from(NEAR_ADMIN_RULES), min_size=1, max_size=3))
        objects.append(cluster_policy(f"c{number}", priority=number, egress=admin))
    return objects


ANY_POLICIES = st.builds(lambda a, b: a + b, network_policies("egress", st.one_of(PORTS, NAMED)), cluster_policies())


@settings(quick, max_examples=70)
@given(
    objects=st.one_of(nearly_within(), nearly_within(), nearly_within(), ANY_POLICIES),
    kind=st.sampled_from(["no_network", "dns_only", "public_internet"]),
)
def test_a_verdict_holds_exactly_when_no_peer_that_may_exist_is_reached_beyond_the_request(
    objects: list[Body], kind: str
) -> None:
    verdict = reach(objects).within(kind)
    beyond = next(
        (
            (peer, protocol, port)
            for protocol, port in oracle.PORTS
            for peer in UNIVERSE
            if not asked_for(kind, peer, protocol, port)
            and oracle.allows(objects, SUBJECT, "egress", peer, protocol, port)
        ),
        None,
    )
    if verdict.undecided and not verdict.findings:
        # A named port of a pod that does not exist yet: no peer of the universe decides it, and it counts as open.
        assert not verdict.holds
        return
    assert verdict.holds is (beyond is None), (beyond, str(verdict))


@quick
@given(objects=network_policies("egress", PORTS), kind=st.sampled_from(["no_network", "dns_only", "public_internet"]))
def test_the_example_of_a_finding_is_reached_and_was_not_asked_for(objects: list[Body], kind: str) -> None:
    mine = reach(objects)
    for finding in mine.within(kind).findings:
        if finding.example == finding.address:
            assert mine.allows("egress", {"ip": finding.address}, finding.port, finding.protocol)
            assert not asked_for(kind, oracle.Peer(finding.address), finding.protocol, finding.port) or (
                finding.address not in PUBLIC
            )


@quick
@given(objects=network_policies("egress", st.one_of(PORTS, NAMED)), more=network_policies("egress", PORTS))
def test_one_more_policy_never_shrinks_the_reach_of_an_isolated_pod(objects: list[Body], more: list[Body]) -> None:
    isolating = policy("agents/isolating", policyTypes=["Egress"], egress=[])
    extra = [{**body, "metadata": {**body["metadata"], "name": f"more-{n}"}} for n, body in enumerate(more)]
    before, after = reach([isolating, *objects]), reach([isolating, *objects, *extra])
    for ip, (protocol, port) in itertools.product(oracle.ADDRESSES, oracle.PORTS):
        if before.allows("egress", {"ip": ip}, port, protocol):
            assert after.allows("egress", {"ip": ip}, port, protocol)
    for kind in ("no_network", "dns_only", "public_internet"):
        assert before.within(kind).holds or not after.within(kind).holds


@quick
@given(objects=st.builds(lambda a, b: a + b, network_policies("egress", st.one_of(PORTS, NAMED)), cluster_policies()))
def test_a_wider_request_is_kept_wherever_a_narrower_one_is(objects: list[Body]) -> None:
    held = [reach(objects).within(kind).holds for kind in ("no_network", "dns_only", "public_internet", "allow_all")]
    assert held == sorted(held)
    assert held[-1]


@quick
@given(data=st.data())
def test_the_order_of_objects_means_nothing(data: st.DataObject) -> None:
    objects = data.draw(st.builds(lambda a, b: a + b, network_policies("egress", PORTS), cluster_policies()))
    turned = t.cast("list[Body]", data.draw(st.permutations(objects)))
    one, other = reach(objects), reach(turned)
    for kind in ("no_network", "public_internet"):
        assert one.within(kind).holds is other.within(kind).holds
    world = World.read([*KNOWN, *objects])
    assert Reach.for_labels(world, "agents", dict(SUBJECT.labels), PORT_NAMES).within("no_network").holds is (
        one.within("no_network").holds
    )
