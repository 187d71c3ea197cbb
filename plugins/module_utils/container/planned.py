# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What is known before a sandbox is created: what the engine can enforce, and what has the name already."""

from __future__ import annotations

import contextlib
import json
import typing as t

from ..boundary.reach.requests import NO_NETWORK
from ..deadline import Deadline
from ..engine import containers
from ..engine.client import EngineClient, Json
from ..errors import GoneError
from ..text import clean_text
from .engine_support import check_support
from .errors import ContainerMismatchError
from .isolation import check_engine_isolation
from .names import NAME_LABEL, REQUEST_LABEL, container_name, fresh_name
from .network import check_planned
from .release import is_leftover, labels_of
from .request import ContainerRequest


def check_engine(client: EngineClient, request: ContainerRequest, deadline: Deadline) -> tuple[Json, Json | None, str]:
    """Refuse what cannot be enforced; nothing is changed.

    Returns:
        What the engine reports about itself, about the network that is asked for, and its seccomp profile.

    Raises:
        IsolationError: the runtime isolates less than was asked for.
        UnsupportedError, ContainerBoundaryError: the engine cannot enforce another option.
    """
    info = containers.read_info(client, deadline)
    seccomp = check_support(client, info, request)
    check_engine_isolation(client, info, request)
    network = None
    if request.network is not None and request.egress.kind != NO_NETWORK:
        network = containers.inspect_network(client, request.network, deadline)
    check_planned(request, network)
    return info, network, seccomp


def planned_acquires(client: EngineClient, requests: t.Sequence[ContainerRequest]) -> list[tuple[str, bool]]:
    """The names that acquires of these requests would have, and whether each exists; nothing is changed.

    Args:
        requests: at least one; they differ in their names alone.

    Raises:
        ContainerMismatchError: what has a name is not what is asked for, as in the acquire.
        UnsupportedError, ContainerBoundaryError: as ``check_engine``.
    """
    deadline = Deadline(requests[0].ready_timeout, client.clock)
    check_engine(client, requests[0], deadline)
    if requests[0].name is None:
        return [(fresh_name(), False) for _request in requests]
    now = client.now().timestamp()
    listed = {labels_of(one).get(NAME_LABEL): one for one in containers.list_labelled(client, [NAME_LABEL], deadline)}
    return [(str(one.name), _exists(client, one, listed.get(one.name), now, deadline)) for one in requests]


def _exists(
    client: EngineClient, request: ContainerRequest, listed: Json | None, now: float, deadline: Deadline
) -> bool:
    """Whether an acquire would find its sandbox; what has ended would be removed first."""
    name = str(request.name)
    if listed is not None and is_leftover(listed, now):
        return False
    try:
        found = listed or containers.inspect(client, container_name(name), deadline)
    except GoneError:
        return False
    raise_if_another(request, name, labels_of(found))
    return True


def raise_if_another(request: ContainerRequest, name: str, labels: t.Mapping[str, str]) -> None:
    """Do nothing when the container with these labels is the sandbox that is asked for.

    Raises:
        ContainerMismatchError: it is not a sandbox, or the sandbox of another request.
    """
    what = f"Container {container_name(name)}"
    if labels.get(NAME_LABEL) != name:
        raise ContainerMismatchError(
            f"{what}: exists and is not a sandbox. Nothing was changed.",
            object=what,
            next_step="Use another name, or remove the container.",
        )
    found: dict[str, t.Any] = {}
    with contextlib.suppress(ValueError):
        found = dict(json.loads(labels.get(REQUEST_LABEL, "{}")))
    wanted = json.loads(json.dumps(request.identity))
    differing = [key for key in wanted if found.get(key) != wanted[key]]
    if differing:
        shown = "; ".join(f"{key} is {found.get(key)!r}, not {wanted[key]!r}" for key in differing)
        raise ContainerMismatchError(
            f"{what}: exists and does not match the request ({clean_text(shown, 400)}). Nothing was changed.",
            object=what,
            next_step="Use another name, or release it first.",
        )
