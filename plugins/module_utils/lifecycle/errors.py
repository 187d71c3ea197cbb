# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Why an acquire was refused."""

from __future__ import annotations

import typing as t

from ..cluster.errors import SandboxError


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
