# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is tried from inside of a sandbox before it is handed out, and what its answers prove."""

from __future__ import annotations

import math
import re
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.network_probe import NetworkProbe

from .bounded import wanted
from .fake.cluster import FakeCluster
from .fake.plan import Request, status

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client


def probed(client: Client, cluster: FakeCluster, **changes: t.Any) -> NetworkProbe:
    network = acquire(client, wanted(cluster, network_probe=True, **changes)).verdict.network
    assert network is not None
    return network


def refused(client: Client, cluster: FakeCluster, **changes: t.Any) -> BoundaryError:
    with pytest.raises(BoundaryError) as caught:
        probed(client, cluster, **changes)
    assert cluster.claims() == []
    return caught.value


def test_network_that_enforces_is_tried_and_told(bounded: FakeCluster, client: Client) -> None:
    bounded.agent.connects = lambda: {"dns"}
    network = probed(client, bounded)
    assert (network.holds, network.rounds) == (True, 1)
    said = {(attempt.place.name, attempt.place.protocol): attempt.says for attempt in network.attempts}
    assert said["api", "TCP"] == "closed"
    assert said["dns", "UDP"] == "open"
    assert said["public", "TCP"] == "cannot tell"


def test_network_that_enforces_nothing_is_said_to_do_so(bounded: FakeCluster, client: Client) -> None:
    error = refused(client, bounded)
    assert re.search(r"the network enforces nothing: the API server at 10\.96\.0\.1:443/TCP", str(error))
    assert error.fields()["network_probe"]["holds"] is False


def test_policies_that_are_enforced_late_are_waited_for(bounded: FakeCluster, client: Client) -> None:
    rounds = [0]

    def connects() -> set[str]:
        # Asked once for each place.
        rounds[0] += 1
        return {"dns", "api"} if rounds[0] <= 12 else {"dns"}

    bounded.agent.connects = connects
    assert probed(client, bounded, ready_timeout=30.0).rounds > 1


def test_dns_that_is_open_and_does_not_answer_is_refused(bounded: FakeCluster, client: Client) -> None:
    bounded.agent.connects = set
    assert "the DNS server at 10.96.0.10:53/UDP did not answer" in str(refused(client, bounded))


def test_pods_that_cannot_be_listed_are_not_tried(bounded: FakeCluster, client: Client) -> None:
    bounded.agent.connects = lambda: {"dns"}
    bounded.plan.add(status(403), Request("list", "pods"), times=math.inf)
    assert "pod" not in {attempt.place.name for attempt in probed(client, bounded).attempts}


@pytest.mark.parametrize("said", ["", "[]", "{}", "[1, 2, 3, 4, 5]", "[" * 100_000, '{"host": "somewhere"}'])
def test_answer_that_is_none_is_no_proof(bounded: FakeCluster, client: Client, said: str) -> None:
    bounded.agent.tried = lambda _asked: said  # type: ignore[method-assign]
    assert "could not be read" in str(refused(client, bounded))
