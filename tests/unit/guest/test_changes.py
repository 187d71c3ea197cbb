# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Changes of a folder, through the real agent."""

from __future__ import annotations

import json
import os
import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.changes import Change, watch
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestProtocolError,
    GuestRefusedError,
    GuestTimeoutError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    within,
)
from tests.unit.guest.agent.test_client import Server, agent_at, answer


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path) as started:
        yield started


def test_each_change_is_found_while_the_watch_lasts(agent: RunningAgent) -> None:
    folder = agent.workspace / "folder"
    (folder / "below").mkdir(parents=True)
    (folder / "old").touch()
    with watch(agent.client, "folder", recursive=True, interval=0.1, deadline=within()) as changes:
        found = iter(changes)
        assert changes.path == str(folder)
        (folder / "below" / "new").touch()
        assert next(found) == Change("below/new", "created", "file")
        (folder / "old").write_text("longer")
        assert next(found) == Change("old", "modified", "file")
        # The file was empty for a moment, which may be a change of its own.
        (folder / "old").unlink()
        assert next(change for change in found if change.change != "modified") == Change("old", "deleted", "file")
        (folder / "link").symlink_to("nowhere")
        assert next(found) == Change("link", "created", "link")
        (folder / "below").chmod(0o700)
        assert next(found) == Change("below", "modified", "directory")
        os.replace(folder / "below" / "new", folder / "moved")
        assert {next(found), next(found)} == {
            Change("below/new", "deleted", "file"),
            Change("moved", "created", "file"),
        }
    eventually(lambda: agent.status("Threads") == "2")


def test_what_is_below_is_watched_only_when_asked(agent: RunningAgent) -> None:
    (agent.workspace / "below").mkdir()
    with watch(agent.client, ".", interval=0.1, deadline=within()) as changes:
        (agent.workspace / "below" / "new").touch()
        (agent.workspace / "last").touch()
        assert next(iter(changes)) == Change("last", "created", "file")


def test_many_changes_at_once_all_come(agent: RunningAgent) -> None:
    with watch(agent.client, ".", interval=0.1, deadline=within()) as changes:
        for number in range(500):
            (agent.workspace / str(number)).touch()
        found = iter(changes)
        assert {next(found).path for _unused in range(500)} == {str(number) for number in range(500)}


def test_a_watch_ends_with_its_deadline_its_folder_and_its_limit(agent: RunningAgent) -> None:
    (agent.workspace / "folder").mkdir()

    def watch_for_a_moment() -> None:
        with watch(agent.client, "folder", interval=0.1, deadline=within(0.5)) as changes:
            list(changes)

    with pytest.raises(GuestTimeoutError):
        watch_for_a_moment()
    with watch(agent.client, "folder", interval=0.1, limit=1, deadline=within()) as changes:
        (agent.workspace / "folder" / "one").touch()
        assert next(iter(changes)).path == "one"
        (agent.workspace / "folder" / "two").touch()
        assert kind_of(lambda: list(changes)) == "too-large"
    (agent.workspace / "folder" / "two").unlink()
    with watch(agent.client, "folder", interval=0.1, deadline=within()) as changes:
        (agent.workspace / "folder").rename(agent.workspace / "elsewhere")
        assert kind_of(lambda: list(changes)) == "not-found"
    assert kind_of(lambda: watch(agent.client, "folder", deadline=within())) == "not-found"


def kind_of(call: t.Callable[[], object]) -> str:
    with pytest.raises(GuestRefusedError) as caught:
        call()
    return caught.value.kind


VALID = {"path": "a", "change": "created", "kind": "file"}


@pytest.mark.parametrize(
    "changes",
    ["x", [1], [{**VALID, "path": "../a"}], [{**VALID, "change": "sold"}], [{**VALID, "kind": "door"}], [VALID] * 2000],
)
def test_a_change_that_no_agent_sends_is_a_protocol_error(changes: object) -> None:
    frames = answer({"folder": {"path": "/w"}}) + encode(b"\x03" + json.dumps({"changes": changes}).encode())
    with (
        Server(frames, hang=True) as server,
        watch(agent_at(server.port), ".", deadline=within()) as found,
        pytest.raises(GuestProtocolError),
    ):
        list(found)
