# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What is tried from inside of a sandbox before it is handed out, and what its answers prove."""

from __future__ import annotations

import math
import re
import typing as t

import pytest
from ansible.module_utils.common.arg_spec import ArgumentSpecValidator

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context, perform
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.boundary_check import VERB as BOUNDARY_CHECK
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.network_probe import NetworkProbe
from ansible_collections.namzu.sandbox.tests.unit.front.playing import access

from ..bounded import wanted
from ..fake.cluster import FakeCluster
from ..fake.plan import Request, status

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


def boundary_check(cluster: FakeCluster, **options: t.Any) -> dict[str, t.Any]:
    """What the verb says of a sandbox that is held."""
    given = access(cluster, name="build-1", egress={"kind": "dns_only"}, network_probe=True, fail=False, **options)
    given["agent"] = {"port": cluster.agent.port, "address": "pod_ip"}
    validated = ArgumentSpecValidator(BOUNDARY_CHECK.options, **BOUNDARY_CHECK.constraints).validate(given)
    assert validated.error_messages == []
    result = perform(BOUNDARY_CHECK, validated.validated_parameters, Context(check_mode=False, environ={}))
    return t.cast("dict[str, t.Any]", result["checks"][0])


def test_a_check_tries_the_neighbours_of_a_sandbox_that_is_held(bounded: FakeCluster, client: Client) -> None:
    bounded.agent.connects = lambda: {"dns"}
    acquire(client, wanted(bounded, name="build-1"))
    found = boundary_check(bounded)
    assert found["holds"]
    assert found["network_probe"]["holds"]
    assert {"dns", "api"} <= {attempt["place"] for attempt in found["network_probe"]["attempts"]}
    assert Request("list", "pods") in bounded.plan.received()


def test_a_check_says_that_nothing_is_enforced_and_gives_nothing_back(bounded: FakeCluster, client: Client) -> None:
    acquire(client, wanted(bounded, name="build-1"))
    found = boundary_check(bounded, probe_timeout="2s")
    assert not found["holds"]
    assert "the network enforces nothing" in found["network_probe"]["problem"]
    assert bounded.claims() == ["build-1"]
