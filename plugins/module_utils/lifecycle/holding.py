# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A sandbox for as long as a block of a Python program runs."""

from __future__ import annotations

import contextlib
import dataclasses
import typing as t

from ..cluster.client import Client
from ..cluster.deadline import Deadline
from ..cluster.errors import ConflictError, GoneError, SandboxError
from ..cluster.resources import CLAIM, SANDBOX
from ..cluster.retry import retry
from ..guest.agent import Agent
from .acquire import acquire
from .ownership import CLEANUP_SECONDS
from .request import Acquired, AcquireRequest


@dataclasses.dataclass(frozen=True)
class Held:
    """A sandbox that is ours while the block runs.

    Attributes:
        acquired: what the acquire found out about it.
        agent: runs programs in it.
    """

    acquired: Acquired
    agent: Agent


@contextlib.contextmanager
def held(client: Client, request: AcquireRequest) -> t.Iterator[Held]:
    """Acquire a sandbox, and release it at the end of the block, however that ends.

    The release has a clock of its own. A sandbox that stood there already under the requested name is whoever's made
    it, and stays. An error of the block is never hidden by one of the release; that becomes a note on it.

    Args:
        client, request: as for ``acquire``.

    Yields:
        The sandbox and its agent.

    Raises:
        As ``acquire``; and what kept the sandbox from being released, with its ``leftover``, if the block had no error.
    """
    acquired = acquire(client, request)
    subject = f"sandbox {acquired.namespace}/{acquired.name}"
    try:
        yield Held(acquired, Agent(acquired.agent, subject=subject))
    except BaseException as error:
        failure = _give_back(client, request, acquired)
        if failure is not None:
            error.add_note(f"{failure.leftover} could not be released: {failure}")
        raise
    failure = _give_back(client, request, acquired)
    if failure is not None:
        raise failure


def _give_back(client: Client, request: AcquireRequest, acquired: Acquired) -> SandboxError | None:
    """Delete what the acquire made, and only that; None when it is gone."""
    if not acquired.created:
        return None
    kind = SANDBOX if request.warm_pool is None else CLAIM
    ref, deadline = kind.ref(acquired.namespace, acquired.name), Deadline(CLEANUP_SECONDS, client.clock)
    try:
        retry(deadline, lambda: client.delete(ref, deadline, uid=acquired.uid))
    except (GoneError, ConflictError):
        return None  # it has expired, and another one may have its name
    except SandboxError as error:
        error.leftover = str(ref)
        return error
    return None
