# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The policies that are the boundary of a pod's template: role ``boundary``'s, or the controller's own."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ...boundary.engines.model import INGRESS
from ...boundary.policies.named import Profile, policy_name
from ...boundary.reach.reach import Reach
from ...boundary.reach.verdict import Verdict
from ...boundary.world.objects import Pod
from ...cluster.resources import TEMPLATE_LABEL
from ..acquire.direct import name_hash
from .planned import MANAGED_POLICY_SUFFIX, TEMPLATE_HASH_LABEL


def boundary_policies(reach: Reach, pod: Pod, direction: str) -> tuple[str, ...]:
    """The boundary of a pod's template, as the texts of its policies.

    Args:
        reach: of the pod, or of one to which the same policies apply.
        pod: the pod; its labels name its template.
        direction: ``egress`` or ``ingress``.

    Returns:
        The policies among those that apply to the pod; empty when the pod has no boundary.
    """
    names = _names(pod, direction)
    refs = (ref for tier in reach.compiled.direction(direction).tiers for ref in tier.policies)
    own = (ref for ref in refs if ref.namespace == pod.namespace and (ref.name in names or _managed(ref.name, pod)))
    return tuple(dict.fromkeys(ref.text for ref in own))


def within_template(reach: Reach, direction: str, agent_port: int | None = None) -> Verdict:
    """Whether a direction of a pod allows nothing beyond the boundary of its template; nothing at all without one."""
    policies = boundary_policies(reach, reach.pod, direction)
    template = reach.pod.labels.get(TEMPLATE_LABEL)
    of = f"its template {template}" if template else "its template"
    if policies:
        request = f"the boundary of {of} ({', '.join(policies)})"
    elif template or TEMPLATE_HASH_LABEL in reach.pod.labels:
        request = f"no_network, because {of} has no {direction} policy"
    else:
        request = f"no_network, because the pod has no label {TEMPLATE_LABEL} and so no boundary"
    return reach.within_policies(direction, policies, request, agent_port)


def _names(pod: Pod, direction: str) -> c.Collection[str]:
    template = pod.labels.get(TEMPLATE_LABEL)
    if template is None:
        return ()
    way: t.Literal["egress", "ingress"] = "ingress" if direction == INGRESS else "egress"
    profiles = [None, *(Profile(value) for value in pod.labels.values() if value)]
    return {policy_name(template, profile, way) for profile in profiles}


def _managed(policy: str, pod: Pod) -> bool:
    """Whether the controller made a policy for the template of a pod out of a pool: the pod carries the name's hash."""
    template = policy.removesuffix(MANAGED_POLICY_SUFFIX)
    return template != policy and pod.labels.get(TEMPLATE_HASH_LABEL) == name_hash(template)
