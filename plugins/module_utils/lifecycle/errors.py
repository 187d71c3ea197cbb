# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Why an acquire was refused."""

from __future__ import annotations

import typing as t

from ..errors import SandboxError

if t.TYPE_CHECKING:
    from ..boundary.reach.verdict import Verdict
    from ..cluster.resources import ObjectRef


class AcquireError(SandboxError):
    """No sandbox was handed out, and nothing of this acquire is left in the cluster unless ``leftover`` names it.

    Attributes:
        reason: ``api-unreachable``, ``api-timeout``, ``forbidden``, ``claim-rejected``, ``capacity``, ``quota``,
            ``image-pull`` or ``not-ready``.
        controller_reason, controller_message: the claim's own Ready condition, when the controller gave one.
    """

    def __init__(
        self,
        message: str,
        *,
        reason: str,
        retryable: bool,
        controller_reason: str | None = None,
        controller_message: str | None = None,
        **common: t.Any,
    ) -> None:
        super().__init__(message, reason=reason, retryable=retryable, **common)
        self.controller_reason = controller_reason
        self.controller_message = controller_message

    def fields(self) -> dict[str, t.Any]:
        return {
            **super().fields(),
            "controller_reason": self.controller_reason,
            "controller_message": self.controller_message,
        }


class ClaimMismatchError(SandboxError):
    """A claim of the wanted name stands there, and it is another than the one asked for; it was left alone."""

    reason = "conflict"


class ReplacedError(SandboxError):
    """Another object has the name of the one that was meant, or another pod its place; nothing was done to it."""

    reason = "replaced"


def check_uid(ref: ObjectRef, uid: object, wanted: str | None) -> None:
    """Check that an object is the one that the caller means.

    Args:
        ref: the object by its name.
        uid: the uid of the object that has the name now.
        wanted: the uid of the one that is meant, or None for any.

    Raises:
        ReplacedError: it is another object.
    """
    if wanted is not None and uid != wanted:
        raise ReplacedError(
            f"{ref}: is not the object with uid {wanted[:64]!r}. That one was released or has expired, and another one "
            "has its name. Nothing was done.",
            object=str(ref),
            next_step="Acquire a sandbox again, and use the uid (or host_vars) of the new one.",
        )


class BoundaryError(SandboxError):
    """The boundary that was asked for is not there, or more than it is open; the sandbox was not handed out.

    Attributes:
        direction: ``egress`` or ``ingress``.
        verdict: the evidence, or None when there was nothing to judge.
        probe: what was tried from inside, as plain data, or None.
    """

    reason = "boundary"

    def __init__(
        self,
        message: str,
        *,
        direction: str,
        verdict: Verdict | None = None,
        probe: dict[str, t.Any] | None = None,
        **common: t.Any,
    ) -> None:
        super().__init__(message, **common)
        self.direction = direction
        self.verdict = verdict
        self.probe = probe

    def fields(self) -> dict[str, t.Any]:
        verdict = self.verdict
        found = [] if verdict is None else [*verdict.findings, *verdict.undecided]
        return {
            **super().fields(),
            "direction": self.direction,
            "findings": [finding.as_dict() for finding in found],
            "unread": [] if verdict is None else list(verdict.unread),
            **({"network_probe": self.probe} if self.probe is not None else {}),
        }
