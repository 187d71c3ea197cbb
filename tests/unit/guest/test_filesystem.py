# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Folders of a sandbox through the real agent: list, stat, create, move and remove."""

from __future__ import annotations

import hashlib
import json
import os
import pathlib
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestProtocolError, GuestRefusedError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.filesystem import FileSystem
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.trees import Trees
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    RunningAgent,
    eventually,
    running_agent,
    within,
    without_privileges,
)
from tests.unit.guest.agent.test_client import Server, agent_at, answer


@pytest.fixture
def agent(tmp_path: pathlib.Path) -> t.Iterator[RunningAgent]:
    (tmp_path / "workspace").mkdir()
    with running_agent(workspace=tmp_path / "workspace") as started:
        yield started


@pytest.fixture
def files(agent: RunningAgent) -> FileSystem:
    return FileSystem(agent.client)


def kind_of(call: t.Callable[[], object]) -> str:
    with pytest.raises(GuestRefusedError) as caught:
        call()
    assert caught.value.next_step
    return caught.value.kind


def test_a_list_has_every_kind_of_entry_by_path(agent: RunningAgent, files: FileSystem) -> None:
    (agent.workspace / "folder" / "below").mkdir(parents=True)
    (agent.workspace / "folder" / "below" / "deep").write_bytes(b"x")
    (agent.workspace / "file").write_bytes(b"content")
    (agent.workspace / "file").chmod(0o4640)
    os.utime(agent.workspace / "file", (1, 1234567890.5))
    (agent.workspace / "link").symlink_to("/etc/passwd")
    os.mkfifo(agent.workspace / "pipe")
    flat = {entry.path: entry for entry in files.list(deadline=within())}
    assert [*flat] == ["file", "folder", "link", "pipe"]
    file = flat["file"]
    assert (file.kind, file.size, file.mode, file.mtime) == ("file", 7, 0o4640, 1234567890.5)
    assert (flat["folder"].is_directory, flat["link"].is_link, flat["pipe"].kind) == (True, True, "other")
    assert (flat["link"].target, file.target, file.sha256) == ("/etc/passwd", None, None)
    below = files.list(recursive=True, checksum=True, deadline=within())
    assert [entry.path for entry in below] == [
        "file", "folder", "folder/below", "folder/below/deep", "link", "pipe",
    ]  # fmt: skip
    sums = {entry.path: entry.sha256 for entry in below if entry.sha256}
    assert sums == {
        "file": hashlib.sha256(b"content").hexdigest(),
        "folder/below/deep": hashlib.sha256(b"x").hexdigest(),
    }
    assert [entry.path for entry in files.list("folder/below", deadline=within())] == ["deep"]


def test_a_name_of_any_bytes_comes_through(agent: RunningAgent, files: FileSystem) -> None:
    for name in (b"caf\xc3\xa9", b"\xff\xfe", b"new\nline", b'"quote"'):
        (agent.workspace / os.fsdecode(name)).touch()
    listed = {os.fsencode(entry.path) for entry in files.list(deadline=within())}
    assert listed == {b"caf\xc3\xa9", b"\xff\xfe", b"new\nline", b'"quote"'}
    for path in listed:
        assert files.stat(os.fsdecode(path), deadline=within()).is_file
        assert files.remove(os.fsdecode(path), deadline=within()) == 1


def test_more_entries_than_the_limit_are_refused_and_many_fit(agent: RunningAgent, files: FileSystem) -> None:
    for number in range(1000):
        (agent.workspace / str(number)).touch()
    assert len(files.list(limit=1000, deadline=within())) == 1000
    assert kind_of(lambda: files.list(limit=999, deadline=within())) == "too-large"


def test_a_walk_that_takes_long_is_no_lost_connection(tmp_path: pathlib.Path) -> None:
    """Each entry takes a while, and none of them is wanted: the heartbeats go on."""
    for number in range(500):
        (tmp_path / str(number)).touch()
    patch = """
import os, time, listing
listing.BATCH = 20
def stat(name, **options):
    time.sleep(0.005)
    return real(name, **options)
real, os.stat = os.stat, stat
"""
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        client = Agent(agent.client.address, heartbeat=0.5)
        assert FileSystem(client).list(recursive=True, only=["none"], deadline=within()) == []
        target = tmp_path.parent / "copy"
        assert Trees(client).download(".", target, only=["none"], deadline=within()).count == 0


def test_stat_follows_a_link_unless_told_otherwise(agent: RunningAgent, files: FileSystem) -> None:
    (agent.workspace / "real").write_bytes(b"12")
    (agent.workspace / "link").symlink_to("real")
    (agent.workspace / "dangling").symlink_to("nothing")
    followed, itself = files.stat("link", deadline=within()), files.stat("link", follow=False, deadline=within())
    assert (followed.path, followed.size, followed.is_file) == (str(agent.workspace / "real"), 2, True)
    assert (itself.path, itself.target, itself.is_link) == (str(agent.workspace / "link"), "real", True)
    assert files.stat("dangling", follow=False, deadline=within()).is_link
    assert files.stat(".", deadline=within()).is_directory
    assert files.stat("/", deadline=within()).is_directory
    for path, there in (("real", True), ("dangling", False), ("no/such", False), ("real/below", False)):
        assert files.exists(path, deadline=within()) is there


def test_folders_are_created_with_parents_and_mode(agent: RunningAgent, files: FileSystem) -> None:
    assert kind_of(lambda: files.mkdir("a/b/c", deadline=within())) == "no-parent"
    assert files.mkdir("a/b/c/", parents=True, mode=0o700, deadline=within())
    assert not files.mkdir("a/b/c", parents=True, deadline=within())
    assert (agent.workspace / "a/b/c").stat().st_mode & 0o7777 == 0o700
    assert kind_of(lambda: files.mkdir("a/b/c", deadline=within())) == "exists"
    (agent.workspace / "file").touch()
    assert kind_of(lambda: files.mkdir("file", parents=True, deadline=within())) == "exists"
    assert kind_of(lambda: files.mkdir("file/below", parents=True, deadline=within())) == "no-parent"


def test_a_move_replaces_only_when_asked(agent: RunningAgent, files: FileSystem) -> None:
    (agent.workspace / "one").write_text("1")
    (agent.workspace / "two").write_text("2")
    assert kind_of(lambda: files.move("one", "two", deadline=within())) == "exists"
    assert kind_of(lambda: files.move("none", "three", deadline=within())) == "not-found"
    assert kind_of(lambda: files.move("one", "new/three", deadline=within())) == "no-parent"
    files.move("one", "two", replace=True, deadline=within())
    files.move("two", "new/three", parents=True, deadline=within())
    assert (agent.workspace / "new/three").read_text() == "1"
    assert kind_of_any(lambda: files.move("new", "new/below", deadline=within())) == "bad-request"
    (agent.workspace / "full").mkdir()
    (agent.workspace / "full" / "file").touch()
    assert kind_of(lambda: files.move("new", "full", replace=True, deadline=within())) == "not-empty"
    assert kind_of(lambda: files.move("new/three", "full", replace=True, deadline=within())) == "is-a-directory"
    assert kind_of(lambda: files.move("full", "new/three", replace=True, deadline=within())) == "not-a-directory"
    if os.stat("/dev/shm").st_dev != agent.workspace.stat().st_dev:
        assert kind_of(lambda: files.move("new/three", "/dev/shm/namzu-none", deadline=within())) == "cross-device"


def test_a_link_itself_is_moved_and_removed(agent: RunningAgent, files: FileSystem) -> None:
    (agent.workspace / "folder").mkdir()
    (agent.workspace / "folder" / "file").touch()
    (agent.workspace / "link").symlink_to("folder")
    files.move("link", "moved", deadline=within())
    assert (agent.workspace / "moved").readlink() == pathlib.Path("folder")
    assert files.remove("moved", recursive=True, deadline=within()) == 1
    assert (agent.workspace / "folder" / "file").exists()


def test_a_folder_is_removed_with_everything_in_it_only_when_asked(agent: RunningAgent, files: FileSystem) -> None:
    deep = agent.workspace / "top" / "/".join("d" * 100)
    deep.mkdir(parents=True)
    (deep / "link").symlink_to(agent.workspace.parent)
    for number in range(1200):
        (agent.workspace / "top" / str(number)).touch()
    (agent.workspace.parent / "outside").touch()
    assert kind_of(lambda: files.remove("top", deadline=within())) == "not-empty"
    assert files.remove("top/", recursive=True, deadline=within()) == 1 + 100 + 1 + 1200
    assert not (agent.workspace / "top").exists()
    assert (agent.workspace.parent / "outside").exists()
    assert kind_of(lambda: files.remove("top", deadline=within())) == "not-found"
    assert files.remove("top", missing_ok=True, deadline=within()) == 0


@pytest.mark.parametrize("path", ["/", ".", "..", "../workspace", "link"])
def test_the_workspace_is_neither_moved_nor_removed(agent: RunningAgent, files: FileSystem, path: str) -> None:
    (agent.workspace.parent / "link").symlink_to("workspace")
    path = str(agent.workspace.parent / "link" / ".." / "workspace") if path == "link" else path
    (agent.workspace / "file").touch()
    for call in (
        lambda: files.remove(path, recursive=True, deadline=within()),
        lambda: files.move(path, "elsewhere", deadline=within()),
    ):
        assert kind_of_any(call) in ("denied", "bad-request")
    assert (agent.workspace / "file").exists()


def kind_of_any(call: t.Callable[[], object]) -> str:
    with pytest.raises(GuestRefusedError) as caught:
        call()
    return caught.value.kind


def test_a_tree_that_is_too_deep_is_an_answer_and_leaks_no_descriptor(agent: RunningAgent, files: FileSystem) -> None:
    fd = os.open(agent.workspace, os.O_RDONLY)
    for _unused in range(300):
        os.mkdir("d", dir_fd=fd)
        below = os.open("d", os.O_RDONLY, dir_fd=fd)
        os.close(fd)
        fd = below
    os.close(fd)
    assert kind_of(lambda: files.list(recursive=True, deadline=within())) == "too-large"
    assert kind_of(lambda: files.remove("d", recursive=True, deadline=within())) == "too-large"
    eventually(lambda: len(os.listdir(f"/proc/{agent.pid}/fd")) < 20)


def test_roots_bound_every_operation(tmp_path: pathlib.Path) -> None:
    for name in ("root", "secret"):
        (tmp_path / name).mkdir()
        (tmp_path / name / "file").touch()
    (tmp_path / "root" / "link").symlink_to("../secret")
    with running_agent(workspace=tmp_path / "root", env={"NAMZU_AGENT_ROOTS": str(tmp_path / "root")}) as agent:
        files = FileSystem(agent.client)
        for path in ("link/file", "../secret/file", str(tmp_path / "secret" / "file")):
            for call in (
                lambda: files.stat(path, deadline=within()),  # noqa: B023
                lambda: files.remove(path, recursive=True, deadline=within()),  # noqa: B023
                lambda: files.move(path, "mine", deadline=within()),  # noqa: B023
                lambda: files.move("file", path, replace=True, deadline=within()),  # noqa: B023
                lambda: files.mkdir(f"{path}-new", deadline=within()),  # noqa: B023
            ):
                assert kind_of(call) == "outside"
        for path in ("link", "..", "/"):
            assert kind_of(lambda: files.list(path, deadline=within())) == "outside"  # noqa: B023
        assert kind_of(lambda: files.remove(str(tmp_path / "root"), recursive=True, deadline=within())) == "outside"
        # The link itself is inside.
        assert files.remove("link", deadline=within()) == 1
    assert sorted(os.listdir(tmp_path / "secret")) == ["file"]


def test_permissions_are_denied_and_what_cannot_be_read_is_left_out(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, prefix=without_privileges()) as agent:
        files = FileSystem(agent.client)
        for name in ("closed", "secret"):
            (tmp_path / name).mkdir()
            (tmp_path / name / "file").touch()
        (tmp_path / "closed").chmod(0o500)
        (tmp_path / "secret").chmod(0o000)
        assert kind_of(lambda: files.mkdir("closed/new", deadline=within())) == "denied"
        assert kind_of(lambda: files.remove("closed", recursive=True, deadline=within())) == "denied"
        assert kind_of(lambda: files.move("closed/file", "file", deadline=within())) == "denied"
        assert kind_of(lambda: files.list("secret", deadline=within())) == "denied"
        listed = [entry.path for entry in files.list(recursive=True, deadline=within())]
        assert listed == ["closed", "closed/file", "secret"]
        (tmp_path / "secret").chmod(0o700)


def test_a_folder_that_becomes_a_link_meanwhile_is_not_followed(agent: RunningAgent, files: FileSystem) -> None:
    """Somebody swaps folders for links to a folder outside, all the time; nothing outside is removed or listed."""
    secret, stop = agent.workspace.parent / "secret", threading.Event()
    secret.mkdir()
    (secret / "treasure").touch()

    def swap() -> None:
        one = agent.workspace / "tree" / "one"
        while not stop.is_set():
            try:
                one.mkdir(parents=True, exist_ok=True)
                (one / "file").touch()
                one.rename(agent.workspace / "aside")
                one.symlink_to(secret)
                one.unlink()
                (agent.workspace / "aside").rename(one)
            except OSError:
                continue

    swapping = threading.Thread(target=swap)
    swapping.start()
    listed: set[str] = set()
    refused: set[str] = set()
    try:
        for _unused in range(150):
            try:
                listed |= {entry.path for entry in files.list(recursive=True, deadline=within())}
                files.remove("tree", recursive=True, missing_ok=True, deadline=within())
                files.remove("aside", recursive=True, missing_ok=True, deadline=within())
            except GuestRefusedError as error:
                refused.add(error.kind)
    finally:
        stop.set()
        swapping.join()
    assert (secret / "treasure").exists()
    assert not [path for path in listed if "treasure" in path]
    assert "tree/one" in listed
    assert refused <= {"not-empty", "changed", "not-found", "no-parent", "not-a-directory"}


ENTRY = {"path": "a", "kind": "file", "size": 1, "mode": 0o644, "mtime": 1.0}


def listing(*batches: object) -> bytes:
    frames = [encode(b"\x03" + json.dumps({"entries": batch}).encode()) for batch in batches]
    end = encode(b"\x03" + json.dumps({"end": {"count": 1}}).encode())
    return answer({"folder": {"path": "/w"}}) + b"".join(frames) + end + encode(b"")


@pytest.mark.parametrize(
    "change",
    [
        {"path": "../up"}, {"path": "/abs"}, {"path": ""}, {"path": "a//b"}, {"path": "."}, {"path": "a\0b"},
        {"path": "x" * 5000}, {"path": 1}, {"kind": "door"}, {"size": -1}, {"mode": 1 << 20}, {"mtime": "now"},
        {"mtime": float("nan")}, {"target": 1}, {"sha256": []},
        {"target": "x" * 5000}, {"sha256": "x" * 65},
    ],
)  # fmt: skip
def test_an_entry_that_no_agent_sends_is_a_protocol_error(change: dict[str, t.Any]) -> None:
    with Server(listing([{**ENTRY, **change}])) as server, pytest.raises(GuestProtocolError):
        FileSystem(agent_at(server.port)).list(deadline=within())


@pytest.mark.parametrize("batches", [[[ENTRY] * 3], [[ENTRY], [ENTRY], [ENTRY]], [{"a": 1}], [[1]]])
def test_a_list_without_end_is_left_at_the_limit(batches: list[object]) -> None:
    with Server(listing(*batches)) as server, pytest.raises(GuestProtocolError):
        FileSystem(agent_at(server.port)).list(limit=2, deadline=within())


def test_a_list_of_long_paths_is_left_at_a_bound() -> None:
    entries = [{**ENTRY, "path": f"{number}{'x' * 4000}"} for number in range(9)]
    with Server(listing(entries)) as server, pytest.raises(GuestProtocolError, match="longer"):
        FileSystem(agent_at(server.port)).list(limit=9, deadline=within())


def test_a_list_that_is_valid_is_read() -> None:
    with Server(listing([ENTRY], [{**ENTRY, "path": "b"}])) as server:
        found = FileSystem(agent_at(server.port)).list(limit=2, deadline=within())
    assert [entry.path for entry in found] == ["a", "b"]
