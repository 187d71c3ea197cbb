# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The connection plugin has not become slower than it promises to be, on the cluster that KUBECONFIG names.

Both sides of a ratio run in turns on one pod.
"""

from __future__ import annotations

import typing as t

import pytest

from tests.bench.connection import CONNECTION_ROWS
from tests.bench.rows import regressions
from tests.bench.stage import Stage

pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def stage() -> t.Iterator[Stage]:
    """A pool to measure on, of its own, for it has one member only."""
    with Stage(namespace="namzu-bench-connection", replicas=1) as made:
        yield made


@pytest.mark.parametrize("row", ["connection_items", "connection_copy", "files"])
def test_no_ratio_is_far_over_its_budget(stage: Stage, row: str) -> None:
    assert regressions(lambda: CONNECTION_ROWS[row](stage, rounds=1)) == []
