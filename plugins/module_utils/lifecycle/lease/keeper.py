# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The keeper: one thread that waits, and a few that renew, for any number of leases."""

from __future__ import annotations

import concurrent.futures
import threading
import typing as t

from ...cluster.transport.pools import POOL_SIZE
from ...deadline import SYSTEM_CLOCK, Cancellation, Clock, Deadline
from ...errors import SandboxError
from .lease import Lease, LeaseLostError
from .registry import Entry, Event, LeaseRegistry, Report

#: Renewals under way at the same time; more only matters while the API server hangs.
THREADS = 8


class Keeper:
    """Renews leases until it is closed. Use it as a context manager; leaving it releases nothing.

    Args:
        report: is told about failures, recoveries and losses, in one of the keeper's threads.
        clock: tells the time; waiting is the machine's.
    """

    def __init__(self, report: Report | None = None, clock: Clock = SYSTEM_CLOCK) -> None:
        self._report = report or _tell_nobody
        self._clock = clock
        self.registry = LeaseRegistry(self._report, clock)
        self._changed = threading.Condition()
        self._closed = False
        self._end = Cancellation()
        self._threads = concurrent.futures.ThreadPoolExecutor(THREADS, "namzu-renew")
        self._waiting = threading.Thread(target=self._run, name="namzu-keeper", daemon=True)
        self._started = False

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self.close()

    def hold(self, client: t.Any, lease: Lease, *, renewed: bool = True, release_on_end: bool = False) -> Entry:
        """Renew a lease from now on, half of its ttl from now for the first time.

        Args:
            client: who asks; it must stay open as long as the keeper.
            renewed: False for one that is only to be given back by ``release_marked``.
            release_on_end: whether ``release_marked`` releases it.
        """
        entry = self.registry.hold(client, lease, renewed=renewed, release_on_end=release_on_end)
        with self._changed:
            if not self._started and not self._closed:
                self._started = True
                self._waiting.start()
            self._changed.notify_all()
        return entry

    def let_go(self, uid: str) -> None:
        """Renew a lease no longer; an attempt under way is not waited for."""
        self.registry.let_go(uid)

    def close(self) -> None:
        """Renew nothing any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()
        if self._started:
            self._waiting.join()
        self._threads.shutdown(wait=False, cancel_futures=True)
        # A renewal under way would be waited for when the program ends.
        self._end.cancel()

    def release_marked(self, deadline: Deadline) -> None:
        """Give back what is marked ``release_on_end``, all at once, and report each; what is gone is given back."""
        self.release([entry for entry in self.registry.entries() if entry.release_on_end], deadline)

    def release(self, entries: t.Sequence[Entry], deadline: Deadline) -> None:
        """Give these back (``Lease.release``), and hold them no longer; one that stays at the deadline is reported.

        What another thread is giving back already is left to it.
        """
        entries = [entry for entry in entries if self.registry.begin_release(entry)]
        if not entries:
            return
        with concurrent.futures.ThreadPoolExecutor(min(len(entries), POOL_SIZE), "namzu-release") as threads:
            for _done in threads.map(lambda entry: self._release(entry, deadline), entries):
                pass

    def _release(self, entry: Entry, deadline: Deadline) -> None:
        lease = entry.lease
        try:
            problem = lease.release(entry.client, deadline)
        except LeaseLostError as error:
            self._ended(entry, Event("lost", lease, error))
        except SandboxError as error:
            self._keeps(entry, error)
        except Exception as error:  # noqa: BLE001 - one that cannot be given back must not keep the others
            self._keeps(entry, SandboxError(f"{lease.ref} could not be given back: {type(error).__name__}."))
        else:
            self._ended(entry, Event("released", lease, problem))

    def _ended(self, entry: Entry, event: Event) -> None:
        self.registry.let_go(entry.lease.uid)
        if entry.lost is None:
            self._report(event)

    def _keeps(self, entry: Entry, error: SandboxError) -> None:
        entry.releasing = False
        self._report(Event("unreleased", entry.lease, error))

    def _run(self) -> None:
        with self._changed:
            while not self._closed:
                for entry in self.registry.take_due():
                    self._threads.submit(self._attempt, entry)
                self._changed.wait(self.registry.wait())

    def _attempt(self, entry: Entry) -> None:
        attempt(self.registry, entry, self._clock, self._end)
        with self._changed:
            self._changed.notify_all()


def attempt(registry: LeaseRegistry, entry: Entry, clock: Clock, end: Cancellation | None = None) -> None:
    """Renew one lease once, each request within its bound, and enter in the registry what came of it.

    Args:
        end: what calls it off.
    """
    bound = entry.timing.bound
    try:
        renewal = entry.lease.renewed(entry.client, Deadline(2 * bound, clock, cancellation=end), bound)
    except LeaseLostError as error:
        registry.ended(entry, error)
    except SandboxError as error:
        registry.failed(entry, error)
    except Exception as error:  # noqa: BLE001 - one lease that cannot be read must not end the renewal of all others
        registry.failed(entry, SandboxError(f"{entry.lease.ref} could not be renewed: {type(error).__name__}."))
    else:
        registry.succeeded(entry, renewal)


def _tell_nobody(_event: Event) -> None:
    """Nobody asked."""
