# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A fake cluster for each test, and a clock on which nobody waits."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.cluster import client as client_module
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification import verify as verification

from . import bounded as bounded_module
from .fake.clock import SkippingClock
from .fake.cluster import FakeCluster

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client

#: Seconds for one request in these tests: enough for a loaded machine to answer, and little to wait for who hangs.
REQUEST_SECONDS = 0.4


@pytest.fixture
def cluster() -> t.Iterator[FakeCluster]:
    """API server, controller and agent, with nothing in them."""
    with FakeCluster() as made:
        yield made


@pytest.fixture(autouse=True)
def _no_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A process that remembers no policies of another test."""
    for memory in ("_WORLDS", "_VERSIONS"):
        monkeypatch.setattr(verification, memory, type(getattr(verification, memory))())


@pytest.fixture
def bounded(cluster: FakeCluster) -> FakeCluster:
    """A cluster whose sandboxes have a boundary."""
    return bounded_module.set_up(cluster)


@pytest.fixture
def clock() -> SkippingClock:
    """A clock whose sleeps take no time."""
    return SkippingClock()


@pytest.fixture
def client(cluster: FakeCluster, clock: SkippingClock, monkeypatch: pytest.MonkeyPatch) -> t.Iterator[Client]:
    """A client that waits for nobody: no time between attempts, and little for an answer."""
    monkeypatch.setattr(client_module, "MINIMUM_REQUEST_TIMEOUT", REQUEST_SECONDS)
    with cluster.client(clock, request_timeout=REQUEST_SECONDS) as made:
        yield made


@pytest.fixture
def real_time_client(cluster: FakeCluster) -> t.Iterator[Client]:
    """A client on the machine's own clock."""
    with cluster.client(request_timeout=5.0) as made:
        yield made


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """These tests are about requests, which no Python version changes."""
    here = pathlib.Path(__file__).parent
    for item in items:
        if here in item.path.parents:
            item.add_marker(pytest.mark.one_python)
