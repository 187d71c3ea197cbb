# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Inventory: which sandboxes an engine runs, from one list and a look at each lease; and finding one by its name."""

from __future__ import annotations

import concurrent.futures
import dataclasses
import datetime
import typing as t

from ..deadline import Deadline
from ..engine import containers
from ..engine.client import EngineClient, Json
from ..errors import GoneError, SandboxError
from ..guest.agent import AgentAddress
from .channel import agent_at
from .errors import NotReadyError
from .lease import lease_end
from .names import CHANNEL_LABEL, NAME_LABEL, OWN_LABELS, RELAY, TOKEN, container_name
from .release import is_leftover, labels_of

#: Leases that are looked at side by side.
_THREADS = 8


@dataclasses.dataclass(frozen=True)
class ContainerInfo:
    """A sandbox that an engine runs.

    Attributes:
        name: the sandbox's name; with it the sandbox is used and released.
        uid: the container's id.
        container: the container's name.
        image: what it was created from.
        labels: the container's labels, those of ours left out.
        phase: ``ready`` (it runs), ``pending`` (not started yet) or ``finished`` (ended, not removed yet).
        created_at, expires_at: times in UTC; None while they are not known.
        age, lease_left: the same in seconds from now.
    """

    name: str
    uid: str
    container: str
    image: str
    labels: t.Mapping[str, str]
    phase: t.Literal["ready", "pending", "finished"]
    created_at: datetime.datetime | None
    expires_at: datetime.datetime | None
    age: float | None
    lease_left: float | None


@dataclasses.dataclass(frozen=True)
class LocatedContainer:
    """A sandbox that is held already, where its agent answers, and by which channel (a socket's path, or ``relay``)."""

    name: str
    uid: str
    container: str
    agent: AgentAddress
    channel: str


def list_containers(
    client: EngineClient, deadline: Deadline, *, name: str | None = None, labels: t.Mapping[str, str] | None = None
) -> list[ContainerInfo]:
    """The sandboxes of an engine, by name.

    Args:
        name: only the one of this name.
        labels: only those that have all of these labels.
    """
    found = _listed(client, deadline, name, labels)
    with concurrent.futures.ThreadPoolExecutor(_THREADS, "namzu-leases") as threads:
        ends = list(threads.map(lambda one: _end(client, one, deadline), found))
    now = client.now()
    return sorted((_info(one, end, now) for one, end in zip(found, ends, strict=True)), key=lambda info: info.name)


def held_containers(
    client: EngineClient, deadline: Deadline, *, labels: t.Mapping[str, str] | None = None
) -> dict[str, str]:
    """The ids of the sandboxes of an engine by name, without a look at their leases; as ``list_containers``."""
    found = _listed(client, deadline, None, labels)
    return {labels_of(one)[NAME_LABEL]: str(one.get("Id")) for one in found if NAME_LABEL in labels_of(one)}


def locate_container(
    client: EngineClient, name: str, deadline: Deadline, *, uid: str | None = None
) -> LocatedContainer:
    """Where the agent of a held sandbox answers.

    Raises:
        GoneError: there is no sandbox of this name (and uid).
        NotReadyError: its container does not run.
    """
    container = container_name(name)
    inspected = containers.inspect(client, container, deadline)
    labels = labels_of(inspected)
    if labels.get(NAME_LABEL) != name or (uid is not None and inspected.get("Id") != uid):
        raise GoneError(
            f"Container {container}: is not the sandbox that was asked for.",
            status=404,
            object=f"Container {container}",
        )
    if not (inspected.get("State") or {}).get("Running"):
        raise NotReadyError(
            f"Container {container}: does not run.",
            object=f"Container {container}",
            next_step="Acquire the sandbox again.",
        )
    found = str(inspected["Id"])
    token = bind_token(client, found, deadline)
    channel = labels.get(CHANNEL_LABEL, RELAY)
    return LocatedContainer(name, found, container, agent_at(client, container, found, token, channel), channel)


def bind_token(client: EngineClient, uid: str, deadline: Deadline) -> str:
    """The bind token of the agent in a container."""
    return containers.read_file(client, uid, TOKEN, deadline).decode("ascii", "replace")


def _listed(
    client: EngineClient, deadline: Deadline, name: str | None, labels: t.Mapping[str, str] | None
) -> list[Json]:
    wanted = [NAME_LABEL if name is None else f"{NAME_LABEL}={name}"]
    wanted += [f"{key}={value}" for key, value in (labels or {}).items()]
    return containers.list_labelled(client, wanted, deadline)


def _end(client: EngineClient, container: Json, deadline: Deadline) -> datetime.datetime | None:
    if str(container.get("State")) != "running":
        return None
    try:
        return lease_end(client, str(container.get("Id")), deadline)
    except GoneError:
        return None
    except SandboxError:
        if deadline.expired:
            raise
        return None


def _info(container: Json, end: datetime.datetime | None, now: datetime.datetime) -> ContainerInfo:
    labels = labels_of(container)
    created = container.get("Created")
    since = datetime.datetime.fromtimestamp(created, datetime.UTC) if isinstance(created, (int, float)) else None
    state = str(container.get("State"))
    name = labels.get(NAME_LABEL, "")
    phase: t.Literal["ready", "pending", "finished"] = "ready"
    if state != "running":
        phase = "finished" if is_leftover(container, now.timestamp()) else "pending"
    return ContainerInfo(
        name=name,
        uid=str(container.get("Id")),
        container=container_name(name),
        image=str(container.get("Image")),
        labels={key: value for key, value in labels.items() if key not in OWN_LABELS},
        phase=phase,
        created_at=since,
        expires_at=end,
        age=None if since is None else max(0.0, (now - since).total_seconds()),
        lease_left=None if end is None else max(0.0, (end - now).total_seconds()),
    )
