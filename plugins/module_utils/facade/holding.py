# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The lease of a sandbox that a Python program holds, and the backend through which it is used."""

from __future__ import annotations

import contextlib
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
        self._ended = threading.Event()
        self._lost: SandboxError | None = None
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
        lease = _Lease(self._params, name, uid, ttl)
        threading.Thread(target=self._renew, args=(lease,), name="namzu-lease", daemon=True).start()

    def _renew(self, lease: _Lease) -> None:
        while not self._ended.wait(lease.wait):
            error = lease.renew()
            if error is not None:
                self._lost = error
                return

    def raise_if_lost(self) -> None:
        """Raise the error that ended the lease."""
        if self._lost is not None:
            raise self._lost.replace()

    def stop(self) -> None:
        """Renew no more."""
        self._ended.set()

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
                backend.renew(self._name, self._timing.ttl, uid=self._uid, dry_run=False)
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
