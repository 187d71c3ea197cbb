# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake cluster: API server, controller and agent, wired up as the core expects them."""

from __future__ import annotations

import contextlib
import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.access import Access
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.auth.credentials import StaticToken
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK, Clock
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.acquire.request import AcquireRequest

from .agent import POD_UID, FakeAgent
from .controller import NAMESPACE, POOL, FakeController
from .plan import Plan
from .server import TOKEN, FakeServer
from .store import Body, Key, Store

#: Lets nobody in, so that a sandbox may be handed out.
CLOSED: Body = {"metadata": {"name": "closed"}, "spec": {"podSelector": {}, "policyTypes": ["Ingress"]}}


class FakeCluster:
    """Use it as a context manager.

    Attributes:
        server, controller, agent: its parts.
    """

    def __init__(self) -> None:
        self.server = FakeServer()
        self.controller = FakeController(self.server, POD_UID)
        self.agent = FakeAgent()
        self._stack = contextlib.ExitStack()

    def __enter__(self) -> t.Self:
        for part in (self.server, self.controller, self.agent):
            self._stack.enter_context(part)
        self.store.create("namespaces", "", {"metadata": {"name": NAMESPACE}})
        self.store.create("networkpolicies", NAMESPACE, CLOSED)
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    @property
    def plan(self) -> Plan:
        """What goes wrong."""
        return self.server.plan

    @property
    def store(self) -> Store:
        """The objects."""
        return self.server.store

    def client(self, clock: Clock = SYSTEM_CLOCK, request_timeout: float = 30.0) -> Client:
        """A client of the core; the caller closes it."""
        access = Access(server=self.server.url, credential=StaticToken(TOKEN))
        return Client(access, request_timeout=request_timeout, clock=clock)

    def request(self, **changes: t.Any) -> AcquireRequest:
        """What is acquired unless a test says otherwise."""
        wanted: dict[str, t.Any] = {
            "namespace": NAMESPACE,
            "warm_pool": POOL,
            "ready_timeout": 5.0,
            "agent_port": self.agent.port,
            "ingress": "unverified",
        }
        return AcquireRequest(**{**wanted, **changes})

    def claims(self) -> list[str]:
        """The names of all claims that stand there."""
        return self.store.names("sandboxclaims")

    def key(self, plural: str, name: str) -> Key:
        """Where an object of that name stands."""
        return Key(plural, NAMESPACE, name)
