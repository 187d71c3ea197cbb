# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Small worlds of NetworkPolicy. The judged pod is ``red/web``."""

from __future__ import annotations

import typing as t

from ..objects_for_tests import Body, block, labelled, named, policy
from .table import Case

API = "NetworkPolicy API reference, networking.k8s.io/v1"
DOCS = "Kubernetes documentation, Concepts, Network Policies"
SELECTORS = "Kubernetes documentation, Labels and Selectors"
KEP_RANGE = "KEP-2079, endPort of NetworkPolicy"

DB = {"podSelector": labelled(app="db")}
BLUE = {"namespaceSelector": labelled(team="blue")}


def one(**spec: t.Any) -> list[Body]:
    return [policy("red/p", **spec)]


def out(*rules: Body) -> list[Body]:
    return one(policyTypes=["Egress"], egress=list(rules))


def into(*rules: Body) -> list[Body]:
    return one(ingress=list(rules))


def matching(key: str, operator: str, *values: str) -> list[Body]:
    requirement: Body = {"key": key, "operator": operator, **({"values": list(values)} if values else {})}
    return out({"to": [{"namespaceSelector": {}, "podSelector": {"matchExpressions": [requirement]}}]})


CASES = [
    Case("no policy", "Without a policy that selects it a pod is open in both directions.", DOCS, [],
         "egress: red/db TCP/80 open, 8.8.8.8 UDP/53 open; ingress: blue/web TCP/80 open"),
    Case("a policy of another namespace", "A policy is about the pods of its own namespace.", API,
         [policy("blue/p", policyTypes=["Ingress", "Egress"])],
         "egress: red/db TCP/80 open; ingress: blue/db TCP/80 open"),
    Case("a policy of other pods", "A policy isolates only what its podSelector selects.", API,
         one(podSelector=labelled(app="db"), policyTypes=["Ingress", "Egress"]),
         "egress: blue/web TCP/80 open; ingress: blue/web TCP/80 open"),
    Case("deny all", "A selected direction without rules allows nothing.", DOCS,
         one(policyTypes=["Ingress", "Egress"]),
         "egress: red/db TCP/80 closed, 8.8.8.8 TCP/443 closed; ingress: red/db TCP/80 closed, 8.8.8.8 TCP/80 closed"),
    Case("only ingress isolated", "A direction that is missing from policyTypes is open.", DOCS,
         one(policyTypes=["Ingress"]), "egress: red/db TCP/80 open; ingress: red/db TCP/80 closed"),
    Case("only egress isolated", "A direction that is missing from policyTypes is open.", DOCS,
         one(policyTypes=["Egress"]), "egress: red/db TCP/80 closed; ingress: red/db TCP/80 open"),
    Case("rules of a direction that is left out", "Rules of a direction that policyTypes omits are ignored.", API,
         one(policyTypes=["Egress"], ingress=[{"from": [DB]}], egress=[{}]),
         "ingress: blue/web TCP/80 open, red/db TCP/80 open; egress: blue/web TCP/80 open"),
    Case("types from rules", "Omitted policyTypes mean ingress, and egress when there is an egress rule.", API,
         one(egress=[{"to": [DB]}]),
         "egress: red/db TCP/80 open, blue/web TCP/80 closed; ingress: red/db TCP/80 closed"),
    Case("types from an empty list", "An empty egress list with omitted policyTypes does not isolate egress.", API,
         one(egress=[]), "egress: red/db TCP/80 open; ingress: red/db TCP/80 closed"),
    Case("an empty rule", "A rule without peers and ports allows all traffic of its direction.", DOCS,
         one(ingress=[{}], policyTypes=["Ingress"]),
         "ingress: blue/web TCP/80 open, 8.8.8.8 SCTP/9 open, red/db UDP/53 open"),
    Case("an empty list of peers", "A missing or empty list of peers means every peer.", API,
         out({"to": [], "ports": [{"port": 80}]}),
         "egress: red/db TCP/80 open, 8.8.8.8 TCP/80 open, 8.8.8.8 TCP/81 closed"),
    Case("an empty list of ports", "A missing or empty list of ports means every port and protocol.", API,
         out({"to": [DB], "ports": []}), "egress: red/db TCP/80 open, red/db UDP/1 open, blue/db TCP/80 closed"),
    Case("policies add up", "What one policy allows no other policy closes.", DOCS,
         [policy("red/a", policyTypes=["Egress"]), policy("red/b", policyTypes=["Egress"], egress=[{"to": [DB]}]),
          policy("red/c", policyTypes=["Egress"], egress=[{"to": [BLUE], "ports": [{"port": 80}]}])],
         "egress: red/db TCP/1 open, blue/web TCP/80 open, blue/web TCP/81 closed, 8.8.8.8 TCP/80 closed"),
    Case("a forgotten allow-all", "Policies add up, so one that allows all voids the others.", DOCS,
         [policy("red/a", policyTypes=["Egress"]), policy("red/b", policyTypes=["Egress"], egress=[{}])],
         "egress: 8.8.8.8 TCP/443 open, blue/db UDP/53 open"),
    Case("a podSelector alone", "A podSelector without namespaceSelector means the policy's own namespace.", API,
         out({"to": [DB]}), "egress: red/db TCP/80 open, blue/db TCP/80 closed"),
    Case("an empty podSelector", "An empty podSelector means all pods of the policy's own namespace.", API,
         into({"from": [{"podSelector": {}}]}), "ingress: red/db TCP/80 open, blue/web TCP/80 closed"),
    Case("a namespaceSelector alone", "A namespaceSelector alone means all pods of those namespaces.", API,
         out({"to": [BLUE]}), "egress: blue/db TCP/80 open, blue/web UDP/9 open, red/db TCP/80 closed"),
    Case("an empty namespaceSelector", "An empty namespaceSelector means all pods, and no address outside.", API,
         out({"to": [{"namespaceSelector": {}}]}),
         "egress: red/db TCP/80 open, kube-system/dns UDP/53 open, 8.8.8.8 TCP/80 closed, 2001:db8::1 TCP/80 closed"),
    Case("both selectors of one peer", "podSelector and namespaceSelector of one peer must both match.", DOCS,
         out({"to": [{**BLUE, **DB}]}),
         "egress: blue/db TCP/80 open, blue/web TCP/80 closed, red/db TCP/80 closed"),
    Case("selectors of two peers", "The peers of a list are alternatives.", DOCS, out({"to": [BLUE, DB]}),
         "egress: blue/db TCP/80 open, blue/web TCP/80 open, red/db TCP/80 open, kube-system/dns TCP/80 closed"),
    Case("a namespace by name", "Each namespace has the label kubernetes.io/metadata.name.", DOCS,
         out({"to": [{"namespaceSelector": named("kube-system")}]}),
         "egress: kube-system/dns UDP/53 open, blue/web UDP/53 closed"),
    Case("In", "In matches a label with one of the values.", SELECTORS, matching("app", "In", "db", "other"),
         "egress: red/db TCP/80 open, blue/db TCP/80 open, blue/web TCP/80 closed, kube-system/dns TCP/80 closed"),
    Case("NotIn", "NotIn also matches where the key is absent.", SELECTORS, matching("app", "NotIn", "db"),
         "egress: red/db TCP/80 closed, blue/web TCP/80 open, kube-system/dns TCP/80 open"),
    Case("Exists", "Exists matches any value.", SELECTORS, matching("k8s-app", "Exists"),
         "egress: kube-system/dns TCP/80 open, red/db TCP/80 closed"),
    Case("DoesNotExist", "DoesNotExist matches where the key is absent.", SELECTORS, matching("k8s-app",
         "DoesNotExist"),
         "egress: kube-system/dns TCP/80 closed, red/db TCP/80 open, 8.8.8.8 TCP/80 closed"),
    Case("several requirements", "All requirements of a selector must hold.", SELECTORS,
         out({"to": [{"namespaceSelector": {}, "podSelector": {
             "matchLabels": {"app": "db"}, "matchExpressions": [{"key": "tier", "operator": "Exists"}]}}]}),
         "egress: red/db TCP/80 open, blue/db TCP/80 closed"),
    Case("a block", "An ipBlock matches addresses of the block; pods by their own (Kubernetes e2e).", API,
         out({"to": [block("10.0.2.0/24")]}),
         "egress: blue/web TCP/80 open, 10.0.2.77 TCP/80 open, red/db TCP/80 closed, 8.8.8.8 TCP/80 closed"),
    Case("a block with exceptions", "except takes blocks out of its own cidr.", API,
         out({"to": [block("0.0.0.0/0", "10.0.0.0/8", "192.0.2.0/24")]}),
         "egress: 8.8.8.8 TCP/443 open, red/db TCP/443 closed, 192.0.2.9 TCP/443 closed, 192.0.3.0 TCP/443 open"),
    Case("an exception is not a deny", "except is local to its block: another peer may allow the address.", API,
         out({"to": [block("10.0.0.0/8", "10.0.1.0/24")]}, {"to": [DB]}),
         "egress: red/db TCP/80 open, blue/db TCP/80 open, 10.0.1.9 TCP/80 closed"),
    Case("two blocks", "Each exception concerns its own block alone.", API,
         out({"to": [block("0.0.0.0/0", "10.0.0.0/8"), block("10.0.1.0/24")]}),
         "egress: red/db TCP/80 open, blue/db TCP/80 closed, 8.8.8.8 TCP/80 open"),
    Case("the IPv4 world", "0.0.0.0/0 holds no IPv6 address.", API, out({"to": [block("0.0.0.0/0")]}),
         "egress: 8.8.8.8 TCP/80 open, 2001:db8::1 TCP/80 closed"),
    Case("the IPv6 world", "::/0 holds no IPv4 address.", API, out({"to": [block("::/0", "2001:db8::/32")]}),
         "egress: 2606:4700::1 TCP/80 open, 2001:db8::1 TCP/80 closed, 8.8.8.8 TCP/80 closed"),
    Case("the edges of a block", "A block holds its first and its last address.", API,
         out({"to": [block("192.0.2.64/26")]}),
         "egress: 192.0.2.64 TCP/1 open, 192.0.2.127 TCP/1 open, 192.0.2.63 TCP/1 closed, 192.0.2.128 TCP/1 closed"),
    Case("the default protocol", "A port without a protocol is TCP.", API, out({"ports": [{"port": 53}]}),
         "egress: kube-system/dns TCP/53 open, kube-system/dns UDP/53 closed, 8.8.8.8 TCP/53 open, "
         "8.8.8.8 SCTP/53 closed"),
    Case("a protocol alone", "A protocol without a port is every port of the protocol.", API,
         out({"ports": [{"protocol": "UDP"}]}),
         "egress: red/db UDP/1 open, red/db UDP/65535 open, red/db TCP/80 closed"),
    Case("SCTP", "SCTP is a protocol of its own.", API, out({"ports": [{"protocol": "SCTP", "port": 80}]}),
         "egress: red/db SCTP/80 open, red/db TCP/80 closed, red/db UDP/80 closed, red/db SCTP/81 closed"),
    Case("several ports", "The ports of a list are alternatives.", API,
         out({"to": [DB], "ports": [{"port": 80}, {"port": 53, "protocol": "UDP"}]}),
         "egress: red/db TCP/80 open, red/db UDP/53 open, red/db UDP/80 closed, red/db TCP/53 closed"),
    Case("a range", "endPort is inclusive.", KEP_RANGE, out({"ports": [{"port": 80, "endPort": 82}]}),
         "egress: red/db TCP/79 closed, red/db TCP/80 open, red/db TCP/82 open, red/db TCP/83 closed, "
         "red/db UDP/81 closed"),
    Case("peers and ports of one rule", "A rule matches when a peer and a port match.", API,
         out({"to": [DB], "ports": [{"port": 80}]}, {"to": [BLUE], "ports": [{"port": 81}]}),
         "egress: red/db TCP/80 open, red/db TCP/81 closed, blue/web TCP/81 open, blue/web TCP/80 closed"),
    Case("a port by name, in", "An ingress port by name is looked up on the selected pod.", API,
         into({"ports": [{"port": "web"}]}),
         "ingress: red/db TCP/8080 open, 8.8.8.8 TCP/8080 open, red/db TCP/9090 closed, red/db UDP/8080 closed"),
    Case("a port by name, out", "An egress port by name is looked up on each peer.", API,
         out({"to": [{"namespaceSelector": {}}], "ports": [{"port": "web"}]}),
         "egress: red/db TCP/9090 open, red/db TCP/8080 closed, blue/web TCP/8080 closed"),
    Case("a port by name, outside", "Nothing outside of pods has a port by name.", API,
         out({"ports": [{"port": "web"}]}),
         "egress: red/db TCP/9090 open, 8.8.8.8 TCP/9090 closed, 8.8.8.8 TCP/8080 closed"),
    Case("a port by name and protocol", "A port by name must have the rule's protocol.", API,
         into({"ports": [{"port": "names", "protocol": "UDP"}, {"port": "names"}]}),
         "ingress: red/db UDP/5353 open, red/db TCP/5353 closed"),
    Case("ICMP", "Only a rule without ports covers ICMP.", DOCS, out({"to": [DB]}, {"to": [BLUE],
         "ports": [{"port": 80}]}),
         "egress: red/db ICMP/8 open, blue/web ICMP/8 closed"),
    Case("DNS to the world", "ports without peers open the port to every address.", DOCS,
         out({"ports": [{"port": 53, "protocol": "UDP"}]}), "egress: 8.8.8.8 UDP/53 open, 2001:db8::1 UDP/53 open"),
    Case("directions are apart", "Egress rules say nothing about ingress.", DOCS,
         one(policyTypes=["Ingress", "Egress"], egress=[{"to": [DB]}], ingress=[{"from": [BLUE]}]),
         "egress: red/db TCP/80 open, blue/web TCP/80 closed; ingress: red/db TCP/80 closed, blue/web TCP/80 open"),
    Case("the public internet", "The usual rule for the internet leaves private blocks out.", DOCS,
         out({"to": [block("0.0.0.0/0", "10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16")]}),
         "egress: 8.8.8.8 TCP/443 open, 169.254.169.254 TCP/80 closed, 172.31.0.1 TCP/1 closed, 172.32.0.1 TCP/1 open"),
]  # fmt: skip
