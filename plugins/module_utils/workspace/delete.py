# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Deleting a workspace, and with it its disks; nobody gets there without saying so."""

from __future__ import annotations

import dataclasses

from ..cluster.client import Client
from ..cluster.reads import read
from ..cluster.resources import POD, VOLUME_CLAIM, Body, ObjectRef
from ..cluster.retry import wait_or_raise
from ..deadline import LONGEST_LOOK_SECONDS, Backoff, Deadline
from ..errors import ApiUnreachableError, ConflictError, GoneError, InputError, UnavailableError
from ..lifecycle.release.release import ReleaseTimeoutError
from .disks import claim_names
from .fencing import Fence
from .manifest import raise_if_unmanaged
from .names import workspace_ref
from .request import checked_timeout


@dataclasses.dataclass(frozen=True)
class DeleteRequest:
    """A workspace that shall be deleted with its disks.

    Attributes:
        namespace, workspace_id, holder_epoch: as for ``WorkspaceRequest``.
        delete_disk: must be True. Kubernetes deletes the claims with the Sandbox that owns them.
        wait: whether to wait until Sandbox, pod and claims are gone.
        timeout: seconds for all of it (at least 1).
        resource_version: delete only what is still exactly at this version, or None.
    """

    namespace: str
    workspace_id: str
    delete_disk: bool
    holder_epoch: int | None = None
    wait: bool = False
    timeout: float = 60.0
    resource_version: str | None = None

    def __post_init__(self) -> None:
        object.__setattr__(self, "timeout", checked_timeout(self.namespace, self.holder_epoch, self.timeout))
        if self.delete_disk is not True:
            raise InputError(
                f"To delete workspace {self.workspace_id!r} is to delete its disk, and delete_disk does not say so.",
                next_step="Set delete_disk: true, or use state: suspended, which stops the pod and keeps the disk.",
            )

    @property
    def ref(self) -> ObjectRef:
        """The Sandbox that it is."""
        return workspace_ref(self.namespace, self.workspace_id)


def delete_workspace(client: Client, request: DeleteRequest, *, uid: str | None = None, dry_run: bool = False) -> bool:
    """Delete a workspace by its id, without waking it; one that is not there is deleted already.

    Args:
        client: who asks.
        request: which.
        uid: delete only the Sandbox of this uid.
        dry_run: only look.

    Returns:
        Whether there was one.

    Raises:
        WorkspaceReplacedError: another Sandbox than that of ``uid`` has the name; it was not changed.
        WorkspaceMismatchError: what stands under the name is no workspace.
        WorkspacePreconditionError: another holder has it, or it has changed since the version that was named.
        ReleaseTimeoutError: it is deleted, and not gone in time.
        ApiError, ApiUnreachableError: the API server's no, or silence.
    """
    deadline = Deadline(request.timeout, client.clock)
    fence = Fence(client, request.ref, request.holder_epoch, None, request.resource_version)
    backoff, body, gone = Backoff(), None, False
    while not gone:
        latest = fence.read(deadline)
        if latest is None:
            break
        if uid is not None and latest["metadata"]["uid"] != uid:
            if body is not None:
                break  # deleted by an attempt before
            raise fence.replaced("another one has its name")
        raise_if_unmanaged(latest, request.ref, request.workspace_id)
        body = latest
        if not body["metadata"].get("deletionTimestamp"):
            fence.refuse(body)
            gone = dry_run or _delete(client, request.ref, body, backoff, deadline)
        else:
            gone = True
    if body is None:
        return False
    if request.wait and not dry_run:
        _wait_until_gone(client, request.ref, body, deadline)
    return True


def _delete(client: Client, ref: ObjectRef, body: Body, backoff: Backoff, deadline: Deadline) -> bool:
    """Delete it as it was read; False when it has to be read again, as something was written in between."""
    metadata = body["metadata"]
    try:
        client.delete(ref, deadline, uid=metadata["uid"], version=metadata.get("resourceVersion"))
    except GoneError:
        pass
    except ConflictError:
        if not backoff.wait(deadline):
            raise
        return False
    except (ApiUnreachableError, UnavailableError) as error:
        wait_or_raise(deadline, error, backoff)
        return False
    return True


def _wait_until_gone(client: Client, ref: ObjectRef, body: Body, deadline: Deadline) -> None:
    """Wait for Sandbox, pod and claims; a new object of the same name is somebody else's."""
    remains = [ref, POD.ref(ref.namespace, ref.name)]
    remains += [VOLUME_CLAIM.ref(ref.namespace, name) for name in claim_names(body).values()]
    uid = body["metadata"]["uid"]
    for one in remains:
        backoff, exists = Backoff(longest=LONGEST_LOOK_SECONDS), False
        while exists := _belongs(client, one, uid, deadline, existed=exists):
            if not backoff.wait(deadline):
                raise ReleaseTimeoutError(
                    f"{one} still stands {deadline.seconds:g} s after the workspace {ref} was deleted.",
                    object=str(one),
                    next_step="Look at its finalizers and its events; nothing uses it any more.",
                )


def _belongs(client: Client, ref: ObjectRef, uid: str, deadline: Deadline, *, existed: bool) -> bool:
    """Whether the Sandbox of this uid, or what it owns, exists; as before when the deadline cuts the read."""
    try:
        metadata = read(client, ref, deadline)["metadata"]
    except GoneError:
        return False
    except ApiUnreachableError:
        if existed and deadline.expired:
            return True
        raise
    return metadata["uid"] == uid or any(owner.get("uid") == uid for owner in metadata.get("ownerReferences") or [])
