# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The folders that files are read and written beneath, and what tries to lead out of them."""

from __future__ import annotations

import pathlib
import threading
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.guest.errors import GuestRefusedError
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.files import Files
from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, running_agent, within


def kind_of(call: t.Callable[[], object]) -> str:
    with pytest.raises(GuestRefusedError) as caught:
        call()
    return caught.value.kind


@pytest.fixture(scope="module")
def rooted(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    folder = tmp_path_factory.mktemp("roots")
    for name in ("one", "two", "secret"):
        (folder / name).mkdir()
    (folder / "secret" / "file").write_text("secret", encoding="utf-8")
    env = {"NAMZU_AGENT_ROOTS": f"{folder}/one:{folder}/two"}
    with running_agent(workspace=folder / "one", env=env) as started:
        yield started


@pytest.mark.parametrize(
    "path", ["../secret/file", "/etc/passwd", "link/file", "link2", "../one/../secret/file", "../onelike"]
)
def test_nothing_leads_out(rooted: RunningAgent, path: str) -> None:
    one = rooted.workspace
    for name, target in (("link", "../secret"), ("link2", "../secret/file")):
        if not (one / name).is_symlink():
            (one / name).symlink_to(target)
    files = Files(rooted.client)
    assert kind_of(lambda: files.read(path, deadline=within())) == "outside"
    assert kind_of(lambda: files.put(b"", path, deadline=within())) == "outside"
    assert (one.parent / "secret" / "file").read_text(encoding="utf-8") == "secret"


def test_every_root_serves(rooted: RunningAgent) -> None:
    files = Files(rooted.client)
    files.put(b"1", "in/one", parents=True, deadline=within())
    files.put(b"2", str(rooted.workspace.parent / "two/file"), deadline=within())
    (rooted.workspace / "to-two").symlink_to("../two")
    assert files.read("to-two/file", deadline=within()).data == b"2"


def test_a_link_that_a_folder_replaces_meanwhile_is_a_change(tmp_path: pathlib.Path) -> None:
    (tmp_path / "link").symlink_to("folder")
    # Python 3.11 and 3.12 read where a link leads after they saw that it is one, and do not catch what fails then.
    patch = """
import os
resolve = os.path.realpath
def realpath(path, **options):
    if path.endswith("link/file"):
        raise OSError(22, "Invalid argument", path)
    return resolve(path, **options)
os.path.realpath = realpath
"""
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        assert kind_of(lambda: Files(agent.client).read("link/file", deadline=within())) == "changed"


def test_a_link_that_appears_meanwhile_leads_nowhere(rooted: RunningAgent) -> None:
    """Somebody swaps a folder for a link all the time; what is read is never what lies outside."""
    one, stop = rooted.workspace, threading.Event()
    (one / "real").mkdir(exist_ok=True)
    (one / "real" / "file").write_text("inside", encoding="utf-8")

    def swap() -> None:
        while not stop.is_set():
            (one / "race").symlink_to("../secret")
            (one / "race").unlink()
            (one / "real").rename(one / "race")
            (one / "race").rename(one / "real")

    swapping = threading.Thread(target=swap)
    swapping.start()
    try:
        answers = set()
        files = Files(rooted.client)
        for _unused in range(150):
            try:
                answers.add(files.read("race/file", deadline=within()).data)
            except GuestRefusedError as error:
                answers.add(error.kind.encode())
    finally:
        stop.set()
        swapping.join()
    assert b"secret" not in answers
    assert answers <= {b"inside", b"outside", b"changed", b"not-found", b"no-parent"}
    assert len(answers) > 1
