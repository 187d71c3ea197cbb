# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The pod label that selects the network policy of one sandbox, and the name of that policy.

The pod carries the label from the claim on, before any object has a uid. So the label value is the acquire id, which is
unique: a later sandbox of the same name never matches the policy of an earlier one.
"""

from __future__ import annotations

from ...cluster.resources import CLAIM, EGRESS_LABEL, Body, ObjectRef

#: How the name of every policy of one sandbox begins; the fence of role ``admission_fence`` takes no other.
EGRESS_POLICY_PREFIX = "namzu-egress-"


def policy_name_of(acquire_id: str) -> str:
    """The name of the policy of what an acquire makes, and the value of the label by which it selects the pod."""
    return EGRESS_POLICY_PREFIX + acquire_id


def own_policy(ref: ObjectRef, body: Body) -> str | None:
    """The name of the policy that a claim or Sandbox asks its pod to be labelled for, or None."""
    spec = body.get("spec") or {}
    metadata = (
        spec.get("additionalPodMetadata") if ref.kind is CLAIM else (spec.get("podTemplate") or {}).get("metadata")
    )
    name = str(((metadata or {}).get("labels") or {}).get(EGRESS_LABEL, ""))
    return name if name.startswith(EGRESS_POLICY_PREFIX) else None
