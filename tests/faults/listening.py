# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody who hears what a keeper reports, and time that passes for it."""

from __future__ import annotations

import threading

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client
from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.resources import CLAIM
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.keeper import Keeper, attempt
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.lease import Lease
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.lease.registry import Event, LeaseRegistry

from .fake.clock import SkippingClock
from .fake.controller import NAMESPACE


def elapse(keeper: Keeper, client: Client, clock: SkippingClock, seconds: float) -> None:
    """Let simulated time pass; the keeper waits in real time, and looks up because there is something new."""
    clock.sleep(seconds)
    keeper.hold(client, Lease(CLAIM.ref(NAMESPACE, "another"), "another", 3600.0, None), renewed=False)


def attempt_all(registry: LeaseRegistry, clock: SkippingClock, seconds: float) -> None:
    """Let simulated time pass, and make every attempt when it is due."""
    until = clock.monotonic() + seconds
    while (wait := registry.wait()) is not None and clock.monotonic() + wait < until:
        clock.sleep(wait)
        for entry in registry.take_due():
            attempt(registry, entry, clock)
    clock.sleep(max(0.0, until - clock.monotonic()))


class Listener:
    """Hears what a keeper reports, and can wait for it.

    Args:
        soon: real seconds in which what is waited for has been said.
    """

    def __init__(self, soon: float) -> None:
        self.said: list[Event] = []
        self._soon = soon
        self._changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._changed:
            self.said.append(event)
            self._changed.notify_all()

    def wait_for(self, kind: str) -> Event:
        """The first event of a kind."""

        def found() -> list[Event]:
            return [event for event in self.said if event.kind == kind]

        with self._changed:
            assert self._changed.wait_for(found, self._soon), f"nobody said {kind}: {self.said}"
            return found()[0]
