# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A lease: how long a container lives on. Its PID 1 ends at the time in a file, which the engine alone can replace.

The file is below a volume that is root's, so commands in the sandbox can neither write nor remove it, and PID 1 runs as
a user of its own. Nothing but the container itself ends it, so the lease ends too when its holder was killed.
"""

from __future__ import annotations

import dataclasses
import datetime
import math
import re

from ..deadline import Deadline
from ..engine import containers
from ..engine.client import EngineClient, Json, no_engine
from ..errors import ConflictError, GoneError, InputError
from .agent_archive import lease_archive
from .errors import ContainerLeaseError
from .names import FOLDER, LEASE, NAME_LABEL, container_name
from .release import labels_of
from .request import MAXIMUM_SECONDS, MINIMUM_TTL

#: Seconds before the end in which a renewal may come too late, as the engine's clock is known to the second.
CLOSE_SECONDS = 2.0

_TIME = re.compile(r"(\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d)(?:\.\d+)?(Z|[+-]\d\d:\d\d)")
_AFTERWARDS = "What was in the sandbox is lost: acquire another one."


def lease_end(client: EngineClient, uid: str, deadline: Deadline) -> datetime.datetime:
    """When the container with this id ends, by the engine's clock; GoneError when there is none."""
    found = str(containers.stat(client, uid, LEASE, deadline).get("mtime"))
    match = _TIME.fullmatch(found)
    if match is None:
        raise no_engine(f"Container {uid[:12]}", "the time of its lease cannot be read")
    moment = datetime.datetime.fromisoformat(match[1] + match[2].replace("Z", "+00:00"))
    return moment.astimezone(datetime.UTC)


@dataclasses.dataclass(frozen=True)
class ContainerRenewal:
    """What a renewal did.

    Attributes:
        uid: the container's id.
        before: when it would have ended, in UTC.
        expires_at: when it ends now; in a dry run, when it would end.
        changed: whether it was, or in a dry run would be, extended; False when enough was left.
    """

    uid: str
    before: datetime.datetime
    expires_at: datetime.datetime
    changed: bool


def renew_lease(
    client: EngineClient,
    name: str,
    remaining: float,
    deadline: Deadline,
    *,
    uid: str | None = None,
    dry_run: bool = False,
) -> ContainerRenewal:
    """Extend a lease of which less than ``remaining`` seconds (10 to ten years) are left.

    Args:
        uid: only the lease of this container.
        dry_run: change nothing.

    Raises:
        InputError: ``remaining`` is out of bounds; nothing was sent.
        ContainerLeaseError: there is nothing to renew any more.
        ApiError, ApiUnreachableError: the engine could not do it; the call may be repeated.
    """
    if not MINIMUM_TTL <= remaining <= MAXIMUM_SECONDS:
        raise InputError(
            f"remaining is {remaining:g} s; on the container backend it must be at least {MINIMUM_TTL:g} s and at most "
            f"ten years."
        )
    try:
        found = containers.inspect(client, container_name(name), deadline)
        held = _held(found, name, uid)
        end = lease_end(client, held, deadline)
        left = (end - client.now()).total_seconds()
        if left >= remaining:
            return ContainerRenewal(held, end, end, changed=False)
        until = math.ceil((client.now() + datetime.timedelta(seconds=remaining)).timestamp())
        renewal = ContainerRenewal(held, end, datetime.datetime.fromtimestamp(until, datetime.UTC), changed=True)
        if dry_run:
            return renewal
        containers.put_archive(client, held, FOLDER, lease_archive(until), deadline)
        if left < CLOSE_SECONDS:
            # PID 1 may have decided before it could read the new end.
            deadline.sleep(left + CLOSE_SECONDS)
            _held(containers.inspect(client, held, deadline), name, uid)
    except GoneError:
        raise _lost(name, "gone", "its container is gone") from None
    except ConflictError:
        raise _lost(name, "gone", "its container is being removed") from None
    return renewal


def _held(found: Json, name: str, uid: str | None) -> str:
    """The id of the container that is held."""
    if labels_of(found).get(NAME_LABEL) != name:
        raise _lost(name, "replaced", "the container of its name is not a sandbox")
    if uid is not None and found.get("Id") != uid:
        raise _lost(name, "replaced", "another container has its name")
    if not (found.get("State") or {}).get("Running"):
        raise _lost(name, "expired", "its container has ended")
    return str(found["Id"])


def _lost(name: str, reason: str, why: str) -> ContainerLeaseError:
    what = f"Container {container_name(name)}"
    return ContainerLeaseError(
        f"The lease of {what} cannot be renewed: {why}.", reason=reason, object=what, next_step=_AFTERWARDS
    )
