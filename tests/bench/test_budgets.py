# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The product has not become slower than it promises to be, on the cluster that KUBECONFIG names."""

from __future__ import annotations

import typing as t

import pytest

from tests.bench.rows import ROWS, regressions
from tests.bench.stage import Stage

#: Three measurements in turns take minutes.
pytestmark = [pytest.mark.cluster, pytest.mark.timeout(1500)]


@pytest.fixture(scope="module")
def stage() -> t.Iterator[Stage]:
    """A pool to measure on."""
    with Stage() as made:
        yield made


#: A play with kubernetes.core takes most of a minute, and one that is far over is measured again anyway.
@pytest.mark.parametrize(("row", "rounds"), [("core_acquire", 20), ("acquire_release", 1), ("loop", 5)])
def test_no_ratio_is_far_over_its_budget(stage: Stage, row: str, rounds: int) -> None:
    assert regressions(lambda: ROWS[row](stage, rounds)) == []
