# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Why a sandbox that is a container was not handed out, or is lost."""

from __future__ import annotations

import typing as t

from ..errors import SandboxError


class NotReadyError(SandboxError):
    """The container did not start, or its agent does not answer."""

    reason = "not-ready"


class ContainerMismatchError(SandboxError):
    """A container of the wanted name exists, and it is not the one that was asked for; nothing was changed."""

    reason = "conflict"


class UnsupportedError(SandboxError):
    """The engine cannot enforce what was asked for; nothing was created."""

    reason = "unsupported"


class ContainerBoundaryError(SandboxError):
    """The boundary that was asked for cannot be shown to hold, so no sandbox was handed out.

    Attributes:
        direction: always ``egress``.
        findings: what the engine reports, or the probe from inside found, against it.
    """

    reason = "boundary"
    direction = "egress"

    def __init__(self, message: str, *, findings: t.Sequence[str] = (), **common: t.Any) -> None:
        super().__init__(message, **common)
        self.findings = list(findings)

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "direction": self.direction, "findings": self.findings}


class ConfinementError(SandboxError):
    """The engine runs the container with more than was asked for; it was removed.

    Attributes:
        findings: setting by setting, what the engine reports.
    """

    reason = "privileged"

    def __init__(self, message: str, *, findings: t.Sequence[str], **common: t.Any) -> None:
        super().__init__(message, **common)
        self.findings = list(findings)

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "findings": self.findings}


class ContainerLeaseError(SandboxError):
    """There is nothing to renew any more.

    Attributes:
        reason: ``gone``, ``replaced`` or ``expired``.
    """
