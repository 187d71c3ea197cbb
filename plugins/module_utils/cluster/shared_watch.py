# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""One watch for many objects: those of a kind that carry the label of one batch."""

from __future__ import annotations

import threading
import typing as t
import uuid

from ..deadline import LONGEST_WAIT_SECONDS, SYSTEM_CLOCK, Backoff, Deadline
from ..errors import ApiUnreachableError, GoneError, SandboxError
from .client import Client
from .resources import BATCH_LABEL, Body, Kind, ObjectRef
from .retry import may_pass
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
        # By uid, as a name may be taken by another object.
        self._latest: dict[str, Body] = {}
        self._gone: set[str] = set()
        self._cut: t.Callable[[], None] | None = None
        self._listed = False
        self._ended = False
        self._failure: SandboxError | None = None
        self._thread = threading.Thread(target=self._run, name="namzu-watch", daemon=True)

    def __enter__(self) -> t.Self:
        self._thread.start()
        try:
            with self._changed:
                self._changed.wait_for(lambda: self._listed or self._ended, self._deadline.remaining())
        except BaseException:
            self._leave()
            raise
        return self

    def __exit__(self, *_exc: object) -> None:
        self._leave()

    def states(self, ref: ObjectRef, known: Body, deadline: Deadline) -> t.Iterator[Body]:
        """The states of one object of the batch, the known one first, until the deadline has passed.

        States that come while the caller is busy are left out but for the newest.

        Raises:
            GoneError: the object has been deleted.
            SandboxError: the failure that the watch still met when the deadline passed, or that ended it.
        """
        with self._changed:
            self._latest.setdefault(_uid(known), known)
        state: Body | None = known
        while state is not None:
            yield state
            state = self._after(ref, state, deadline)

    def wake(self) -> None:
        """Let every follower look at its deadline again."""
        with self._changed:
            self._changed.notify_all()

    def _after(self, ref: ObjectRef, state: Body, deadline: Deadline) -> Body | None:
        uid = _uid(state)

        def news() -> bool:
            return uid in self._gone or _version(self._latest[uid]) != _version(state)

        with self._changed:
            self._changed.wait_for(lambda: news() or self._ended or deadline.expired, deadline.remaining())
            if uid in self._gone:
                raise deleted(ref)
            if news():
                return self._latest[uid]
            if self._failure is not None and not deadline.cancelled:
                raise self._failure
        return None

    def _run(self) -> None:
        backoff = Backoff()
        while not self._over():
            began = self._deadline.elapsed()
            failure = self._watched()
            if self._deadline.elapsed() - began > LONGEST_WAIT_SECONDS:
                backoff.reset()
            seconds = max(backoff.seconds, getattr(failure, "retry_after", None) or 0.0)
            if failure is not None and (not may_pass(failure) or seconds >= self._deadline.remaining()):
                break
            self._rest(seconds)
            backoff.attempts += 1
        self._end()

    def _over(self) -> bool:
        return self._ended or self._deadline.expired

    def _rest(self, seconds: float) -> None:
        if self._deadline.clock is not SYSTEM_CLOCK:
            self._deadline.sleep(seconds)
            return
        with self._changed:
            self._changed.wait_for(self._over, self._deadline.at_most(seconds))

    def _watched(self) -> SandboxError | None:
        """One list and one watch; the failure that ended them, or None for an end that a watch may have."""
        try:
            self._watch_once()
        except SandboxError as error:
            if isinstance(error, GoneError) and error.status == 410:
                return None
            with self._changed:
                self._failure = error
            return error
        return None

    def _watch_once(self) -> None:
        selector = f"{BATCH_LABEL}={self.batch}"
        with self._changed:
            before = set(self._latest)
        listed = self._client.list(self._kind, self._namespace, label_selector=selector, deadline=self._deadline)
        self._take_list(listed["items"], before)
        version = str((listed.get("metadata") or {}).get("resourceVersion", ""))
        events = self._client.watch_labelled(
            self._kind, self._namespace, selector, version, self._deadline, on_open=self._opened
        )
        try:
            for event in events:
                if self._ended or event.get("type") == "ERROR":
                    break
                self._take(event)
        except ApiUnreachableError:
            # A watch that was quiet until the deadline, or that we cut, is no failure.
            if not self._over():
                raise
        finally:
            events.close()

    def _take_list(self, items: list[t.Any], before: set[str]) -> None:
        listed = {_uid(body): body for body in items if _is_object(body)}
        with self._changed:
            self._latest.update(listed)
            # Only what was known before the list was asked for: what is newer may be missing in it and stand there.
            self._gone |= before - listed.keys()
            self._failure = None
            self._listed = True
            self._changed.notify_all()

    def _take(self, event: dict[str, t.Any]) -> None:
        body = event.get("object")
        if not _is_object(body) or event.get("type") not in ("ADDED", "MODIFIED", "DELETED"):
            return
        with self._changed:
            if event["type"] == "DELETED":
                self._gone.add(_uid(body))
            else:
                self._latest[_uid(body)] = body
            self._changed.notify_all()

    def _opened(self, cut: t.Callable[[], None]) -> None:
        with self._changed:
            self._cut = cut
            ended = self._ended
        if ended:
            cut()

    def _leave(self) -> None:
        """End the thread, which would otherwise sit in its watch until the server ends that."""
        self._end()
        if self._cut is not None:
            self._cut()

    def _end(self) -> None:
        with self._changed:
            self._ended = True
            self._changed.notify_all()


def _is_object(body: t.Any) -> t.TypeGuard[Body]:
    metadata = body.get("metadata") if isinstance(body, dict) else None
    return isinstance(metadata, dict) and bool(metadata.get("uid"))


def _uid(body: Body) -> str:
    return str(body["metadata"]["uid"])


def _version(body: Body) -> t.Any:
    return body["metadata"].get("resourceVersion")
