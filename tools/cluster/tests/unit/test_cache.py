# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Cached folders are complete or do not exist, and are named by their sources."""

from __future__ import annotations

import io
import json
import multiprocessing
import shutil
from pathlib import Path

import pytest

from tools.cluster.build import cache, gvisor, programs
from tools.cluster.build.programs import Programs
from tools.cluster.failures import ClusterError
from tools.cluster.layout import PROGRAM_MODULE
from tools.cluster.progress import Progress

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
def test_an_interruption_leaves_no_folder(failure: type[BaseException], tmp_path: Path) -> None:
    def make(into: Path) -> None:
        (into / "half").touch()
        raise failure

    with pytest.raises(failure):
        cache.folder(tmp_path, "name", make, SILENT)
    assert [entry.name for entry in tmp_path.iterdir()] == [".lock"]


def test_the_remains_of_a_killed_process_are_removed(tmp_path: Path) -> None:
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


def test_programs_are_named_by_every_source(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    shutil.copytree(PROGRAM_MODULE, tmp_path / "module")
    monkeypatch.setattr(programs, "PROGRAM_MODULE", tmp_path / "module")
    names = [programs.folder_name()]
    for source in ("go.mod", "go.sum", *(f"{program}/main.go" for program in programs.OWN)):
        with (tmp_path / "module" / source).open("a", encoding="utf-8") as file:
            file.write("\n")
        names.append(programs.folder_name())
    assert len(set(names)) == len(names) == 5


def test_programs_are_named_by_the_flags_of_their_build(monkeypatch: pytest.MonkeyPatch) -> None:
    before = programs.folder_name()
    monkeypatch.setattr(programs, "BUILD_ENVIRONMENT", {"CGO_ENABLED": "1"})
    assert programs.folder_name() != before


def test_programs_carry_the_versions_of_go_mod() -> None:
    flags = " ".join(programs.build_flags())
    assert f"version.gitVersion={programs.required('k8s.io/kubernetes')}" in flags
    assert f"version.gitVersion={programs.required('sigs.k8s.io/agent-sandbox')}" in flags
    assert programs.lowest_go() >= (1, 26)


@pytest.mark.parametrize("enforce", [False, True])
def test_the_same_programs_are_recognised_in_another_cache(tmp_path: Path, enforce: bool) -> None:
    here = Programs(Path("/a/programs-1"), enforce)
    here.write(tmp_path / "record")
    assert Programs.read(tmp_path / "record") == here
    assert here.same_sources(Programs(Path("/b/programs-1")))
    assert not here.same_sources(Programs(Path("/a/programs-2")))


@pytest.mark.parametrize("record", [None, "", "{", "{}", '["/a", "/b", "/c"]'])
def test_an_invalid_record_is_refused(record: str | None, tmp_path: Path) -> None:
    if record is not None:
        (tmp_path / "record").write_text(record, encoding="utf-8")
    with pytest.raises(ClusterError):
        Programs.read(tmp_path / "record")


OOM_SCORES = """\
const (
\t// oomScoreMaxKillable is the maximum score keeping the process killable by the oom killer
\toomScoreMaxKillable = -999
)
"""


def make_module(module: Path, source: str) -> None:
    """A read-only module, as in Go's cache."""
    file = module / gvisor.OOM_SCORE_FILE
    file.parent.mkdir(parents=True)
    file.write_text(source, encoding="utf-8")
    file.chmod(0o444)


def answer_download(module: Path, checksum: str, monkeypatch: pytest.MonkeyPatch) -> None:
    answer = json.dumps({"Dir": str(module), "Sum": checksum})
    monkeypatch.setattr("tools.cluster.build.gvisor.commands.run", lambda *_argv, **_options: answer)


def test_the_shim_of_gvisor_starts_without_the_capability_for_oom_scores(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(tmp_path / "module", OOM_SCORES)
    answer_download(tmp_path / "module", gvisor.CHECKSUM, monkeypatch)
    gvisor.copy_source(tmp_path / "copy", tmp_path, {})
    changed = (tmp_path / "copy" / gvisor.OOM_SCORE_FILE).read_text(encoding="utf-8")
    assert changed == OOM_SCORES.replace("= -999", "= 0")
    assert (tmp_path / "module" / gvisor.OOM_SCORE_FILE).read_text(encoding="utf-8") == OOM_SCORES


@pytest.mark.parametrize(
    ("source", "checksum"),
    [(OOM_SCORES.replace("-999", "-998"), gvisor.CHECKSUM), (OOM_SCORES, "h1:other")],
    ids=["another score", "another checksum"],
)
def test_another_source_of_gvisor_is_refused(
    source: str, checksum: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    make_module(tmp_path / "module", source)
    answer_download(tmp_path / "module", checksum, monkeypatch)
    with pytest.raises(ClusterError, match="gvisor"):
        gvisor.copy_source(tmp_path / "copy", tmp_path, {})


def test_gvisor_is_named_by_its_version_and_flags(monkeypatch: pytest.MonkeyPatch) -> None:
    names = [gvisor.folder_name()]
    for constant, value in (("VERSION", "v0.0.0-other"), ("CHECKSUM", "h1:other"), ("FLAGS", ())):
        monkeypatch.setattr(gvisor, constant, value)
        names.append(gvisor.folder_name())
    assert len(set(names)) == len(names)
