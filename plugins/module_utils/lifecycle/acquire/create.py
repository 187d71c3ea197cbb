# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Create an object exactly once, whatever happens to the answer, and delete it when it must not stay."""

from __future__ import annotations

import uuid

from ...cluster.client import Client
from ...cluster.reads import read, read_or_none
from ...cluster.resources import ACQUIRE_ID_ANNOTATION, Body, annotation
from ...cluster.retry import retry, wait_or_raise
from ...deadline import CLEANUP_SECONDS, Backoff, Deadline
from ...errors import (
    ApiError,
    ApiUnreachableError,
    ConflictError,
    GoneError,
    InvalidError,
    SandboxError,
    UnavailableError,
)
from .sources import Path

#: Seconds for which a POST that was never answered may still be applied: that long its name is looked at.
LATE_POST_SECONDS = 2.0


class OwnedObject:
    """The claim or Sandbox of one acquire: knows whether it is ours, and may delete only that.

    Attributes:
        ref: the object by its name, which is ours before the POST.
        created: whether this acquire made it.
    """

    def __init__(self, client: Client, path: Path, batch: str | None = None) -> None:
        self.ref = path.ref
        self.created = False
        self._client = client
        self._path = path
        self._batch = batch
        self._id = str(uuid.uuid4())
        self._uid: str | None = None
        self._unanswered = False

    def create(self, deadline: Deadline) -> Body:
        """POST the object, or find the one that stands under its name and matches.

        A POST whose answer was lost is not repeated before its name has been read.

        Returns:
            The object as the API server has it.

        Raises:
            ClaimMismatchError: another object has that name.
            ApiError, ApiUnreachableError: the last failure, when it is final or the deadline would pass.
        """
        backoff = Backoff()
        while True:
            try:
                return self._post(deadline)
            except ConflictError:
                existing = self._existing(deadline)
                # None: deleted meanwhile, or a conflict of another kind, as when two requests count against one quota.
                if existing is None and not backoff.wait(deadline):
                    raise
            except (ApiUnreachableError, UnavailableError) as error:
                wait_or_raise(deadline, error, backoff)
                existing = self._existing(deadline) if self._unanswered else None
            if existing is not None:
                return existing

    def preview(self, deadline: Deadline) -> Body | None:
        """The matching object that stands under the name, or None when a POST would be taken; nothing is made."""
        body = self._path.body(self._id, self._client.clock.now(), self._batch)
        try:
            retry(deadline, lambda: self._client.create(self.ref, body, deadline, dry_run=True))
        except ConflictError:
            return self._existing(deadline)
        return None

    def _post(self, deadline: Deadline) -> Body:
        body = self._path.body(self._id, self._client.clock.now(), self._batch)
        was_unanswered, self._unanswered = self._unanswered, True
        try:
            made = self._client.create(self.ref, body, deadline)
        except ApiUnreachableError as error:
            self._unanswered = was_unanswered or error.sent
            raise
        except ApiError as error:
            # A 5xx may come from a proxy that gave up on a server which went on; any other answer is a refusal.
            self._unanswered = was_unanswered or error.status >= 500
            raise
        self._is_ours(made)
        return made

    def _existing(self, deadline: Deadline) -> Body | None:
        """What stands under the name: ours, a match, or None; anything else raises."""
        made = read_or_none(self._client, self.ref, deadline)
        if made is None:
            return None
        if annotation(made, ACQUIRE_ID_ANNOTATION) == self._id:
            self._is_ours(made)
        else:
            self._path.raise_if_other(made, self._client.clock.now())
        return made

    def _is_ours(self, made: Body) -> None:
        self._uid = str(made["metadata"]["uid"])
        self._unanswered = False
        self.created = True

    def take_back(self) -> str | None:
        """Delete the object if this acquire made it, or may have made it.

        Returns:
            None when nothing of ours is left, else what stays and why, for the error that is being reported.
        """
        deadline = Deadline(CLEANUP_SECONDS, self._client.clock)
        try:
            if self._uid is None and self._unanswered:
                self._look_for_late_post(deadline)
            if self._uid is not None:
                retry(deadline, lambda: self._client.delete(self.ref, deadline, uid=self._uid))
        except (GoneError, ConflictError):
            return None  # gone, or another object took the name: what was ours is not there any more
        except SandboxError as error:
            return f"{self.ref} could not be deleted and stays until its ttl has passed: {error.message}"
        return None

    def _look_for_late_post(self, deadline: Deadline) -> None:
        late = Deadline(LATE_POST_SECONDS, self._client.clock)
        backoff = Backoff()
        while True:
            try:
                made = read(self._client, self.ref, deadline)
            except GoneError:
                if not backoff.wait(late):
                    return
            except InvalidError:
                return  # whoever takes a question about a name for a bad request has made nothing under it
            else:
                if annotation(made, ACQUIRE_ID_ANNOTATION) == self._id:
                    self._is_ours(made)
                return
