# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Writes to a workspace, each under the condition that nobody with a newer holder epoch has written before.

Condition and change are one JSON patch (RFC 6902), so nothing fits in between. A write that carries an epoch stores it;
a workspace that has one refuses writes with an older one, and without any. Where the annotation is missing nothing can
be compared with it, so there the resourceVersion is: nothing at all may have been written since the object was read.
"""

from __future__ import annotations

import dataclasses
import re
import typing as t

from ..cluster.client import Client
from ..cluster.reads import read
from ..cluster.resources import Body, ObjectRef, annotation
from ..cluster.retry import wait_or_raise
from ..deadline import Backoff, Deadline
from ..errors import (
    ApiUnreachableError,
    ConflictError,
    GoneError,
    InputError,
    InvalidError,
    UnavailableError,
)
from ..lifecycle.timestamps import timestamp
from .errors import WorkspacePreconditionError, WorkspaceReplacedError
from .names import HOLDER_EPOCH_ANNOTATION, MODE_CHANGED_ANNOTATION

#: The largest epoch: what every JSON library keeps exactly.
LARGEST_EPOCH = 2**53 - 1

_EPOCH = re.compile("0|[1-9][0-9]{0,15}", re.ASCII)

RUNNING: t.Final = "Running"
SUSPENDED: t.Final = "Suspended"


def check_epoch(epoch: int | None) -> None:
    """Refuse an epoch that cannot be one, before anything is sent.

    Raises:
        InputError: it is no whole number from 0 to 2**53 - 1.
    """
    if epoch is None:
        return
    given: object = epoch
    if not isinstance(given, int) or isinstance(given, bool) or not 0 <= given <= LARGEST_EPOCH:
        raise InputError(
            f"holder_epoch is {epoch!r}; it must be a whole number from 0 to {LARGEST_EPOCH}.",
            next_step="Raise it by one whenever the workspace passes to another holder.",
        )


def stored_epoch(body: Body) -> int | None:
    """The epoch that a workspace carries, or None when it carries none.

    Raises:
        WorkspacePreconditionError: it carries something that is no epoch.
    """
    text = annotation(body, HOLDER_EPOCH_ANNOTATION)
    if text is None:
        return None
    if not _EPOCH.fullmatch(text) or int(text) > LARGEST_EPOCH:
        name = f"{body['metadata'].get('namespace')}/{body['metadata'].get('name')}"
        raise WorkspacePreconditionError(
            f"Sandbox {name} carries the holder epoch {text[:40]!r}, which is none; who holds it is not known.",
            stored_epoch=text[:40],
            object=f"Sandbox {name}",
            next_step=f"Find out who wrote the annotation {HOLDER_EPOCH_ANNOTATION}, and correct it.",
        )
    return int(text)


def raise_if_overtaken(ref: ObjectRef, body: Body, epoch: int | None) -> None:
    """Raise when whoever holds this epoch, or none, may not change the workspace.

    Raises:
        WorkspacePreconditionError: a newer epoch is stored, or any when the caller has none.
    """
    stored = stored_epoch(body)
    if stored is None or (epoch is not None and stored <= epoch):
        return
    said = f"and this call came with {epoch}" if epoch is not None else "and this call came without one"
    step = "Stop: another holder has taken over." if epoch is not None else "Pass holder_epoch, if you are its holder."
    raise WorkspacePreconditionError(
        f"{ref} is held under the epoch {stored}, {said}; nothing was changed.",
        holder_epoch=epoch,
        stored_epoch=str(stored),
        object=str(ref),
        next_step=step,
    )


@dataclasses.dataclass(frozen=True)
class Change:
    """What shall be different.

    Attributes:
        spec: fields of ``spec`` with their whole new value; None takes the field away.
        annotations: annotations to set.
    """

    spec: t.Mapping[str, t.Any] = dataclasses.field(default_factory=dict)
    annotations: t.Mapping[str, str] = dataclasses.field(default_factory=dict)


#: From the object as it is now to what is missing.
Decide = t.Callable[[Body], Change]


@dataclasses.dataclass(frozen=True)
class Fence:
    """Under which conditions one caller writes to one workspace.

    Attributes:
        client: who asks.
        ref: the Sandbox.
        epoch: the caller's holder epoch, or None.
        uid: the only Sandbox that is meant, or None for the one that stands there.
        version: the only resourceVersion that is meant, or None.
    """

    client: Client = dataclasses.field(repr=False)
    ref: ObjectRef
    epoch: int | None = None
    uid: str | None = None
    version: str | None = None

    def read(self, deadline: Deadline) -> Body | None:
        """The workspace's Sandbox as it is now, or None when there is none.

        Raises:
            WorkspaceReplacedError: it is another than the one that is meant.
        """
        try:
            body = read(self.client, self.ref, deadline)
        except GoneError:
            if self.uid is not None:
                raise self.replaced("it was deleted") from None
            return None
        if self.uid is not None and body["metadata"]["uid"] != self.uid:
            raise self.replaced("another one has its name")
        return body

    def refuse(self, body: Body) -> None:
        """Raise when this caller may not change the Sandbox as it was read."""
        raise_if_overtaken(self.ref, body, self.epoch)
        if body["metadata"].get("deletionTimestamp"):
            raise self.replaced("it is being deleted")
        version = body["metadata"].get("resourceVersion")
        if self.version is not None and version != self.version:
            raise WorkspacePreconditionError(
                f"{self.ref} is at resourceVersion {version}, not {self.version} any more; nothing was changed.",
                holder_epoch=self.epoch,
                object=str(self.ref),
                next_step="Look at it again (namzu.sandbox.workspace_info), and decide anew.",
            )

    def change(self, body: Body, decide: Decide, deadline: Deadline, *, dry_run: bool = False) -> tuple[Body, bool]:
        """Bring about what is missing, and go on from a new read whenever somebody else was first.

        Args:
            body: the object as it was read last.
            decide: what is missing; asked again after each read, and raises when it must not be.

        Returns:
            The object as it is then, and whether this call changed it, or in a dry run would.

        Raises:
            WorkspacePreconditionError, WorkspaceReplacedError: see the classes.
            ApiError, ApiUnreachableError: the last failure, when it is final or the deadline has passed.
        """
        backoff, unanswered = Backoff(), False
        while True:
            self.refuse(body)
            operations = self._operations(body, decide(body))
            if not operations:
                return body, unanswered
            operations = self._conditions(body) + operations
            try:
                return self.client.json_patch(self.ref, operations, deadline, dry_run=dry_run), True
            except (ConflictError, InvalidError) as error:
                latest = self._existing(deadline)
                if _version(latest) == _version(body) or not backoff.wait(deadline):
                    raise error from None  # it was refused for what it is, not for a condition
            except (ApiUnreachableError, UnavailableError) as error:
                wait_or_raise(deadline, error, backoff)
                latest, unanswered = self._existing(deadline), True
            except GoneError as error:
                raise self.replaced("it was deleted") from error
            body = latest

    def _existing(self, deadline: Deadline) -> Body:
        body = self.read(deadline)
        if body is None:
            raise self.replaced("it was deleted")
        return body

    def _conditions(self, body: Body) -> list[Body]:
        """What must still be as it was read."""
        text = annotation(body, HOLDER_EPOCH_ANNOTATION)
        tests = {"/metadata/uid": body["metadata"]["uid"]}
        if text is None or self.version is not None:
            # Without a version nothing would be compared; the server takes none that is no number.
            tests["/metadata/resourceVersion"] = _version(body) or "unknown"
        if text is not None:
            tests[_pointer("metadata", "annotations", HOLDER_EPOCH_ANNOTATION)] = text
        mode = (body.get("spec") or {}).get("operatingMode")
        if mode is not None:
            tests["/spec/operatingMode"] = mode
        return [{"op": "test", "path": path, "value": value} for path, value in tests.items()]

    def _operations(self, body: Body, change: Change) -> list[Body]:
        spec = body.get("spec") or {}
        annotations = dict(change.annotations)
        if change.spec.get("operatingMode") is not None:
            annotations[MODE_CHANGED_ANNOTATION] = timestamp(self.client.server_time.now().earliest)
        if self.epoch is not None and annotation(body, HOLDER_EPOCH_ANNOTATION) != str(self.epoch):
            annotations[HOLDER_EPOCH_ANNOTATION] = str(self.epoch)
        operations = _annotating(body, annotations)
        for field, value in change.spec.items():
            if value is not None:
                # "add" also replaces, and a field that was never set cannot be replaced (RFC 6902, 4.1 and 4.3).
                operations.append({"op": "add", "path": _pointer("spec", field), "value": value})
            elif field in spec:
                operations.append({"op": "remove", "path": _pointer("spec", field)})
        return operations

    def replaced(self, why: str) -> WorkspaceReplacedError:
        return WorkspaceReplacedError(
            f"{self.ref} is not the workspace that was meant: {why}.",
            object=str(self.ref),
            next_step="Open it anew by its id, if what stands there now is wanted.",
        )


def _annotating(body: Body, annotations: t.Mapping[str, str]) -> list[Body]:
    if not annotations:
        return []
    if not isinstance(body["metadata"].get("annotations"), dict):
        return [{"op": "add", "path": "/metadata/annotations", "value": dict(annotations)}]
    return [
        {"op": "add", "path": _pointer("metadata", "annotations", key), "value": value}
        for key, value in annotations.items()
    ]


def _pointer(*tokens: str) -> str:
    """A JSON pointer (RFC 6901, 3)."""
    return "".join("/" + token.replace("~", "~0").replace("/", "~1") for token in tokens)


def _version(body: Body) -> str | None:
    version = body["metadata"].get("resourceVersion")
    return None if version is None else str(version)


def mode_of(body: Body) -> str:
    """``Running`` or ``Suspended``; the API's default is the former."""
    return str((body.get("spec") or {}).get("operatingMode") or RUNNING)
