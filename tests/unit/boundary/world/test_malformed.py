# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Malformed and strange objects: a typed error that names object and field, or an answer; never a crash."""

from __future__ import annotations

import contextlib
import copy
import typing as t

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import PolicyError, QuestionError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, World
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.sets import boxes
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    admin_policy,
    block,
    cluster_policy,
    namespace,
    node,
    pod,
    policy,
)

POD = pod("agents/sandbox", {"app": "x"}, ips=["10.0.0.1"], ports=[("agent", 1024, "TCP")])


def reach(*objects: Body) -> Reach:
    return Reach.from_objects([POD, *objects], pod="agents/sandbox")


def egress(rule: t.Any) -> Body:
    return policy("agents/p", policyTypes=["Egress"], egress=[rule])


@pytest.mark.parametrize(
    ("body", "field"),
    [
        (egress({"to": [block("10.0.0.0/33")]}), "spec.egress[0].to[0].ipBlock.cidr"),
        (egress({"to": [block("10.0.0.1")]}), "spec.egress[0].to[0].ipBlock.cidr"),
        (egress({"to": [block("10.0.0.0/255.0.0.0")]}), "spec.egress[0].to[0].ipBlock.cidr"),
        (egress({"to": [block("010.0.0.0/8")]}), "spec.egress[0].to[0].ipBlock.cidr"),
        (egress({"to": [block("::ffff:10.0.0.0/104")]}), "spec.egress[0].to[0].ipBlock.cidr"),
        (egress({"to": [block("10.0.0.0/8", "::/0")]}), "spec.egress[0].to[0].ipBlock.except[0]"),
        (egress({"to": [{"ipBlock": {}}]}), "spec.egress[0].to[0].ipBlock.cidr"),
        (egress({"to": [{}]}), "spec.egress[0].to[0]"),
        (egress({"to": [{"podSelector": {}, **block("10.0.0.0/8")}]}), "spec.egress[0].to[0]"),
        (egress({"to": {}}), "spec.egress[0].to"),
        (egress({"ports": [{"port": 0}]}), "spec.egress[0].ports[0].port"),
        (egress({"ports": [{"port": 65536}]}), "spec.egress[0].ports[0].port"),
        (egress({"ports": [{"port": True}]}), "spec.egress[0].ports[0].port"),
        (egress({"ports": [{"port": "80"}]}), "spec.egress[0].ports[0].port"),
        (egress({"ports": [{"port": "web", "endPort": 90}]}), "spec.egress[0].ports[0].endPort"),
        (egress({"ports": [{"port": 80, "endPort": 79}]}), "spec.egress[0].ports[0].endPort"),
        (egress({"ports": [{"endPort": 79}]}), "spec.egress[0].ports[0].endPort"),
        (egress({"ports": [{"protocol": "tcp"}]}), "spec.egress[0].ports[0].protocol"),
        (policy("agents/p", policyTypes=["egress"]), "spec.policyTypes"),
        (policy("agents/p", podSelector={"matchLabels": {"a": 1}}), "spec.podSelector.matchLabels"),
        (policy("agents/p", podSelector={"labels": {}}), "spec.podSelector.labels"),
        (
            policy("agents/p", podSelector={"matchExpressions": [{"key": "a", "operator": "Is"}]}),
            "spec.podSelector.matchExpressions[0].operator",
        ),
        (
            policy("agents/p", podSelector={"matchExpressions": [{"key": "a", "operator": "In", "values": []}]}),
            "spec.podSelector.matchExpressions[0].values",
        ),
        (cluster_policy("p", priority=1001), "spec.priority"),
        (cluster_policy("p", tier="admin"), "spec.tier"),
        (cluster_policy("p", subject=None), "spec.subject"),
        (cluster_policy("p", egress=[{"action": "Allow", "to": [{"namespaces": {}}]}]), "spec.egress[0].action"),
        (cluster_policy("p", egress=[{"action": "Deny", "to": []}]), "spec.egress[0].to"),
        (
            admin_policy("p", ingress=[{"action": "Deny", "from": [{"networks": ["::/0"]}]}]),
            "spec.ingress[0].from[0].networks",
        ),
        (pod("agents/bad", {}, ips=["10.0.0"]), "status.podIPs[0].ip"),
        (node("n", "nowhere"), "status.addresses[0].address"),
        ({"apiVersion": "v1", "kind": "Pod", "metadata": {}}, "metadata.name"),
        ({"apiVersion": "v1", "metadata": {"name": "x"}}, "kind"),
        ({"kind": "NetworkPolicy", "metadata": {"name": "x"}}, "apiVersion"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)  # fmt: skip
def test_a_malformed_object_is_refused_with_object_and_field(body: Body, field: str) -> None:
    with pytest.raises(PolicyError) as caught:
        reach(body)
    assert caught.value.field == field
    assert caught.value.object
    assert caught.value.fields()["reason"] == "invalid-policy"


def test_two_policies_of_one_name_are_refused() -> None:
    with pytest.raises(PolicyError, match="twice"):
        reach(policy("agents/p"), policy("agents/p"))


@pytest.mark.parametrize(
    ("peer", "port", "protocol"),
    [
        ({"pod": "agents/nobody"}, 80, "TCP"),
        ({"node": "nobody"}, 80, "TCP"),
        ({"ip": "10.0.0.0/8"}, 80, "TCP"),
        ({"ip": 5}, 80, "TCP"),
        ({"host": "x"}, 80, "TCP"),
        ({}, 80, "TCP"),
        ("10.0.0.1", 80, "TCP"),
        ({"external": False}, 80, "TCP"),
        ({"fqdn": "no spaces"}, 80, "TCP"),
        ({"external": True}, 0, "TCP"),
        ({"external": True}, None, "TCP"),
        ({"external": True}, "80", "TCP"),
        ({"external": True}, 80, "tcp"),
        ({"external": True}, 256, "ICMP"),
    ],
    ids=str,
)
def test_a_question_that_makes_no_sense_is_refused(peer: t.Any, port: t.Any, protocol: str) -> None:
    with pytest.raises(QuestionError):
        reach().allows("egress", peer, port, protocol)


def test_directions_engines_and_pods_that_do_not_exist_are_refused() -> None:
    with pytest.raises(QuestionError, match="direction"):
        reach().allows("out", {"external": True}, 80)
    with pytest.raises(QuestionError, match="engine"):
        Reach.from_objects([POD], "agents/sandbox", "calico")
    with pytest.raises(QuestionError, match="no pod agents/x"):
        Reach.from_objects([POD], "agents/x")
    with pytest.raises(QuestionError, match="list"):
        Reach.from_objects(t.cast("t.Any", "objects"), "agents/x")


def test_an_unknown_peer_of_a_network_policy_fails_closed_and_the_verdict_does_not_hold() -> None:
    strange = reach(egress({"to": [{"serviceAccountSelector": {}}]}))
    assert not strange.allows("egress", {"external": True}, 443)
    verdict = strange.within("no_network")
    assert not verdict.holds
    assert "unknown peer field spec.egress[0].to[0].serviceAccountSelector" in str(verdict)


def test_an_unknown_field_elsewhere_is_noted_and_ignored_as_a_cluster_ignores_it() -> None:
    misspelt = reach(egress({"too": [{"podSelector": {}}]}))
    assert misspelt.allows("egress", {"external": True}, 443), "a rule without peers allows everyone"
    assert misspelt.within("no_network").notes == (
        "NetworkPolicy agents/p: unknown field spec.egress[0].too, which clusters ignore",
    )


def test_policies_that_nobody_judges_are_listed_as_unread() -> None:
    calico = {"apiVersion": "crd.projectcalico.org/v1", "kind": "GlobalNetworkPolicy", "metadata": {"name": "x"}}
    cilium = {"apiVersion": "cilium.io/v2", "kind": "CiliumNetworkPolicy", "metadata": {"name": "x"}, "spec": {}}
    world = World.read([POD, calico, cilium], unread=["ClusterNetworkPolicy (403 Forbidden)"])
    assert Reach.from_objects(world, "agents/sandbox").within("allow_all").unread == (
        "ClusterNetworkPolicy (403 Forbidden)",
        "GlobalNetworkPolicy of crd.projectcalico.org (no engine here judges it)",
        "1 CiliumNetworkPolicy objects (engine core does not judge them)",
    )


def test_lists_of_objects_are_opened() -> None:
    closed = policy("agents/p", policyTypes=["Egress"])
    listed = {"apiVersion": "v1", "kind": "List", "items": [closed]}
    assert not reach(listed).allows("egress", {"external": True}, 443)
    del closed["kind"], closed["apiVersion"]
    typed = {"apiVersion": "networking.k8s.io/v1", "kind": "NetworkPolicyList", "items": [closed]}
    assert not reach(typed).allows("egress", {"external": True}, 443)


def test_ten_thousand_exceptions_and_overlapping_blocks_are_exact() -> None:
    holes = [f"20.{number // 128}.{number % 128 * 2}.0/24" for number in range(10_000)]
    many = reach(egress({"to": [block("20.0.0.0/8", *holes, "20.0.0.0/16", "20.0.0.0/24"), block("20.0.0.0/30")]}))
    for ip, allowed in (("20.1.0.9", False), ("20.1.1.9", True), ("20.0.0.2", True), ("20.0.1.9", False)):
        assert many.allows("egress", {"ip": ip}, 443) is allowed
    assert many.within("public_internet").holds
    inside = {"kind": "public_internet", "except_cidrs": ["20.78.3.128/25"]}
    assert [finding.address for finding in many.within(inside).findings] == ["20.78.3.129"]


def test_policies_too_entangled_to_compute_count_as_open(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(boxes, "MOST_BOXES", 3)
    labels = [{"matchLabels": {f"a{number}": "x", f"b{number}": "y"}} for number in range(6)]
    deny = cluster_policy("deny", egress=[{"action": "Deny", "to": [{"namespaces": one}]} for one in labels])
    verdict = reach(deny).within("no_network")
    assert not verdict.holds
    assert verdict.findings == ()
    assert "too entangled" in str(verdict.undecided[0])


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-1, 70_000),
    st.sampled_from(["", "TCP", "80", "web", "10.0.0.0/8", "::/0", "Ingress", "Egress", "In", "Deny", "Accept", "x"]),
    st.just([]),
    st.just({}),
    st.lists(st.sampled_from([{}, None, 5, "x", []]), max_size=2),
)
GOOD = [
    namespace("agents", team="red"),
    policy(
        "agents/p",
        podSelector={"matchExpressions": [{"key": "app", "operator": "In", "values": ["x"]}]},
        policyTypes=["Ingress", "Egress"],
        egress=[{"to": [block("0.0.0.0/0", "10.0.0.0/8")], "ports": [{"port": 80, "endPort": 90, "protocol": "TCP"}]}],
        ingress=[
            {"from": [{"namespaceSelector": {}, "podSelector": {"matchLabels": {"a": "b"}}}], "ports": [{"port": "x"}]}
        ],
    ),
    cluster_policy(
        "c",
        egress=[
            {"action": "Deny", "to": [{"networks": ["10.0.0.0/8"]}, {"domainNames": ["*.x.com"]}, {"nodes": {}}],
             "protocols": [{"tcp": {"destinationPort": {"range": {"start": 1, "end": 9}}}}]},
            {"action": "Pass", "to": [{"pods": {"namespaceSelector": {}, "podSelector": {}}}],
             "protocols": [{"destinationNamedPort": "web"}, {"udp": {"destinationPort": {"number": 53}}}]},
        ],
    ),
    admin_policy(
        "a",
        ingress=[{"action": "Allow", "from": [{"namespaces": {"sameLabels": ["team"]}}],
                  "ports": [{"portNumber": {"port": 80}}, {"namedPort": "x"}, {"portRange": {"start": 1, "end": 9}}]}],
    ),
    node("n", "192.0.2.1", role="x"),
]  # fmt: skip


def places(value: t.Any, path: tuple[t.Any, ...] = ()) -> t.Iterator[tuple[t.Any, ...]]:
    items = value.items() if isinstance(value, dict) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        yield (*path, key)
        yield from places(item, (*path, key))


PLACES = [(index, *path) for index, body in enumerate([*GOOD, POD]) for path in places(body)]


@settings(max_examples=300, deadline=None, suppress_health_check=list(HealthCheck), database=None)
@given(
    changes=st.lists(st.tuples(st.sampled_from(PLACES), VALUES), min_size=1, max_size=3),
    extra=st.one_of(st.none(), st.tuples(st.sampled_from(PLACES), VALUES)),
)
def test_whatever_stands_in_an_object_is_answered_or_refused_with_a_typed_error(
    changes: list[tuple[tuple[t.Any, ...], t.Any]], extra: tuple[tuple[t.Any, ...], t.Any] | None
) -> None:
    objects: list[t.Any] = copy.deepcopy([*GOOD, POD])
    for path, value in changes:
        put(objects, path, value)
    if extra is not None:
        put(objects, (*extra[0][:-1], "strangeField"), extra[1])
    with contextlib.suppress(SandboxError):
        judged = Reach.from_objects(objects, "agents/sandbox")
        judged.allows("egress", {"external": True}, 80)
        judged.allows("ingress", {"fqdn": "a.x.com"}, 80)
        str(judged.within("public_internet"))
        str(judged.ingress_verdict(1024))
        judged.describe()


def put(target: t.Any, path: tuple[t.Any, ...], value: t.Any) -> None:
    for step in path[:-1]:
        try:
            target = target[step]
        except (LookupError, TypeError):
            return
    if isinstance(target, dict) or (isinstance(target, list) and isinstance(path[-1], int) and path[-1] < len(target)):
        target[path[-1]] = value
