# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The rules that whoever uses the core needs, in the words of RBAC. Role ``claimant`` grants these and no others."""

from __future__ import annotations

import dataclasses

from .resources import (
    ADMIN_NETWORK_POLICY,
    ADMISSION_BINDING,
    ADMISSION_POLICY,
    BASELINE_POLICY,
    CILIUM_CIDR_GROUP,
    CILIUM_CLUSTERWIDE_POLICY,
    CILIUM_POLICY,
    CLAIM,
    CLUSTER_NETWORK_POLICY,
    NAMESPACE,
    NETWORK_POLICY,
    NODE,
    POD,
    RUNTIME_CLASS,
    SANDBOX,
    SERVICE,
    TEMPLATE,
    VOLUME_CLAIM,
    WARM_POOL,
    Kind,
)


@dataclasses.dataclass(frozen=True)
class Rule:
    """What may be done with one kind, in one namespace unless its table says otherwise.

    Attributes:
        kind: the kind.
        verbs: the API's verbs, in order.
        why: which of our requests need them.
    """

    kind: Kind
    verbs: tuple[str, ...]
    why: str


#: For sandboxes out of a pool. No exec, no secrets, and no right to write pods, Sandboxes or policies: who can write
#: those is not bound by a template.
CLAIMANT = (
    Rule(
        CLAIM,
        ("create", "delete", "get", "list", "patch", "watch"),
        "acquire, release, lease and inventory; get when a watch is cut or an answer was lost, list for many at once",
    ),
    Rule(SANDBOX, ("get", "list"), "the service name, what is left to wait for at a release, inventory"),
    Rule(WARM_POOL, ("get",), "capacity"),
    Rule(TEMPLATE, ("get",), "whether a sandbox is older than its template; the pod template of a direct Sandbox"),
    Rule(POD, ("get", "list"), "address and uid, which is the agent's bind token; inventory"),
    Rule(NETWORK_POLICY, ("list",), "who reaches the agent's port, and what the sandbox reaches"),
)

#: In addition, where Cilium enforces policies.
CILIUM = (Rule(CILIUM_POLICY, ("list",), "the same, of Cilium's own policies"),)

#: In addition and in the whole cluster, so that no policy stays unread: the administrators' and Cilium's, and what they
#: are about. They tell names and labels of every namespace, node and service, so they are granted by choice.
CLUSTER_POLICIES = (
    Rule(CLUSTER_NETWORK_POLICY, ("list",), "policies about the whole cluster"),
    Rule(ADMIN_NETWORK_POLICY, ("list",), "the same, before ClusterNetworkPolicy"),
    Rule(BASELINE_POLICY, ("list",), "the same"),
    Rule(NAMESPACE, ("list",), "the namespaces that these are about, by label"),
    Rule(NODE, ("list",), "what a finding names"),
    Rule(CILIUM_CLUSTERWIDE_POLICY, ("list",), "Cilium's policies about the whole cluster"),
    Rule(CILIUM_CIDR_GROUP, ("list",), "the addresses that Cilium's policies name"),
    Rule(SERVICE, ("list",), "the pods behind the services that Cilium's policies name"),
)

#: In addition, for sandboxes that are made from a template. Whoever may create a Sandbox writes its pod template, so
#: grant it only where an admission policy refuses privileged ones.
DIRECT = (Rule(SANDBOX, ("create", "delete", "patch", "watch"), "acquire, release and lease"),)

#: In addition, for workspaces. As with direct sandboxes, who may create a Sandbox writes its pod template. No right to
#: write claims: a disk goes with its Sandbox alone.
WORKSPACES = (
    Rule(SANDBOX, ("create", "delete", "patch", "watch"), "create, suspend, resume, refresh and delete"),
    Rule(TEMPLATE, ("list",), "inventory: whether they are what their templates say"),
    Rule(VOLUME_CLAIM, ("get", "list"), "whether their disks are bound, and the same as before; inventory"),
)

#: In addition, for a policy of one sandbox each. Whoever may write policies can open every sandbox of the namespace, so
#: grant it only behind role ``admission_fence``, without which the core writes none.
EGRESS = (
    Rule(NETWORK_POLICY, ("create", "delete", "get", "patch"), "set, change and take away; get before it is undone"),
)

#: The same of Cilium's own policies.
EGRESS_CILIUM = (Rule(CILIUM_POLICY, ("create", "delete", "get", "patch"), "the same, where Cilium enforces policies"),)

#: And in the whole cluster, whether the fence stands.
EGRESS_CLUSTER = (
    Rule(ADMISSION_POLICY, ("get",), "the fence's policy"),
    Rule(ADMISSION_BINDING, ("get",), "the fence's binding"),
)

#: In addition and in the whole cluster: which runtime a sandbox has, without which no isolation is proven.
RUNTIME_CLASSES = (Rule(RUNTIME_CLASS, ("get",), "the handler of a RuntimeClass, for isolation"),)

#: In addition, for ``agent.address: port_forward``: group, resource and verbs of a subresource.
PORT_FORWARD = ("", "pods/portforward", ("create", "get"))

#: What the options of role ``claimant`` grant in addition to ``CLAIMANT``.
OPTIONS = {
    "claimant_cilium": CILIUM,
    "claimant_cluster_policies": CLUSTER_POLICIES,
    "claimant_direct": DIRECT,
    "claimant_egress": (*EGRESS, *EGRESS_CLUSTER),
    "claimant_egress and claimant_cilium": EGRESS_CILIUM,
    "claimant_runtime_classes": RUNTIME_CLASSES,
    "claimant_workspaces": WORKSPACES,
}


def options_for(verb: str, resource: str) -> list[str] | None:
    """Each option of role ``claimant`` that grants a verb on a resource; none when it does without one.

    Args:
        verb: the API's, such as ``create``.
        resource: its plural; a subresource as ``pods/portforward``.

    Returns None for what the role never grants.
    """

    def grants(rules: tuple[Rule, ...]) -> bool:
        return any(rule.kind.plural == resource and verb in rule.verbs for rule in rules)

    if grants(CLAIMANT):
        return []
    found = [option for option, rules in OPTIONS.items() if grants(rules)]
    if resource == PORT_FORWARD[1] and verb in PORT_FORWARD[2]:
        found.append("claimant_port_forward")
    return found or None
