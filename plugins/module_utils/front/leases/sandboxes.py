# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What verb ``sandbox`` tells the lease keeper of the play, when there is one."""

from __future__ import annotations

import contextlib
import typing as t

from ...errors import InputError, SandboxError
from ..backends.protocol import Acquisition, Backend
from ..options.backend import CONTAINER, backend_of
from ..options.engine import ENGINE_OPTIONS
from ..options.specs import ACCESS, Params
from ..verb import Context, Keeper, KeeperConnection, Result

if t.TYPE_CHECKING:
    from ...lifecycle.lease.lease import Lease

#: Options of fragment ``access`` that say who we are and where the API server is.
_ACCESS = frozenset(ACCESS) - {"namespace", "request_timeout"}

ENABLE = (
    "Add namzu.sandbox.lease_keeper to callbacks_enabled in section [defaults] of ansible.cfg, or set "
    "ANSIBLE_CALLBACKS_ENABLED=namzu.sandbox.lease_keeper; and let the task run on the controller itself: connection "
    "local, no become, no async."
)

STAYS = "Sandbox {} stood there before this play: it is renewed, and not released at the end."


class Keeping:
    """The keeper's side of one task; without a keeper it does nothing.

    Args:
        connection: to the keeper, or None when there is none.
        marked: whether the task asks for ``release_on_end``.
    """

    def __init__(self, connection: KeeperConnection | None, *, marked: bool) -> None:
        self._connection = connection
        self._marked = marked
        self._warnings: list[str] = []

    def hold(self, backend: Backend[t.Any], request: t.Any, acquired: t.Sequence[Acquisition]) -> None:
        """Let the keeper renew what was acquired.

        Raises:
            SandboxError: it shall be released at the end and the keeper has not taken it; it was given back.
        """
        made = {one.name: one.uid for one in acquired if one.created}

        if self._connection is not None:
            leases = backend.leases(request, acquired)
            self.hand_over(leases, made, lambda: backend.release_created(made), STAYS)

    def hand_over(
        self,
        leases: t.Mapping[str, Lease],
        ours: t.Collection[str],
        release_now: t.Callable[[], t.Iterable[str]],
        stays: str,
    ) -> None:
        """Let the keeper have these, by name.

        Args:
            ours: the names of those that this task has made or started.
            release_now: gives these back at once, and returns what could not be.
            stays: is said, with its name, of one that is not given back at the end although that was asked for.

        Raises:
            SandboxError: they shall be given back at the end and the keeper has not taken them; they were at once.
        """
        if self._connection is None or not leases:
            return
        marked = {name: self._marked and name in ours for name in leases}
        parts = [{**lease.described(), "release_on_end": marked[name]} for name, lease in leases.items()]
        try:
            released = self._connection.hold(parts)
        except SandboxError as error:
            if not self._marked:
                self.warn(error)
                return
            self._connection = None
            failures = release_now()
            if failures:
                raise error.replace(leftover=", ".join(sorted(failures))) from error
            raise
        if self._marked:
            self._warnings += [stays.format(name) for name, lease in leases.items() if lease.uid not in released]

    @contextlib.contextmanager
    def releasing(self, namespace: str, names: t.Collection[str]) -> t.Iterator[set[str]]:
        """While the block releases these, their end is no loss; yields a set for the names that could not be."""
        failed: set[str] = set(names)
        said = self._say("leave", namespace, names)
        try:
            yield failed
        finally:
            if said:
                self._say("forget", namespace, [name for name in names if name not in failed])
                self._say("stay", namespace, failed)

    def _say(self, what: t.Literal["leave", "forget", "stay"], namespace: str, names: t.Collection[str]) -> bool:
        if self._connection is None or not names:
            return False
        try:
            getattr(self._connection, what)(namespace, names)
        except SandboxError:
            return False  # what is released needs no keeper
        return True

    def warn(self, error: SandboxError) -> None:
        """Have the task's result say that nothing is renewed, and why."""
        self._warnings.append(f"What this task acquired is not renewed: {error}")

    def result(self, result: Result) -> Result:
        """The task's result with what is to be said about it."""
        warnings = [*result.get("warnings", []), *self._warnings]
        return {**result, "warnings": warnings} if warnings else result


@contextlib.contextmanager
def keeping(params: Params, context: Context, state: str = "present") -> t.Iterator[Keeping]:
    """The keeper's side of a task.

    Args:
        state: the one in which the task may hold something that it must not lose.

    Raises:
        InputError: ``release_on_end`` is asked for where nobody will do it.
    """
    holds = params["state"] == state
    marked = bool(params.get("release_on_end")) and holds
    if marked and context.keeper is None:
        raise InputError(
            "release_on_end needs the callback plugin namzu.sandbox.lease_keeper, and it is not active here.",
            next_step=f"{ENABLE} Where it is enabled, a warning at the top says why it could not start.",
        )
    if context.keeper is None or context.check_mode:
        yield Keeping(None, marked=marked)
        return
    try:
        connection = _opened(context.keeper, params, context)
    except SandboxError as error:
        if marked:
            raise
        without = Keeping(None, marked=False)
        if holds:
            without.warn(error)
        yield without
        return
    with connection:
        yield Keeping(connection, marked=marked)


def _opened(keeper: Keeper, params: Params, context: Context) -> KeeperConnection:
    of_engine = backend_of(params, context.environ) == CONTAINER
    names = ENGINE_OPTIONS if of_engine else _ACCESS
    options = {name: value for name, value in params.items() if name in names and value is not None}
    return keeper.open({**options, **({"backend": CONTAINER} if of_engine else {})}, context.environ)
