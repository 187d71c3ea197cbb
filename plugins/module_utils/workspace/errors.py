# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What can go wrong with a workspace. None of these loses a disk."""

from __future__ import annotations

import typing as t

from ..cluster.resources import ObjectRef
from ..errors import SandboxError


class WorkspaceError(SandboxError):
    """The root of what this package raises."""

    reason = "workspace"


class WorkspaceNotFoundError(WorkspaceError):
    """There is no workspace of that id, and the call does not say from which template to make one."""

    reason = "not-found"


class WorkspaceDiskError(WorkspaceError):
    """A disk is missing, is not the one it was, cannot be bound, or a template has none.

    Attributes:
        claim: the PersistentVolumeClaim as ``Kind namespace/name``, or None.
    """

    reason = "disk"

    def __init__(self, message: str, *, claim: str | None = None, **common: t.Any) -> None:
        super().__init__(message, **common)
        self.claim = claim

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "claim": self.claim}


class WorkspaceMismatchError(WorkspaceError):
    """What stands under the name is not what was asked for; nothing was changed.

    Attributes:
        differences: each in words.
    """

    reason = "mismatch"

    def __init__(self, message: str, *, differences: t.Sequence[str] = (), **common: t.Any) -> None:
        super().__init__(message, **common)
        self.differences = tuple(differences)

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "differences": list(self.differences)}


class WorkspaceSuspendedError(WorkspaceError):
    """Something was asked of the guest of a workspace that is suspended."""

    reason = "suspended"


class WorkspaceSuspendTimeoutError(WorkspaceError):
    """The pod still runs when the time is over; the object stays as it was patched, so it stops when it can."""

    reason = "suspend-timeout"
    retryable = True


class WorkspacePreconditionError(WorkspaceError):
    """A lifecycle write was refused because this caller is not, or not any more, who may make it; nothing was changed.

    Attributes:
        holder_epoch: the caller's, or None when it gave none.
        stored_epoch: what the workspace carries, as text, or None.
    """

    reason = "precondition"

    def __init__(
        self, message: str, *, holder_epoch: int | None = None, stored_epoch: str | None = None, **common: t.Any
    ) -> None:
        super().__init__(message, **common)
        self.holder_epoch = holder_epoch
        self.stored_epoch = stored_epoch

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "holder_epoch": self.holder_epoch, "stored_epoch": self.stored_epoch}


class WorkspaceReplacedError(WorkspaceError):
    """Another Sandbox, or none, stands under the name: the disk that this workspace was opened on is not behind it."""

    reason = "replaced"


class WorkspaceGuestGoneError(WorkspaceError):
    """The guest that a command ran in is gone, and what became of the command is not known.

    Attributes:
        before, after: the guests as plain data; ``after`` is None when there is none.
    """

    reason = "guest-gone"

    def __init__(
        self,
        message: str,
        *,
        before: t.Mapping[str, t.Any],
        after: t.Mapping[str, t.Any] | None = None,
        **common: t.Any,
    ) -> None:
        super().__init__(message, **common)
        self.before = dict(before)
        self.after = None if after is None else dict(after)

    def fields(self) -> dict[str, t.Any]:
        return {**super().fields(), "before": self.before, "after": self.after}


class NotSettledError(WorkspaceError):
    """The guest did not flush or quiesce, so the workspace was not suspended.

    Attributes:
        reason: ``flush-unsupported`` (an agent that does not know it), ``flush-unreachable`` (no answer) or
            ``flush-failed`` (it answered, and not with success); the same with ``quiesce``.
    """


def not_found(ref: ObjectRef, workspace_id: str) -> WorkspaceNotFoundError:
    """The error for an id without a workspace."""
    return WorkspaceNotFoundError(
        f"There is no workspace {workspace_id!r} in {ref.namespace} ({ref} is not there).",
        object=str(ref),
        next_step="namzu.sandbox.workspace_info lists those that are there; state: running with a template makes one.",
    )
