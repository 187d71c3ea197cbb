# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Options of ``SandboxFiles``, and ``AsyncSandboxFiles``, on a real agent."""

from __future__ import annotations

import asyncio
import pathlib
import threading
import types
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Cancellation
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.facade.asynchronous import AsyncSandboxFiles
from ansible_collections.namzu.sandbox.plugins.module_utils.facade.files import SandboxFiles
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.changes import Change
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    without_privileges,
)


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> t.Iterator[RunningAgent]:
    (tmp_path / "workspace").mkdir()
    with running_agent(workspace=tmp_path / "workspace", prefix=without_privileges()) as started:
        yield started


@pytest.fixture
def files(agent: RunningAgent) -> SandboxFiles:
    return SandboxFiles(agent.client)


def test_the_life_of_a_file(files: SandboxFiles, tmp_path: pathlib.Path) -> None:
    files.write("a/b", "text", mode=0o640)
    assert files.read("a/b") == b"text"
    entry = files.stat("a/b")
    assert (entry.kind, entry.size, entry.mode) == ("file", 4, 0o640)
    assert (files.exists("a/b"), files.exists("a/c")) == (True, False)
    assert [found.path for found in files.list(recursive=True)] == ["a", "a/b"]
    assert files.mkdir("x/y", parents=True)
    assert not files.mkdir("x/y", parents=True)
    files.move("a/b", "x/y/z")
    files.download("x/y/z", tmp_path / "copy")
    assert (tmp_path / "copy").read_text() == "text"
    files.upload(tmp_path / "copy", "again")
    assert files.remove("x", recursive=True) == 3
    assert files.remove("x", missing_ok=True) == 0
    assert sorted(found.path for found in files.list()) == ["a", "again"]


def test_trees_and_patterns(files: SandboxFiles, tmp_path: pathlib.Path) -> None:
    source = tmp_path / "source"
    (source / "sub").mkdir(parents=True)
    for name in ("one.py", "two.txt", "sub/three.py"):
        (source / name).write_text(name)
    assert files.upload_tree(source, "tree", exclude=["*.txt"]).count == 3
    assert [found.path for found in files.list("tree", recursive=True)] == ["one.py", "sub", "sub/three.py"]
    assert files.download_tree("tree", tmp_path / "back", include=["sub"]).size == len("sub/three.py")
    assert (tmp_path / "back" / "sub" / "three.py").read_text() == "sub/three.py"
    assert not (tmp_path / "back" / "one.py").exists()
    assert files.download_tree("tree", tmp_path / "all").count == 3


def test_refusals_are_the_exceptions_of_python(agent: RunningAgent, files: SandboxFiles) -> None:
    files.write("file", "")
    files.write("sealed", "", mode=0o400)
    files.mkdir("folder")
    cases: list[tuple[type[OSError], str, t.Callable[[], object]]] = [
        (FileNotFoundError, "not-found", lambda: files.read("none")),
        (FileNotFoundError, "no-parent", lambda: files.move("file", "none/file")),
        (FileNotFoundError, "not-found", lambda: files.list("none")),
        (FileExistsError, "exists", lambda: files.mkdir("folder")),
        (FileExistsError, "exists", lambda: files.move("file", "folder")),
        (IsADirectoryError, "is-a-directory", lambda: files.read("folder")),
        (NotADirectoryError, "not-a-directory", lambda: files.list("file")),
        (PermissionError, "denied", lambda: files.write("sealed", "new")),
    ]
    for kind, refused, call in cases:
        with pytest.raises(kind) as caught:
            call()
        error: t.Any = caught.value
        assert isinstance(error, SandboxError)
        assert (error.kind, error.reason) == (refused, "agent-refused")
        assert str(agent.workspace) in str(error)
    files.write("sealed", "new", replace=True)
    with pytest.raises(SandboxError) as caught_other:
        files.remove("/", recursive=True)
    assert not isinstance(caught_other.value, OSError)


def test_time_and_cancellation_end_a_call(files: SandboxFiles) -> None:
    with pytest.raises(TimeoutError):
        files.read("file", timeout=0)
    cancellation = Cancellation()
    with files.watch(interval=0.1, cancellation=cancellation) as changes:
        threading.Timer(0.2, cancellation.cancel).start()
        with pytest.raises(SandboxError):
            next(changes)


def test_a_watch_gives_changes_until_its_time_has_passed(agent: RunningAgent, files: SandboxFiles) -> None:
    with files.watch(interval=0.1) as changes:
        files.write("new", "")
        # The file is there under another name until it is complete.
        assert Change("new", "created", "file") in changes
    with files.watch(interval=0.1, timeout=5) as changes:
        assert list(changes) == []
    eventually(lambda: agent.status("Threads") == "2")


def test_a_lease_that_is_lost_is_raised_by_every_call(agent: RunningAgent) -> None:
    def lost() -> None:
        raise SandboxError("lost", reason="lease-lost")

    files = SandboxFiles(agent.client, lost)
    calls: list[t.Callable[[], object]] = [
        lambda: files.read("a"),
        lambda: files.write("a", ""),
        files.list,
        lambda: files.exists("a"),
        lambda: files.upload_tree(".", "a"),
        files.watch,
    ]
    for call in calls:
        with pytest.raises(SandboxError, match="lost"):
            call()
    assert list(agent.workspace.iterdir()) == []


def test_the_same_in_an_event_loop(agent: RunningAgent, files: SandboxFiles, tmp_path: pathlib.Path) -> None:
    async def main() -> None:
        sandbox: t.Any = types.SimpleNamespace(files=files)
        here = AsyncSandboxFiles(sandbox)
        (tmp_path / "source").mkdir()
        (tmp_path / "source" / "one").write_text("1")
        await here.upload_tree(tmp_path / "source", "tree")
        await asyncio.gather(*(here.write(f"tree/{number}", "x", mode=0o600) for number in range(20)))
        assert len(await here.list("tree", checksum=True)) == 21
        assert (await here.stat("tree/one")).size == 1
        assert await here.exists("tree/7")
        await here.move("tree/7", "tree/moved")
        assert await here.mkdir("more")
        assert (await here.download_tree("tree", tmp_path / "back", include=["o*"])).count == 1
        assert await here.remove("tree", recursive=True) == 22
        with pytest.raises(FileNotFoundError):
            await here.read("tree/one")
        watching = here.watch(interval=0.1)
        first = asyncio.ensure_future(anext(watching))
        written = 0
        while not first.done():
            await here.write(f"new{written}", "")
            written += 1
        assert first.result().kind == "file"
        endless = asyncio.ensure_future(anext(watching))
        endless.cancel()
        with pytest.raises(asyncio.CancelledError):
            await endless
        await watching.aclose()

    asyncio.run(main())
    eventually(lambda: agent.status("Threads") == "2")
