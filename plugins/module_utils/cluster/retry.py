# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Repeating what may be repeated, inside one deadline."""

from __future__ import annotations

import typing as t

from ..deadline import Deadline
from ..errors import ApiUnreachableError, SandboxError, UnavailableError

#: Waits between attempts in seconds: short first, as most blips are, then doubling up to the cap.
FIRST_WAIT = 0.05
LONGEST_WAIT = 2.0

Result = t.TypeVar("Result")


def pause(attempt: int) -> float:
    """Seconds between two attempts, counted from 0."""
    return min(LONGEST_WAIT, FIRST_WAIT * 2.0 ** min(attempt, 16))


def wait_before_retry(error: Exception, attempt: int) -> float | None:
    """Seconds to wait before a request is repeated, or None when repeating it makes no sense.

    Connections that failed, requests that ran into their bound, 429 and 5xx are worth another attempt; every other
    answer, and a server whose certificate is not trusted, is a decision. A ``Retry-After`` may only lengthen the wait.
    """
    if not isinstance(error, (ApiUnreachableError, UnavailableError)) or not error.retryable:
        return None
    return max(pause(attempt), getattr(error, "retry_after", None) or 0.0)


def wait_or_raise(deadline: Deadline, error: SandboxError, attempt: int) -> None:
    """Wait before a request is repeated.

    Raises:
        The error itself, when repeating makes no sense, the deadline would pass while waiting (then it says how often
        it was tried), or it is cancelled.
    """
    wait = wait_before_retry(error, attempt)
    if wait is None:
        raise error
    if wait >= deadline.remaining():
        if attempt:
            error.message += f" It was tried {attempt + 1} times in {round(deadline.elapsed(), 2):g} s."
        raise error
    deadline.sleep(wait)
    if deadline.cancelled:
        raise error


def retry(deadline: Deadline, call: t.Callable[[], Result]) -> Result:
    """Call until it succeeds, fails for good, or the deadline would pass while waiting.

    Only for requests that may be repeated (reads, deletes, patches of absolute values).

    Raises:
        The last failure.
    """
    attempt = 0
    while True:
        try:
            return call()
        except (ApiUnreachableError, UnavailableError) as error:
            wait_or_raise(deadline, error, attempt)
            attempt += 1
