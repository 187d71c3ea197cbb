# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Leases while a real API server stands still."""

from __future__ import annotations

import datetime

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, SANDBOX
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.keeper import Keeper
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import Lease
from tests.faults.listening import Listener

from .outage import NAMESPACE, SOON, stopped, until

#: Seconds of a lease: half of it is enough for a look at what the keeper says, also on a busy machine.
TTL = 20.0


def claimed(client: Client, name: str) -> Lease:
    """A claim with its sandbox, ready or not."""
    ref = CLAIM.ref(NAMESPACE, name)
    end = (datetime.datetime.now(datetime.UTC) + datetime.timedelta(seconds=TTL)).replace(microsecond=0)
    life = {"shutdownTime": end.strftime("%Y-%m-%dT%H:%M:%SZ"), "shutdownPolicy": "Delete"}
    body = {
        "apiVersion": CLAIM.api_version,
        "kind": CLAIM.name,
        "metadata": {"name": name, "namespace": NAMESPACE},
        "spec": {"warmPoolRef": {"name": "python"}, "lifecycle": life},
    }
    uid = client.create(ref, body)["metadata"]["uid"]
    bound = until(lambda: ((client.get(ref).get("status") or {}).get("sandbox") or {}).get("name"), "the sandbox")
    return Lease(ref, uid, TTL, end, bound)


def test_lease_outlives_a_server_that_stands_still_for_less_than_the_rest_of_it(client: Client) -> None:
    listener = Listener(SOON)
    with Keeper(listener) as keeper:
        lease = claimed(client, "outlives")
        sandbox = client.get(SANDBOX.ref(NAMESPACE, str(lease.sandbox)))["metadata"]["uid"]
        entry = keeper.hold(client, lease)
        with stopped("kube-apiserver"):
            failed = listener.wait_for("failed")
        listener.wait_for("recovered")
        assert failed.error is not None
        assert failed.error.retryable
        assert entry.lost is None
        # Beyond the end that it had before.
        until(lambda: datetime.datetime.now(datetime.UTC) > lease.expires_at + datetime.timedelta(seconds=2), "its end")
        assert client.get(lease.ref)["metadata"]["uid"] == lease.uid
        assert client.get(SANDBOX.ref(NAMESPACE, str(lease.sandbox)))["metadata"]["uid"] == sandbox
    client.delete(lease.ref)


def test_lease_does_not_outlive_a_server_that_stands_still_for_longer_and_its_loss_has_a_name(client: Client) -> None:
    listener = Listener(SOON)
    with Keeper(listener) as keeper:
        lease = claimed(client, "lost")
        entry = keeper.hold(client, lease)
        with stopped("kube-apiserver"):
            lost = listener.wait_for("lost")
        assert [event.kind for event in listener.said] == ["failed", "lost"]
        assert lost.error is entry.lost
        assert lost.error is not None
        assert (lost.error.reason, lost.error.object) == ("expired", str(lease.ref))
        assert "did not answer in time" in lost.error.message
    until(
        lambda: lease.ref.name not in [one["metadata"]["name"] for one in client.list(CLAIM, NAMESPACE)["items"]],
        "its end",
    )
