# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A local file that is complete or not there, and what is beside it."""

from __future__ import annotations

import os
import pathlib
import threading

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.local_file import complete_file


def test_the_target_appears_when_it_is_complete_and_files_beside_it_stay(tmp_path: pathlib.Path) -> None:
    beside = tmp_path / "target.part"
    beside.write_text("of the user")
    with complete_file(tmp_path / "target") as file:
        file.write(b"new")
        assert not (tmp_path / "target").exists()
    assert (tmp_path / "target").read_bytes() == b"new"
    assert beside.read_text() == "of the user"
    assert {path.name for path in tmp_path.iterdir()} == {"target", "target.part"}


def test_a_failure_leaves_the_old_target_and_nothing_else(tmp_path: pathlib.Path) -> None:
    target = tmp_path / "target"
    target.write_text("old")

    def write_half() -> None:
        with complete_file(target) as file:
            file.write(b"half")
            raise RuntimeError

    with pytest.raises(RuntimeError):
        write_half()
    assert target.read_text() == "old"
    assert list(tmp_path.iterdir()) == [target]


def test_a_replaced_file_keeps_its_mode_and_a_new_one_follows_the_umask(tmp_path: pathlib.Path) -> None:
    (tmp_path / "old").touch(0o640)
    (tmp_path / "old").chmod(0o640)
    for name in ("old", "new"):
        with complete_file(tmp_path / name) as file:
            file.write(b"x")
    (tmp_path / "plain").touch()
    assert (tmp_path / "old").stat().st_mode & 0o7777 == 0o640
    assert (tmp_path / "new").stat().st_mode == (tmp_path / "plain").stat().st_mode


def test_a_link_is_written_through(tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to("real")
    with complete_file(tmp_path / "link") as file:
        file.write(b"x")
    assert (tmp_path / "link").is_symlink()
    assert (tmp_path / "real").read_bytes() == b"x"


def test_a_pipe_is_written_to_and_a_directory_is_refused(tmp_path: pathlib.Path) -> None:
    os.mkfifo(tmp_path / "pipe")
    received: list[bytes] = []
    reader = threading.Thread(target=lambda: received.append((tmp_path / "pipe").read_bytes()))
    reader.start()
    with complete_file(tmp_path / "pipe") as file:
        file.write(b"x")
    reader.join()
    assert received == [b"x"]
    with pytest.raises(IsADirectoryError), complete_file(tmp_path):
        pass


def test_a_long_name_and_a_missing_folder(tmp_path: pathlib.Path) -> None:
    with complete_file(tmp_path / ("x" * 255)) as file:
        file.write(b"x")
    with pytest.raises(FileNotFoundError), complete_file(tmp_path / "none" / "file"):
        pass
