# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The files of a sandbox through the Python API, on a real agent, and errors that are Python's own as well."""

from __future__ import annotations

import copy
import pathlib
import pickle
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.api import SandboxError, SandboxFiles
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestRefusedError, GuestTimeoutError
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, running_agent


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> t.Iterator[RunningAgent]:
    (tmp_path / "workspace").mkdir()
    with running_agent(workspace=tmp_path / "workspace") as started:
        yield started


@pytest.fixture
def files(agent: RunningAgent) -> SandboxFiles:
    return SandboxFiles(agent.client)


def test_files_and_folders(files: SandboxFiles) -> None:
    assert files.mkdir("a/b", parents=True, mode=0o750)
    assert not files.mkdir("a/b", parents=True)
    files.write("a/b/one", "text", mode=0o640)
    assert [(one.path, one.kind) for one in files.list("a", recursive=True)] == [("b", "directory"), ("b/one", "file")]
    assert (files.stat("a/b/one").size, files.stat("a/b/one").mode) == (4, 0o640)
    files.move("a/b/one", "a/two")
    assert (files.exists("a/b/one"), files.exists("a/two")) == (False, True)
    assert files.remove("a", recursive=True) == 3
    assert files.remove("a", missing_ok=True) == 0


def test_trees_go_both_ways(files: SandboxFiles, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source"
    (source / "deep" / "er").mkdir(parents=True)
    for number in range(20):
        (source / "deep" / "er" / str(number)).write_text(str(number))
    (source / "program").write_text("#!/bin/sh\n")
    (source / "program").chmod(0o755)
    assert files.upload_tree(source, "new/tree").count == 23
    assert files.download_tree("new/tree", tmp_path / "copy").count == 23
    found = {path.relative_to(tmp_path / "copy"): path.stat().st_mode for path in (tmp_path / "copy").rglob("*")}
    assert found == {path.relative_to(source): path.stat().st_mode for path in source.rglob("*")}


def test_changes_are_seen_as_they_happen(files: SandboxFiles) -> None:
    files.mkdir("watched")
    with files.watch("watched", timeout=60.0) as changes:
        threading.Timer(0.1, files.write, ("watched/one", "text")).start()
        first = next(iter(changes))
    assert (first.path, first.kind) == ("one", "file")


@pytest.mark.parametrize(
    ("call", "standard"),
    [
        (lambda files: files.read("missing"), FileNotFoundError),
        (lambda files: files.stat("no/such/folder/file"), FileNotFoundError),
        (lambda files: files.read("folder"), IsADirectoryError),
        (lambda files: files.list("folder/file"), NotADirectoryError),
        (lambda files: files.mkdir("folder"), FileExistsError),
        (lambda files: list(files.list("missing")), FileNotFoundError),
    ],
)
def test_refusals_are_errors_of_python_too(
    files: SandboxFiles, call: t.Callable[[SandboxFiles], object], standard: type[OSError]
) -> None:
    files.write("folder/file", "text")
    with pytest.raises(standard) as caught:
        call(files)
    error: t.Any = caught.value
    assert isinstance(error, GuestRefusedError)
    assert error.reason == "agent-refused"
    for other in (copy.copy(error), pickle.loads(pickle.dumps(error))):  # noqa: S301
        assert isinstance(other, standard)
        assert isinstance(other, GuestRefusedError)
        assert (str(other), other.fields()) == (str(error), error.fields())
    assert str(error.replace(message="other.")).startswith("other.")


def test_a_timeout_is_pythons_too(files: SandboxFiles, monkeypatch: pytest.MonkeyPatch) -> None:
    def late(*_arguments: object, **_options: object) -> t.NoReturn:
        raise GuestTimeoutError("late.", stage="answer")

    monkeypatch.setattr(files._system, "stat", late)
    with pytest.raises(TimeoutError) as caught:
        files.stat("any")
    assert isinstance(caught.value, SandboxError)
