# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a cancelled acquire reports: that it was cancelled, and not the failure that the cancelling led to."""

from __future__ import annotations

from ...cluster.resources import ObjectRef
from ...deadline import Deadline
from ...errors import SandboxError

#: The reasons of failures that a cancelled deadline leads to: no wait, and no request, has any time left.
_FOLLOWING = frozenset(
    {"cancelled", "not-ready", "api-timeout", "api-unreachable", "agent-timeout", "agent-unreachable"}
)


def cancelled(ref: ObjectRef | None, why: str) -> SandboxError:
    """The error of an acquire that was cancelled."""
    about = f"{ref}: " if ref is not None else ""
    return SandboxError(f"{about}{why}.", reason="cancelled", retryable=True, object=None if ref is None else str(ref))


def raise_if_cancelled(error: SandboxError, deadline: Deadline, ref: ObjectRef | None, why: str) -> None:
    """Raise the error of a cancelled acquire when the failure followed from that; see ``cancelled_or``."""
    reported = cancelled_or(error, deadline, ref, why)
    if reported is not error:
        raise reported from error


def cancelled_or(error: SandboxError, deadline: Deadline, ref: ObjectRef | None, why: str) -> SandboxError:
    """The error of a cancelled acquire when the failure followed from that; else the failure itself.

    A failure that names a leftover, and one after the time was up anyway, is the one to report.
    """
    in_time = deadline.elapsed() < deadline.seconds
    if deadline.cancelled and in_time and error.reason in _FOLLOWING and error.leftover is None:
        return cancelled(ref, why)
    return error
