# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The pods that a template will have, and the policy that the controller adds to them, before any of it runs.

Source: agent-sandbox v0.5.6: the label and the selector of a managed policy, and its default (measured).
"""

from __future__ import annotations

import typing as t

from ...boundary.world.objects import Pod, World, read_pod
from ...cluster.resources import AGENTS_GROUP, NETWORK_POLICY, TEMPLATE_LABEL, Body
from ..acquire.direct import TemplateError, name_hash

#: On a pod out of a pool: the hash of its template's name. The controller's own policy selects by it.
TEMPLATE_HASH_LABEL = f"{AGENTS_GROUP}/sandbox-template-ref-hash"

#: How the name of the controller's own policy ends; it begins with the template's name.
MANAGED_POLICY_SUFFIX = "-network-policy"

#: What the controller writes for a template that says nothing about its network.
_DEFAULT_RULES: Body = {
    "ingress": [
        {
            "from": [
                {
                    "podSelector": {"matchLabels": {"app": "sandbox-router"}},
                    "namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "agent-sandbox-system"}},
                }
            ]
        }
    ],
    "egress": [
        {
            "to": [
                {
                    "ipBlock": {
                        "cidr": "0.0.0.0/0",
                        "except": ["10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "169.254.0.0/16"],
                    }
                },
                {"ipBlock": {"cidr": "::/0", "except": ["fc00::/7", "fe80::/10"]}},
            ]
        }
    ],
}


def planned_pod_of(template: Body, labels: t.Mapping[str, str], *, pooled: bool) -> Pod:
    """The pod that a template will have, as far as policies see it.

    Args:
        template: the SandboxTemplate.
        labels: what a claim or a direct Sandbox will put on the pod in addition.
        pooled: whether it comes out of a warm pool; else it is made directly.

    Raises:
        TemplateError: it has no pod template.
        PolicyError: its pod template is malformed.
    """
    metadata, name = template.get("metadata") or {}, _name(template)
    spec = template.get("spec") or {}
    pod_template = spec.get("podTemplate") if isinstance(spec, dict) else None
    if not isinstance(pod_template, dict) or not isinstance(pod_template.get("spec"), dict):
        raise TemplateError(
            f"SandboxTemplate {metadata.get('namespace')}/{name} has no spec.podTemplate.spec to make a Sandbox from.",
            object=f"SandboxTemplate {metadata.get('namespace')}/{name}",
            next_step="Correct the template (role namzu.sandbox.template makes one).",
        )
    own = (pod_template.get("metadata") or {}).get("labels") or {}
    added = {TEMPLATE_HASH_LABEL: name_hash(name)} if pooled else {TEMPLATE_LABEL: name}
    body = {
        "kind": "Pod",
        "metadata": {
            "name": f"of-{name}",
            "namespace": metadata.get("namespace"),
            "labels": {**own, **added, **labels},
        },
        "spec": pod_template["spec"],
    }
    return read_pod(body)


def managed_policy(template: Body) -> Body | None:
    """The NetworkPolicy that the controller keeps for the pods of a template out of pools, or None."""
    spec = template.get("spec") or {}
    if spec.get("networkPolicyManagement", "Managed") != "Managed":
        return None
    given = spec.get("networkPolicy")
    rules = {key: value for key, value in given.items() if key in _DEFAULT_RULES and value} if given else _DEFAULT_RULES
    return {
        "apiVersion": NETWORK_POLICY.api_version,
        "kind": NETWORK_POLICY.name,
        "metadata": {
            "name": f"{_name(template)}{MANAGED_POLICY_SUFFIX}",
            "namespace": (template.get("metadata") or {}).get("namespace"),
        },
        "spec": {
            "podSelector": {"matchLabels": {TEMPLATE_HASH_LABEL: name_hash(_name(template))}},
            "policyTypes": ["Ingress", "Egress"],
            **rules,
        },
    }


def stands(world: World, policy: Body) -> bool:
    """Whether a policy of that name is among the objects."""
    wanted = policy["metadata"]
    return any(
        (body["metadata"].get("namespace") or "default", body["metadata"].get("name"))
        == (wanted["namespace"] or "default", wanted["name"])
        for body in world.policies(policy["kind"])
    )


def _name(template: Body) -> str:
    return str((template.get("metadata") or {}).get("name"))
