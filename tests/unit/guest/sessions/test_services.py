# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Sessions that shall run under a name: once, whoever asks, and whatever becomes of the answers."""

from __future__ import annotations

import dataclasses
import signal
import typing as t
from concurrent.futures import ThreadPoolExecutor

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestUnreachableError,
    SessionMismatchError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions import services as named_sessions
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.services import (
    check_session_name,
    end_session,
    running_session,
    start_session,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Session, Sessions
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, eventually, runs, within
from ansible_collections.namzu.sandbox.tests.unit.guest.tap import Tap

SLEEP = ["sleep", "1000"]


@pytest.fixture
def losing(agent: RunningAgent, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[t.Callable[[int], Agent]]:
    """A client that hears no answer to ``session-start``, nor to so many calls after it."""
    with Tap(agent.port) as tap:

        def client(more: int) -> Agent:
            begin = Sessions.start

            def start(self: Sessions, *arguments: t.Any, **options: t.Any) -> Session:
                tap.lose(1 + more)
                return begin(self, *arguments, **options)

            monkeypatch.setattr(Sessions, "start", start)
            return tap.client()

        yield client


def running(agent: RunningAgent, name: str) -> list[Session]:
    return [one for one in Sessions(agent.client).list(within()) if one.name == name and one.running]


def test_a_start_whose_answer_is_lost_is_found_and_not_repeated(
    losing: t.Callable[[int], Agent], agent: RunningAgent
) -> None:
    session, started = start_session(losing(0), SLEEP, name="lost", deadline=within())
    assert (started, runs(session.pid)) == (True, True)
    assert [one.id for one in running(agent, "lost")] == [session.id]


def test_a_program_that_has_ended_before_it_is_found_was_started(losing: t.Callable[[int], Agent]) -> None:
    session, started = start_session(losing(0), ["true"], name="brief", deadline=within())
    assert (started, session.name) == (True, "brief")


def test_who_hears_nothing_at_all_is_told_so_and_asking_again_finds_it(
    losing: t.Callable[[int], Agent], agent: RunningAgent
) -> None:
    with pytest.raises(GuestUnreachableError):
        start_session(losing(1), SLEEP, name="unheard", deadline=within())
    session, started = start_session(agent.client, SLEEP, name="unheard", deadline=within())
    assert (started, session.running) == (False, True)


def test_of_many_who_start_the_same_at_once_one_does(agent: RunningAgent) -> None:
    def start(_number: int) -> tuple[Session, bool]:
        return start_session(agent.client, SLEEP, name="crowd", deadline=within())

    with ThreadPoolExecutor(8) as crowd:
        found = list(crowd.map(start, range(8)))
    assert sum(started for _session, started in found) == 1
    assert len({session.id for session, _started in found}) == 1


def test_of_two_who_start_different_ones_at_once_one_is_refused(agent: RunningAgent) -> None:
    def start(seconds: int) -> bool:
        try:
            return start_session(agent.client, ["sleep", str(seconds)], name="rivals", deadline=within())[1]
        except SessionMismatchError:
            return False

    with ThreadPoolExecutor(8) as crowd:
        assert sum(crowd.map(start, range(1000, 1008))) == 1


def test_a_session_that_was_started_otherwise_is_another_one(agent: RunningAgent) -> None:
    Sessions(agent.client).start(SLEEP, name="foreign", deadline=within())
    with pytest.raises(SessionMismatchError) as caught:
        start_session(agent.client, SLEEP, name="foreign", deadline=within())
    assert "sleep" in str(caught.value)
    ended, ran = end_session(agent.client, "foreign", deadline=within())
    assert ran
    assert ended is not None
    assert not ended.running


def test_a_program_that_ignores_sigterm_is_killed_after_the_grace(agent: RunningAgent) -> None:
    script = "trap '' TERM; echo deaf; while :; do sleep 0.05; done"
    session, _started = start_session(agent.client, ["sh", "-c", script], name="deaf", deadline=within())
    eventually(lambda: Sessions(agent.client).read("deaf", deadline=within()).data == b"deaf\n")
    ended, ran = end_session(agent.client, "deaf", deadline=within(), grace=0.1)
    assert ran
    assert ended is not None
    assert (ended.id, ended.result is not None and ended.result.signal) == (session.id, signal.SIGKILL)
    assert end_session(agent.client, "deaf", deadline=within()) == (None, False)
    assert running_session(agent.client, "deaf", within()) is None


def test_nothing_of_the_command_shows_in_what_the_agent_lists(agent: RunningAgent) -> None:
    secret = "a-password-of-the-user"
    options: dict[str, t.Any] = {"env": {"PASSWORD": secret}, "stdin": secret.encode()}
    session, _started = start_session(agent.client, SLEEP, name="secret", deadline=within(), **options)
    assert secret not in repr(Sessions(agent.client).list(within()))
    other = dataclasses.replace(agent.client.address, token="of another pod")
    told = [named_sessions._mark(Agent(address), SLEEP, options) for address in (agent.client.address, other)]
    assert session.id.startswith(told[0])
    assert told[0] != told[1], "who does not know the token cannot try what it was made of"


@pytest.mark.parametrize("name", ["", ".hidden", "a b", "a/b", "ä", "a" * 65])
def test_what_cannot_be_a_name_is_refused_here(name: str) -> None:
    with pytest.raises(InputError):
        check_session_name("session", name)
