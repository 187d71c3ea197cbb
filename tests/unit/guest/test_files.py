# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Files, read and written through the real agent."""

from __future__ import annotations

import errno
import hashlib
import io
import json
import os
import pathlib
import subprocess
import sys
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest import files as files_module
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import (
    GuestChecksumError,
    GuestRefusedError,
    GuestUnreachableError,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.files import LARGEST_RANGE, Files
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import (
    TOKEN,
    RunningAgent,
    running_agent,
    status_field,
    within,
    without_privileges,
)
from ansible_collections.namzu.sandbox.tests.unit.guest.tap import Tap

EVERY_BYTE = bytes(range(256))
LARGE = 1024 * 1024 * 1024
#: The most that either side may hold, in KiB.
MEMORY = 64 * 1024


#: Another process, so that what it holds at most is what the client holds, and not what other tests have held.
BOTH_WAYS = """
import hashlib, io, json, os, sys
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent, AgentAddress
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.files import Files

class Source(io.RawIOBase):
    left, checksum, block = int(sys.argv[3]), hashlib.sha256(), os.urandom(1 << 20)
    def readable(self): return True
    def read(self, size=-1):
        size = min(size, self.left, len(self.block))
        data = self.block[self.left % 4096:][:size]
        self.left -= len(data)
        self.checksum.update(data)
        return data

class Sink:
    size, checksum = 0, hashlib.sha256()
    def write(self, data):
        self.size += len(data)
        self.checksum.update(data)

files, source, sink = Files(Agent(AgentAddress("127.0.0.1", int(sys.argv[1]), sys.argv[2]))), Source(), Sink()
put = files.put(source, "large", deadline=Deadline(600))
files.fetch("large", sink, deadline=Deadline(600))
print(json.dumps([put, sink.size, source.checksum.hexdigest(), sink.checksum.hexdigest()]))
print(open("/proc/self/status").read())
"""


@pytest.fixture
def files(agent: RunningAgent) -> Files:
    return Files(agent.client)


def partials(agent: RunningAgent) -> list[pathlib.Path]:
    return list(agent.workspace.rglob(".namzu-*"))


def kind_of(call: t.Callable[[], object]) -> str:
    with pytest.raises(GuestRefusedError) as caught:
        call()
    return caught.value.kind


@pytest.mark.parametrize("data", [b"", b"x", EVERY_BYTE, EVERY_BYTE * 5000])
def test_what_is_written_is_read(files: Files, agent: RunningAgent, data: bytes) -> None:
    assert files.put(data, "file", deadline=within()) == len(data)
    sink = io.BytesIO()
    info = files.fetch("file", sink, deadline=within())
    assert sink.getvalue() == data == (agent.workspace / "file").read_bytes()
    assert (info.path, info.size, info.mode) == (str(agent.workspace / "file"), len(data), 0o644)
    assert partials(agent) == []


def test_ranges_are_what_slices_are(files: Files) -> None:
    data = os.urandom(1000)
    files.put(data, "ranges", deadline=within())
    for offset, length in [(0, 10), (10, 1000), (999, 5), (1000, 5), (5000, 5), (0, 0), (0, LARGEST_RANGE)]:
        part = files.read("ranges", offset=offset, length=length, deadline=within())
        assert part.data == data[offset : offset + length]
        assert part.end == (offset + length >= len(data))
    sink = io.BytesIO()
    files.fetch("ranges", sink, offset=990, deadline=within())
    assert sink.getvalue() == data[990:]


def test_files_of_the_kernel_have_content_although_they_say_that_they_are_empty(files: Files) -> None:
    sink = io.BytesIO()
    files.fetch("/proc/self/status", sink, deadline=within())
    # A field that gVisor shows as well, and not among the first.
    assert b"CapBnd" in sink.getvalue()
    assert b"Name:" in files.read("/proc/self/status", deadline=within()).data


def test_a_large_file_goes_both_ways_in_little_memory(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path) as fresh:
        client = [sys.executable, "-c", BOTH_WAYS, str(fresh.port), TOKEN, str(LARGE)]
        said = subprocess.run(client, check=True, stdout=subprocess.PIPE, text=True, timeout=600).stdout
        sums, _end, status = said.partition("\n")
        put, fetched, sent, received = json.loads(sums)
        assert put == fetched == LARGE
        assert sent == received
        assert int(fresh.status("VmHWM").split()[0]) < MEMORY
        # Not getrusage, which counts what the parent held before the program was started.
        assert int(status_field(status, "VmHWM").split()[0]) < MEMORY


def test_mode_and_folders_are_made_as_asked(files: Files, agent: RunningAgent) -> None:
    assert kind_of(lambda: files.put(b"", "new/below/file", deadline=within())) == "no-parent"
    files.put(b"1", "new/below/file", mode=0o4750, parents=True, deadline=within())
    target = agent.workspace / "new/below/file"
    assert target.stat().st_mode & 0o7777 == 0o4750
    files.put(b"2", str(target), sync=True, deadline=within())
    assert (target.read_bytes(), target.stat().st_mode & 0o7777) == (b"2", 0o4750)


def test_a_file_is_replaced_in_one_step_and_readers_of_the_old_one_keep_it(files: Files, agent: RunningAgent) -> None:
    files.put(b"old", "swap", deadline=within())
    with (agent.workspace / "swap").open("rb") as held:
        files.put(b"new", "swap", deadline=within())
        assert held.read() == b"old"
    assert (agent.workspace / "swap").read_bytes() == b"new"


def test_a_link_is_written_through_and_stays_a_link(files: Files, agent: RunningAgent) -> None:
    files.put(b"old", "real", deadline=within())
    (agent.workspace / "link").symlink_to("real")
    files.put(b"new", "link", deadline=within())
    assert (agent.workspace / "link").is_symlink()
    assert (agent.workspace / "real").read_bytes() == b"new"


@pytest.mark.parametrize("resumable", [True, False])
def test_a_client_that_leaves_in_the_middle_changes_nothing(agent: RunningAgent, resumable: bool) -> None:
    body = {"path": "half", **({"id": "mine"} if resumable else {})}
    (agent.workspace / "half").write_bytes(b"before")
    with agent.connect().request("write-file", body) as wire:
        assert wire.json()["ready"]["offset"] == 0
        wire.socket.sendall(encode(b"\x00after"))
        # The rest of the frame does not come.
        wire.socket.sendall(b"00000100\n\x00")
    deadline = within()
    while agent.status("Threads") != "2":
        assert not deadline.expired
    assert (agent.workspace / "half").read_bytes() == b"before"
    assert len(partials(agent)) == resumable
    for left in partials(agent):
        left.unlink()


def test_a_transfer_that_is_cut_goes_on_where_it_was(agent: RunningAgent, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files_module, "_RESUME_WAIT", 0.0)
    data = os.urandom(3_000_000)
    with Tap(agent.port) as tap:

        class Cutting(io.BytesIO):
            cuts = 3

            def read(self, size: int | None = -1, /) -> bytes:
                if self.tell() > 1_000_000 * (4 - self.cuts) - 500_000 and self.cuts:
                    self.cuts -= 1
                    tap.cut()
                return super().read(size)

            def write(self, piece: t.Any, /) -> int:
                if self.cuts:
                    self.cuts -= 1
                    tap.cut()
                return super().write(piece)

        assert Files(tap.client()).put(Cutting(data), "resumed", deadline=within()) == len(data)
        assert tap.connections == 4
        assert (agent.workspace / "resumed").read_bytes() == data
        sink = Cutting()
        # More than any buffer on the way holds.
        (agent.workspace / "resumed").write_bytes(data * 12)
        Files(tap.client()).fetch("resumed", sink, deadline=within())
        assert sink.getvalue() == data * 12
        assert tap.connections > 5, "the file was read over more than one connection"
    assert partials(agent) == []


def test_a_source_that_cannot_seek_is_not_sent_twice(agent: RunningAgent) -> None:
    class Once(io.BytesIO):
        def seekable(self) -> bool:
            return False

        def read(self, size: int | None = -1, /) -> bytes:
            tap.cut()
            return super().read(size)

    with Tap(agent.port) as tap:
        with pytest.raises(GuestUnreachableError) as caught:
            Files(tap.client()).put(Once(bytes(1_000_000)), "once", deadline=within())
        assert caught.value.sent
        assert tap.connections == 1


def test_a_file_that_changes_between_two_connections_is_not_patched_together(
    agent: RunningAgent, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(files_module, "_RESUME_WAIT", 0.0)
    (agent.workspace / "moving").touch()
    # More than any buffer on the way holds.
    os.truncate(agent.workspace / "moving", 50_000_000)

    class Changing(io.BytesIO):
        def write(self, piece: t.Any, /) -> int:
            if not self.tell():
                (agent.workspace / "moving").write_bytes(b"1")
                tap.cut()
            return super().write(piece)

    with Tap(agent.port) as tap:
        files = Files(tap.client())
        assert kind_of(lambda: files.fetch("moving", Changing(), deadline=within())) == "changed"


def test_a_file_that_becomes_shorter_while_it_is_read_is_an_answer(agent: RunningAgent) -> None:
    (agent.workspace / "shrinking").write_bytes(bytes(20_000_000))
    with agent.connect().request("read-file-stream", {"path": "shrinking"}) as wire:
        assert wire.json()["file"]["size"] == 20_000_000
        os.truncate(agent.workspace / "shrinking", 0)
        last = frame = wire.frame()
        while frame:
            last, frame = frame, wire.frame()
        assert json.loads(last[1:])["error"]["kind"] == "changed"


def test_bytes_that_are_changed_on_the_way_are_noticed(files: Files, agent: RunningAgent) -> None:
    with agent.connect().request("write-file", {"path": "wrong"}) as wire:
        assert "ready" in wire.json()
        wire.socket.sendall(encode(b"\x00abc"))
        finish = {"finish": {"size": 3, "sha256": hashlib.sha256(b"abd").hexdigest()}}
        wire.socket.sendall(encode(b"\x03" + json.dumps(finish).encode()))
        assert json.loads(wire.frame()[1:])["error"]["kind"] == "checksum"
        assert wire.frame() == b""
    assert not (agent.workspace / "wrong").exists()
    assert partials(agent) == []
    files.put(EVERY_BYTE, "right", deadline=within())
    monkey = pytest.MonkeyPatch()
    with monkey.context() as patched:
        patched.setattr(files_module.hashlib, "sha256", lambda *_: hashlib.md5(b"other"))  # noqa: S324
        with pytest.raises(GuestChecksumError):
            files.fetch("right", io.BytesIO(), deadline=within())


@pytest.mark.parametrize(
    ("path", "kind"),
    [
        ("no/such", "no-parent"),
        ("gone", "not-found"),
        ("/etc/passwd/x", "no-parent"),
        ("/proc/self", "is-a-directory"),
        ("/dev/null", "not-a-file"),
        ("pipe", "not-a-file"),
        ("loop", "changed"),
        ("x" * 300, "bad-request"),
        ("", "bad-request"),
        ("folder/", "bad-request"),
        ("a\0b", "bad-request"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(files: Files, agent: RunningAgent, path: str, kind: str) -> None:
    if path == "pipe" and not (agent.workspace / "pipe").exists():
        os.mkfifo(agent.workspace / "pipe")
    if path == "loop" and not (agent.workspace / "loop").is_symlink():
        (agent.workspace / "loop").symlink_to("loop")
    assert kind_of(lambda: files.read(path, deadline=within())) == kind
    assert kind_of(lambda: files.fetch(path, io.BytesIO(), deadline=within())) == kind


def test_a_folder_is_no_target(files: Files, agent: RunningAgent) -> None:
    (agent.workspace / "folder").mkdir()
    for mode in (None, 0o600):
        assert kind_of(lambda: files.put(b"", "folder", deadline=within(), mode=mode)) == "is-a-directory"  # noqa: B023
        assert kind_of(lambda: files.put(b"", "/dev/null", deadline=within(), mode=mode)) == "not-a-file"  # noqa: B023
    assert kind_of(lambda: files.put(b"", "/proc/file", deadline=within())) in ("denied", "not-found")


def test_what_the_agents_user_may_not_do_is_denied_and_replacing_is_asked_for(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, prefix=without_privileges()) as agent:
        files = Files(agent.client)
        files.put(b"old", "sealed", deadline=within(), mode=0o400)
        (tmp_path / "closed").mkdir(mode=0o500)
        for mode in (None, 0o644):
            assert kind_of(lambda: files.put(b"new", "sealed", deadline=within(), mode=mode)) == "denied"  # noqa: B023
        assert kind_of(lambda: files.put(b"new", "closed/file", deadline=within())) == "denied"
        assert (tmp_path / "sealed").read_bytes() == b"old"
        assert files.put(b"new", "sealed", deadline=within(), replace=True) == 3
        assert ((tmp_path / "sealed").read_bytes(), (tmp_path / "sealed").stat().st_mode & 0o777) == (b"new", 0o400)
        files.put(b"", "secret", deadline=within(), mode=0o200)
        assert kind_of(lambda: files.read("secret", deadline=within())) == "denied"
        assert partials(agent) == []


@pytest.mark.parametrize(
    ("number", "kind"),
    [(errno.ENOSPC, "no-space"), (errno.EDQUOT, "no-space"), (errno.EIO, "io-error"), (errno.EROFS, "denied")],
)
def test_a_disk_that_is_full_or_fails_is_an_answer_and_leaves_nothing(
    tmp_path: pathlib.Path, number: int, kind: str
) -> None:
    patch = f"""
import os
def pwrite(fd, data, offset):
    if offset > 300000: raise OSError({number}, "as the test wants it")
    return real(fd, data[:70000], offset)
real, os.pwrite = os.pwrite, pwrite
"""
    with running_agent(workspace=tmp_path, patch=patch) as failing:
        files = Files(failing.client)
        assert kind_of(lambda: files.put(bytes(5_000_000), "full", deadline=within())) == kind
        assert list(tmp_path.iterdir()) == []
        # Writes that the kernel takes in pieces are whole all the same.
        assert files.put(EVERY_BYTE * 1000, "fits", deadline=within()) == 256_000
        assert (tmp_path / "fits").read_bytes() == EVERY_BYTE * 1000


def test_what_nobody_comes_back_for_is_deleted(tmp_path: pathlib.Path) -> None:
    with running_agent(workspace=tmp_path, patch="import partials; partials.RETENTION = 0.0") as agent:
        with agent.connect().request("write-file", {"path": "left", "id": "left"}) as wire:
            assert "ready" in wire.json()
        deadline = within()
        while agent.status("Threads") != "2":
            assert not deadline.expired
        assert [path.name for path in tmp_path.iterdir()] == [".namzu-left.part"]
        Files(agent.client).put(b"", "other", deadline=within())
        assert [path.name for path in tmp_path.iterdir()] == ["other"]


def test_the_later_of_two_connections_has_the_file(agent: RunningAgent) -> None:
    body = {"path": "turns", "id": "turns"}
    with agent.connect().request("write-file", body) as first, agent.connect() as second:
        assert first.json()["ready"]["offset"] == 0
        first.socket.sendall(encode(b"\x00abc"))
        deadline = within()
        while not any(path.stat().st_size == 3 for path in partials(agent)):
            assert not deadline.expired
        assert second.request("write-file", body).json()["ready"]["offset"] == 3
        first.socket.sendall(encode(b"\x00old"))
        assert first.rest() == b""
        finish = {"finish": {"size": 6, "sha256": hashlib.sha256(b"abcdef").hexdigest()}}
        second.socket.sendall(encode(b"\x00def") + encode(b"\x03" + json.dumps(finish).encode()))
        assert json.loads(second.frame()[1:])["end"]["size"] == 6
    assert (agent.workspace / "turns").read_bytes() == b"abcdef"
