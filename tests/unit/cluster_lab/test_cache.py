# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cached folders are complete or not there, and named by what went into them."""

from __future__ import annotations

import io
import multiprocessing
from pathlib import Path

import pytest

from tests.cluster import cache
from tests.cluster.failures import ClusterError
from tests.cluster.programs import MODULES, Module, Programs
from tests.cluster.progress import Progress

SILENT = Progress(io.StringIO())


def test_the_key_depends_on_every_part_and_their_order() -> None:
    keys = [cache.key(parts) for parts in (["a", "b"], ["b", "a"], ["ab"], ["a", "b", ""], ["a"])]
    assert len(set(keys)) == len(keys)
    assert cache.key(["a", b"b"]) == cache.key([b"a", "b"])


def test_a_folder_is_made_once(tmp_path: Path) -> None:
    made: list[Path] = []

    def make(into: Path) -> None:
        made.append(into)
        (into / "file").write_text("x", encoding="utf-8")

    for _unused in range(2):
        assert (cache.folder(tmp_path, "name", make, SILENT) / "file").read_text(encoding="utf-8") == "x"
    assert len(made) == 1


@pytest.mark.parametrize("failure", [OSError, KeyboardInterrupt])
def test_an_interrupted_making_leaves_nothing(failure: type[BaseException], tmp_path: Path) -> None:
    def make(into: Path) -> None:
        (into / "half").touch()
        raise failure

    with pytest.raises(failure):
        cache.folder(tmp_path, "name", make, SILENT)
    assert [entry.name for entry in tmp_path.iterdir()] == [".lock"]


def test_what_a_killed_process_left_is_removed(tmp_path: Path) -> None:
    (tmp_path / ".unfinished-abc").mkdir()
    cache.folder(tmp_path, "name", lambda into: (into / "file").touch(), SILENT)
    assert sorted(entry.name for entry in tmp_path.iterdir()) == [".lock", "name"]


def _make_in_a_process(parent: Path, started: multiprocessing.synchronize.Event) -> None:
    def make(into: Path) -> None:
        started.set()
        (into / "file").touch()

    cache.folder(parent, "name", make, SILENT)


def test_two_processes_do_not_make_the_same_folder(tmp_path: Path) -> None:
    context = multiprocessing.get_context("fork")
    started = context.Event()
    with cache.lock(tmp_path / ".lock", SILENT, "waiting"):
        other = context.Process(target=_make_in_a_process, args=(tmp_path, started), daemon=True)
        other.start()
        assert not started.wait(0.4)
    other.join(timeout=10)
    assert started.is_set()
    assert (tmp_path / "name" / "file").exists()


@pytest.mark.parametrize("module", MODULES, ids=lambda module: module.name)
def test_programs_are_named_by_their_module(module: Module) -> None:
    assert module.folder_name.startswith(f"{module.name}-")
    assert module.least_go >= (1, 26)


def test_programs_carry_the_versions_of_go_mod() -> None:
    flags = " ".join(MODULES[0].build_flags)
    assert f"version.gitVersion={MODULES[0].required('k8s.io/kubernetes')}" in flags
    assert f"version.gitVersion={MODULES[0].required('sigs.k8s.io/agent-sandbox')}" in flags


def test_the_same_programs_are_recognised_in_another_cache(tmp_path: Path) -> None:
    here = Programs((Path("/a/kubernetes-1"), Path("/a/etcd-2"), Path("/a/coredns-3")))
    here.write(tmp_path / "note")
    assert Programs.read(tmp_path / "note") == here
    assert here.are_those_of(Programs((Path("/b/kubernetes-1"), Path("/b/etcd-2"), Path("/b/coredns-3"))))
    assert not here.are_those_of(Programs((Path("/a/kubernetes-9"), Path("/a/etcd-2"), Path("/a/coredns-3"))))


@pytest.mark.parametrize("note", [None, "", "{", '["/a"]'])
def test_a_note_that_cannot_be_read_is_no_healthy_cluster(note: str | None, tmp_path: Path) -> None:
    if note is not None:
        (tmp_path / "note").write_text(note, encoding="utf-8")
    with pytest.raises(ClusterError):
        Programs.read(tmp_path / "note")
