# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small worlds of the administrators' policies. The judged pod is ``red/web``."""

from __future__ import annotations

import typing as t

from ..objects_for_tests import Body, admin_policy, baseline_policy, cluster_policy, labelled, policy
from .table import Case

API = "ClusterNetworkPolicy API, policy.networking.k8s.io/v1alpha2"
OLDER = "AdminNetworkPolicy API, policy.networking.k8s.io/v1alpha1"
NPEP = "network-policy-api, NPEP-122 (tiers) and the API documentation"

ALL: Body = {"namespaces": {}}
BLUE: Body = {"namespaces": labelled(team="blue")}
DB_PODS: Body = {"pods": {"namespaceSelector": {}, "podSelector": labelled(app="db")}}
WORLD: Body = {"networks": ["0.0.0.0/0", "::/0"]}
CLOSED = policy("red/closed", policyTypes=["Ingress", "Egress"])
OPEN = policy("red/open", policyTypes=["Ingress", "Egress"], ingress=[{}], egress=[{}])


def to(action: str, *peers: Body, **more: t.Any) -> Body:
    return {"action": action, "to": list(peers), **more}


def come(action: str, *peers: Body, **more: t.Any) -> Body:
    return {"action": action, "from": list(peers), **more}


def tcp(number: int) -> Body:
    return {"protocols": [{"tcp": {"destinationPort": {"number": number}}}]}


CASES = [
    Case("Deny", "A rule of the admin tier that denies ends the matter.", API,
         [cluster_policy("a", egress=[to("Deny", BLUE)]), OPEN],
         "egress: blue/web TCP/80 closed, red/db TCP/80 open, 8.8.8.8 TCP/80 open"),
    Case("Accept over isolation", "Accept of the admin tier overrides a NetworkPolicy's isolation.", NPEP,
         [cluster_policy("a", egress=[to("Accept", BLUE)]), CLOSED],
         "egress: blue/web TCP/80 open, red/db TCP/80 closed"),
    Case("Pass to NetworkPolicy", "Pass leaves the tier, and NetworkPolicies decide.", NPEP,
         [cluster_policy("a", egress=[to("Pass", BLUE), to("Deny", ALL)]),
          policy("red/p", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": {}}]}])],
         "egress: blue/web TCP/80 open, red/db TCP/80 closed, kube-system/dns UDP/53 closed"),
    Case("Pass without NetworkPolicy", "What no tier decides is allowed.", NPEP,
         [cluster_policy("a", egress=[to("Pass", BLUE), to("Deny", ALL)])],
         "egress: blue/web TCP/80 open, red/db TCP/80 closed, 8.8.8.8 TCP/1 open"),
    Case("the order of rules", "In a policy the first rule that matches decides.", API,
         [cluster_policy("a", egress=[to("Accept", BLUE, **tcp(80)), to("Deny", BLUE), to("Accept", BLUE)]), CLOSED],
         "egress: blue/web TCP/80 open, blue/web TCP/81 closed"),
    Case("the order of policies", "The lower priority number wins.", API,
         [cluster_policy("late", priority=20, egress=[to("Accept", ALL)]),
          cluster_policy("early", priority=10, egress=[to("Deny", BLUE)])],
         "egress: blue/web TCP/80 closed, red/db TCP/80 open"),
    Case("the order of policies, turned", "The lower priority number wins.", API,
         [cluster_policy("late", priority=20, egress=[to("Deny", BLUE)]),
          cluster_policy("early", priority=10, egress=[to("Accept", ALL)]), CLOSED],
         "egress: blue/web TCP/80 open, red/db TCP/80 open, 8.8.8.8 TCP/80 closed"),
    Case("Pass over a later policy", "Pass skips all later rules and policies of its tier.", NPEP,
         [cluster_policy("early", priority=1, egress=[to("Pass", BLUE)]),
          cluster_policy("late", priority=2, egress=[to("Deny", BLUE)]), OPEN],
         "egress: blue/web TCP/80 open, blue/db UDP/9 open"),
    Case("the baseline denies", "The baseline tier decides where no NetworkPolicy isolates.", NPEP,
         [cluster_policy("b", tier="Baseline", egress=[to("Deny", ALL)])],
         "egress: blue/web TCP/80 closed, red/db TCP/80 closed, 8.8.8.8 TCP/80 open"),
    Case("NetworkPolicy hides the baseline", "A pod that NetworkPolicy isolates never reaches the baseline.", NPEP,
         [cluster_policy("b", tier="Baseline", egress=[to("Deny", ALL)]),
          policy("red/p", policyTypes=["Egress"], egress=[{"to": [{"namespaceSelector": {}}]}])],
         "egress: blue/web TCP/80 open, 8.8.8.8 TCP/80 closed"),
    Case("isolation wins over a baseline accept", "A pod that NetworkPolicy isolates never reaches the baseline.", NPEP,
         [cluster_policy("b", tier="Baseline", egress=[to("Accept", ALL)]), CLOSED],
         "egress: blue/web TCP/80 closed, red/db TCP/80 closed"),
    Case("isolation of the other direction", "Isolation of ingress leaves egress to the baseline.", NPEP,
         [cluster_policy("b", tier="Baseline", egress=[to("Deny", BLUE)]), policy("red/p", policyTypes=["Ingress"])],
         "egress: blue/web TCP/80 closed, red/db TCP/80 open; ingress: blue/web TCP/80 closed"),
    Case("Pass of the baseline", "Pass of the baseline tier allows, as nothing comes after it.", NPEP,
         [cluster_policy("b", tier="Baseline", egress=[to("Pass", BLUE), to("Deny", ALL)])],
         "egress: blue/web TCP/80 open, red/db TCP/80 closed"),
    Case("admin before baseline", "The admin tier decides before the baseline.", NPEP,
         [cluster_policy("b", tier="Baseline", priority=0, egress=[to("Deny", ALL)]),
          cluster_policy("a", priority=1000, egress=[to("Accept", BLUE)])],
         "egress: blue/web TCP/80 open, red/db TCP/80 closed"),
    Case("another subject", "A policy is about the pods of the namespaces that its subject selects.", API,
         [cluster_policy("a", subject={"namespaces": labelled(team="blue")}, egress=[to("Deny", ALL)])],
         "egress: red/db TCP/80 open, blue/web TCP/80 open"),
    Case("the subject's namespace", "A policy is about the pods of the namespaces that its subject selects.", API,
         [cluster_policy("a", subject={"namespaces": labelled(team="red")}, egress=[to("Deny", ALL)])],
         "egress: red/db TCP/80 closed, blue/web TCP/80 closed, 8.8.8.8 TCP/80 open"),
    Case("networks and pods", "networks match the addresses of pods too.", API,
         [cluster_policy("a", egress=[to("Deny", {"networks": ["10.0.2.0/24"]})])],
         "egress: blue/web TCP/80 closed, 10.0.2.99 TCP/80 closed, red/db TCP/80 open, 8.8.8.8 TCP/80 open"),
    Case("networks of one IP version", "A block holds no address of the other version.", API,
         [cluster_policy("a", egress=[to("Deny", {"networks": ["0.0.0.0/0"]})])],
         "egress: 8.8.8.8 TCP/80 closed, 2001:db8::1 TCP/80 open"),
    Case("namespaces and the outside", "A selector of namespaces never matches an address outside.", API,
         [cluster_policy("a", egress=[to("Deny", ALL)])],
         "egress: 8.8.8.8 TCP/443 open, 2001:db8::1 TCP/443 open, kube-system/dns UDP/53 closed"),
    Case("the world but pods", "Rules in order cut the world into pods and the rest.", API,
         [cluster_policy("a", egress=[to("Accept", ALL), to("Deny", WORLD)])],
         "egress: blue/web TCP/80 open, 8.8.8.8 TCP/80 closed, 2001:db8::1 TCP/80 closed"),
    Case("a protocol", "A rule with protocols is about these alone.", API,
         [cluster_policy("a", egress=[to("Deny", ALL, **tcp(80))])],
         "egress: blue/web TCP/80 closed, blue/web TCP/81 open, blue/web UDP/80 open, blue/web ICMP/8 open"),
    Case("no protocols", "A rule without protocols is about all traffic, ICMP included.", API,
         [cluster_policy("a", egress=[to("Deny", BLUE)])], "egress: blue/web ICMP/8 closed, blue/web SCTP/80 closed"),
    Case("ingress", "Ingress rules are about the peers that connect.", API,
         [cluster_policy("a", ingress=[come("Deny", BLUE, **tcp(80))])],
         "ingress: blue/web TCP/80 closed, blue/web TCP/81 open, red/db TCP/80 open; egress: blue/web TCP/80 open"),
    Case("Accept of ingress over isolation", "Accept of the admin tier overrides isolation in both directions.", NPEP,
         [cluster_policy("a", ingress=[come("Accept", BLUE)]), CLOSED],
         "ingress: blue/web TCP/80 open, red/db TCP/80 closed; egress: blue/web TCP/80 closed"),
    Case("several peers", "The peers of a rule are alternatives.", API,
         [cluster_policy("a", egress=[to("Deny", BLUE, {"networks": ["192.0.2.0/24"]})])],
         "egress: blue/db TCP/1 closed, 192.0.2.1 TCP/1 closed, 192.0.3.1 TCP/1 open"),
    Case("pods by label", "A pods peer takes pods of the selected namespaces by label.", API,
         [cluster_policy("a", egress=[to("Deny", DB_PODS)])],
         "egress: red/db TCP/80 closed, blue/db TCP/80 closed, blue/web TCP/80 open", brute=False),
    Case("a subject by pod", "A pods subject takes pods by label.", API,
         [cluster_policy("a", subject={"pods": {"namespaceSelector": {}, "podSelector": labelled(app="db")}},
                         egress=[to("Deny", ALL)])], "egress: blue/web TCP/80 open", brute=False),
    Case("a range of ports", "A range is inclusive.", API,
         [cluster_policy("a", egress=[to("Deny", ALL, protocols=[
             {"tcp": {"destinationPort": {"range": {"start": 80, "end": 82}}}}])])],
         "egress: red/db TCP/79 open, red/db TCP/80 closed, red/db TCP/82 closed, red/db TCP/83 open", brute=False),
    Case("nodes", "A nodes peer takes nodes, and no pod.", API,
         [cluster_policy("a", egress=[to("Deny", {"nodes": {}})])],
         "egress: 192.168.0.1 TCP/10250 closed, red/db TCP/80 open, 8.8.8.8 TCP/80 open", brute=False),
    Case("an unknown peer of Deny", "Implementations must fail closed: an unknown peer denies everything.", API,
         [cluster_policy("a", egress=[to("Deny", {"planets": {}})])],
         "egress: red/db TCP/80 closed, 8.8.8.8 TCP/80 closed", brute=False),
    Case("an unknown peer of Accept", "Implementations must fail closed: an unknown peer accepts nothing.", API,
         [cluster_policy("a", egress=[to("Accept", {"planets": {}})]), CLOSED],
         "egress: red/db TCP/80 closed, 8.8.8.8 TCP/80 closed", brute=False),
    Case("the older kind denies", "AdminNetworkPolicy comes before NetworkPolicy.", OLDER,
         [admin_policy("a", egress=[to("Deny", BLUE)]), OPEN],
         "egress: blue/web TCP/80 closed, red/db TCP/80 open", brute=False),
    Case("the older kind allows", "Allow overrides a NetworkPolicy's isolation.", OLDER,
         [admin_policy("a", egress=[to("Allow", BLUE)]), CLOSED],
         "egress: blue/web TCP/80 open, red/db TCP/80 closed", brute=False),
    Case("the older baseline", "BaselineAdminNetworkPolicy comes after NetworkPolicy.", OLDER,
         [baseline_policy(egress=[to("Deny", ALL)])], "egress: blue/web TCP/80 closed, 8.8.8.8 TCP/1 open",
         brute=False),
    Case("the older baseline behind isolation", "NetworkPolicy isolation hides the baseline.", OLDER,
         [baseline_policy(egress=[to("Allow", ALL)]), CLOSED], "egress: blue/web TCP/80 closed", brute=False),
    Case("ports of the older kind", "portNumber without a protocol is TCP.", OLDER,
         [admin_policy("a", egress=[to("Deny", ALL, ports=[{"portNumber": {"port": 80}}])])],
         "egress: red/db TCP/80 closed, red/db UDP/80 open, red/db TCP/81 open", brute=False),
    Case("a named port of the older kind", "namedPort is looked up on the peer for egress.", OLDER,
         [admin_policy("a", egress=[to("Deny", ALL, ports=[{"namedPort": "web"}])])],
         "egress: red/db TCP/9090 closed, red/db TCP/8080 open", brute=False),
    Case("sameLabels", "Namespaces with the value of the subject's namespace for each label.", OLDER,
         [admin_policy("a", egress=[to("Deny", {"namespaces": {"sameLabels": ["team"]}})])],
         "egress: red/db TCP/80 closed, blue/web TCP/80 open, kube-system/dns UDP/53 open", brute=False),
    Case("notSameLabels", "Namespaces that carry the label with another value.", OLDER,
         [admin_policy("a", egress=[to("Deny", {"namespaces": {"notSameLabels": ["team"]}})])],
         "egress: red/db TCP/80 open, blue/web TCP/80 closed, kube-system/dns UDP/53 open", brute=False),
]  # fmt: skip
