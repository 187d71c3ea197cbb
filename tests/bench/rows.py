# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The rows of the benchmark: what is measured against what, and the budget of each ratio."""

from __future__ import annotations

import concurrent.futures
import contextlib
import dataclasses
import json
import os
import shlex
import sys
import typing as t
import uuid

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, POD, SANDBOX
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.batch import acquire_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.many import release_many
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release

from .bare import TTL, Bare
from .measure import command, side_by_side
from .stage import HERE, Stage

ITEMS = 10

#: What the tests let a ratio be, in budgets: on a machine that nobody watches a slow product fails, and not a bad
#: moment. ``make bench`` holds the figures against the budgets themselves.
GUARD = 1.25
#: A ratio that is beyond that is measured again, this often in all.
ATTEMPTS = 3


@dataclasses.dataclass(frozen=True)
class Ratio:
    """One figure: ours over theirs.

    Attributes:
        name: what it compares.
        value: ours divided by the other.
        budget: the most that it may be.
        detail: medians in seconds, for orientation only: absolute times belong to the machine.
    """

    name: str
    value: float
    budget: float
    detail: str

    @property
    def holds(self) -> bool:
        """Whether the budget is kept."""
        return self.value <= self.budget


def regressions(measure: t.Callable[[], list[Ratio]]) -> list[Ratio]:
    """The ratios that were far over their budgets in each of some measurements; each figure is printed."""
    over: list[Ratio] = []
    for _attempt in range(ATTEMPTS):
        ratios = measure()
        print(*ratios, sep="\n")
        over = [ratio for ratio in ratios if ratio.value > ratio.budget * GUARD]
        if not over:
            break
    return over


def acquire_release(stage: Stage, rounds: int = 3) -> list[Ratio]:
    """Ten acquires and ten releases in one play against kubernetes.core, and against what they must cost.

    That is one play too: the same requests from a bare script, and as many items of ``debug``. Measured apart they add
    up to less, because the pool refills on the same processors, and less of that falls into either.
    """
    extra = ["-e", f"bench_items={ITEMS}"]
    bare = shlex.join([sys.executable, str(HERE / "bare.py"), stage.namespace, stage.pool, str(ITEMS)])
    measured = side_by_side(
        {
            "ours": command(stage.play("ours.yml", *extra)),
            "floor": command(stage.play("floor.yml", *extra, "-e", json.dumps({"bench_requests": bare}))),
            "kubernetes.core": command(stage.play("kubernetes_core.yml", *extra)),
        },
        rounds,
        stage.settle,
    )
    ours, floor, theirs = (measured[name].median for name in ("ours", "floor", "kubernetes.core"))
    detail = ", ".join(f"{name} {one.median:.2f} s" for name, one in measured.items())
    return [
        Ratio("play: ours / kubernetes.core.k8s with wait", ours / theirs, 0.25, detail),
        Ratio("play: ours / (the same bare requests + debug items)", ours / floor, 1.15, detail),
    ]


def core_acquire(stage: Stage, rounds: int = 20) -> list[Ratio]:
    """The core's acquire (claim, watch, bind, probe) against a bare POST, watch and GET of the same claim.

    These four stages alone: the policies and the template, which an acquire reads besides by default, are left out on
    both sides.
    """
    bare = Bare(os.environ["KUBECONFIG"])
    held: list[str] = []

    def name() -> str:
        held.append(f"bench-{uuid.uuid4().hex[:12]}")
        return held[-1]

    def ours() -> None:
        acquire(
            stage.client,
            AcquireRequest(
                namespace=stage.namespace,
                warm_pool=stage.pool,
                name=name(),
                ttl=TTL,
                agent_address="pod_ip",
                ingress="unverified",
                on_stale="ignore",
            ),
        )

    def theirs() -> None:
        bare.acquire(stage.namespace, stage.pool, name())

    def settle() -> None:
        for claim in held:
            release(stage.client, stage.namespace, claim, Deadline(60))
        held.clear()
        stage.settle()

    measured = side_by_side({"ours": ours, "bare": theirs}, rounds, settle)
    settle()
    bare.close()
    detail = ", ".join(f"{key} {one.median * 1000:.0f} ms" for key, one in measured.items())
    ratio = measured["ours"].median / measured["bare"].median
    return [Ratio("core: acquire / bare POST + watch + GET", ratio, 1.3, detail)]


def many(stage: Stage, rounds: int = 3) -> list[Ratio]:
    """A whole pool at once with ``count``, against as many threads that each do a bare POST, watch and GET.

    The boundary is left unverified, as the bare threads read no policy.
    """
    client = Client(resolve_access({}, os.environ))
    request = AcquireRequest(
        namespace=stage.namespace,
        warm_pool=stage.pool,
        name="bench-many",
        ttl=TTL,
        agent_address="pod_ip",
        ingress="unverified",
    )

    def ours() -> None:
        acquire_many(client, request, stage.replicas)

    def one(number: int) -> None:
        with contextlib.closing(Bare(os.environ["KUBECONFIG"])) as bare:
            bare.acquire(stage.namespace, stage.pool, f"bench-many-{number}")

    def theirs() -> None:
        with concurrent.futures.ThreadPoolExecutor(stage.replicas) as threads:
            list(threads.map(one, range(stage.replicas)))

    def settle() -> None:
        release_many(
            client, stage.namespace, [f"bench-many-{number}" for number in range(stage.replicas)], Deadline(60)
        )
        stage.settle()

    measured = side_by_side({"ours": ours, "bare": theirs}, rounds, settle)
    settle()
    client.close()
    detail = ", ".join(f"{key} {one.median:.2f} s" for key, one in measured.items())
    ratio = measured["ours"].median / measured["bare"].median
    return [Ratio(f"core: {stage.replicas} at once / as many bare threads", ratio, 1.2, detail)]


def loop(stage: Stage, rounds: int = 5) -> list[Ratio]:
    """Twenty loop items of a verb that reads, against as many of ``debug`` and the bare requests that it makes."""
    extra = ["-e", f"bench_items={ITEMS}"]
    bare = Bare(os.environ["KUBECONFIG"])
    lists = [kind.collection(stage.namespace) for kind in (CLAIM, SANDBOX, SANDBOX, POD)]

    def requests() -> None:
        for _item in range(2 * ITEMS):
            for path in lists:
                bare.request("GET", path)

    measured = side_by_side(
        {
            "ours": command(stage.play("info.yml", *extra)),
            "debug": command(stage.play("debug.yml", *extra)),
            "bare": requests,
        },
        rounds,
        stage.settle,
    )
    bare.close()
    ours, floor = measured["ours"].median, measured["debug"].median + measured["bare"].median
    detail = ", ".join(f"{name} {one.median:.2f} s" for name, one in measured.items())
    return [Ratio(f"play: {2 * ITEMS} items of sandbox_info / (debug items + requests)", ours / floor, 1.3, detail)]


#: Rows that ``make bench`` prints.
ROWS: dict[str, t.Callable[..., list[Ratio]]] = {
    "core_acquire": core_acquire,
    "acquire_release": acquire_release,
    "loop": loop,
}

#: Rows that need a large pool, and minutes to fill it between rounds; measured when asked for.
LARGE_ROWS: dict[str, t.Callable[..., list[Ratio]]] = {"many": many}
LARGE_POOL = 50
