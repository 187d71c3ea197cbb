# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What a keeper holds, and what is due when: decisions alone, no thread and no request."""

from __future__ import annotations

import dataclasses
import random
import threading
import typing as t

from ...deadline import Clock
from ...errors import SandboxError
from .lease import Lease, LeaseLostError, Renewal
from .timing import LeaseTiming

#: What happens to a lease: ``failed`` (an attempt, the first in a row), ``recovered`` (after failures), ``lost`` (for
#: good), ``released`` and ``unreleased`` (could not be given back).
EventKind = t.Literal["failed", "recovered", "lost", "released", "unreleased"]


@dataclasses.dataclass(frozen=True)
class Event:
    """Something that a person may want to know about a lease.

    Attributes:
        kind: what happened.
        lease: to which one, as it is known now.
        error: why, or None.
        failures: how many attempts in a row had failed.
    """

    kind: EventKind
    lease: Lease
    error: SandboxError | None = None
    failures: int = 0


Report = t.Callable[[Event], None]


@dataclasses.dataclass
class Entry:
    """One lease that is held. Only the registry changes it.

    Attributes:
        lease, client: what is renewed, and who asks.
        release_on_end: whether it is given back when the holding ends.
        due: when it is renewed next, on the monotonic clock.
        ends: when it ends as far as we know, on the monotonic clock; None when it does not.
        failures: attempts in a row that failed.
        busy: whether an attempt is under way.
        renewed: whether it is renewed; False for one that is only to be given back at the end.
        leaving: whether it is about to be released, so that its end is no loss.
        releasing: whether the keeper itself is giving it back.
        lost: why it will never be renewed again, or None.
        renewals: how many succeeded.
    """

    lease: Lease
    client: t.Any
    release_on_end: bool
    due: float
    ends: float | None
    failures: int = 0
    busy: bool = False
    renewed: bool = True
    leaving: bool = False
    releasing: bool = False
    lost: LeaseLostError | None = None
    renewals: int = 0

    @property
    def timing(self) -> LeaseTiming:
        """The times of its lease."""
        return LeaseTiming(self.lease.ttl)

    @property
    def waits(self) -> bool:
        """Whether it has an attempt to wait for."""
        return self.renewed and not (self.busy or self.leaving or self.lost)


class LeaseRegistry:
    """All leases of one keeper. Any thread may use it.

    Args:
        report: is told what happens, in the thread in which it happens, and must return soon.
        clock: tells the time.
        chance: gives numbers from 0 up to 1, for the jitter.
    """

    def __init__(self, report: Report, clock: Clock, chance: t.Callable[[], float] = random.random) -> None:
        self._report = report
        self._clock = clock
        self._chance = chance
        self._lock = threading.RLock()
        self._entries: dict[str, Entry] = {}

    def hold(self, client: t.Any, lease: Lease, *, renewed: bool = True, release_on_end: bool = False) -> Entry:
        """Hold a lease from now on; what is held already is marked if either time asked for it.

        One without a ttl takes that of the time before, so that asking for its release does not end its renewal.
        """
        with self._lock:
            known = self._entries.get(lease.uid)
            if known is not None and not lease.ttl:
                lease, renewed = dataclasses.replace(lease, ttl=known.lease.ttl), known.renewed
            marked = release_on_end or (known is not None and known.release_on_end)
            left = None if lease.expires_at is None else (lease.expires_at - self._clock.now()).total_seconds()
            now = self._clock.monotonic()
            due = now + LeaseTiming(lease.ttl).next_renewal(left, self._chance())
            ends = None if left is None else now + left
            entry = Entry(lease, client, marked, due, ends, renewed=renewed and lease.ttl > 0)
            self._entries[lease.uid] = entry
            return entry

    def let_go(self, uid: str) -> None:
        """Hold it no longer."""
        with self._lock:
            self._entries.pop(uid, None)

    def leave(self, entry: Entry, *, leaving: bool = True) -> None:
        """Somebody is about to release it; or, with ``leaving`` False, could not."""
        with self._lock:
            entry.leaving = leaving

    def begin_release(self, entry: Entry) -> bool:
        """Mark it as being given back by the keeper; False when it is that already."""
        with self._lock:
            begun, entry.releasing, entry.leaving = entry.releasing, True, True
            return not begun

    def named(self, server: str, namespace: str, names: t.Collection[str]) -> list[Entry]:
        """What is held under these names."""
        return [
            entry
            for entry in self.entries()
            if (entry.client.access.server, entry.lease.ref.namespace) == (server, namespace)
            and entry.lease.ref.name in names
        ]

    def entries(self) -> list[Entry]:
        """All that is held, also what was lost."""
        with self._lock:
            return list(self._entries.values())

    def take_due(self) -> list[Entry]:
        """What is to be renewed now; each of these must be ``succeeded``, ``failed`` or ``ended`` afterwards."""
        with self._lock:
            now = self._clock.monotonic()
            due = [entry for entry in self._entries.values() if entry.waits and entry.due <= now]
            for entry in due:
                entry.busy = True
            return due

    def wait(self) -> float | None:
        """Seconds until something is due, or None when nothing ever is."""
        with self._lock:
            times = [entry.due for entry in self._entries.values() if entry.waits]
            return max(0.0, min(times) - self._clock.monotonic()) if times else None

    def succeeded(self, entry: Entry, renewal: Renewal) -> None:
        """It was renewed."""
        with self._lock:
            failures, entry.failures = entry.failures, 0
            entry.lease, entry.busy = renewal.lease, False
            entry.renewals += 1
            left = entry.lease.left(entry.client)
            now = self._clock.monotonic()
            entry.ends = None if left is None else now + left
            regular = entry.timing.next_renewal(left, self._chance())
            entry.due = now + (regular if renewal.look_again is None else renewal.look_again)
        if failures:
            self._report(Event("recovered", entry.lease, failures=failures))

    def failed(self, entry: Entry, error: SandboxError) -> None:
        """An attempt failed; there will be another, unless the lease is over before."""
        with self._lock:
            entry.failures += 1
            entry.busy = False
            now = self._clock.monotonic()
            over = entry.ends is not None and now >= entry.ends
            wait = entry.timing.next_attempt(entry.failures, self._chance())
            # The last look is at the end: whether it is over is known then.
            entry.due = now + wait if entry.ends is None else min(now + wait, max(now, entry.ends))
        if over:
            self.ended(entry, _ended_unseen(entry, error))
        elif entry.failures == 1 and not entry.leaving:
            self._report(Event("failed", entry.lease, error, 1))

    def ended(self, entry: Entry, error: LeaseLostError) -> None:
        """It is lost, or somebody has released it."""
        with self._lock:
            entry.busy = False
            entry.lost = error
            known = self._entries.get(entry.lease.uid) is entry and not entry.leaving
        if known:
            self._report(Event("lost", entry.lease, error, entry.failures))


def _ended_unseen(entry: Entry, error: SandboxError) -> LeaseLostError:
    return LeaseLostError(
        f"The lease of {entry.lease.ref} has ended: it could not be renewed {entry.failures} times in a row, at last "
        f"because of this: {error.message}",
        reason="expired",
        object=str(entry.lease.ref),
        next_step=entry.lease.afterwards,
    )
