# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Agents of real pods, spoken to without Ansible in between."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import resolve_access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import Deadline
from ansible_collections.namzu.sandbox.plugins.module_utils.guest.agent import Agent
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.acquire import acquire
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.release.release import release


class Held(t.NamedTuple):
    """A sandbox that a test holds, without Ansible in between."""

    agent: Agent
    namespace: str
    pod: str


@pytest.fixture
def hold(pool: t.Any, kubeconfig: str) -> t.Iterator[t.Callable[[], Held]]:
    """Takes sandboxes out of the pool, with a heartbeat of two seconds; they are given back when the test ends."""
    names: list[str] = []
    with Client(resolve_access({"kubeconfig": kubeconfig}, {})) as client:

        def take() -> Held:
            request = AcquireRequest(
                namespace=pool.namespace,
                warm_pool=pool.name,
                ready_timeout=60.0,
                agent_port=1024,
                agent_address=pool.access["agent"]["address"],
            )
            acquired = acquire(client, request)
            names.append(acquired.name)
            return Held(Agent(acquired.agent, subject=acquired.name, heartbeat=2.0), pool.namespace, acquired.pod)

        yield take
        for name in names:
            release(client, pool.namespace, name, Deadline(30.0))
