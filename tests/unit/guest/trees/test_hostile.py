# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Archives that a hostile guest sends: nothing is written outside of the target, and everything ends."""

from __future__ import annotations

import contextlib
import hashlib
import io
import json
import os
import pathlib
import tarfile
import typing as t

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestChecksumError, GuestProtocolError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.protocol.wire import encode
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.archive import (
    ArchiveEntry,
    ArchiveError,
    ArchiveReader,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.trees import Trees
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.unpacking import leads_inside
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import within
from tests.unit.guest.agent.test_client import Server, agent_at, answer


def member(name: str, kind: bytes = tarfile.REGTYPE, content: bytes = b"", **fields: t.Any) -> bytes:
    info = tarfile.TarInfo(name)
    info.type, info.size = kind, len(content)
    for field, value in fields.items():
        setattr(info, field, value)
    packed = info.tobuf(fields.get("format", tarfile.PAX_FORMAT), "utf-8", "surrogateescape")
    return packed + content + bytes(-len(content) % 512)


def stream(archive: bytes, **end: t.Any) -> bytes:
    pieces = [archive[start : start + 100_000] for start in range(0, len(archive), 100_000)]
    closing = {"size": len(archive), "sha256": hashlib.sha256(archive).hexdigest(), "skipped": [], "skipped_count": 0}
    frames = b"".join(encode(b"\x01" + piece) for piece in pieces)
    return (
        answer({"folder": {"path": "/w"}})
        + frames
        + encode(b"\x03" + json.dumps({"end": closing | end}).encode())
        + encode(b"")
    )


def download(archive: bytes, target: pathlib.Path, limits: dict[str, int] | None = None, **end: t.Any) -> t.Any:
    with Server(stream(archive, **end)) as server:
        return Trees(agent_at(server.port)).download("tree", target, deadline=within(), **(limits or {}))


def everything(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


END = bytes(1024)


@pytest.mark.parametrize(
    "archive",
    [
        member("../up", content=b"x"),
        member("a/../../up", content=b"x"),
        member("/absolute", content=b"x"),
        member("a//b", content=b"x"),
        member(".", tarfile.DIRTYPE),
        member("..", tarfile.DIRTYPE),
        member("x" * 5000, content=b"x"),
        member("/".join("d" * 300), content=b"x"),
        member("a\0b", content=b"x", pax_headers={"path": "a\0b"}),
        member("fine", content=b"x", pax_headers={"path": "../up"}),
        member("hard", tarfile.LNKTYPE, linkname="/etc/passwd"),
        member("device", tarfile.CHRTYPE, devmajor=1, devminor=3),
        member("block", tarfile.BLKTYPE, devmajor=1, devminor=3),
        member("pipe", tarfile.FIFOTYPE),
        member("odd", b"Z"),
        member("sparse", tarfile.GNUTYPE_SPARSE),
        member("long", tarfile.GNUTYPE_LONGNAME, content=b"../up\0"),
        member("global", tarfile.XGLTYPE, content=b"16 path=../upup\n"),
        member("link", tarfile.SYMTYPE, linkname=""),
        member("link", tarfile.SYMTYPE, content=b"x", linkname="a"),
        member("fine", content=b"x", pax_headers={"size": "-1"}),
        member("fine", content=b"x", pax_headers={"size": "many"}),
        member("fine", content=b"x", pax_headers={"mtime": "nan"}),
        member("fine", content=b"x", pax_headers={"comment": "x" * 20_000}),
        member("pax", tarfile.XHDTYPE, content=b"12 path=a\n") + member("fine"),
        member("pax", tarfile.XHDTYPE, content=b"10 path=a\n") * 2 + member("fine"),
        member("fine")[:-1] + b"\0" + END[:512] + member("after"),
        b"garbage" * 200,
        member("fine")[:100] + b"9" + member("fine")[101:],
    ],
)  # fmt: skip
def test_what_no_agent_sends_is_refused_and_writes_nothing_outside(archive: bytes, tmp_path: pathlib.Path) -> None:
    with pytest.raises(GuestProtocolError):
        download(archive + END, tmp_path / "inner" / "target")
    assert set(everything(tmp_path)) <= {"inner", "inner/target", "inner/target/fine"}


@pytest.mark.parametrize(
    ("path", "target", "inside"),
    [
        ("a", "b", True), ("a", "./b/c", True), ("d/a", "../b", True), ("d/a", "..", True), ("d/e/a", "../../b", True),
        ("a", "..", False), ("a", "../b", False), ("d/a", "../../b", False), ("a", "/etc", False),
        ("a", "b/../../c", False), ("d/a", "b/../c", False), ("d/a", "../d/..", False),
    ],
)  # fmt: skip
def test_links_that_lead_out_are_known(path: str, target: str, inside: bool) -> None:
    assert leads_inside(path, target) is inside


def test_a_chain_of_links_does_not_lead_out(tmp_path: pathlib.Path) -> None:
    (tmp_path / "secret").mkdir()
    target = tmp_path / "target"
    links = [
        ("d/a", ".."),
        ("e", "d/a/../../secret"),
        ("f", "d/a/.."),
        ("g", "../secret"),
        ("h", str(tmp_path / "secret")),
    ]
    archive = member("d", tarfile.DIRTYPE, mode=0o755)
    archive += b"".join(member(path, tarfile.SYMTYPE, linkname=where) for path, where in links)
    report = download(archive + END, target)
    assert [skipped.path for skipped in report.skipped] == ["e", "f", "g", "h"]
    for link in target.rglob("*"):
        assert link.resolve().is_relative_to(target.resolve())
    # A file that is to come below a link is not written through it.
    through = member("way", tarfile.SYMTYPE, linkname="d") + member("way/file", content=b"x")
    with pytest.raises(NotADirectoryError):
        download(through + END, target)
    assert not (target / "d" / "file").exists()


def test_a_link_replaces_no_folder_and_a_file_no_link_is_written_through(tmp_path: pathlib.Path) -> None:
    outside = tmp_path / "outside"
    outside.write_text("mine")
    target = tmp_path / "target"
    (target / "d").mkdir(parents=True)
    (target / "file").symlink_to(outside)
    with pytest.raises(IsADirectoryError):
        download(member("d", tarfile.SYMTYPE, linkname="x") + END, target)
    download(member("file", content=b"theirs") + END, target)
    assert outside.read_text() == "mine"
    assert (target / "file").read_bytes() == b"theirs"


def test_bits_that_give_rights_are_dropped_and_the_owner_can_read_and_remove_all(tmp_path: pathlib.Path) -> None:
    archive = member("s", content=b"x", mode=0o7777) + member("d", tarfile.DIRTYPE, mode=0o7000) + member("d/f", mode=0)
    download(archive + END, tmp_path / "target")
    modes = {path.name: path.stat().st_mode & 0o7777 for path in (tmp_path / "target").rglob("*")}
    assert modes == {"s": 0o777, "d": 0o700, "f": 0o400}


@pytest.mark.parametrize(
    ("archive", "limits"),
    [
        (b"".join(member(str(number)) for number in range(20)), {"max_entries": 10}),
        (member("same", content=b"x" * 500) * 20, {"max_size": 5000}),
        (member("huge", content=b"x")[:512].replace(b"00000000001", b"77777777777"), {"max_size": 5000}),
        (END * 1000, {}),
        (
            b"".join(member(f"{number}{'/' + 'd' * 200}" * 10, tarfile.DIRTYPE) for number in range(9)),
            {"max_entries": 10},
        ),
    ],
)
def test_an_endless_archive_ends_at_a_limit(archive: bytes, limits: dict[str, int], tmp_path: pathlib.Path) -> None:
    with pytest.raises(GuestProtocolError):
        download(archive + END, tmp_path / "target", limits)
    assert not list((tmp_path / "target").rglob(".namzu-*"))


@pytest.mark.parametrize("end", [{"skipped": [["a"]]}, {"skipped": [1]}, {"skipped": "a"}, {"skipped_count": "1"}])
def test_an_end_that_is_not_valid_is_refused(end: dict[str, t.Any], tmp_path: pathlib.Path) -> None:
    with pytest.raises(GuestProtocolError):
        download(member("a") + END, tmp_path / "target", **end)


@pytest.mark.parametrize(
    "archive", [member("a", content=b"x"), member("a", content=b"x") + END[:512], member("a")[:300]]
)
def test_an_archive_that_is_cut_is_no_success(archive: bytes, tmp_path: pathlib.Path) -> None:
    with pytest.raises(GuestChecksumError):
        download(archive, tmp_path / "target")
    with pytest.raises(GuestChecksumError):
        download(member("a") + END, tmp_path / "target", sha256="0" * 64)
    assert not list((tmp_path / "target").rglob(".namzu-*"))


class Sink:
    """Keeps entries and contents."""

    def __init__(self) -> None:
        self.entries: list[ArchiveEntry] = []
        self.contents: list[bytes] = []
        self.ended = 0

    def begin(self, entry: ArchiveEntry) -> None:
        self.entries.append(entry)
        self.contents.append(b"")

    def write(self, data: memoryview) -> None:
        self.contents[-1] += data

    def end(self) -> None:
        self.ended += 1


@settings(max_examples=200)
@given(
    names=st.lists(
        st.text(st.characters(exclude_characters="/\0", codec="utf-8"), min_size=1, max_size=150), max_size=5
    ),
    contents=st.lists(st.binary(max_size=1500), min_size=5, max_size=5),
    cut=st.integers(1, 700),
)
def test_what_tarfile_writes_is_read_however_it_is_cut(names: list[str], contents: list[bytes], cut: int) -> None:
    names = [name for name in names if name not in (".", "..")]
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.PAX_FORMAT) as tar:
        for name, content in zip(names, contents, strict=False):
            info = tarfile.TarInfo(name)
            info.size = len(content)
            tar.addfile(info, io.BytesIO(content))
    archive, sink = buffer.getvalue(), Sink()
    reader = ArchiveReader(sink)
    for start in range(0, len(archive), cut):
        reader.feed(archive[start : start + cut])
    assert reader.complete
    assert [entry.path for entry in sink.entries] == names
    assert sink.contents == contents[: len(names)]
    assert sink.ended == len(names)


@settings(max_examples=300)
@given(data=st.binary(min_size=1, max_size=600), at=st.integers(0, 2000))
def test_no_bytes_make_the_reader_fail_otherwise(data: bytes, at: int) -> None:
    whole = member("ü" * 60, content=b"y" * 700, pax_headers={"comment": "c"}) + member(
        "l", tarfile.SYMTYPE, linkname="t"
    )
    with_noise = whole[:at] + data + whole[at + len(data) :]
    sink = Sink()
    with contextlib.suppress(ArchiveError):
        ArchiveReader(sink).feed(with_noise)
    for entry in sink.entries:
        assert not os.path.isabs(entry.path)
        assert ".." not in entry.path.split("/")
