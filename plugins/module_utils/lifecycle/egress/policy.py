# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The policy of one sandbox: how it is called, which pod it selects, and to whom it belongs.

The pod has to carry the label from its claim on, before anything has a uid. So the policy is called after the acquire,
whose id is unique; a later sandbox of the same name never meets a policy of an earlier one.
"""

from __future__ import annotations

import typing as t

from ...boundary.policies.translation import differences, translate
from ...boundary.reach.requests import Request
from ...cluster.resources import EGRESS_LABEL, Body, ObjectRef


def policy_body(request: Request, engine: str, name: str, owner: ObjectRef, uid: str) -> Body:
    """The policy that grants a request to the pod of one claim or Sandbox, and goes when that goes.

    The owner reference blocks no deletion, which would need a right to the owner's finalizers.
    """
    body = translate(request, namespace=owner.namespace, name=name, labels={EGRESS_LABEL: name}, engine=engine)
    kind = owner.kind
    reference = {"apiVersion": kind.api_version, "kind": kind.name, "name": owner.name, "uid": uid}
    body["metadata"]["ownerReferences"] = [reference]
    return body


def owner_uids(policy: Body) -> list[str]:
    """The uids of all that a policy belongs to."""
    return [str(one.get("uid")) for one in policy["metadata"].get("ownerReferences") or []]


def is_as_wanted(live: Body | None, wanted: Body) -> bool:
    """Whether a live policy selects and grants what it should."""
    return live is not None and not differences(live, wanted)


def replacing(live: Body, wanted: Body) -> Body:
    """The merge patch that gives a live policy another spec; applied only to that very version of it."""
    metadata = {"resourceVersion": live["metadata"].get("resourceVersion") or "unknown"}
    return {"metadata": metadata, "spec": _replacing(live.get("spec") or {}, wanted["spec"])}


def _replacing(live: Body, wanted: Body) -> Body:
    """A merge patch (RFC 7386) from one mapping to another: what is not wanted any more is null."""
    patch: dict[str, t.Any] = {key: None for key in live if key not in wanted}
    for key, value in wanted.items():
        have = live.get(key)
        patch[key] = _replacing(have, value) if isinstance(have, dict) and isinstance(value, dict) else value
    return patch
