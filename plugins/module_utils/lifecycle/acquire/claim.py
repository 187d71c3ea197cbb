# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The claim: what is asked of the controller.

Source: agent-sandbox v0.5.6, SandboxClaim v1beta1.
"""

from __future__ import annotations

import datetime
import typing as t

from ...cluster.resources import Body, ObjectRef, expires_at
from .manifest import ManifestBuilder
from .match import label_differences, life_differences, policy_differences, raise_if_mismatch
from .request import AcquireRequest


def claim_body(builder: ManifestBuilder) -> Body:
    """A pristine claim: pool, lease, labels. ``env`` or ``volumeClaimTemplates`` would force a cold start."""
    request = builder.request
    spec: Body = {"warmPoolRef": {"name": request.warm_pool}, "lifecycle": builder.lease}
    if builder.pod_labels:
        spec["additionalPodMetadata"] = {"labels": builder.pod_labels}
    return builder.body(spec)


def raise_if_other(claim: Body, ref: ObjectRef, request: AcquireRequest, now: datetime.datetime) -> None:
    """Raise when the existing claim is not the one that the request describes.

    Labels may have been added to it; what the request asks for must be there as asked.

    Raises:
        ClaimMismatchError: naming each difference.
    """
    raise_if_mismatch(ref, claim, _differences(claim, ref, request, now))


def _differences(claim: Body, ref: ObjectRef, request: AcquireRequest, now: datetime.datetime) -> t.Iterator[str]:
    metadata, spec = claim.get("metadata", {}), claim.get("spec", {})
    pool = (spec.get("warmPoolRef") or {}).get("name")
    if pool != request.warm_pool:
        yield f"its warm pool is {pool}, not {request.warm_pool}"
    pod_labels = (spec.get("additionalPodMetadata") or {}).get("labels") or {}
    yield from label_differences("label", metadata.get("labels") or {}, request.labels)
    yield from label_differences("pod label", pod_labels, request.pod_labels)
    yield from policy_differences(ref, claim, wanted=request.per_sandbox_egress)
    yield from life_differences(claim, expires_at(claim), now)
