# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The lookup ``sandbox`` and the tests ``ready`` and ``expiring`` in real plays."""

from __future__ import annotations

import datetime
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.test.sandbox import expiring, ready

from ...faults.fake.cluster import FakeCluster
from ...faults.fake.controller import NAMESPACE, POOL
from ..front.playing import Played, access, play

SERVICE = "box.team-a.svc.cluster.local"


@pytest.fixture(scope="module")
def cluster() -> t.Iterator[FakeCluster]:
    """A namespace with one ready sandbox, ``box``, and one that is pending."""
    with FakeCluster() as started:
        store = started.store
        claim(started, "box", labels={"team": "search"})
        with store.changed:
            assert store.changed.wait_for(lambda: store.names("pods"), timeout=30.0)
        started.controller.ready = None
        claim(started, "waiting")
        yield started


def claim(cluster: FakeCluster, name: str, **metadata: t.Any) -> None:
    body = {"metadata": {"name": name, **metadata}, "spec": {"warmPoolRef": {"name": POOL}}}
    cluster.store.create("sandboxclaims", NAMESPACE, body)


@pytest.fixture(scope="module")
def played(cluster: FakeCluster, tmp_path_factory: pytest.TempPathFactory) -> Played:
    """One play with a task for each question."""
    where = {**access(cluster), "agent": {"port": 2048, "address": "pod_ip"}}
    look = "q('namzu.sandbox.sandbox', {}**where)"
    questions = [
        look.format("'box', "),
        look.format(""),
        look.format("phases=['ready'], "),
        look.format("label_selector='team=search', "),
        look.format("'nobody', "),
        look.format("'nobody', errors='ignore', "),
        look.format("'Not_A_Name', "),
        look.format("'box', ") + "[0] is namzu.sandbox.ready",
        look.format("'waiting', ") + "[0] is namzu.sandbox.ready",
        look.format("'box', ") + "[0] is namzu.sandbox.expiring('5m')",
        "where is namzu.sandbox.ready",
        "q('namzu.sandbox.sandbox', **(where | combine({'namespace': 'A b'})))",
        "q('namzu.sandbox.sandbox', 'box', **(where | combine({'agent': {'address': 'service'}})))",
    ]
    tasks = [
        {"ansible.builtin.set_fact": {"answer": "{{ " + question + " }}"}, "vars": {"where": where}}
        for question in questions
    ]
    return play(tmp_path_factory.mktemp("lookup"), tasks, verbosity=4)


def answer(played: Played, number: int) -> t.Any:
    return played.results[number]["ansible_facts"]["answer"]


def test_a_name_gives_the_sandbox_with_its_address_and_the_variables_of_a_host(
    cluster: FakeCluster, played: Played
) -> None:
    (box,) = answer(played, 0)
    assert (box["name"], box["kind"], box["phase"], box["warm_pool"]) == ("box", "claim", "ready", POOL)
    assert box["uid"] == cluster.store.get(cluster.key("sandboxclaims", "box"))["metadata"]["uid"]
    assert box["address"] == {"host": box["pod_ip"], "port": 2048}
    assert box["host_vars"]["ansible_connection"] == "namzu.sandbox.sandbox"
    assert box["host_vars"]["ansible_sandbox_uid"] == box["uid"]


def test_without_a_name_all_are_returned_by_name(played: Played) -> None:
    assert [sandbox["name"] for sandbox in answer(played, 1)] == ["box", "waiting"]
    assert [sandbox["name"] for sandbox in answer(played, 2)] == ["box"]
    assert [sandbox["name"] for sandbox in answer(played, 3)] == ["box"]


@pytest.mark.parametrize("number", [4, 6])
def test_a_name_that_does_not_exist_fails_the_task(played: Played, number: int) -> None:
    assert played.results[number]["failed"]
    assert "does not exist" in played.results[number]["msg"]
    assert "namzu.sandbox.sandbox_info" in played.results[number]["msg"]


def test_errors_ignore_returns_nothing(played: Played) -> None:
    assert not played.results[5].get("failed")
    assert answer(played, 5) == []


def test_ready_and_expiring_judge_what_the_lookup_returns(played: Played) -> None:
    assert (answer(played, 7), answer(played, 8), answer(played, 9)) == (True, False, False)
    assert played.results[10]["failed"]
    assert "has no phase" in played.results[10]["msg"]


def test_a_namespace_that_cannot_be_one_is_refused(played: Played) -> None:
    assert played.results[11]["failed"]
    assert "namespace" in played.results[11]["msg"]


def test_an_address_by_service_is_the_name_in_the_dns(played: Played) -> None:
    (box,) = answer(played, 12)
    assert box["address"] == {"host": box["service"], "port": 1024}


def test_no_token_is_printed(cluster: FakeCluster, played: Played) -> None:
    assert access(cluster)["api_key"] not in str([result.get("ansible_facts") for result in played.results])


@pytest.mark.parametrize(
    ("left", "within", "expected"),
    [(60, 300, True), (60, "30s", False), (-5, 1, True), (3600, "2h", True), (None, "1h", False)],
)
def test_expiring_compares_the_end_of_the_lease_with_the_clock(left: int | None, within: t.Any, expected: bool) -> None:
    now = datetime.datetime.now(datetime.UTC)
    ends = None if left is None else (now + datetime.timedelta(seconds=left)).strftime("%Y-%m-%dT%H:%M:%SZ")
    assert expiring({"expires_at": ends}, within) is expected


@pytest.mark.parametrize(
    "call",
    [
        lambda: ready("box"),
        lambda: ready({}),
        lambda: expiring({"phase": "ready"}),
        lambda: expiring({"expires_at": "soon"}),
        lambda: expiring({"expires_at": "2026-01-01T00:00:00"}),
        lambda: expiring({"expires_at": "2026-01-01T00:00:00Z"}, "a while"),
    ],
)
def test_a_value_that_is_no_sandbox_is_an_error(call: t.Callable[[], object]) -> None:
    with pytest.raises(Exception, match=r"namzu\.sandbox\.(ready|expiring)"):
        call()
