# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One watch for the objects of a batch: nothing is missed, nothing is mixed up, and the thread ends."""

from __future__ import annotations

import contextlib
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.shared_watch import SharedWatch
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import CredentialError, GoneError

from .scripted import Scripted, Step, answer, chunk, claim, status_object, watch_head

ONE = CLAIM.ref("team-a", "one")
#: Seconds that a watch stays open and says nothing.
QUIET = 60.0


def event(kind: str, body: t.Any) -> bytes:
    return chunk({"type": kind, "object": body})


def listed(*bodies: t.Any, version: int = 1) -> bytes:
    """A list as an API server answers it."""
    return answer(200, {"metadata": {"resourceVersion": str(version)}, "items": list(bodies)})


def open_watch(*events: bytes) -> list[Step]:
    """A watch that goes on after these events."""
    return [watch_head(), *events, QUIET]


def ended_watch(*events: bytes) -> list[Step]:
    """A watch that the server ends after these events."""
    return [watch_head(), *events, chunk(b"")]


@contextlib.contextmanager
def watching(*script: Step | list[Step], seconds: float = 10.0) -> t.Iterator[tuple[SharedWatch, Scripted, Deadline]]:
    deadline = Deadline(seconds)
    with Scripted(*script) as server, Client(Access(server=server.url)) as client:
        watch = SharedWatch(client, CLAIM, "team-a", deadline)
        try:
            with watch:
                yield watch, server, deadline
        finally:
            # Also when a test fails: no thread may speak to the server of the next one.
            watch._thread.join(5.0)
            assert not watch._thread.is_alive(), "the thread of the watch outlives its block"


def versions(states: t.Iterable[Body], last: int) -> list[str]:
    """The resourceVersions of the states up to that one."""
    found: list[str] = []
    for state in states:
        found.append(state["metadata"]["resourceVersion"])
        if found[-1] == str(last):
            break
    return found


def test_only_the_batch_is_listed_and_watched_from_the_list_on() -> None:
    with watching(listed(version=7), open_watch(event("ADDED", claim(8)))) as (watch, server, deadline):
        assert versions(watch.states(ONE, claim(8), deadline), 8) == ["8"]
        assert versions(watch.states(ONE, claim(2), deadline), 8) == ["2", "8"]
    label = f"labelSelector=sandbox.namzu.ai%2Fbatch%3D{watch.batch}"
    assert [label in request.line for request in server.received] == [True, True]
    assert "resourceVersion=7" in server.received[1].line


def test_watch_stands_before_the_block_begins() -> None:
    with watching(listed(version=7), open_watch()) as (_watch, server, _deadline):
        assert server.received[0].line.startswith(f"GET {CLAIM.collection('team-a')}?")


def test_state_that_came_before_anybody_followed_is_not_missed() -> None:
    """Ready between the answer to the POST and the first look at the watch."""
    ready = event("MODIFIED", claim(9))
    with watching(listed(), open_watch(event("ADDED", claim(8)), ready)) as (watch, _server, deadline):
        assert versions(watch.states(ONE, claim(8), deadline), 9)[-1] == "9"
        assert versions(watch.states(ONE, claim(8), deadline), 9) == ["8", "9"]


def test_followers_get_the_states_of_their_own_only() -> None:
    two = claim(5, uid="uid-2", name="two")
    script = (listed(), open_watch(event("ADDED", two), event("ADDED", claim(6))))
    with watching(*script) as (watch, _server, deadline):
        assert versions(watch.states(ONE, claim(1), deadline), 6) == ["1", "6"]
        second = watch.states(CLAIM.ref("team-a", "two"), claim(1, uid="uid-2", name="two"), deadline)
        assert versions(second, 5) == ["1", "5"]


@pytest.mark.parametrize(
    "end",
    [
        ended_watch(),
        answer(410, status_object(410, "Expired")),
        ended_watch(event("ERROR", status_object(410, "Expired"))),
        [watch_head(), b"99\r\n{"],
        [watch_head(), chunk(b"no json\n")],
        answer(429, status_object(429, "TooManyRequests"), Retry_After="0"),
        answer(503, status_object(503, "ServiceUnavailable")),
        b"",
    ],
    ids=["ended", "410", "ERROR-410", "cut", "no-json", "429", "503", "no-answer"],
)
def test_watch_that_ends_is_answered_by_a_list_and_a_watch(end: Step | list[Step]) -> None:
    script = (listed(), end, listed(claim(5), version=5), open_watch(event("MODIFIED", claim(6))))
    with watching(*script) as (watch, server, deadline):
        assert versions(watch.states(ONE, claim(1), deadline), 6)[-1] == "6"
    assert "resourceVersion=5" in server.received[3].line


@pytest.mark.parametrize(
    "end", [answer(410, status_object(410, "Expired")), ended_watch(), ended_watch(event("ERROR", {}))]
)
def test_watches_that_do_not_last_are_not_begun_in_a_hurry(end: Step | list[Step]) -> None:
    """Found: after 410 the next list was sent at once, for as long as the deadline lasted."""
    script = [part for _unused in range(50) for part in (listed(claim(1)), end)]
    with watching(*script, seconds=0.6) as (watch, server, deadline):
        assert versions(watch.states(ONE, claim(1), deadline), 9) == ["1"]
    assert len(server.received) < 12


def test_deleted_object_is_gone() -> None:
    script = (listed(), open_watch(event("ADDED", claim(1)), event("DELETED", claim(2))))
    with watching(*script) as (watch, _server, deadline), pytest.raises(GoneError, match="deleted by somebody"):
        list(watch.states(ONE, claim(1), deadline))


def test_object_that_another_one_has_replaced_is_gone() -> None:
    events = (event("ADDED", claim(1)), event("DELETED", claim(2)), event("ADDED", claim(3, uid="uid-2")))
    with watching(listed(), open_watch(*events)) as (watch, _server, deadline), pytest.raises(GoneError):
        list(watch.states(ONE, claim(1), deadline))


def test_end_of_an_earlier_object_of_the_name_is_not_the_end_of_this_one() -> None:
    """Found: a POST made again after somebody had deleted the first object was told of that deletion."""
    earlier = claim(2, uid="uid-0")
    script = (listed(), open_watch(event("DELETED", earlier), event("MODIFIED", claim(9))))
    with watching(*script) as (watch, _server, deadline):
        assert versions(watch.states(ONE, claim(5), deadline), 9) == ["5", "9"]


def test_object_that_a_new_list_lacks_is_gone() -> None:
    script = (listed(), ended_watch(event("ADDED", claim(1))), listed(version=9), open_watch())
    with watching(*script) as (watch, _server, deadline), pytest.raises(GoneError):
        list(watch.states(ONE, claim(1), deadline))


def test_object_that_no_watch_has_shown_and_a_new_list_lacks_is_gone() -> None:
    """Found: made and deleted while no watch stood, it was waited for until the deadline."""
    release = threading.Event()

    class Slow(Scripted):
        def _answer(self, connection: t.Any) -> None:
            if len(self.received) == 1:
                release.wait(5.0)
            super()._answer(connection)

    deadline = Deadline(10.0)
    script = (listed(), ended_watch(), listed(version=9), open_watch())
    with Slow(*script) as server, Client(Access(server=server.url)) as client:
        with SharedWatch(client, CLAIM, "team-a", deadline) as watch:
            states = watch.states(ONE, claim(3), deadline)
            assert next(states)["metadata"]["resourceVersion"] == "3"
            release.set()
            with pytest.raises(GoneError):
                next(states)
        watch._thread.join(5.0)
        assert not watch._thread.is_alive()


def test_object_that_is_newer_than_a_list_is_not_gone() -> None:
    """The list was on its way when the object was made; a watch from it on will show the object."""
    asked, proceed = threading.Event(), threading.Event()

    class Held(Scripted):
        def _answer(self, connection: t.Any) -> None:
            if len(self.received) == 2:
                asked.set()
                proceed.wait(5.0)
            super()._answer(connection)

    deadline = Deadline(10.0)
    script = (listed(), ended_watch(), listed(version=2), open_watch(event("ADDED", claim(4))))
    with Held(*script) as server, Client(Access(server=server.url)) as client:
        with SharedWatch(client, CLAIM, "team-a", deadline) as watch:
            assert asked.wait(5.0)
            states = watch.states(ONE, claim(3), deadline)
            assert next(states)["metadata"]["resourceVersion"] == "3"
            proceed.set()
            assert next(states)["metadata"]["resourceVersion"] == "4"
        watch._thread.join(5.0)
        assert not watch._thread.is_alive()


def test_what_is_no_object_is_passed_over() -> None:
    odd = (None, 7, {"metadata": None}, {"metadata": {"name": "one"}})
    events = [event("MODIFIED", body) for body in odd] + [event("BOOKMARK", claim(2)), event("SURPRISE", claim(3))]
    script = (listed(*odd[2:]), open_watch(*events, event("MODIFIED", claim(4))))
    with watching(*script) as (watch, _server, deadline):
        assert versions(watch.states(ONE, claim(1), deadline), 4) == ["1", "4"]


@pytest.mark.parametrize("place", ["list", "watch"])
def test_refusal_ends_it_at_once_for_everybody(place: str) -> None:
    refusal = answer(403, status_object(403, "Forbidden"))
    script = (refusal,) if place == "list" else (listed(), refusal)
    began = time.monotonic()
    with watching(*script, seconds=60.0) as (watch, server, deadline), pytest.raises(CredentialError):
        list(watch.states(ONE, claim(1), deadline))
    assert time.monotonic() - began < 5.0
    assert len(server.received) == len(script)


def test_retry_after_beyond_the_deadline_ends_it_at_once() -> None:
    busy = answer(429, status_object(429, "TooManyRequests"), Retry_After="1000000000000")
    began = time.monotonic()
    with watching(listed(), busy, seconds=60.0) as (watch, _server, deadline), pytest.raises(Exception, match="429"):
        list(watch.states(ONE, claim(1), deadline))
    assert time.monotonic() - began < 5.0


def test_quiet_watch_ends_with_the_deadline_and_is_no_failure() -> None:
    began = time.monotonic()
    with watching(listed(), open_watch(), seconds=0.5) as (watch, _server, deadline):
        assert versions(watch.states(ONE, claim(1), deadline), 9) == ["1"]
    assert 0.4 < time.monotonic() - began < 3.0


def test_followers_of_a_deadline_that_was_cancelled_end_without_a_failure() -> None:
    with watching(listed(), open_watch(), seconds=60.0) as (watch, _server, deadline):
        states = watch.states(ONE, claim(1), deadline)
        assert next(states)["metadata"]["resourceVersion"] == "1"
        deadline.cancel()
        watch.wake()
        assert list(states) == []


def test_leaving_the_block_ends_a_watch_that_says_nothing() -> None:
    """Found: thread and connection stayed for up to a request's bound."""
    began = time.monotonic()
    with watching(listed(), open_watch(event("ADDED", claim(2))), seconds=60.0) as (watch, _server, deadline):
        assert versions(watch.states(ONE, claim(1), deadline), 2) == ["1", "2"]
    assert time.monotonic() - began < 4.0


def test_leaving_the_block_ends_a_wait_between_two_attempts() -> None:
    answered = threading.Event()

    class Announcing(Scripted):
        def _linger(self, connection: t.Any) -> None:
            if len(self.received) == 2:
                answered.set()
            super()._linger(connection)

    busy = answer(429, status_object(429, "TooManyRequests"), Retry_After="50")
    began, deadline = time.monotonic(), Deadline(60.0)
    with Announcing(listed(), busy) as server, Client(Access(server=server.url)) as client:
        with SharedWatch(client, CLAIM, "team-a", deadline) as watch:
            assert answered.wait(5.0)
        watch._thread.join(5.0)
        assert not watch._thread.is_alive()
    assert time.monotonic() - began < 4.0


def test_interrupt_before_the_watch_stands_ends_its_thread(monkeypatch: pytest.MonkeyPatch) -> None:
    deadline = Deadline(60.0)
    with Scripted(listed(), open_watch()) as server, Client(Access(server=server.url)) as client:
        watch = SharedWatch(client, CLAIM, "team-a", deadline)

        def interrupted(*_arguments: object) -> bool:
            if threading.current_thread() is threading.main_thread():
                raise KeyboardInterrupt
            return True

        monkeypatch.setattr(watch._changed, "wait_for", interrupted)
        with pytest.raises(KeyboardInterrupt), watch:
            pytest.fail("the block began")
        monkeypatch.undo()
        watch._thread.join(5.0)
        assert not watch._thread.is_alive()
