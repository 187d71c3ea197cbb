# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The budgets of the connection plugin, as tests on the cluster that KUBECONFIG names.

Both sides of a ratio run in turns on one pod. A ratio that is over its budget is measured again, as in test_budgets.py.
"""

from __future__ import annotations

import typing as t

import pytest

from tests.bench.connection import CONNECTION_ROWS
from tests.bench.rows import Ratio
from tests.bench.stage import Stage

ATTEMPTS = 3

pytestmark = [
    pytest.mark.cluster,
    pytest.mark.filterwarnings("ignore::pytest.PytestUnraisableExceptionWarning"),
]


@pytest.fixture(scope="module")
def stage() -> t.Iterator[Stage]:
    """A pool to measure on, of its own, for it has one member only."""
    with Stage(namespace="namzu-bench-connection", replicas=1) as made:
        yield made


@pytest.mark.parametrize("row", ["connection_items", "connection_copy"])
def test_the_connection_keeps_its_budgets_against_kubectl(stage: Stage, row: str) -> None:
    over: list[Ratio] = []
    for _attempt in range(ATTEMPTS):
        ratios = CONNECTION_ROWS[row](stage, rounds=1)
        for ratio in ratios:
            print(ratio)
        over = [ratio for ratio in ratios if not ratio.holds]
        if not over:
            return
    pytest.fail(f"over budget in each of {ATTEMPTS} measurements: {over}")
