# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a caller may pass as standard input."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.detached import Executions
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.services import start_session
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.sessions.sessions import Sessions
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, within


def test_no_input_may_be_named_none(agent: RunningAgent) -> None:
    assert agent.client.execute(["readlink", "/proc/self/fd/0"], deadline=within(), stdin=None).stdout == b"/dev/null\n"
    with agent.client.stream(["cat"], deadline=within(), stdin=None) as running:
        assert list(running) == []
    assert Executions(agent.client).run(["cat"], deadline=within(), stdin=None).stdout == b""
    _session, started = start_session(agent.client, ["cat"], name="none", deadline=within(), stdin=None)
    assert started


@pytest.mark.parametrize("data", [bytearray(b"abc"), memoryview(b"abc"), [b"a", b"bc"]])
def test_input_may_be_anything_that_has_bytes(agent: RunningAgent, data: t.Any) -> None:
    assert agent.client.execute(["cat"], deadline=within(), stdin=data).stdout == b"abc"
    assert Executions(agent.client).run(["cat"], deadline=within(), stdin=data).stdout == b"abc"


def test_an_input_that_can_be_read_once_reaches_a_session_whole(agent: RunningAgent) -> None:
    pieces = iter([b"a", b"bc"])
    session, _started = start_session(agent.client, ["cat"], name="once", deadline=within(), stdin=pieces)
    with Sessions(agent.client).attach(session.id, deadline=within()) as attachment:
        assert attachment.read(within()) == ("stdout", b"abc")


def test_text_for_input_is_refused_before_anything_is_sent() -> None:
    with pytest.raises(InputError):
        Agent(AgentAddress("127.0.0.1", 1, "token")).execute(["cat"], deadline=within(), stdin=t.cast("t.Any", "abc"))
