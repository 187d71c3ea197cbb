# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files in and out: the same bytes, with a new agent and with an old one, and nothing half-made."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection import files as connection_files
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.files import fetch, put

from ...guest.running_agent import RunningAgent, running_agent

#: An agent from before there were operations on files.
OLD = "import operations; operations.LATER.clear(); operations.FEATURES[:] = ['execute']"

AGENTS = {"new agent": None, "old agent": OLD}


@pytest.fixture(scope="module", params=AGENTS.values(), ids=AGENTS)
def agent(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace"), patch=request.param) as running:
        yield running


@pytest.fixture(autouse=True)
def small_pieces(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connection_files, "PIECE", 1000)


@pytest.mark.parametrize("size", [0, 1, 999, 1000, 1001, 5000], ids=str)
def test_a_file_goes_in_and_comes_back_as_it_was(agent: RunningAgent, tmp_path: pathlib.Path, size: int) -> None:
    content = bytes(number * 7 % 256 for number in range(size))
    (tmp_path / "here").write_bytes(content)
    there = str(tmp_path / "汉语 'there' [x]")
    put(agent.client, str(tmp_path / "here"), there)
    assert pathlib.Path(there).read_bytes() == content
    fetch(agent.client, there, str(tmp_path / "back"))
    assert (tmp_path / "back").read_bytes() == content
    assert sorted(path.name for path in tmp_path.iterdir()) == sorted(["here", "back", "汉语 'there' [x]"])


def test_a_file_that_is_there_already_is_replaced(agent: RunningAgent, tmp_path: pathlib.Path) -> None:
    for name, content in {"here": "new", "there": "old and longer"}.items():
        (tmp_path / name).write_text(content)
    put(agent.client, str(tmp_path / "here"), str(tmp_path / "there"))
    assert (tmp_path / "there").read_text() == "new"


def test_a_folder_is_no_target_and_stays_as_it_is(agent: RunningAgent, tmp_path: pathlib.Path) -> None:
    (tmp_path / "here").write_text("content")
    (tmp_path / "folder").mkdir()
    with pytest.raises(SandboxError):
        put(agent.client, str(tmp_path / "here"), str(tmp_path / "folder"))
    assert sorted(path.name for path in tmp_path.rglob("*")) == ["folder", "here"]


def test_a_missing_folder_is_said(agent: RunningAgent, tmp_path: pathlib.Path) -> None:
    (tmp_path / "here").write_text("content")
    with pytest.raises(SandboxError, match="no-such-folder"):
        put(agent.client, str(tmp_path / "here"), str(tmp_path / "no-such-folder" / "there"))


def test_a_file_that_is_not_there_leaves_nothing_here(agent: RunningAgent, tmp_path: pathlib.Path) -> None:
    with pytest.raises(SandboxError, match="nothing"):
        fetch(agent.client, str(tmp_path / "nothing"), str(tmp_path / "back"))
    assert list(tmp_path.iterdir()) == []


def test_what_was_fetched_before_stays_when_fetching_fails(agent: RunningAgent, tmp_path: pathlib.Path) -> None:
    (tmp_path / "back").write_text("from yesterday")
    with pytest.raises(SandboxError):
        fetch(agent.client, str(tmp_path / "nothing"), str(tmp_path / "back"))
    assert (tmp_path / "back").read_text() == "from yesterday"


def test_a_folder_of_this_machine_that_is_not_there_is_said(agent: RunningAgent, tmp_path: pathlib.Path) -> None:
    (tmp_path / "there").write_text("content")
    with pytest.raises(SandboxError, match="on this machine"):
        fetch(agent.client, str(tmp_path / "there"), str(tmp_path / "no-such-folder" / "back"))
