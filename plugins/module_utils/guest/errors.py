# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Errors of the client of the agent in a pod.

The text names the operation, the agent (``agent host:port`` and its subject), the answer and the next step. It is built
from those alone, so no error, argument or chained error carries the bind token.
"""

from __future__ import annotations

import typing as t

from ..errors import SandboxError


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
    """The agent understood the request and refused it.

    Attributes:
        kind: one of the agent's closed list (``not-found``, ``bad-cwd``, ``busy``, …; docs/reference/guest.md).
    """

    reason = "agent-refused"

    #: Kinds that describe a moment and not the request.
    TRANSIENT = frozenset({"busy", "exhausted", "quiescing", "stopping"})

    def __init__(self, message: str, *, kind: str, **common: t.Any) -> None:
        common.setdefault("retryable", kind in self.TRANSIENT)
        super().__init__(message, **common)
        self.kind = kind

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "kind": self.kind}


class GuestStoppedError(GuestError):
    """What ran in a sandbox was ended with everything in its pod."""

    reason = "pod-stopping"
    retryable = True

    def __init__(self, what: str, peer: str) -> None:
        super().__init__(
            f"{what} was ended with everything in its pod ({peer}).",
            object=peer,
            next_step="The pod was deleted or evicted, its lease has ended, or its workspace is being suspended: use "
            "another sandbox, or start the workspace again.",
        )


class GuestUnsupportedError(GuestRefusedError):
    """The agent in the pod does not have the feature.

    Attributes:
        feature: the name that its health lacks.
    """

    reason = "agent-unsupported"

    def __init__(self, message: str, *, feature: str, **common: t.Any) -> None:
        super().__init__(message, kind="unsupported", **common)
        self.feature = feature

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "feature": self.feature}


class GuestChecksumError(GuestError):
    """What was read is not what the agent sent."""

    reason = "checksum"
    retryable = True


class SessionMismatchError(GuestError):
    """Another program runs under a session's name than the one that was asked for; it was left as it is."""

    reason = "conflict"


class _ExecutionError(GuestError):
    """An execution that runs without a client.

    Attributes:
        id: by which it is found.
        offset: how much of its output was received: attaching there goes on without a gap.
    """

    def __init__(self, message: str, *, id: str, offset: int, **common: t.Any) -> None:  # noqa: A002  # pylint: disable=redefined-builtin
        super().__init__(message, **common)
        self.id = id
        self.offset = offset

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "id": self.id, "offset": self.offset}


class ExecutionDetachedError(_ExecutionError):
    """The client stopped following an execution, which goes on.

    Attributes:
        reached: whether any connection to the execution was made.
    """

    reason = "execution-detached"
    retryable = True

    def __init__(self, message: str, *, reached: bool, **common: t.Any) -> None:
        super().__init__(message, **common)
        self.reached = reached


class ExecutionLostError(_ExecutionError):
    """The agent has no execution of that id: it was restarted, or has removed it. The result is unknown."""

    reason = "execution-lost"


class QuiesceUnconfirmedError(GuestError):
    """Not everything in the sandbox could be stopped.

    Attributes:
        left: pid and name of each process that still runs.
    """

    reason = "quiesce-unconfirmed"
    retryable = True

    def __init__(self, message: str, *, left: t.Sequence[t.Mapping[str, t.Any]], **common: t.Any) -> None:
        super().__init__(message, **common)
        self.left = [dict(process) for process in left]

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "left": self.left}


class PrivilegeError(SandboxError):
    """A sandbox whose processes have privileges, or whose privileges could not be read. It must not be used.

    Attributes:
        excess: field of ``/proc/self/status`` to its value, with capabilities by name; empty when unreadable.
    """

    reason = "privileged"

    def __init__(self, message: str, *, excess: t.Mapping[str, str] | None = None, **common: t.Any) -> None:
        super().__init__(message, **common)
        self.excess = dict(excess or {})

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "excess": self.excess}
