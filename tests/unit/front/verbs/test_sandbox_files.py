# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox_files``, by a fake cluster to the real agent."""

from __future__ import annotations

import os
import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_files import VERB
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.trees.synchronize import Download
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire

from ....faults.fake.agent import POD_UID
from ....faults.fake.cluster import FakeCluster
from ...guest.running_agent import RunningAgent, running_agent
from ...guest.tap import Tap
from ..playing import access, play

Task = t.Callable[..., dict[str, t.Any]]


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace"), token=POD_UID) as started:
        yield started


@pytest.fixture(scope="module")
def cluster() -> t.Iterator[FakeCluster]:
    with FakeCluster() as started:
        with started.client() as client:
            acquire(client, started.request(name="build-1"))
        yield started


@pytest.fixture
def task(agent: RunningAgent, cluster: FakeCluster) -> Task:
    """Runs the verb on an acquired sandbox."""

    def run(check_mode: bool = False, port: int = agent.port, **options: t.Any) -> dict[str, t.Any]:
        given = access(cluster, agent={"port": port, "address": "pod_ip"}, name="build-1", **options)
        defaults = {name: option.get("default") for name, option in VERB.options.items()}
        return perform(VERB, {**defaults, **given}, Context(check_mode, {}))

    return run


@pytest.fixture
def source(tmp_path: pathlib.Path) -> pathlib.Path:
    folder = tmp_path / "source"
    (folder / "sub" / "empty").mkdir(parents=True)
    (folder / "a.py").write_text("a")
    (folder / "sub" / "b.py").write_text("b")
    (folder / "sub" / "c.txt").write_text("c")
    (folder / "link").symlink_to("a.py")
    return folder


@pytest.fixture
def dest(agent: RunningAgent, tmp_path: pathlib.Path) -> pathlib.Path:
    return agent.workspace / tmp_path.name


ALL = ["a.py", "link", "sub", "sub/b.py", "sub/c.txt", "sub/empty"]


def names(folder: pathlib.Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*"))


def test_upload_is_idempotent_by_checksum_and_says_what_it_would_do(
    task: Task, source: pathlib.Path, dest: pathlib.Path
) -> None:
    options = {"src": str(source), "dest": dest.name}
    planned = task(check_mode=True, **options)
    assert (planned["changed"], planned["copied"], dest.exists()) == (True, ALL, False)
    assert planned["diff"]["before"] == {}
    assert planned["diff"]["after"]["link"] == "link to a.py"
    done = task(**options)
    assert "failed" not in done
    assert (done["changed"], done["copied"], done["count"], done["size"]) == (True, ALL, 6, 3)
    assert (names(dest), done["sandbox"]) == (ALL, "build-1")
    again = task(**options)
    assert (again["changed"], again["copied"], again["count"]) == (False, [], 0)
    assert "diff" not in again
    # Another time is no difference; another content of the same size is.
    os.utime(source / "a.py", (1, 1))
    assert not task(check_mode=True, **options)["changed"]
    (source / "a.py").write_text("A")
    (source / "sub" / "b.py").chmod(0o755)
    changed = task(**options)
    assert changed["copied"] == ["a.py", "sub/b.py"]
    assert set(changed["diff"]["before"]) == {"a.py", "sub/b.py"}
    assert ((dest / "a.py").read_text(), (dest / "sub" / "b.py").stat().st_mode & 0o777) == ("A", 0o755)


def test_upload_deletes_what_is_selected_and_protects_what_is_excluded(
    task: Task, source: pathlib.Path, dest: pathlib.Path
) -> None:
    options = {"src": str(source), "dest": dest.name}
    (dest / "old" / "below").mkdir(parents=True)
    (dest / "old" / "below" / "file").touch()
    (dest / ".git").mkdir()
    (dest / ".git" / "config").touch()
    (source / ".git").mkdir()
    (source / ".git" / "other").touch()
    kept = task(**options, exclude=[".git"])
    assert (kept["deleted"], (dest / "old").exists()) == ([], True)
    done = task(**options, exclude=[".git"], delete=True)
    assert (done["changed"], done["copied"], done["deleted"]) == (True, [], ["old"])
    assert names(dest) == sorted([*ALL, ".git", ".git/config"])
    assert not task(**options, exclude=[".git"], delete=True)["changed"]


def test_a_glob_selects(task: Task, source: pathlib.Path, dest: pathlib.Path) -> None:
    done = task(src=str(source), dest=dest.name, include=["*.py"])
    assert done["copied"] == ["a.py", "sub/b.py"]
    assert names(dest) == ["a.py", "sub", "sub/b.py"]
    assert not task(src=str(source), dest=dest.name, include=["*.py"])["changed"]


def test_download_is_idempotent_and_leaves_out_what_leads_out(
    task: Task, source: pathlib.Path, dest: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    task(src=str(source), dest=dest.name)
    (dest / "outside").symlink_to("/etc/passwd")
    os.mkfifo(dest / "pipe")
    target = tmp_path / "target"
    (target / "old").mkdir(parents=True)
    options = {"direction": "download", "src": dest.name, "dest": str(target)}
    planned = task(check_mode=True, **options, delete=True)
    assert (planned["changed"], planned["copied"], planned["deleted"]) == (True, ALL, ["old"])
    assert names(target) == ["old"]
    done = task(**options)
    assert (done["copied"], names(target)) == (ALL, sorted([*ALL, "old"]))
    assert done["skipped"] == [{"path": "outside", "cause": "outside"}, {"path": "pipe", "cause": "not-a-file"}]
    assert not task(**options)["changed"]
    assert task(**options, delete=True)["deleted"] == ["old"]
    assert names(target) == ALL
    (dest / "a.py").write_text("changed")
    assert task(**options, include=["*.py"], delete=True)["copied"] == ["a.py"]
    assert (target / "a.py").read_text() == "changed"


def test_fifty_files_take_as_many_requests_as_one(
    task: Task, agent: RunningAgent, tmp_path: pathlib.Path, dest: pathlib.Path
) -> None:
    """The time of a copy is that of its connections; so 50 files take at most 1.5 times the time of one."""
    connections = {}
    for count in (1, 50):
        source = tmp_path / str(count)
        source.mkdir()
        for number in range(count):
            (source / f"file{number}").write_text(str(number))
        for direction in ("upload", "download"):
            there, here = f"{dest.name}-{count}", source if direction == "upload" else tmp_path / f"back{count}"
            ends = {"src": str(here), "dest": there} if direction == "upload" else {"src": there, "dest": str(here)}
            with Tap(agent.port) as tap:
                done = task(direction=direction, port=tap.port, **ends)
                assert (done["changed"], done["count"]) == (True, count)
                connections[direction, count] = tap.connections
    assert connections == {
        ("upload", 1): 2, ("upload", 50): 2, ("download", 1): 2, ("download", 50): 2,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("options", "reason"),
    [
        ({"src": "/no/such/folder", "dest": "x"}, "invalid-input"),
        ({"src": __file__, "dest": "x"}, "invalid-input"),
        ({"src": "x", "dest": "/tmp/x", "direction": "download", "replace": True}, "invalid-input"),
        ({"src": "no-such", "dest": "/tmp/namzu-none", "direction": "download"}, "agent-refused"),
        ({"src": ".", "dest": "/dev/null/x", "direction": "download"}, "transfer-failed"),
        ({"src": "/tmp", "dest": "x", "timeout": "0s"}, "invalid-input"),
    ],
)
def test_what_cannot_be_done_fails_with_a_reason(
    task: Task, agent: RunningAgent, options: dict[str, t.Any], reason: str
) -> None:
    (agent.workspace / "something").touch()
    result = task(**options)
    assert (result["failed"], result["changed"], result["reason"]) == (True, False, reason)
    assert result["msg"].endswith(".")


def test_a_folder_in_the_place_of_a_file_is_a_conflict_or_replaced(
    task: Task, source: pathlib.Path, dest: pathlib.Path
) -> None:
    (dest / "a.py").mkdir(parents=True)
    options = {"src": str(source), "dest": dest.name}
    for check_mode in (True, False):
        assert task(check_mode=check_mode, **options)["reason"] == "conflict"
    assert names(dest) == ["a.py"]
    assert task(**options, delete=True)["deleted"] == ["a.py"]
    assert names(dest) == ALL


def test_a_download_above_the_limit_changes_nothing(
    task: Task, source: pathlib.Path, dest: pathlib.Path, tmp_path: pathlib.Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    task(src=str(source), dest=dest.name)
    (tmp_path / "target" / "old").mkdir(parents=True)
    monkeypatch.setitem(t.cast("dict[str, t.Any]", Download.__init__.__kwdefaults__), "max_size", 2)
    result = task(direction="download", src=dest.name, dest=str(tmp_path / "target"), delete=True)
    assert (result["failed"], result["reason"]) == (True, "transfer-failed")
    assert "3 bytes; 2 are allowed" in result["msg"]
    assert names(tmp_path / "target") == ["old"]


@pytest.mark.parametrize("direction", ["upload", "download"])
def test_an_agent_that_is_too_old_is_an_error_with_a_next_step(
    cluster: FakeCluster, tmp_path: pathlib.Path, direction: str
) -> None:
    patch = """
import operations
for name in ("list-files", "read-tree", "write-tree"):
    del operations.LATER[name]
"""
    with running_agent(workspace=tmp_path, patch=patch, token=POD_UID) as old:
        given = access(cluster, agent={"port": old.port, "address": "pod_ip"}, name="build-1", direction=direction)
        defaults = {name: option.get("default") for name, option in VERB.options.items()}
        ends = {"src": str(tmp_path), "dest": str(tmp_path / "new")}
        result = perform(VERB, {**defaults, **given, **ends}, Context(False, {}))
    assert (result["failed"], result["reason"], result["feature"]) == (True, "agent-unsupported", "files")
    assert "apply the template role and renew the pool" in result["msg"]


def test_relative_paths_of_a_play_and_both_ways_to_run(
    agent: RunningAgent, cluster: FakeCluster, dest: pathlib.Path, tmp_path: pathlib.Path
) -> None:
    (tmp_path / "files" / "project").mkdir(parents=True)
    (tmp_path / "files" / "project" / "one").write_text("1")
    where = access(cluster, agent={"port": agent.port, "address": "pod_ip"}, name="build-1")
    upload = {"namzu.sandbox.sandbox_files": {**where, "src": "project", "dest": dest.name}}
    back = {"namzu.sandbox.sandbox_files": {**where, "direction": "download", "src": dest.name, "dest": "back"}}
    absolute = {**upload["namzu.sandbox.sandbox_files"], "src": str(tmp_path / "files" / "project")}
    missing = {"namzu.sandbox.sandbox_files": {**where, "src": "nothing", "dest": dest.name}}
    here = play(tmp_path, [{**upload, "diff": True}, back, missing])
    assert len(here.results) == 3, here.output
    sent, got, absent = here.results
    assert (sent["changed"], sent["copied"]) == (True, ["one"])
    assert "one" in sent["diff"]["after"]
    assert got["changed"]
    assert (tmp_path / "back" / "one").read_text() == "1"
    assert absent["failed"]
    assert "does not exist on this machine" in absent["msg"]
    (tmp_path / "files" / "project" / "two").write_text("2")
    elsewhere = play(tmp_path, [{"namzu.sandbox.sandbox_files": absolute}] * 2, connection="elsewhere")
    assert [one.get("copied") for one in elsewhere.results] == [["two"], []], elsewhere.output
