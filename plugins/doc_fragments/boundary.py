# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say what a sandbox may reach and who may reach it."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``boundary`` fragment."""

    DOCUMENTATION = r"""
options:
  egress:
    description:
      - What the sandbox may reach. Policies add up, so every policy that applies to the pod is read, and their exact
        sum is compared with this. Without it nothing is asked of the sandbox's egress.
      - A kind alone, such as V(no_network), stands for the dictionary with that O(egress.kind).
    type: dict
    suboptions:
      kind:
        description:
          - V(no_network) is nothing at all, DNS neither. V(dns_only) is the cluster's DNS servers. V(public_internet)
            is DNS and every address that is not private, shared, link-local, loopback or a cloud's platform endpoint.
            V(hosts) is DNS and the names in O(egress.hosts). V(allow_all) is everything.
        type: str
        required: true
        choices: [no_network, dns_only, public_internet, hosts, allow_all]
      except_cidrs:
        description:
          - With V(public_internet), further blocks that are left out.
        type: list
        elements: str
      hosts:
        description:
          - With V(hosts), the DNS names, each a name or C(*.) and a name, or a dictionary with C(host) and C(ports).
            Without ports it is TCP 443. Only O(egress.engine=cilium) can express names.
        type: list
        elements: raw
      ports:
        description:
          - With V(public_internet), the only ports that may be reached; with V(hosts), the ports of hosts that have
            none of their own. Each is a number for TCP, or a text such as V(53/UDP).
        type: list
        elements: raw
      dns:
        description:
          - Where the cluster's DNS servers are.
        type: dict
        suboptions:
          namespace:
            description:
              - The namespace of their pods; V(kube-system) unless it is given.
            type: str
          labels:
            description:
              - The labels of their pods; C(k8s-app=kube-dns) unless they are given.
            type: dict
          addresses:
            description:
              - Blocks of DNS servers that are not pods, such as a cache on the node.
            type: list
            elements: str
          names:
            description:
              - With V(dns_only) and V(public_internet), the only names that may be looked up, each a name, or C(*.)
                and a name. Without it any name is looked up, and a resolver that answers for any name is a tunnel to
                whoever serves the name. Only O(egress.engine=cilium) can limit names.
            type: list
            elements: str
      engine:
        description:
          - Who enforces policies. V(core) is every network plugin that enforces NetworkPolicy as Kubernetes describes
            it; V(cilium) reads Cilium's own policies as well, and all of them as Cilium does.
        type: str
        choices: [core, cilium]
        default: core
      name:
        description:
          - Name of the policy that grants this. Unless it is given, C(namzu-<template>-egress), or
            C(namzu-<template>-<profile>-egress), which is how role C(namzu.sandbox.boundary) calls it.
        type: str
      profile:
        description:
          - The one of several boundaries of a template. The label is put on the pod, and the policy selects by it.
        type: dict
        suboptions:
          key:
            description:
              - The label's key. Its domain must be one of the controller's allowed label domains.
            type: str
            default: sandbox.users.io/egress-profile
          value:
            description:
              - The label's value, and a part of the policy's name.
            type: str
            required: true
      verify:
        description:
          - With V(union), the named policy must be there, select the pod and grant exactly this, and no other policy
            may add to it. With V(named_object), only the named policy is looked at.
        type: str
        choices: [union, named_object]
        default: union
  ingress:
    description:
      - Who may reach the agent's port. Unless it is given, some policy must isolate the pod, and neither everyone, nor
        every namespace, nor the internet may reach the port.
      - A dictionary with C(allow_from), a list of peers as in a NetworkPolicy's rule, makes that exact; an empty list
        is nobody. C(engine) in it is as O(egress.engine), and has its value unless it is given.
      - The text V(unverified) looks at nothing.
    type: raw
  network_probe:
    description:
      - Whether to try it from inside as well. What O(egress) closes must fail to connect, and DNS must connect where
        O(egress) opens it. It is repeated until it holds, as policies may be enforced some time after a pod has
        started. It needs C(python3) in the sandbox.
      - Who reaches the agent's port cannot be tried from inside.
    type: bool
    default: false
"""
