# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A cluster whose network enforces no policy: every object is right, and only the active probe can tell."""

from __future__ import annotations

import shlex
from collections.abc import Iterator

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import translate
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, NETWORK_POLICY
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import BoundaryError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import EgressBoundary

from .outage import NAMESPACE, command, make_pool, wait_for_member

POLICY = "closed"
LABELS = {"sandbox.users.io/team": "a"}


@pytest.fixture(scope="module")
def client() -> Iterator[Client]:
    """A client of a cluster without enforcement, with a pool of one ready member and a policy."""
    command("up", "--no-enforcement")
    try:
        exports = dict(word.split("=", 1) for word in shlex.split(command("env")) if "=" in word)
        with Client(resolve_access({"kubeconfig": exports["KUBECONFIG"].rstrip(";")}, {})) as made:
            make_pool(made)
            policy = translate("no_network", namespace=NAMESPACE, name=POLICY, labels=LABELS)
            made.create(NETWORK_POLICY.ref(NAMESPACE, POLICY), policy)
            wait_for_member(made)
            yield made
    finally:
        command("down")


def request(*, network_probe: bool) -> AcquireRequest:
    egress = {"kind": "no_network", "name": POLICY, "verify": "union"}
    return AcquireRequest(
        namespace=NAMESPACE,
        warm_pool="python",
        name="build-1",
        pod_labels=LABELS,
        ready_timeout=12.0,
        agent_address="pod_ip",
        ingress="unverified",
        egress=EgressBoundary.of(egress),
        network_probe=network_probe,
    )


def test_every_policy_is_right_and_the_active_probe_says_that_none_is_enforced(client: Client) -> None:
    assert acquire(client, request(network_probe=False)).verdict.boundary.egress.holds
    release(client, NAMESPACE, "build-1", Deadline(60.0), wait=True)
    wait_for_member(client)
    with pytest.raises(BoundaryError, match="the network enforces nothing") as caught:
        acquire(client, request(network_probe=True))
    assert caught.value.fields()["network_probe"]["holds"] is False
    assert client.list(CLAIM, NAMESPACE)["items"] == []
