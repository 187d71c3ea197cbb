# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What cannot be known closes nothing: neither a single decision nor a verdict relies on it."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.errors import QuestionError
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.matrix import matrix
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.reach.reach import Reach, connects
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.world.objects import World
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium import building
from ansible_collections.namzu.sandbox.tests.unit.boundary.cilium.building import ccnp, cnp, ports
from ansible_collections.namzu.sandbox.tests.unit.boundary.objects_for_tests import (
    Body,
    admin_policy,
    baseline_policy,
    block,
    labelled,
    namespace,
    pod,
    policy,
)

ANYWHERE = [{"toEntities": ["all"]}]
HASHED = building.pod("agents/hashed", "10.1.0.20", labels={"app": "web", "pod-template-hash": "x"})

#: Deny rules that Cilium's defaults do not give, and a peer that a wrong reading would close.
UNCERTAIN_DENIES: dict[str, tuple[list[Body], Body]] = {
    "a label that is not part of an identity": (
        [{"toEndpoints": [{"matchLabels": {"pod-template-hash": "x"}}]}],
        {"pod": "agents/hashed"},
    ),
    "the pods of another cluster": (
        [{"toEndpoints": [{"matchLabels": {"io.cilium.k8s.policy.cluster": "other"}}]}],
        building.PEER,
    ),
    "a group of addresses that is not known": (
        [{"toCIDRSet": [{"cidrGroupRef": "gone"}]}],
        {"ip": "8.8.8.8"},
    ),
    "nodes by label": ([{"toNodes": [{}]}, {"toPorts": ports("alt")}], building.PEER),
    "a field of a block that is not known": (
        [{"toCIDRSet": [{"cidr": "0.0.0.0/0", "strange": 1}]}],
        {"ip": "8.8.8.8"},
    ),
    "a field of a port that is not known": (
        [{"toPorts": [{"ports": [{"port": "443", "protocol": "TCP", "strange": 1}]}]}],
        building.WORLD,
    ),
    "the pods of a service": ([{"toServices": [{"k8sService": {"serviceName": "web"}}]}], building.PEER),
    "a field of a service that is not known": (
        [{"toServices": [{"k8sService": {"serviceName": "web", "strange": 1}}]}],
        building.PEER,
    ),
}


@pytest.mark.parametrize("case", UNCERTAIN_DENIES)
@pytest.mark.parametrize("build", [cnp, ccnp])
def test_an_uncertain_deny_of_cilium_never_closes(case: str, build: t.Callable[..., Body]) -> None:
    rules, peer = UNCERTAIN_DENIES[case]
    found = building.reach(build(egress=ANYWHERE, egressDeny=rules), HASHED)
    assert found.allows("egress", peer, 443)
    assert not found.within("no_network").holds
    asked = {"kind": "public_internet"} if "ip" in peer else "dns_only"
    assert not found.within(asked).holds
    inward = [{key.replace("to", "from", 1) if key != "toPorts" else key: value for key, value in rule.items()}
              for rule in rules if "toServices" not in rule]  # fmt: skip
    if inward:
        closed = building.reach(build(ingress=[{"fromEntities": ["all"]}], ingressDeny=inward), HASHED)
        assert closed.allows("ingress", peer, 443)


def test_an_unknown_field_of_a_service_makes_an_allow_uncertain() -> None:
    service = {"apiVersion": "v1", "kind": "Service", "metadata": {"name": "web", "namespace": "agents"},
               "spec": {"selector": {"app": "peer"}}}  # fmt: skip
    rule = {"toServices": [{"k8sService": {"serviceName": "web", "namespace": "agents", "strange": 1}}]}
    assert "unknown field" in str(building.reach(cnp(egress=[rule]), service).within("no_network").undecided)


def test_a_port_by_name_may_be_open_beyond_pods_before_version_1_20() -> None:
    for body in (
        cnp(egress=[{"toEntities": ["world"], "toPorts": ports("agent/TCP")}]),
        building.netpol(policyTypes=["Egress"], egress=[{"ports": [{"port": "agent"}]}]),
    ):
        assert building.egress(body)(building.WORLD, 8081)
        assert not building.egress(body)(building.WORLD, 8079)
        verdict = building.reach(body).within("dns_only")
        assert "before v1.20" in str([finding.reason for finding in verdict.undecided])
    deny = cnp(egress=ANYWHERE, egressDeny=[{"toEntities": ["world"], "toPorts": ports("agent/TCP")}])
    assert building.egress(deny)(building.WORLD, 8081)


SIDECAR = pod("agents/one", {"app": "one"}, ips=["10.0.0.1"])
SIDECAR["spec"]["initContainers"] = [
    {"name": "proxy", "restartPolicy": "Always", "ports": [{"name": "side", "containerPort": 9100}]},
    {"name": "setup", "ports": [{"name": "side", "containerPort": 9200}]},
]
PEER = pod("agents/two", {"app": "two"}, ips=["10.0.0.2"])


@pytest.mark.parametrize("engine", ["core", "cilium"])
def test_the_named_port_of_a_sidecar_is_undecided(engine: str) -> None:
    """A network plugin may or may not find it (projectcalico/calico#8885)."""
    inward = policy("agents/in", podSelector=labelled(app="one"), ingress=[{"ports": [{"port": "side"}]}])
    outward = policy(
        "agents/out",
        podSelector=labelled(app="two"),
        policyTypes=["Egress"],
        egress=[{"to": [{"podSelector": {}}], "ports": [{"port": "side"}]}],
    )
    world = World.read([namespace("agents"), SIDECAR, PEER, inward, outward])
    here, there = (Reach.from_objects(world, f"agents/{name}", engine) for name in ("one", "two"))
    for port, allowed in ((9100, True), (9200, False), (9101, False)):
        assert here.allows("ingress", {"pod": "agents/two"}, port) is allowed
        assert there.allows("egress", {"pod": "agents/one"}, port) is allowed
    verdict = here.ingress_verdict(9100)
    assert (verdict.findings, verdict.holds) == ((), False)
    assert "sidecar" in str(verdict.undecided[0].reason)
    sides = {cell.peer: cell.egress for cell in matrix(world, [world.pod("agents/two")], engine).cells}
    assert (sides["agents: app=one"].state, sides["agents: app=one"].perhaps) == ("perhaps", "TCP 9100")


def test_a_deny_of_a_sidecars_named_port_is_not_relied_on() -> None:
    rule = {"action": "Deny", "from": [{"namespaces": {}}], "ports": [{"namedPort": "side"}]}
    world = [namespace("agents"), SIDECAR, PEER, admin_policy("deny", ingress=[rule])]
    assert Reach.from_objects(world, "agents/one").allows("ingress", {"pod": "agents/two"}, 9100)


@pytest.mark.parametrize("make", [admin_policy, lambda _name, **spec: baseline_policy(**spec)])
def test_not_same_labels_without_the_label_is_undecided(make: t.Callable[..., Body]) -> None:
    """The API's text is ambiguous where the subject's namespace has no such label, and the field was removed."""
    rule = {"action": "Deny", "to": [{"namespaces": {"notSameLabels": ["env"]}}]}
    objects = [namespace("agents"), namespace("other", env="prod"), pod("other/web"), make("deny", egress=[rule])]
    found = Reach.for_labels(objects, "agents", {})
    assert found.allows("egress", {"pod": "other/web"}, 80)
    labelled_objects = [namespace("agents", env="test"), *objects[1:]]
    assert not Reach.for_labels(labelled_objects, "agents", {}).allows("egress", {"pod": "other/web"}, 80)
    allow = admin_policy("allow", egress=[{**rule, "action": "Allow"}])
    closed = policy("agents/closed", policyTypes=["Egress"])
    verdict = Reach.for_labels([*objects[:3], allow, closed], "agents", {}).within("no_network")
    assert "notSameLabels" in str(verdict.undecided[0].reason)


@pytest.mark.parametrize(
    "request_",
    [
        {"http": {"method": "GET", "headers": ["X-Token: 1"]}},
        {"http": {"headers": {"X-Count": 1}}},
        {"http": {"verb": "GET"}},
        {"http": {"path": 1}},
        {"http": "GET /"},
        {"dns": ""},
        {"sni": 5},
        {"dns": "a.example", "sni": "a.example"},
        {"tls": "a.example"},
        "GET",
        {},
    ],
)
@pytest.mark.parametrize("engine", ["core", "cilium"])
def test_a_layer_7_request_that_no_rule_can_be_compared_with_is_an_error(request_: t.Any, engine: str) -> None:
    found = Reach.for_labels([cnp(egress=ANYWHERE)], "agents", {"app": "sandbox"}, engine=engine)
    with pytest.raises(QuestionError):
        found.allows("egress", {"external": True}, 443, "TCP", request_)


@pytest.mark.parametrize("engine", ["core", "cilium"])
def test_a_connection_has_one_ip_version_that_both_ends_let_through(engine: str) -> None:
    here = pod("agents/here", {"app": "here"}, ips=["10.0.0.1", "fd00::1"])
    there = pod("agents/there", {"app": "there"}, ips=["10.0.0.2", "fd00::2"])
    four, six = block("0.0.0.0/0"), block("::/0")
    ends = ({"pod": "agents/here"}, {"pod": "agents/there"})

    def world(*outward: Body, inward: list[Body]) -> World:
        out = policy(
            "agents/out", podSelector=labelled(app="here"), policyTypes=["Egress"], egress=[{"to": [*outward]}]
        )
        into = policy("agents/in", podSelector=labelled(app="there"), ingress=[{"from": inward}])
        return World.read([namespace("agents"), here, there, out, into])

    if engine == "core":
        cases = {False: world(four, inward=[six]), True: world(four, inward=[four, six])}
    else:
        everyone = {"podSelector": {}}
        cases = {True: world(everyone, inward=[everyone]), False: world(four, inward=[six])}
    for allowed, objects in cases.items():
        assert connects(objects, *ends, 80, "TCP", engine) is allowed
        cells = {cell.peer: cell for cell in matrix(objects, list(objects.pods.values()), engine).cells
                 if cell.row == "agents: app=here"}  # fmt: skip
        assert cells["agents: app=there"].egress.state == ("open" if allowed else "closed")


def test_two_pods_without_a_common_ip_version_are_not_connected_by_policies_of_one() -> None:
    here, there = pod("agents/here", ips=["10.0.0.1"]), pod("agents/there", ips=["fd00::2"])
    assert not connects([here, there], {"pod": "agents/here"}, {"pod": "agents/there"}, 80)
    unknown = pod("agents/there")
    assert connects([here, unknown], {"pod": "agents/here"}, {"pod": "agents/there"}, 80)
