# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Nothing is remembered of a cluster: one that was replaced behind the same address is seen as it is now."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ..fake.cluster import FakeCluster
from ..fake.store import KINDS
from ..operations import OPERATIONS, Operation

if t.TYPE_CHECKING:
    from ansible_collections.namzu.sandbox.plugins.module_utils.cluster.client import Client


@pytest.mark.parametrize("operation", OPERATIONS.values(), ids=[name.replace(" ", "-") for name in OPERATIONS])
def test_no_operation_asks_what_the_cluster_serves_or_keeps_a_file(
    cluster: FakeCluster,
    client: Client,
    operation: Operation,
    tmp_path: pathlib.Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """kubernetes.core issues 351 and 1054: there, a discovery of the old cluster stood in a file."""
    for variable in ("HOME", "TMPDIR", "XDG_CACHE_HOME"):
        monkeypatch.setenv(variable, str(tmp_path))
    operation.prepare(cluster, client)
    operation.run(cluster, client, 5.0)
    received = cluster.plan.received()
    assert set(operation.requests) <= set(received)
    assert {request.plural for request in received} <= set(KINDS)
    assert list(tmp_path.iterdir()) == []


def test_same_client_sees_the_objects_of_the_cluster_that_replaced_the_first(
    cluster: FakeCluster, client: Client
) -> None:
    inventory = OPERATIONS["inventory"]
    inventory.prepare(cluster, client)
    assert [one.name for one in t.cast("t.Any", inventory.run(cluster, client, 5.0))] == ["build-1"]
    # The cluster that replaced the first has a namespace of that name too.
    for plural in KINDS.keys() - {"namespaces"}:
        for name in cluster.store.names(plural):
            cluster.store.delete(cluster.key(plural, name))
    assert inventory.run(cluster, client, 5.0) == []
