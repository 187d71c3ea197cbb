# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders into a sandbox and out of it, through the real agent."""

from __future__ import annotations

import os
import pathlib
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestProtocolError,
    GuestRefusedError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.trees import Trees
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    within,
    without_privileges,
)
from ansible_collections.namzu.sandbox.tests.unit.guest.tap import Tap

LONG = "/".join(["n" * 60] * 5)


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> t.Iterator[RunningAgent]:
    (tmp_path / "workspace").mkdir()
    with running_agent(workspace=tmp_path / "workspace") as started:
        yield started


@pytest.fixture
def trees(agent: RunningAgent) -> Trees:
    return Trees(agent.client)


@pytest.fixture
def local(tmp_path: pathlib.Path) -> pathlib.Path:
    """A folder with everything that a tree can hold."""
    folder = tmp_path / "local"
    (folder / "empty").mkdir(parents=True)
    (folder / LONG).mkdir(parents=True)
    (folder / LONG / "deep").write_bytes(b"deep")
    (folder / "script").write_bytes(b"#!/bin/sh\n")
    (folder / "script").chmod(0o6755)
    (folder / "large").write_bytes(os.urandom(1_500_001))
    (folder / "nothing").touch()
    (folder / os.fsdecode(b"\xff\xc3\xa9")).write_bytes(b"bytes")
    (folder / "ümlaut").write_bytes(b"u")
    (folder / "link").symlink_to("script")
    (folder / "up").mkdir()
    (folder / "up" / "link").symlink_to("../empty")
    os.utime(folder / "script", (1, 1_000_000_000))
    return folder


def kind_of(call: t.Callable[[], object]) -> str:
    with pytest.raises(GuestRefusedError) as caught:
        call()
    return caught.value.kind


def described(folder: pathlib.Path) -> dict[str, object]:
    found: dict[str, object] = {}
    for path in folder.rglob("*"):
        key = str(path.relative_to(folder))
        if path.is_symlink():
            found[key] = str(path.readlink())
        elif path.is_dir():
            found[key] = path.stat().st_mode & 0o7777
        else:
            found[key] = (path.read_bytes(), path.stat().st_mode & 0o7777, int(path.stat().st_mtime))
    return found


def test_a_tree_goes_in_and_out_as_it_is_without_set_uid(
    agent: RunningAgent, trees: Trees, local: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    os.mkfifo(local / "pipe")
    sent = trees.upload(local, "new/tree", deadline=within())
    (local / "pipe").unlink()
    (local / "script").chmod(0o755)
    expected = described(local)
    assert described(agent.workspace / "new/tree") == expected
    assert (sent.path, sent.count) == (str(agent.workspace / "new/tree"), len(expected))
    assert [(skipped.path, skipped.cause) for skipped in sent.skipped] == [("pipe", "not-a-file")]
    got = trees.download("new/tree", tmp_path / "copy" / "here", deadline=within())
    assert described(tmp_path / "copy" / "here") == expected
    assert (got.count, got.size, got.skipped_count) == (sent.count, sent.size, 0)


def test_the_same_comes_through_a_line_that_cuts_everywhere(
    agent: RunningAgent, local: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (local / "large").write_bytes(b"not so large")
    with Tap(agent.port, piece=7) as tap:
        trees = Trees(tap.client())
        trees.upload(local, "tree", deadline=within())
        trees.download("tree", tmp_path / "copy", deadline=within())
    (local / "script").chmod(0o755)
    assert described(tmp_path / "copy") == described(local)


def test_parts_of_a_tree_are_chosen(
    agent: RunningAgent, trees: Trees, local: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    trees.upload(local, "tree", wanted=lambda path: path.endswith("deep"), deadline=within())
    assert {path for path, value in described(agent.workspace / "tree").items() if isinstance(value, tuple)} == {
        f"{LONG}/deep"
    }
    trees.upload(local, "tree", deadline=within())
    trees.download("tree", tmp_path / "copy", only={"script", f"{LONG}/deep", "absent"}, deadline=within())
    files = {path for path, value in described(tmp_path / "copy").items() if isinstance(value, tuple)}
    assert files == {"script", f"{LONG}/deep"}


def test_what_exists_is_replaced_and_the_rest_is_kept_or_deleted(
    agent: RunningAgent, trees: Trees, local: pathlib.Path
) -> None:
    tree = agent.workspace / "tree"
    (tree / "old" / "below").mkdir(parents=True)
    (tree / "old" / "below" / "file").touch()
    (tree / "script").write_text("old")
    (tree / "keep").touch()
    (agent.workspace / "outside").mkdir()
    (tree / "link").symlink_to("../outside")
    sent = trees.upload(local, "tree", delete=["old", "absent", "none/such"], deadline=within())
    assert sent.deleted == 3
    assert (tree / "keep").exists()
    assert not (tree / "old").exists()
    assert (tree / "script").read_bytes() == b"#!/bin/sh\n"
    assert str((tree / "link").readlink()) == "script"
    for path in ("../outside", "/etc", "a/../b", ""):
        assert kind_of(lambda: trees.upload(local, "tree", delete=[path], deadline=within())) == "bad-request"  # noqa: B023


def test_a_folder_in_the_place_of_a_file_is_refused_on_both_sides(
    agent: RunningAgent, trees: Trees, local: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (agent.workspace / "tree" / "script").mkdir(parents=True)
    assert kind_of(lambda: trees.upload(local, "tree", deadline=within())) == "is-a-directory"
    (agent.workspace / "file").touch()
    assert kind_of(lambda: trees.upload(local, "file", deadline=within())) == "no-parent"
    assert kind_of(lambda: trees.download("file", tmp_path / "copy", deadline=within())) == "not-a-directory"
    assert kind_of(lambda: trees.download("none", tmp_path / "copy", deadline=within())) == "not-found"
    trees.upload(local, "other", deadline=within())
    (tmp_path / "copy" / "script").mkdir(parents=True)
    with pytest.raises(IsADirectoryError):
        trees.download("other", tmp_path / "copy", deadline=within())
    assert not list((tmp_path / "copy").rglob(".namzu-*"))


def test_links_in_the_way_are_not_followed_on_either_side(
    agent: RunningAgent, trees: Trees, local: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    secret = tmp_path / "secret"
    secret.mkdir()
    (agent.workspace / "tree").mkdir()
    (agent.workspace / "tree" / "up").symlink_to(secret)
    assert kind_of(lambda: trees.upload(local, "tree", deadline=within())) in ("no-parent", "changed")
    trees.upload(local, "fine", deadline=within())
    (tmp_path / "copy").mkdir()
    (tmp_path / "copy" / "up").symlink_to(secret)
    with pytest.raises(NotADirectoryError):
        trees.download("fine", tmp_path / "copy", deadline=within())
    assert list(secret.iterdir()) == []


def test_a_link_that_leads_out_is_left_out_and_named(
    agent: RunningAgent, trees: Trees, local: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (local / "absolute").symlink_to("/usr/bin/python3")
    trees.upload(local, "tree", deadline=within())
    assert (agent.workspace / "tree" / "absolute").is_symlink()
    os.mkfifo(agent.workspace / "tree" / "pipe")
    got = trees.download("tree", tmp_path / "copy", deadline=within())
    assert sorted((skipped.path, skipped.cause) for skipped in got.skipped) == [
        ("absolute", "outside"), ("pipe", "not-a-file"),
    ]  # fmt: skip
    assert not (tmp_path / "copy" / "absolute").is_symlink()


def test_a_file_without_write_permission_is_replaced_only_when_asked(
    tmp_path: pathlib.Path, local: pathlib.Path
) -> None:
    (tmp_path / "workspace" / "tree").mkdir(parents=True)
    with running_agent(workspace=tmp_path / "workspace", prefix=without_privileges()) as agent:
        trees = Trees(agent.client)
        sealed = agent.workspace / "tree" / "script"
        sealed.write_text("old")
        sealed.chmod(0o400)
        assert kind_of(lambda: trees.upload(local, "tree", deadline=within())) == "denied"
        assert sealed.read_text() == "old"
        trees.upload(local, "tree", replace=True, deadline=within())
        assert sealed.read_bytes() == b"#!/bin/sh\n"
        (agent.workspace / "tree" / "large").chmod(0)
        (agent.workspace / "tree" / "empty").chmod(0)
        got = trees.download("tree", tmp_path / "copy", deadline=within())
        assert sorted((skipped.path, skipped.cause) for skipped in got.skipped) == [
            ("empty", "denied"), ("large", "denied"),
        ]  # fmt: skip
        (agent.workspace / "tree" / "empty").chmod(0o700)


def test_a_folder_that_may_not_be_written_to_is_filled_first(tmp_path: pathlib.Path, local: pathlib.Path) -> None:
    (local / "sealed").mkdir()
    (local / "sealed" / "file").touch()
    (local / "sealed").chmod(0o555)
    (tmp_path / "workspace").mkdir()
    with running_agent(workspace=tmp_path / "workspace", prefix=without_privileges()) as agent:
        Trees(agent.client).upload(local, "tree", deadline=within())
        assert (agent.workspace / "tree" / "sealed").stat().st_mode & 0o777 == 0o555
        assert (agent.workspace / "tree" / "sealed" / "file").exists()


def test_a_folder_of_another_user_keeps_its_mode(tmp_path: pathlib.Path, local: pathlib.Path) -> None:
    """The agent may not change it, and need not."""
    patch = """
import os
def fchmod(fd, mode):
    if os.path.basename(os.readlink(f"/proc/self/fd/{fd}")) == "empty": raise PermissionError(1, "not ours")
    real(fd, mode)
real, os.fchmod = os.fchmod, fchmod
"""
    (tmp_path / "workspace" / "tree").mkdir(parents=True)
    (tmp_path / "workspace" / "tree" / "empty").mkdir(mode=0o755)
    (local / "empty").chmod(0o755)
    (tmp_path / "workspace" / "tree" / "empty").chmod(0o755)
    with running_agent(workspace=tmp_path / "workspace", patch=patch) as agent:
        Trees(agent.client).upload(local, "tree", deadline=within())
        (local / "empty").chmod(0o700)
        assert kind_of(lambda: Trees(agent.client).upload(local, "tree", deadline=within())) == "denied"


def test_limits_of_a_download(trees: Trees, local: pathlib.Path, tmp_path: pathlib.Path) -> None:
    trees.upload(local, "tree", deadline=within())
    assert kind_of(lambda: trees.download("tree", tmp_path / "copy", max_entries=3, deadline=within())) == "too-large"
    with pytest.raises(GuestProtocolError, match="bytes"):
        trees.download("tree", tmp_path / "copy", max_size=1000, deadline=within())


def test_a_client_that_leaves_and_a_local_failure_leave_no_part_of_a_file(
    agent: RunningAgent, trees: Trees, local: pathlib.Path
) -> None:
    with (local / "zzz").open("wb") as file:
        file.truncate(1 << 30)

    def fail(path: str) -> bool:
        if path == "zzz":
            raise RuntimeError
        return True

    with pytest.raises(RuntimeError):
        trees.upload(local, "tree", wanted=fail, deadline=within())
    with Tap(agent.port) as tap:

        def cut() -> None:
            eventually(lambda: list(agent.workspace.rglob(".namzu-*")))
            tap.cut()

        cutting = threading.Thread(target=cut)
        cutting.start()
        with pytest.raises(GuestUnreachableError) as caught:
            Trees(tap.client()).upload(local, "tree", wanted=lambda path: path == "zzz", deadline=within())
        cutting.join()
    assert caught.value.sent
    eventually(lambda: agent.status("Threads") == "2")
    assert not list(agent.workspace.rglob(".namzu-*"))
    assert not (agent.workspace / "tree" / "zzz").exists()


def test_a_folder_that_becomes_a_link_meanwhile_leads_nowhere(
    agent: RunningAgent, trees: Trees, tmp_path: pathlib.Path
) -> None:
    """Somebody swaps a folder for a link to one outside all the time; nothing is written or read there."""
    secret, stop = tmp_path / "secret", threading.Event()
    secret.mkdir()
    (secret / "file").write_text("secret")
    source = tmp_path / "source"
    (source / "one").mkdir(parents=True)
    (source / "one" / "file").write_text("mine")
    (agent.workspace / "tree").mkdir()

    def swap() -> None:
        one, aside = agent.workspace / "tree" / "one", agent.workspace / "aside"
        while not stop.is_set():
            try:
                one.rename(aside)
                one.symlink_to(secret)
                one.unlink()
                aside.rename(one)
            except OSError:
                continue

    swapping = threading.Thread(target=swap)
    swapping.start()
    outcomes: set[str] = set()
    try:
        for turn in range(100):
            copy = tmp_path / f"copy{turn}"
            try:
                trees.upload(source, "tree", deadline=within())
                trees.download("tree", copy, deadline=within())
                trees.upload(source, "tree", delete=["one/file"], deadline=within())
                outcomes.add("fine")
            except GuestRefusedError as error:
                outcomes.add(error.kind)
            file = copy / "one" / "file"
            assert not file.exists() or file.read_text() == "mine"
    finally:
        stop.set()
        swapping.join()
    assert (secret / "file").read_text() == "secret"
    assert os.listdir(secret) == ["file"]
    assert outcomes <= {"fine", "no-parent", "changed", "not-found", "is-a-directory", "not-a-directory", "not-empty"}


def test_roots_bound_trees(tmp_path: pathlib.Path, local: pathlib.Path) -> None:
    (tmp_path / "root").mkdir()
    (tmp_path / "secret").mkdir()
    (tmp_path / "root" / "link").symlink_to("../secret")
    with running_agent(workspace=tmp_path / "root", env={"NAMZU_AGENT_ROOTS": str(tmp_path / "root")}) as agent:
        trees = Trees(agent.client)
        for path in ("link", "../secret", "/"):
            assert kind_of(lambda: trees.upload(local, path, deadline=within())) == "outside"  # noqa: B023
            assert kind_of(lambda: trees.download(path, tmp_path / "copy", deadline=within())) == "outside"  # noqa: B023
    assert list((tmp_path / "secret").iterdir()) == []
