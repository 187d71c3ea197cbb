# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What goes wrong on the fake API server, and at which request."""

from __future__ import annotations

import dataclasses
import enum
import threading
import typing as t


class Request(t.NamedTuple):
    """A request in the words of Kubernetes' access rules."""

    verb: str
    plural: str

    def __str__(self) -> str:
        return f"{self.verb}-{self.plural}"


class How(enum.Enum):
    """The ways in which an answer can fail to be one."""

    STATUS = "status"
    STATUS_AFTER_ACTING = "status-after-acting"
    HANG = "hang"
    CUT_BEFORE = "cut-before"
    CUT_AFTER = "cut-after"
    CUT_THEN_ACT = "cut-then-act"
    TRUNCATED = "truncated"
    NO_JSON = "no-json"
    NO_OBJECT = "no-object"


@dataclasses.dataclass(frozen=True)
class Fault:
    """One thing that goes wrong.

    Attributes:
        how: what happens.
        status: the HTTP status, with ``STATUS`` and ``STATUS_AFTER_ACTING``.
        retry_after: the header of that name.
        delay: seconds after which a cut request is still carried out, with ``CUT_THEN_ACT``.
        message: the Status object's message.
        name: the object that the Status names; None is how the server says that it does not know the resource.
        body: bytes that are sent instead of a Status object, with ``STATUS``.
    """

    how: How
    status: int = 0
    retry_after: str | None = None
    delay: float = 0.2
    message: str = "injected"
    name: str | None = "injected"
    body: bytes | None = None

    def __str__(self) -> str:
        words = [self.how.value if self.how is not How.STATUS else "", str(self.status or "")]
        if self.retry_after is not None:
            words.append(f"retry-after-{self.retry_after}")
        return "-".join(word for word in words if word).replace(" ", "_")


def status(code: int, retry_after: str | None = None) -> Fault:
    """An answer with that status; nothing was done."""
    return Fault(How.STATUS, code, retry_after)


@dataclasses.dataclass
class _Entry:
    fault: Fault
    request: Request | None
    skip: int
    times: float


class Plan:
    """Which requests fail; those that were received are counted in ``requests``."""

    def __init__(self) -> None:
        self.requests: list[Request] = []
        self._entries: list[_Entry] = []
        self._lock = threading.Lock()

    def add(self, fault: Fault, request: Request | None = None, *, nth: int = 1, times: float = 1) -> None:
        """Let a fault happen.

        Args:
            request: the kind of request that meets it; None for any.
            nth: the first of these that meets it.
            times: how many in a row meet it; ``math.inf`` for all.
        """
        with self._lock:
            self._entries.append(_Entry(fault, request, nth - 1, times))

    def clear(self) -> None:
        """Forget faults and requests."""
        with self._lock:
            self._entries.clear()
            self.requests.clear()

    def met_by(self, request: Request) -> Fault | None:
        """Record a request and say what happens to it."""
        with self._lock:
            self.requests.append(request)
            for entry in self._entries:
                if entry.request not in (None, request) or entry.times <= 0:
                    continue
                if entry.skip > 0:
                    entry.skip -= 1
                    continue
                entry.times -= 1
                return entry.fault
            return None

    def received(self) -> list[Request]:
        """The requests so far, in order."""
        with self._lock:
            return list(self.requests)
