# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Acquiring many at once: a bounded number of requests, one watch, and one outcome for each."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import threading
import typing as t

from ..cluster.client import Client
from ..cluster.resources import CLAIM, SANDBOX
from ..cluster.shared_watch import SharedWatch
from ..cluster.transport.pools import POOL_SIZE
from ..deadline import Cancellation, Deadline
from ..errors import SandboxError
from ..numbering import OnFailure, numbered
from .acquire.acquire import Acquire
from .acquire.cancelled import cancelled, cancelled_or, raise_if_cancelled
from .acquire.request import Acquired, AcquireRequest
from .acquire.sources import paths_for
from .acquire.unique_name import names_in_use
from .acquire.wait_for_template import until_template
from .names import check_choice
from .release.many import release_all
from .verification.verify import Verification

#: The most that wait for the controller at the same time: each is a thread, which costs little while it waits.
WAITING = 256


@dataclasses.dataclass(frozen=True)
class Outcome:
    """What became of one of many.

    Attributes:
        name: the claim's name.
        acquired: the sandbox, or None when there is none (any more).
        error: why not, or None.
    """

    name: str
    acquired: Acquired | None = None
    error: SandboxError | None = None


class PartialAcquireError(SandboxError):
    """Not all of many sandboxes could be had.

    Attributes:
        outcomes: one for each, in order; with ``release_all`` none of them has a sandbox any more.
    """

    def __init__(self, message: str, outcomes: t.Sequence[Outcome], **common: t.Any) -> None:
        super().__init__(message, **common)
        self.outcomes = outcomes


def acquire_many(
    client: Client,
    request: AcquireRequest,
    count: int,
    on_failure: OnFailure = "release_all",
    *,
    cancellation: Cancellation | None = None,
) -> list[Acquired]:
    """Acquire ``count`` sandboxes at once, all within one ``ready_timeout``.

    With a name they are called ``<name>-0``, ``<name>-1``, …, and each that stands there and matches is kept; without
    one all are fresh. It costs one list and one watch for all, and two or three requests a sandbox. A name costs one
    list more for all, and one request more a sandbox.

    Args:
        count: how many, 1 to 1000.
        on_failure: ``release_all`` gives everything back that this call made as soon as one has failed; ``keep``
            goes on and keeps what could be had.
        cancellation: ends the whole when it is cancelled, by any thread; ``on_failure`` says what becomes of those that
            were acquired by then.

    Returns:
        The sandboxes in order.

    Raises:
        PartialAcquireError: not all could be had; it has an outcome for each.
        InputError: the count or a name cannot be.
    """
    check_choice("on_failure", on_failure, t.get_args(OnFailure))
    requests = numbered(request, count)
    # A cancellation of its own, as one that fails ends the others, and not what else the caller may cancel.
    deadline = Deadline(request.ready_timeout, client.clock)
    outer = cancellation or Cancellation()
    with outer.cutting(deadline.cancel):
        try:
            paths = until_template(request, deadline, lambda: paths_for(client, requests, deadline))
            taken = {} if request.name is None else names_in_use(client, paths[0].ref, deadline)
        except SandboxError as error:
            raise_if_cancelled(error, deadline, None, "The acquire was cancelled by its caller")
            raise
    with (
        Verification(client, request, deadline) as verification,
        SharedWatch(client, paths[0].ref.kind, request.namespace, deadline) as watch,
        outer.cutting(lambda: _cancel(deadline, watch)),
    ):
        turn = _Turn(deadline)
        acquires = [
            Acquire(client, one, path, deadline, verification, watch, turn, taken)
            for one, path in zip(requests, paths, strict=True)
        ]
        outcomes, first_failure = _run(client, request, acquires, deadline, watch, on_failure, outer)
    if first_failure is not None:
        raise _partial(outcomes, first_failure)
    return [outcome.acquired for outcome in outcomes if outcome.acquired is not None]


class _Turn:
    """As many at a time as there are connections; none once the whole is cancelled."""

    def __init__(self, deadline: Deadline) -> None:
        self._deadline = deadline
        self._free = threading.Semaphore(POOL_SIZE)

    def __enter__(self) -> None:
        self._free.acquire()
        if self._deadline.cancelled:
            self._free.release()
            raise cancelled(None, "It was cancelled")

    def __exit__(self, *_: object) -> None:
        self._free.release()


def _run(
    client: Client,
    request: AcquireRequest,
    acquires: list[Acquire],
    deadline: Deadline,
    watch: SharedWatch,
    on_failure: OnFailure,
    outer: Cancellation,
) -> tuple[list[Outcome], SandboxError | None]:
    """The outcomes in order, and the error of the first that failed, from which those of others may have followed."""
    first_failure: SandboxError | None = None
    with concurrent.futures.ThreadPoolExecutor(min(len(acquires), WAITING), "namzu-acquire") as threads:
        running: dict[concurrent.futures.Future[Outcome], Acquire] = {}
        try:
            for one in acquires:
                running[threads.submit(_outcome, one, outer)] = one
            for finished in concurrent.futures.as_completed(running):
                error = None if finished.cancelled() else finished.result().error
                first_failure = first_failure or error
                if error is not None and on_failure == "release_all":
                    _cancel_all(running, deadline, watch)
            outcomes = {running[future]: future.result() for future in running if not future.cancelled()}
        except BaseException:
            # An interrupt, here or in one of them: those that run give up and clean up by themselves, those that have
            # ended are given back.
            _cancel_all(running, deadline, watch)
            concurrent.futures.wait(running)
            done = [future.result() for future in running if not future.cancelled() and future.exception() is None]
            _release_created(client, request, done)
            raise
    ordered = [outcomes.get(one) or _not_begun(one) for one in acquires]
    if on_failure == "release_all" and first_failure is not None:
        ordered = _release_created(client, request, ordered)
    return ordered, first_failure


def _outcome(one: Acquire, outer: Cancellation) -> Outcome:
    try:
        return Outcome(one.path.ref.name, acquired=until_template(one.request, one.deadline, one.run))
    except SandboxError as error:
        why = "it was cancelled by its caller" if outer.cancelled else "it was cancelled, because another one failed"
        return Outcome(one.path.ref.name, error=cancelled_or(error, one.deadline, one.path.ref, why))


def _cancel_all(
    running: t.Iterable[concurrent.futures.Future[Outcome]], deadline: Deadline, watch: SharedWatch
) -> None:
    _cancel(deadline, watch)
    for future in running:
        future.cancel()


def _cancel(deadline: Deadline, watch: SharedWatch) -> None:
    deadline.cancel()
    watch.wake()


def _not_begun(one: Acquire) -> Outcome:
    return Outcome(one.path.ref.name, error=cancelled(one.path.ref, "it was not begun, because another one failed"))


def _release_created(client: Client, request: AcquireRequest, outcomes: list[Outcome]) -> list[Outcome]:
    """Release what this call made; what stood there before it stays."""
    ours = {one.name: one.acquired.uid for one in outcomes if one.acquired is not None and one.acquired.created}
    failures = release_all(client, request.namespace, ours)
    released = []
    for one in outcomes:
        ref = (CLAIM if request.template is None else SANDBOX).ref(request.namespace, one.name)
        if one.acquired is None:
            released.append(one)
        elif not one.acquired.created:
            why = "it stood there before and stays, and another one failed"
            released.append(Outcome(one.name, error=cancelled(ref, why)))
        elif one.name in failures:
            released.append(Outcome(one.name, error=failures[one.name].replace(leftover=str(ref))))
        else:
            released.append(Outcome(one.name, error=cancelled(ref, "it was released, as another one failed")))
    return released


def _partial(outcomes: list[Outcome], first: SandboxError) -> PartialAcquireError:
    had = sum(outcome.error is None for outcome in outcomes)
    return PartialAcquireError(
        f"{had} of {len(outcomes)} sandboxes were acquired. The first failure: {first.message}",
        outcomes,
        reason=first.reason,
        retryable=first.retryable,
        object=first.object,
        next_step=first.next_step,
    )
