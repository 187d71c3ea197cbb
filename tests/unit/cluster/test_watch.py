# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Following an object through watches that end, fail, fall behind or say nothing."""

from __future__ import annotations

import contextlib
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster import client as client_module
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.watch import follow
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import CredentialError, GoneError, UnavailableError

from .scripted import Scripted, Step, answer, chunk, claim, status_object, watch_head

ONE = CLAIM.ref("team-a", "one")


def event(kind: str, body: t.Any) -> bytes:
    return chunk({"type": kind, "object": body})


def watch(*events: bytes) -> list[Step]:
    """A watch that the server ends after these events."""
    return [watch_head(), *events, chunk(b"")]


def versions(states: t.Iterable[Body], count: int) -> list[str]:
    """The resourceVersions of the first states."""
    found = []
    for state in states:
        found.append(state["metadata"]["resourceVersion"])
        if len(found) == count:
            break
    return found


@contextlib.contextmanager
def following(
    *script: Step | list[Step], known: Body | None = None, seconds: float = 10.0
) -> t.Iterator[tuple[t.Iterator[Body], Scripted]]:
    with Scripted(*script) as server, Client(Access(server=server.url)) as client:
        yield follow(client, ONE, Deadline(seconds), known), server


def test_states_come_in_order() -> None:
    script = watch(event("MODIFIED", claim(2)), event("MODIFIED", claim(3)))
    with following(script, known=claim(1)) as (states, server):
        assert versions(states, 3) == ["1", "2", "3"]
    assert "resourceVersion=1" in server.received[0].line
    assert "fieldSelector=metadata.name%3Done" in server.received[0].line


def test_unknown_object_is_read_first() -> None:
    with following(answer(200, claim(1)), watch(event("MODIFIED", claim(2)))) as (states, server):
        assert versions(states, 2) == ["1", "2"]
    assert server.received[0].line.startswith(f"GET {ONE.path} ")


@pytest.mark.parametrize(
    "end",
    [
        answer(410, status_object(410, "Expired")),
        watch(event("ERROR", status_object(410, "Expired"))),
        watch(),
        [watch_head(), b"99\r\n{"],
        [watch_head(), chunk(b"no json\n")],
        answer(429, status_object(429, "TooManyRequests"), Retry_After="0"),
        answer(500, status_object(500, "InternalError")),
        b"",
    ],
    ids=["410", "ERROR-410", "ended", "cut", "no-json", "429", "500", "no-answer"],
)
def test_watch_that_ends_is_answered_by_reading_and_watching_again(end: Step | list[Step]) -> None:
    script = (end, answer(200, claim(5)), watch(event("MODIFIED", claim(6))))
    with following(*script, known=claim(1)) as (states, server):
        assert versions(states, 3) == ["1", "5", "6"]
    assert "resourceVersion=5" in server.received[2].line


def test_bookmarks_and_other_objects_are_no_states() -> None:
    script = watch(
        event("BOOKMARK", claim(2)),
        event("MODIFIED", claim(3, name="two")),
        event("MODIFIED", None),
        event("MODIFIED", {"metadata": 7}),
        event("SURPRISE", claim(4)),
        event("MODIFIED", claim(5)),
    )
    with following(script, known=claim(1)) as (states, _server):
        assert versions(states, 2) == ["1", "5"]


def test_deleted_object_is_gone() -> None:
    script = watch(event("DELETED", claim(2)))
    with following(script, known=claim(1)) as (states, _server), pytest.raises(GoneError, match="deleted by somebody"):
        list(states)


@pytest.mark.parametrize(
    "script",
    [
        (watch(event("ADDED", claim(9, uid="uid-2"))),),
        (watch(), answer(200, claim(9, uid="uid-2")), [60.0]),
        (watch(), answer(404, status_object(404, "NotFound")), [60.0]),
    ],
    ids=["seen", "read", "missing"],
)
def test_object_of_another_uid_is_not_followed(script: tuple[Step | list[Step], ...]) -> None:
    with following(*script, known=claim(1)) as (states, _server), pytest.raises(GoneError):
        list(states)


def test_refused_watch_is_not_repeated() -> None:
    refusal = answer(403, status_object(403, "Forbidden"))
    with following(refusal, known=claim(1)) as (states, server), pytest.raises(CredentialError):
        list(states)
    assert len(server.received) == 1


def test_retry_after_beyond_the_deadline_ends_it() -> None:
    busy = answer(429, status_object(429, "TooManyRequests"), Retry_After="1000000000000")
    with following(busy, known=claim(1)) as (states, server), pytest.raises(UnavailableError):
        list(states)
    assert len(server.received) == 1


@pytest.mark.parametrize(
    "script",
    [
        [watch_head(), 60.0],
        [watch_head(), *([0.02, chunk(b" ")] * 1000)],
        [watch_head(), *([0.02, event("BOOKMARK", claim(2))] * 1000)],
        [watch_head(), *([0.02, event("MODIFIED", claim(2, name="two"))] * 1000)],
    ],
    ids=["silence", "blanks", "bookmarks", "others"],
)
def test_watch_without_a_state_ends_with_the_deadline(script: list[Step]) -> None:
    began = time.monotonic()
    with following(script, known=claim(1), seconds=0.5) as (states, _server):
        assert versions(states, 9) == ["1"]
    assert 0.4 < time.monotonic() - began < 2.0


def test_quiet_watch_is_begun_anew_before_the_deadline(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(client_module, "MINIMUM_REQUEST_TIMEOUT", 0.1)
    script = ([watch_head(), 60.0], answer(200, claim(5)), [60.0])
    with Scripted(*script) as server, Client(Access(server=server.url), request_timeout=0.2) as client:
        assert versions(follow(client, ONE, Deadline(5.0), claim(1)), 2) == ["1", "5"]


@pytest.mark.parametrize(
    "end", [watch(), watch(event("ERROR", status_object(410, "Expired"))), answer(410, status_object(410, "Expired"))]
)
def test_watches_that_do_not_last_are_not_begun_in_a_hurry(end: Step | list[Step]) -> None:
    script = [part for _unused in range(100) for part in (end, answer(200, claim(5)))]
    with following(*script, known=claim(1), seconds=1.0) as (states, server):
        list(states)
    assert len(server.received) < 14
