# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The callback in a real ansible-playbook: what it renews, gives back and says, however ansible-playbook ends."""

from __future__ import annotations

import math
import os
import pathlib
import signal
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire as acquire_here

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.plan import Request, status
from ...faults.fake.server import TOKEN
from ..front.kept_plays import APPEAR, Over, ran, read, started, until, waits
from ..front.playing import Task, access, present

DELETE = Request("delete", "sandboxclaims")


def acquire(cluster: FakeCluster, name: str, **options: t.Any) -> Task:
    return {"namzu.sandbox.sandbox": present(cluster, name=name, ingress="unverified", **options)}


def absent(cluster: FakeCluster, *names: str) -> Task:
    return {"namzu.sandbox.sandbox": access(cluster, names=list(names), state="absent")}


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Over:
    """A play with all sorts of sandboxes, which fails at its end.

    The keeper is told to say nothing by ansible.cfg, and everything by a variable of the play, which counts more.
    """
    folder = tmp_path_factory.mktemp("whole")
    (folder / "ansible.cfg").write_text("[namzu_lease_keeper]\nreport = nothing\n")
    with FakeCluster() as cluster:
        with cluster.client() as client:
            acquire_here(client, cluster.request(name="old"))
        in_the_background = {"async": 60, "poll": 1}
        tasks = [
            acquire(cluster, "marked", release_on_end=True),
            acquire(cluster, "marked", release_on_end=True),
            acquire(cluster, "plain"),
            acquire(cluster, "returned", release_on_end=True),
            absent(cluster, "returned", "nobody"),
            acquire(cluster, "old", release_on_end=True),
            {**acquire(cluster, "background"), **in_the_background},
            {**acquire(cluster, "checked", release_on_end=True), "check_mode": True},
            {"ansible.builtin.fail": {"msg": "on purpose"}},
        ]
        variables = {"namzu_lease_keeper_report": "{{ word }}", "word": "all"}
        return ran(folder, cluster, tasks, {}, verbosity=5, **variables)


def test_play_gives_back_what_is_marked_when_it_fails_and_the_rest_stays(whole: Over) -> None:
    assert (whole.code, whole.claims) == (2, ["background", "old", "plain"])


def test_end_of_the_play_says_what_became_of_all(whole: Over) -> None:
    lines = [line for line in whole.errors.splitlines() if line.startswith("lease_keeper:")]
    assert lines[0] == "lease_keeper: 4 sandboxes held, 0 renewals, 1 released by the play and 1 released at the end"
    (stay,) = lines[1:]
    assert stay.startswith("lease_keeper: not released, as release_on_end is off: SandboxClaim team-a/old (expires")
    assert "SandboxClaim team-a/plain (expires" in stay


def test_sandbox_that_stood_there_before_is_said_to_stay(whole: Over) -> None:
    said = " ".join(whole.errors.split())
    assert "Sandbox old stood there before this play: it is renewed, and not released at the end." in said
    assert "Sandbox marked stood there" not in said


def test_sandbox_that_a_module_acquired_is_said_not_to_be_renewed(whole: Over) -> None:
    assert "The lease keeper does not renew what a task acquires with async" in " ".join(whole.errors.split())


def test_task_whose_sandbox_cannot_be_released_names_the_connection(tmp_path: pathlib.Path) -> None:
    with FakeCluster() as cluster:
        marked = acquire(cluster, "marked", release_on_end=True)
        over = ran(tmp_path, cluster, [{**marked, "vars": {"ansible_connection": "ansible.builtin.ssh"}}], {})
    assert (over.code, over.claims) == (2, [])
    assert "runs over connection" in " ".join(over.output.split())
    assert "ssh" in over.output


def test_output_at_verbosity_five_shows_no_secret(whole: Over) -> None:
    assert "team-a" in whole.output
    assert TOKEN not in whole.output + whole.errors


def test_killed_play_gives_back_what_is_marked_within_two_seconds_also_what_it_was_about_to_acquire(
    tmp_path: pathlib.Path,
) -> None:
    with FakeCluster() as cluster:
        tasks = [acquire(cluster, "a-0", release_on_end=True), acquire(cluster, "b"), acquire(cluster, "c")]
        tasks += [absent(cluster, "c"), acquire(cluster, "late", release_on_end=True)]
        with started(tmp_path, tasks) as running:
            until(lambda: "c" in cluster.claims())
            cluster.controller.bind_delay = 4.0
            until(lambda: cluster.claims() == ["a-0", "b", "late"])
            keeper = running.keeper
            running.process.kill()
            running.process.wait()
            assert until(lambda: cluster.claims() == ["b", "late"]) < 2.0
            # The worker, which nobody has killed, ends its acquire; the keeper has waited for it.
            until(lambda: cluster.claims() == ["b"])
            until(lambda: not read(keeper, "cmdline"))


def test_interrupted_play_gives_back_what_is_marked_and_its_keeper_had_no_secret_and_no_file(
    tmp_path: pathlib.Path,
) -> None:
    with FakeCluster() as cluster:
        tasks = [acquire(cluster, "a", release_on_end=True), acquire(cluster, "b")]
        with started(tmp_path, tasks) as running:
            until(lambda: waits(running))
            keeper = running.keeper
            assert TOKEN.encode() not in read(keeper, "cmdline") + read(keeper, "environ")
            files = {os.readlink(f"/proc/{keeper}/fd/{fd}") for fd in os.listdir(f"/proc/{keeper}/fd")}
            assert {name for name in files if not name.startswith("socket:")} == {"/dev/null"}
            session = read(keeper, "stat").rpartition(b") ")[2].split()[3]
            assert session == str(keeper).encode()
            # As Ctrl-C does: the whole process group.
            os.killpg(running.process.pid, signal.SIGINT)
            running.process.wait(APPEAR)
            assert until(lambda: cluster.claims() == ["b"]) < 2.0
        until(lambda: not read(keeper, "cmdline"))


def test_end_that_cannot_release_is_short_names_what_is_left_and_goes_on_without_the_play(
    tmp_path: pathlib.Path,
) -> None:
    with FakeCluster() as cluster:
        cluster.plan.add(status(503), DELETE, times=math.inf)
        environ = {"NAMZU_LEASE_KEEPER_END_TIMEOUT": "0.5", "NAMZU_LEASE_KEEPER_REPORT": "problems"}
        over = ran(tmp_path, cluster, [acquire(cluster, "a", release_on_end=True)], environ)
        assert "NOT released: SandboxClaim team-a/a (expires at 20" in over.errors
        assert over.claims == ["a"]
        cluster.plan.clear()
        until(lambda: cluster.claims() == [], 10.0)


def test_keeper_that_is_killed_is_missed(tmp_path: pathlib.Path) -> None:
    with FakeCluster() as cluster, started(tmp_path, [acquire(cluster, "a")]) as running:
        until(lambda: waits(running))
        os.kill(running.keeper, signal.SIGKILL)
        assert running.process.stderr is not None
        said = next(line for line in running.process.stderr if "lease_keeper" in line)
    assert "the keeper's process has ended. Not renewed and not released any more: SandboxClaim team-a/a" in said
