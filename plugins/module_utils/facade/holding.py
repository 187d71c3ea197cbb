# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The lease of a sandbox that a Python program holds, and the backend through which it is used."""

from __future__ import annotations

import contextlib
import heapq
import itertools
import os
import random
import threading
import time
import typing as t

from ..errors import SandboxError
from ..lifecycle.lease.timing import LeaseTiming

if t.TYPE_CHECKING:
    from ..front.backends.protocol import Backend

#: Reasons after which no renewal can succeed; every other failure is tried again until the lease has ended.
_LOST = frozenset({"gone", "replaced", "expired", "not-found", "overtaken"})


def opened(params: t.Mapping[str, t.Any]) -> contextlib.AbstractContextManager[Backend[t.Any]]:
    """The backend that options choose; no request is sent yet."""
    # It loads a client of the backend, which importing this package need not wait for.
    from ..front.backends.opening import open_backend
    from ..front.verb import Context

    return open_backend(dict(params), Context(check_mode=False, environ=os.environ))


#: Renewals at the same time in one process; more only matters while the API server or the engine hangs.
THREADS = 32


class Holding:
    """The backend of one sandbox, and the thread that renews its lease.

    Attributes:
        backend: through which the sandbox is found, extended and released.
        renewing: whether the lease is renewed here, so that the end of a block releases the sandbox.
    """

    def __init__(self, params: t.Mapping[str, t.Any]) -> None:
        self._params = params
        self._stack = contextlib.ExitStack()
        self.backend: Backend[t.Any] = self._stack.enter_context(opened(params))
        #: The error that ended the lease.
        self.lost: SandboxError | None = None
        self.renewing = False

    @contextlib.contextmanager
    def closed_on_failure(self) -> t.Iterator[None]:
        """Renew no more, and close the connection, when the block fails."""
        try:
            yield
        except BaseException:
            self.stop()
            self.close()
            raise

    def renew(self, name: str, uid: str, ttl: float) -> None:
        """Renew the lease of a sandbox from now on, twice in its length (``ttl`` seconds)."""
        self.renewing = True
        RENEWALS.add(_Lease(self._params, name, uid, ttl), self)

    def raise_if_lost(self) -> None:
        """Raise the error that ended the lease."""
        if self.lost is not None:
            raise self.lost.replace()

    def stop(self) -> None:
        """Renew no more."""
        RENEWALS.remove(self)

    def close(self) -> None:
        """Close the connection."""
        self._stack.close()


class _Lease:
    """When to renew one lease, and what became of it.

    Attributes:
        wait: seconds until the next renewal.
    """

    def __init__(self, params: t.Mapping[str, t.Any], name: str, uid: str, ttl: float) -> None:
        self._params = params
        self._name = name
        self._uid = uid
        self._timing = LeaseTiming(ttl)
        self._failures = 0
        self._until = time.monotonic() + ttl
        self.wait = self._timing.next_renewal(None, random.random())  # noqa: S311 - jitter

    def renew(self) -> SandboxError | None:
        """Renew once; the error when the lease is lost."""
        try:
            # Opened again each time: a kubeconfig, a token or a certificate may have been replaced.
            with opened(self._params) as backend:
                ttl, within = self._timing.ttl, 2 * self._timing.bound
                backend.renew(self._name, ttl, uid=self._uid, dry_run=False, within=within)
        except SandboxError as error:
            return self._failed(error)
        except Exception as error:  # noqa: BLE001 - a renewal that fails in any way is tried again
            return self._failed(SandboxError(f"Sandbox {self._name}: not renewed: {type(error).__name__}."))
        self._failures = 0
        self._until = time.monotonic() + self._timing.ttl
        self.wait = self._timing.next_renewal(None, random.random())  # noqa: S311 - jitter
        return None

    def _failed(self, error: SandboxError) -> SandboxError | None:
        if error.reason in _LOST or time.monotonic() >= self._until:
            return error
        self._failures += 1
        self.wait = self._timing.next_attempt(self._failures, random.random())  # noqa: S311 - jitter
        return None


class Renewals:
    """Renews the leases of a process: one thread waits for all of them, and a few renew.

    A forked process does not renew the leases of its parent.
    """

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._due: list[tuple[float, int, _Lease, Holding]] = []
        self._numbers = itertools.count()
        self._held: set[Holding] = set()
        self._free = threading.Semaphore(THREADS)
        self._running = False

    def add(self, lease: _Lease, holding: Holding) -> None:
        """Renew a lease until it is lost, or ``remove`` is called."""
        with self._changed:
            self._held.add(holding)
            self._schedule(lease, holding)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="namzu-leases", daemon=True).start()

    def remove(self, holding: Holding) -> None:
        """Renew no more; a renewal under way is not waited for."""
        with self._changed:
            self._held.discard(holding)
            self._changed.notify_all()

    def _schedule(self, lease: _Lease, holding: Holding) -> None:
        heapq.heappush(self._due, (time.monotonic() + lease.wait, next(self._numbers), lease, holding))
        self._changed.notify_all()

    def _run(self) -> None:
        while (found := self._next()) is not None:
            # Another renewal that hangs must not delay this one, so each has its own thread.
            self._free.acquire()
            try:
                threading.Thread(target=self._renew, args=found, name="namzu-lease", daemon=True).start()
            except RuntimeError:
                # The process has as many threads as it may: this one does the work.
                self._renew(*found)

    def _next(self) -> tuple[_Lease, Holding] | None:
        with self._changed:
            while self._held:
                while self._due and self._due[0][3] not in self._held:
                    heapq.heappop(self._due)
                wait = self._due[0][0] - time.monotonic() if self._due else None
                if wait is not None and wait <= 0:
                    _at, _number, lease, holding = heapq.heappop(self._due)
                    return lease, holding
                self._changed.wait(wait)
            self._due.clear()
            self._running = False
            return None

    def _renew(self, lease: _Lease, holding: Holding) -> None:
        try:
            error = lease.renew()
        finally:
            self._free.release()
        with self._changed:
            if error is not None:
                holding.lost = error
                self._held.discard(holding)
                self._changed.notify_all()
            elif holding in self._held:
                self._schedule(lease, holding)


RENEWALS = Renewals()


def _forget_parents_leases() -> None:
    RENEWALS.__init__()  # type: ignore[misc]  # pylint: disable=unnecessary-dunder-call


os.register_at_fork(after_in_child=_forget_parents_leases)
