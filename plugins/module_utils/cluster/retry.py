# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Repeating what may be repeated, inside one deadline."""

from __future__ import annotations

import typing as t

from ..deadline import Backoff, Deadline
from ..errors import ApiUnreachableError, SandboxError, UnavailableError

Result = t.TypeVar("Result")


def may_pass(error: Exception) -> bool:
    """Whether the same request may succeed when it is repeated.

    True for connections that failed, requests that ran into their bound, 429 and 5xx. Every other answer, and a
    server whose certificate is not trusted, is a decision.
    """
    return isinstance(error, (ApiUnreachableError, UnavailableError)) and error.retryable


def wait_or_raise(deadline: Deadline, error: SandboxError, backoff: Backoff) -> None:
    """Wait before a request is repeated; a ``Retry-After`` of the server may only lengthen the wait.

    Raises:
        SandboxError: the error itself, when repeating makes no sense, the deadline would pass while waiting (then its
            text says how often the request was sent), or the operation is cancelled.
    """
    if not may_pass(error):
        raise error
    if backoff.wait(deadline, at_least=getattr(error, "retry_after", None) or 0.0):
        return
    if backoff.attempts and not deadline.cancelled:
        tries = f"It was tried {backoff.attempts + 1} times in {round(deadline.elapsed(), 2):g} s."
        raise error.replace(message=f"{error.message} {tries}") from None
    raise error


def retry(deadline: Deadline, call: t.Callable[[], Result]) -> Result:
    """Call until it succeeds, fails for good, or the deadline would pass while waiting.

    Only for requests that may be repeated (reads, deletes, patches of absolute values).

    Raises:
        SandboxError: the last failure.
    """
    backoff = Backoff()
    while True:
        try:
            return call()
        except (ApiUnreachableError, UnavailableError) as error:
            wait_or_raise(deadline, error, backoff)
