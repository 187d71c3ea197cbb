# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Release: remove a sandbox's container; and remove what is left of sandboxes that have ended."""

from __future__ import annotations

import dataclasses
import typing as t

from ..deadline import Deadline
from ..engine import containers
from ..engine.client import EngineClient, Json
from ..errors import ApiUnreachableError, ConflictError, GoneError, SandboxError, UnavailableError
from .channel import engine_folder, remove_folder
from .errors import ContainerMismatchError
from .names import CHANNEL_LABEL, NAME_LABEL, RELAY, START_BY_LABEL, VOLUME_LABEL, check_name, container_name

#: Seconds between two tries of a request that may be repeated.
RETRY_SECONDS = 0.3
#: Seconds for which a folder without a container is left alone: an acquire creates the folder first.
FOLDER_SECONDS = 900.0
#: Seconds for removing volumes that no container uses.
VOLUMES_SECONDS = 5.0
#: Seconds by which clocks may differ.
CLOCK_SKEW_SECONDS = 30.0

#: States of a container that has ended, or was never started.
_ENDED = frozenset(("exited", "dead"))


@dataclasses.dataclass(frozen=True)
class ContainerReleased:
    """What a release did.

    Attributes:
        name: the sandbox's name.
        existed: whether there was one.
    """

    name: str
    existed: bool


def release_container(
    client: EngineClient, name: str, deadline: Deadline, *, uid: str | None = None, dry_run: bool = False
) -> ContainerReleased:
    """Remove the container of a sandbox; one that is gone already is success.

    Args:
        uid: only this container; another one of that name is refused with reason ``replaced``.
        dry_run: only report whether there is one.

    Raises:
        ContainerMismatchError: the container of that name is not a sandbox; it was left alone.
        ApiError, ApiUnreachableError: the engine could not do it, and the sandbox is still there.
    """
    check_name(name)
    try:
        found = with_retries(deadline, lambda: containers.inspect(client, container_name(name), deadline))
    except GoneError:
        return ContainerReleased(name, existed=False)
    labels = labels_of(found)
    if labels.get(NAME_LABEL) != name:
        raise ContainerMismatchError(
            f"Container {container_name(name)}: it is not a sandbox. Nothing was changed.",
            object=f"Container {container_name(name)}",
            next_step="Remove it with the engine's own tools.",
        )
    if uid is not None and found.get("Id") != uid:
        raise ContainerMismatchError(
            f"Container {container_name(name)}: another sandbox has the name now. Nothing was changed.",
            reason="replaced",
            object=f"Container {container_name(name)}",
            next_step="The sandbox of that uid is gone already. List the sandboxes with sandbox_info.",
        )
    if dry_run:
        return ContainerReleased(name, existed=True)
    existed = remove_container(client, str(found["Id"]), deadline)
    remove_folder(labels.get(CHANNEL_LABEL, RELAY))
    _remove_volumes(client, deadline)
    return ContainerReleased(name, existed=existed)


def remove_container(client: EngineClient, uid: str, deadline: Deadline) -> bool:
    """Remove a container, again while the engine does not answer; False when it was gone."""
    tried = False

    def remove() -> bool:
        nonlocal tried
        first, tried = not tried, True
        # After an answer that was lost, it is that request which removed it.
        return containers.remove(client, uid, deadline) or not first

    try:
        return with_retries(deadline, remove)
    except ConflictError:
        # It is being removed: by its own end, or by another release.
        return True


def remove_leftovers(client: EngineClient, found: t.Sequence[Json], deadline: Deadline) -> None:
    """Remove the containers that have ended, or were never started in time, and the folders of sockets of no container.

    Failures are left to the next use.

    Args:
        found: the containers of sandboxes, as ``list_labelled`` returns them.
    """
    now = client.now().timestamp()
    for container in found:
        if is_leftover(container, now):
            try:
                containers.remove(client, str(container.get("Id")), deadline)
            except SandboxError:
                continue
            remove_folder(labels_of(container).get(CHANNEL_LABEL, RELAY))
    if client.is_local:
        _remove_folders(client, {labels_of(container).get(CHANNEL_LABEL, RELAY) for container in found})


def is_leftover(container: Json, now: float) -> bool:
    """Whether a listed container has ended, or was not started by the time that its creator had."""
    state = str(container.get("State", "")).lower()
    if state in _ENDED:
        return True
    start_by = labels_of(container).get(START_BY_LABEL, "")
    return state in ("created", "configured") and start_by.isdigit() and now > int(start_by) + CLOCK_SKEW_SECONDS


def _remove_folders(client: EngineClient, channels: set[str]) -> None:
    now = client.clock.now().timestamp()
    try:
        for folder in engine_folder(client).iterdir():
            channel = str(folder / "agent.sock")
            if channel not in channels and now - folder.stat().st_mtime > FOLDER_SECONDS:
                remove_folder(channel)
    except (OSError, SandboxError):
        return


def _remove_volumes(client: EngineClient, deadline: Deadline) -> None:
    """Remove the volumes of sandboxes that have no container, once in a while; failures are left to the next use.

    An engine that is started after a crash removes the containers of before, and keeps their anonymous volumes (seen
    on Docker 20.10.24).
    """
    try:
        stamp = engine_folder(client).with_suffix(".volumes")
        if stamp.exists() and client.clock.now().timestamp() - stamp.stat().st_mtime < FOLDER_SECONDS:
            return
        stamp.touch()
        containers.prune_volumes(client, VOLUME_LABEL, deadline.child(VOLUMES_SECONDS))
    except (OSError, SandboxError):
        return


def labels_of(container: Json) -> dict[str, str]:
    """The labels of a container, listed or inspected."""
    labels = container.get("Labels") or (container.get("Config") or {}).get("Labels") or {}
    return {str(key): str(value) for key, value in labels.items()}


_Result = t.TypeVar("_Result")


def with_retries(deadline: Deadline, request: t.Callable[[], _Result]) -> _Result:
    """The request's result, tried again while the engine cannot be reached; fit for requests that may be repeated."""
    while True:
        try:
            return request()
        except (ApiUnreachableError, UnavailableError):
            if deadline.remaining() <= RETRY_SECONDS:
                raise
            deadline.sleep(RETRY_SECONDS)
