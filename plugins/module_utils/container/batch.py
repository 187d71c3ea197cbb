# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Acquiring many containers at once: the engine is read once, and a bounded number is created side by side."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import typing as t

from ..deadline import Deadline
from ..engine.client import EngineClient
from ..errors import SandboxError
from ..numbering import OnFailure, numbered
from .acquire import Acquire, read_engine
from .release import release_container
from .request import ContainerRequest, ContainerSandbox

#: Acquires that run side by side. An engine creates containers one after the other for the most part.
THREADS = 8
#: Seconds for releasing what a call created that failed.
CLEANUP_SECONDS = 60.0


@dataclasses.dataclass(frozen=True)
class ContainerOutcome:
    """What became of one of many: the sandbox, or the error; with ``release_all`` after a failure never a sandbox."""

    name: str
    acquired: ContainerSandbox | None = None
    error: SandboxError | None = None


def acquire_containers(
    client: EngineClient, request: ContainerRequest, count: int, on_failure: OnFailure = "release_all"
) -> tuple[list[ContainerOutcome], SandboxError | None]:
    """Acquire ``count`` sandboxes at once, all within one ``ready_timeout``.

    Args:
        count: how many, 1 to 1000.
        on_failure: ``release_all`` releases what this call created as soon as one has failed; ``keep`` goes on.

    Returns:
        One outcome for each, in order, and the error of the first that failed, or None.

    Raises:
        InputError: the count or a name cannot be.
        SandboxError: as ``read_engine``; nothing was created.
    """
    requests = numbered(request, count)
    deadline = Deadline(request.ready_timeout, client.clock)
    engine = read_engine(client, request, deadline)
    acquires = [Acquire(client, one, engine, deadline) for one in requests]
    outcomes, first = _run(acquires, deadline, on_failure)
    if first is not None and on_failure == "release_all":
        outcomes = [_released(client, one) for one in outcomes]
    return outcomes, first


def _run(
    acquires: list[Acquire], deadline: Deadline, on_failure: OnFailure
) -> tuple[list[ContainerOutcome], SandboxError | None]:
    first: SandboxError | None = None
    with concurrent.futures.ThreadPoolExecutor(min(len(acquires), THREADS), "namzu-acquire") as threads:
        running = {threads.submit(_outcome, one): one for one in acquires}
        try:
            for finished in concurrent.futures.as_completed(running):
                error = None if finished.cancelled() else finished.result().error
                first = first or error
                if error is not None and on_failure == "release_all":
                    _cancel(running, deadline)
        except BaseException:
            # An interrupt: those that run clean up by themselves, those that have ended are released.
            _cancel(running, deadline)
            concurrent.futures.wait(running)
            for future in running:
                if not future.cancelled() and future.exception() is None:
                    _released(acquires[0].client, future.result())
            raise
    outcomes = {one: future.result() for future, one in running.items() if not future.cancelled()}
    return [outcomes.get(one) or ContainerOutcome(one.name, error=_not_begun(one)) for one in acquires], first


def _cancel(running: t.Mapping[concurrent.futures.Future[ContainerOutcome], Acquire], deadline: Deadline) -> None:
    deadline.cancel()
    for future in running:
        future.cancel()


def _outcome(one: Acquire) -> ContainerOutcome:
    try:
        return ContainerOutcome(one.name, acquired=one.run())
    except SandboxError as error:
        return ContainerOutcome(one.name, error=error)


def _not_begun(one: Acquire) -> SandboxError:
    what = f"Container {one.container}"
    return SandboxError(
        f"{what}: was not created, because another one failed.", reason="cancelled", retryable=True, object=what
    )


def _released(client: EngineClient, one: ContainerOutcome) -> ContainerOutcome:
    """The outcome without a sandbox; one that was created is released, one that existed stays."""
    if one.acquired is None:
        return one
    what = f"Container {one.acquired.container}"
    why = "existed before and stays; another one failed"
    if one.acquired.created:
        why = "was released, because another one failed"
        try:
            release_container(client, one.name, Deadline(CLEANUP_SECONDS, client.clock), uid=one.acquired.uid)
        except SandboxError as error:
            return ContainerOutcome(one.name, error=error.replace(leftover=what))
    cancelled = SandboxError(f"{what}: {why}.", reason="cancelled", retryable=True, object=what)
    return ContainerOutcome(one.name, error=cancelled)
