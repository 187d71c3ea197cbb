# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An acquire whose controller is stopped, or whose API server is restarted."""

from __future__ import annotations

import concurrent.futures
import contextlib
import time

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM, SANDBOX, Body
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import Acquired, AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.errors import AcquireError

from .outage import CONTROLLER, NAMESPACE, SOON, restarted_api_server, stopped, until, wait_for_member


def claims(client: Client) -> list[str]:
    return [body["metadata"]["name"] for body in client.list(CLAIM, NAMESPACE)["items"]]


def request(seconds: float) -> AcquireRequest:
    return AcquireRequest(
        namespace=NAMESPACE,
        warm_pool="python",
        name="build-1",
        ready_timeout=seconds,
        agent_address="pod_ip",
        ingress="unverified",
    )


def test_controller_that_is_stopped_is_not_ready_at_the_deadline_and_leaves_no_claim(client: Client) -> None:
    wait_for_member(client)
    with stopped(CONTROLLER):
        began = time.monotonic()
        with pytest.raises(AcquireError) as caught:
            acquire(client, request(4.0))
        assert 3.5 < time.monotonic() - began < 15.0
    assert (caught.value.reason, caught.value.retryable) == ("not-ready", True)
    assert caught.value.controller_reason is None
    assert "the controller has not answered (no status)" in caught.value.message
    assert "is the controller running?" in str(caught.value)
    assert claims(client) == []


def test_acquire_outlives_a_restart_of_the_api_server_with_one_claim_and_one_sandbox(client: Client) -> None:
    wait_for_member(client)
    with concurrent.futures.ThreadPoolExecutor(1) as threads, contextlib.ExitStack() as stack:
        with stopped(CONTROLLER):
            # Nobody answers the claim before the API server has gone and come back.
            acquiring: concurrent.futures.Future[Acquired] = threads.submit(acquire, client, request(90.0))
            until(lambda: claims(client) == ["build-1"], "the claim")
            assert not acquiring.done()
            stack.enter_context(restarted_api_server(client))
        acquired = acquiring.result(SOON)
        assert acquired.created
        assert acquired.verdict.privileges.none
        assert claims(client) == ["build-1"]
        claim = client.get(CLAIM.ref(NAMESPACE, "build-1"))
        assert (claim["metadata"]["uid"], claim["status"]["sandbox"]["name"]) == (acquired.uid, acquired.sandbox)
        sandboxes = client.list(SANDBOX, NAMESPACE)["items"]
        owned = [body["metadata"]["name"] for body in sandboxes if is_of(body, acquired.uid)]
        assert owned == [acquired.sandbox], "one claim, and one sandbox for it"


def is_of(body: Body, uid: str) -> bool:
    return any(owner["uid"] == uid for owner in body["metadata"].get("ownerReferences") or [])
