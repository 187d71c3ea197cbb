# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""One watch for many objects: those of a kind that carry the label of one batch."""

from __future__ import annotations

import threading
import typing as t
import uuid

from .client import Client
from .deadline import Deadline
from .errors import ApiUnreachableError, GoneError, SandboxError
from .resources import BATCH_LABEL, Body, Kind, ObjectRef
from .retry import pause, wait_before_retry
from .watch import deleted


class SharedWatch:
    """Follows every object of a batch from one thread, and hands each follower the states of its own.

    Use it as a context manager: the watch stands before the first object of the batch is made, so nothing is missed,
    and it ends with the block. A watch that is cut or out of date is answered by one list and a new watch.

    Attributes:
        batch: the value of the label ``sandbox.namzu.ai/batch`` that the objects must carry.
    """

    def __init__(self, client: Client, kind: Kind, namespace: str, deadline: Deadline) -> None:
        self.batch = uuid.uuid4().hex
        self._client = client
        self._kind = kind
        self._namespace = namespace
        self._deadline = deadline
        self._changed = threading.Condition()
        self._latest: dict[str, Body | None] = {}
        self._standing = False
        self._ended = False
        self._failure: SandboxError | None = None
        self._thread = threading.Thread(target=self._run, name="namzu-watch", daemon=True)

    def __enter__(self) -> t.Self:
        self._thread.start()
        with self._changed:
            self._changed.wait_for(lambda: self._standing or self._ended, self._deadline.remaining())
        return self

    def __exit__(self, *_exc: object) -> None:
        # The thread notices at the next event or at the end of its watch, and holds nothing that anybody waits for.
        self._end()

    def states(self, ref: ObjectRef, known: Body, deadline: Deadline) -> t.Iterator[Body]:
        """The states of one object of the batch, the known one first, until the deadline has passed.

        States that come while the caller is busy are left out but for the newest.

        Raises:
            GoneError: the object has been deleted.
            SandboxError: the failure that the watch still met when the deadline passed, or that ended it.
        """
        state: Body | None = known
        while state is not None:
            yield state
            state = self._after(ref, state, deadline)

    def wake(self) -> None:
        """Let every follower look at its deadline again."""
        with self._changed:
            self._changed.notify_all()

    def _after(self, ref: ObjectRef, state: Body, deadline: Deadline) -> Body | None:
        def news() -> bool:
            latest = self._latest.get(ref.name, state)
            return latest is None or _version(latest) != _version(state)

        with self._changed:
            self._changed.wait_for(lambda: news() or self._ended or deadline.expired, deadline.remaining())
            if news():
                latest = self._latest[ref.name]
                if latest is None or _uid(latest) != _uid(state):
                    raise deleted(ref)
                return latest
            if self._failure is not None and not deadline.cancelled:
                raise self._failure
        return None

    def _run(self) -> None:
        attempt = 0
        while not (self._ended or self._deadline.expired):
            try:
                self._watch_once()
                attempt = 0
            except GoneError as error:
                if error.status != 410:
                    self._fail(error)
                    break
            except SandboxError as error:
                self._fail(error)
                wait = wait_before_retry(error, attempt)
                if wait is None or wait >= self._deadline.remaining():
                    break
                self._deadline.sleep(wait)
                attempt += 1
            else:
                self._deadline.sleep(pause(0))
        self._end()

    def _watch_once(self) -> None:
        selector = f"{BATCH_LABEL}={self.batch}"
        listed = self._client.list(self._kind, self._namespace, label_selector=selector, deadline=self._deadline)
        with self._changed:
            for name in self._latest:
                self._latest[name] = None
            for body in listed["items"]:
                self._latest[body["metadata"]["name"]] = body
            self._failure = None
            self._standing = True
            self._changed.notify_all()
        version = str(listed.get("metadata", {}).get("resourceVersion", ""))
        events = self._client.watch_labelled(self._kind, self._namespace, selector, version, self._deadline)
        try:
            for event in events:
                if self._ended or event.get("type") == "ERROR":
                    break
                self._take(event)
        except ApiUnreachableError:
            # A watch that was quiet until the deadline is no failure.
            if not self._deadline.expired:
                raise
        finally:
            events.close()

    def _take(self, event: dict[str, t.Any]) -> None:
        body = event.get("object")
        if not isinstance(body, dict) or event.get("type") not in ("ADDED", "MODIFIED", "DELETED"):
            return
        with self._changed:
            self._latest[str(body.get("metadata", {}).get("name"))] = None if event["type"] == "DELETED" else body
            self._changed.notify_all()

    def _fail(self, error: SandboxError) -> None:
        with self._changed:
            self._failure = error

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def _uid(body: Body) -> t.Any:
    return body.get("metadata", {}).get("uid")


def _version(body: Body) -> t.Any:
    return body.get("metadata", {}).get("resourceVersion")
