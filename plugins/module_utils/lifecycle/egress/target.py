# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What can have a policy of its own: an acquired sandbox that lives, and whose pod is labelled for it."""

from __future__ import annotations

import dataclasses
import datetime

from ...cluster.resources import ACQUIRE_ID_ANNOTATION, SANDBOX, Body, ObjectRef, annotation, expires_at
from ...errors import SandboxError
from ..acquire.egress_label import own_policy
from ..acquire.match import life_differences
from ..observed.status import bound_sandbox, raise_if_decided


class EgressTargetError(SandboxError):
    """What a policy of its own was asked for cannot have one.

    Attributes:
        reason: ``expired``, ``unlabelled`` (it was acquired without
            ``per_sandbox_egress``), ``workspace``, or ``conflict`` (the policy of that name is another sandbox's).
    """


@dataclasses.dataclass(frozen=True)
class Holder:
    """A claim or direct Sandbox, with the name of its pod's own policy.

    Attributes:
        ref, uid: the object.
        policy: the policy's name.
        sandbox: the Sandbox that it leads to, or None while it leads to none.
    """

    ref: ObjectRef
    uid: str
    policy: str
    sandbox: str | None


def holder_of(ref: ObjectRef, body: Body, now: datetime.datetime) -> Holder:
    """A claim or Sandbox as one that can have a policy of its own.

    Args:
        ref, body: the object.
        now: the latest that the API server's clock can say.

    Raises:
        EgressTargetError, AcquireError: it cannot have one, or has ended.
    """
    raise_if_decided(body, ref)
    ends = expires_at(body)
    for why in life_differences(body, ends, now):
        raise _unfit(ref, "expired", why, "Acquire another sandbox.")
    if ref.kind is SANDBOX and annotation(body, ACQUIRE_ID_ANNOTATION) is None:
        step = "A workspace has the boundary of its template; a member of a pool is named by its claim."
        raise _unfit(ref, "workspace", "it was not acquired as a sandbox", step)
    policy = own_policy(ref, body)
    if policy is None:
        step = "Acquire one with per_sandbox_egress; a pod is labelled when it is claimed, and not later."
        raise _unfit(ref, "unlabelled", "it was acquired without per_sandbox_egress", step)
    return Holder(ref, str(body["metadata"]["uid"]), policy, bound_sandbox(body, ref))


def _unfit(ref: ObjectRef, reason: str, why: str, step: str) -> EgressTargetError:
    return EgressTargetError(
        f"{ref} can have no policy of its own: {why}.", reason=reason, object=str(ref), next_step=step
    )
