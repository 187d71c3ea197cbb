# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Many at once, under every fault, interrupted anywhere: all or what was asked to be kept, and nothing else."""

from __future__ import annotations

import concurrent.futures
import math
import signal
import threading
import time
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import acquire as acquire_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import (
    PartialAcquireError,
    acquire_many,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.pod import bind_pod
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.many import names_matching, release_many
from ansible_collections.namzu.sandbox.plugins.module_utils.numbering import MAXIMUM_COUNT

from ..fake.cluster import FakeCluster
from ..fake.controller import NAMESPACE
from ..fake.plan import Fault, How, Request, status
from ..traffic import CREATE, DELETE, GET_POD, GET_SANDBOX, WATCH

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

COUNT = 3
LIST = Request("list", "sandboxclaims")
EACH = (CREATE, GET_POD, GET_SANDBOX)
#: Real seconds that nothing here may take.
IN_TIME = 8.0

PASSING = (
    status(429, retry_after="0"),
    Fault(How.STATUS_AFTER_ACTING, 504),
    Fault(How.HANG),
    Fault(How.NO_JSON),
)
LASTING = (
    status(403),
    status(409),
    status(429, retry_after="1000000000000"),
    status(503),
    Fault(How.HANG),
    Fault(How.CUT_BEFORE),
)


def partial(client: Client, cluster: FakeCluster, *, on_failure: t.Any = "release_all", **request: t.Any) -> t.Any:
    """The error of an acquire of some that must fail in time."""
    began = time.monotonic()
    with pytest.raises(PartialAcquireError) as caught:
        acquire_many(client, cluster.request(**request), COUNT, on_failure)
    assert time.monotonic() - began < IN_TIME
    return caught.value


def no_thread_is_left() -> bool:
    """Whether the threads of a call end with it."""
    ours = [thread for thread in threading.enumerate() if thread.name.startswith("namzu-")]
    for thread in ours:
        thread.join(5.0)
    return not any(thread.is_alive() for thread in ours)


@pytest.mark.parametrize("request_kind", [LIST, WATCH, *EACH], ids=str)
@pytest.mark.parametrize("fault", PASSING, ids=str)
def test_fault_that_passes_is_outlived_with_one_claim_each(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    cluster.plan.add(fault, request_kind)
    acquired = acquire_many(client, cluster.request(name="build", ready_timeout=20.0), COUNT)
    assert [one.name for one in acquired] == ["build-0", "build-1", "build-2"] == cluster.claims()
    assert all(one.created for one in acquired)


@pytest.mark.parametrize("request_kind", EACH, ids=str)
@pytest.mark.parametrize("fault", LASTING, ids=lambda fault: str(fault)[:30])
def test_fault_that_lasts_leaves_nothing(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    cluster.plan.add(fault, request_kind, times=math.inf)
    error = partial(client, cluster, ready_timeout=2.0)
    assert len(error.outcomes) == COUNT
    assert all(outcome.error is not None and outcome.acquired is None for outcome in error.outcomes)
    assert cluster.claims() == []


@pytest.mark.parametrize("request_kind", [LIST, WATCH], ids=str)
@pytest.mark.parametrize("fault", [status(503), Fault(How.HANG), Fault(How.CUT_BEFORE)], ids=str)
def test_watch_that_never_stands_leaves_nothing(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    cluster.controller.ready = None
    cluster.plan.add(fault, request_kind, times=math.inf)
    partial(client, cluster, ready_timeout=1.0)
    assert cluster.claims() == []
    assert no_thread_is_left()


@pytest.mark.parametrize("request_kind", EACH, ids=str)
@pytest.mark.parametrize("fault", [status(403), status(409), status(503), Fault(How.CUT_BEFORE)], ids=str)
def test_keep_says_which_could_be_had_and_leaves_no_other(
    cluster: FakeCluster, client: Client, fault: Fault, request_kind: Request
) -> None:
    cluster.plan.add(fault, request_kind, nth=2, times=math.inf)
    error = partial(client, cluster, on_failure="keep", name="build", ready_timeout=2.0)
    kept = [outcome.name for outcome in error.outcomes if outcome.acquired is not None]
    assert [outcome.name for outcome in error.outcomes] == ["build-0", "build-1", "build-2"]
    assert all((outcome.acquired is None) != (outcome.error is None) for outcome in error.outcomes)
    assert cluster.claims() == kept
    # A Sandbox is read twice for each of them, so the second read may be any one's first.
    assert len(kept) in ((0, 1) if request_kind == GET_SANDBOX else (1,))
    assert "cancelled" not in {outcome.error.reason for outcome in error.outcomes if outcome.error}


def test_member_that_stood_there_is_kept_when_another_fails(cluster: FakeCluster, client: Client) -> None:
    before = acquire(client, cluster.request(name="build-0"))
    cluster.store.create("sandboxclaims", NAMESPACE, {"metadata": {"name": "build-1"}, "spec": {}})
    error = partial(client, cluster, name="build")
    assert error.reason == "conflict"
    assert cluster.claims() == ["build-0", "build-1"]
    assert cluster.store.get(cluster.key("sandboxclaims", "build-0"))["metadata"]["uid"] == before.uid


def test_member_that_stood_there_is_not_said_to_have_been_given_back(
    cluster: FakeCluster, client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: its outcome said that it was given back."""
    acquire(client, cluster.request(name="build-0"))
    first_is_had = threading.Event()

    def in_order(client: Client, namespace: str, sandbox: str, *rest: t.Any, **more: t.Any) -> t.Any:
        if sandbox != "python-00001":
            first_is_had.wait(5.0)
            raise InputError("not this one")
        return bind_pod(client, namespace, sandbox, *rest, **more)

    def had(*arguments: t.Any) -> t.Any:
        probed = probe(*arguments)
        first_is_had.set()
        return probed

    probe = acquire_module.probe_privileges
    monkeypatch.setattr(acquire_module, "bind_pod", in_order)
    monkeypatch.setattr(acquire_module, "probe_privileges", had)
    first = partial(client, cluster, name="build").outcomes[0]
    assert (first.error.reason, first.error.object) == ("cancelled", "SandboxClaim team-a/build-0")
    assert "stood there before and stays" in first.error.message
    assert cluster.claims() == ["build-0"]


def test_members_that_stood_there_are_all_kept_and_nothing_is_made(cluster: FakeCluster, client: Client) -> None:
    made = acquire_many(client, cluster.request(name="build"), COUNT)
    again = acquire_many(client, cluster.request(name="build"), COUNT)
    assert [one.uid for one in made] == [one.uid for one in again]
    assert not any(one.created for one in again)


def test_member_that_stood_there_without_the_batch_label_is_followed_on_its_own(
    cluster: FakeCluster, real_time_client: Client
) -> None:
    ready, cluster.controller.ready = cluster.controller.ready, None
    key = cluster.key("sandboxclaims", "build-0")
    spec = {"warmPoolRef": {"name": "python"}}
    cluster.store.create("sandboxclaims", NAMESPACE, {"metadata": {"name": "build-0"}, "spec": spec})
    cluster.store.create("sandboxes", NAMESPACE, {"metadata": {"name": "late"}, "status": {"serviceFQDN": "127.0.0.1"}})
    pod = {"metadata": {"name": "late", "uid": cluster.controller._pod_uid}, "status": {"phase": "Running"}}
    cluster.store.create("pods", NAMESPACE, pod)
    bound = {"status": {"conditions": [ready], "sandbox": {"name": "late"}}}
    cluster.server.later(0.2, lambda: cluster.store.patch(key, bound))
    (acquired,) = acquire_many(real_time_client, cluster.request(name="build"), 1)
    assert (acquired.sandbox, acquired.created) == ("late", False)
    assert cluster.plan.received().count(WATCH) == 2


def test_what_could_not_be_given_back_is_named(cluster: FakeCluster, client: Client) -> None:
    cluster.plan.add(status(403), DELETE, times=math.inf)
    cluster.plan.add(status(422), GET_POD, nth=COUNT)
    left = {f"SandboxClaim team-a/{name}" for name in ("build-0", "build-1", "build-2")}
    error = partial(client, cluster, name="build")
    assert {outcome.error.leftover for outcome in error.outcomes} == left


def test_interrupt_while_others_run_leaves_nothing(
    cluster: FakeCluster, real_time_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    completed = concurrent.futures.as_completed

    def interrupted(running: t.Any) -> t.Iterator[t.Any]:
        for first in completed(running):
            yield first
            raise KeyboardInterrupt

    monkeypatch.setattr(concurrent.futures, "as_completed", interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire_many(real_time_client, cluster.request(), 20)
    assert cluster.claims() == []
    assert no_thread_is_left()


def test_interrupt_while_the_work_is_handed_out_leaves_nothing(
    cluster: FakeCluster, real_time_client: Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Found: those that had been begun went on, and what they acquired stayed."""
    submit = concurrent.futures.ThreadPoolExecutor.submit
    begun: list[concurrent.futures.Future[t.Any]] = []

    def interrupted(self: t.Any, call: t.Any, *arguments: t.Any) -> t.Any:
        if len(begun) == 2:
            assert all(one.result().acquired for one in begun)
            monkeypatch.undo()  # the cleanup hands out work too
            raise KeyboardInterrupt
        begun.append(submit(self, call, *arguments))
        return begun[-1]

    monkeypatch.setattr(concurrent.futures.ThreadPoolExecutor, "submit", interrupted)
    with pytest.raises(KeyboardInterrupt):
        acquire_many(real_time_client, cluster.request(), COUNT)
    assert len(begun) == 2
    assert cluster.claims() == []


@pytest.mark.parametrize("error", [KeyboardInterrupt, TypeError, MemoryError])
@pytest.mark.parametrize("on_failure", ["release_all", "keep"])
def test_one_that_breaks_leaves_nothing_of_the_others(
    cluster: FakeCluster,
    real_time_client: Client,
    monkeypatch: pytest.MonkeyPatch,
    error: type[BaseException],
    on_failure: t.Any,
) -> None:
    """Found: what the others had acquired by then stayed."""
    others = threading.Semaphore(0)

    def breaking(client: Client, namespace: str, sandbox: str, *rest: t.Any, **more: t.Any) -> t.Any:
        if sandbox == "python-00001":
            for _other in range(COUNT - 1):
                others.acquire(timeout=5.0)
            raise error
        return bind_pod(client, namespace, sandbox, *rest, **more)

    def probed(*arguments: t.Any) -> t.Any:
        result = probe(*arguments)
        others.release()
        return result

    probe = acquire_module.probe_privileges
    monkeypatch.setattr(acquire_module, "bind_pod", breaking)
    monkeypatch.setattr(acquire_module, "probe_privileges", probed)
    with pytest.raises(error):
        acquire_many(real_time_client, cluster.request(), COUNT, on_failure)
    assert cluster.claims() == []


def test_sigint_while_claims_are_waited_for_leaves_nothing(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.ready = None
    main = threading.get_ident()
    cluster.server.later(0.3, lambda: signal.pthread_kill(main, signal.SIGINT))
    began = time.monotonic()
    with pytest.raises(KeyboardInterrupt):
        acquire_many(real_time_client, cluster.request(ready_timeout=60.0), 20)
    assert time.monotonic() - began < IN_TIME
    assert cluster.claims() == []
    assert no_thread_is_left()


def test_wait_that_the_server_asked_for_ends_when_it_is_cancelled(
    cluster: FakeCluster, real_time_client: Client
) -> None:
    """Found: the others were waited for as long as Retry-After said."""
    cluster.plan.add(status(429, retry_after="30"), CREATE)
    cluster.plan.add(status(403), CREATE, nth=2)
    error = partial(real_time_client, cluster, name="build", ready_timeout=60.0)
    assert error.reason == "forbidden"
    assert cluster.claims() == []


def test_twenty_cost_at_most_four_requests_each(cluster: FakeCluster, real_time_client: Client) -> None:
    cluster.controller.bind_delay = 0.05
    acquire_many(real_time_client, cluster.request(), 20)
    received = cluster.plan.received()
    assert len(received) <= 4 * 20 + 2
    assert (received.count(LIST), received.count(WATCH)) == (1, 1)


def test_all_wait_at_the_same_time(cluster: FakeCluster, real_time_client: Client) -> None:
    """Found: as many as there are connections waited, and the others were not even begun."""
    count, waiting = 40, []
    bind = cluster.controller._bind

    def when_all_are_there(event: t.Any) -> None:
        waiting.append(event)
        for claim in waiting if len(waiting) == count else ():
            bind(claim)

    cluster.controller._bind = when_all_are_there  # type: ignore[method-assign]
    acquired = acquire_many(real_time_client, cluster.request(ready_timeout=20.0), count)
    assert len({one.sandbox for one in acquired}) == count


def test_call_leaves_no_thread(cluster: FakeCluster, real_time_client: Client) -> None:
    acquire_many(real_time_client, cluster.request(ready_timeout=60.0), COUNT)
    assert no_thread_is_left()


@pytest.mark.parametrize("count", [0, -1, MAXIMUM_COUNT + 1])
def test_count_out_of_bounds_is_refused_before_anything_is_sent(
    cluster: FakeCluster, client: Client, count: int
) -> None:
    with pytest.raises(InputError, match="count"):
        acquire_many(client, cluster.request(), count)
    assert cluster.plan.received() == []


def test_name_that_a_number_makes_too_long_is_refused_before_anything_is_sent(
    cluster: FakeCluster, client: Client
) -> None:
    with pytest.raises(InputError, match="name"):
        acquire_many(client, cluster.request(name="a" * 61), 11)
    assert cluster.plan.received() == []


@pytest.mark.parametrize(
    "fault",
    [
        status(429, retry_after="0"),
        status(503),
        Fault(How.HANG),
        Fault(How.CUT_BEFORE),
        Fault(How.CUT_AFTER),
        Fault(How.NO_JSON),
    ],
    ids=str,
)
def test_release_of_many_outlives_a_fault_that_passes(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    acquire_many(client, cluster.request(name="build"), COUNT)
    cluster.plan.add(fault, DELETE, nth=2)
    names = ["build-0", "build-1", "build-2", "build-0"]
    released, failures = release_many(client, NAMESPACE, names, Deadline(5.0, client.clock))
    assert [(one.name, one.existed) for one in released] == [(name, True) for name in names[:3]]
    assert (failures, cluster.claims()) == ({}, [])


@pytest.mark.parametrize("fault", LASTING, ids=lambda fault: str(fault)[:30])
def test_release_of_many_names_the_ones_that_stay(cluster: FakeCluster, client: Client, fault: Fault) -> None:
    acquire_many(client, cluster.request(name="build"), COUNT)
    cluster.plan.add(fault, DELETE, nth=2, times=math.inf)
    began = time.monotonic()
    deadline = Deadline(2.0, client.clock)
    released, failures = release_many(client, NAMESPACE, ["build-0", "build-1", "build-2"], deadline)
    assert time.monotonic() - began < IN_TIME
    assert (len(released), sorted(failures)) == (1, cluster.claims())


def test_release_of_many_costs_one_request_each(cluster: FakeCluster, client: Client) -> None:
    acquire_many(client, cluster.request(labels={"job": "7"}), 10)
    cluster.plan.clear()
    deadline = Deadline(5.0, client.clock)
    names = names_matching(client, NAMESPACE, "job=7", deadline)
    release_many(client, NAMESPACE, names, deadline)
    assert cluster.claims() == []
    assert len(cluster.plan.received()) == 10 + 2


def test_release_without_names_asks_nothing(cluster: FakeCluster, client: Client) -> None:
    assert release_many(client, NAMESPACE, [], Deadline(5.0, client.clock)) == ([], {})
    assert cluster.plan.received() == []


def test_selector_that_is_empty_is_refused_before_anything_is_sent(cluster: FakeCluster, client: Client) -> None:
    with pytest.raises(InputError, match="label_selector is empty"):
        names_matching(client, NAMESPACE, "  ", Deadline(5.0, client.clock))
    assert cluster.plan.received() == []
