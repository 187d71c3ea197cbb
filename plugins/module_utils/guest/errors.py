# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong between us and the agent in a pod.

The text names the operation, the agent (``agent host:port`` and what the caller says that it is), what came back and
what to do. It is built from those words alone, so no error, argument or chained error carries the bind token.
"""

from __future__ import annotations

import typing as t

from ..cluster.errors import SandboxError


class GuestError(SandboxError):
    """The root of everything that the guest package raises."""

    reason = "agent-error"


class GuestUnreachableError(GuestError):
    """No connection to the agent, or a connection that ended before the answer did.

    Attributes:
        sent: whether the request may have reached the agent; such a call is not repeated and not ``retryable``.
    """

    reason = "agent-unreachable"
    retryable = True

    def __init__(self, message: str, *, sent: bool = False, **common: t.Any) -> None:
        common.setdefault("retryable", not sent)
        super().__init__(message, **common)
        self.sent = sent

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "sent": self.sent}


class GuestTimeoutError(GuestError):
    """The caller's deadline passed.

    Attributes:
        stage: what was under way: ``resolve``, ``connect``, ``answer`` (nothing came back yet) or ``stream``.
    """

    reason = "agent-timeout"

    def __init__(self, message: str, *, stage: str = "answer", **common: t.Any) -> None:
        common.setdefault("retryable", stage in ("resolve", "connect"))
        super().__init__(message, **common)
        self.stage = stage

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "stage": self.stage}


class GuestProtocolError(GuestError):
    """Something answers at that port, but not as an agent of this protocol does: garbage, oversize, wrong shape."""

    reason = "agent-protocol"


class GuestUnauthorizedError(GuestError):
    """The agent does not accept the bind token: it belongs to another pod than the one that was asked for."""

    reason = "agent-unauthorized"


class GuestRefusedError(GuestError):
    """The agent understood the request and says no.

    Attributes:
        kind: the agent's word from its closed list (``not-found``, ``bad-cwd``, ``busy``, …; docs/guest.md).
    """

    reason = "agent-refused"

    #: Kinds that describe a moment and not the request.
    PASSING = frozenset({"busy", "exhausted", "stopping"})

    def __init__(self, message: str, *, kind: str, **common: t.Any) -> None:
        common.setdefault("retryable", kind in self.PASSING)
        super().__init__(message, **common)
        self.kind = kind

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "kind": self.kind}


class PrivilegeError(SandboxError):
    """A sandbox whose processes have privileges, or whose privileges could not be read. It must not be used.

    Attributes:
        excess: field of ``/proc/self/status`` to what it says, with capabilities by name; empty when unreadable.
    """

    reason = "privileged"

    def __init__(self, message: str, *, excess: t.Mapping[str, str] | None = None, **common: t.Any) -> None:
        super().__init__(message, **common)
        self.excess = dict(excess or {})

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "excess": self.excess}
