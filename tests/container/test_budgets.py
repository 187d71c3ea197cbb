# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The container backend has not become slower than it promises to be; both sides of a ratio run in turns."""

from __future__ import annotations

import importlib.util
import shutil

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from tests.bench.container import CONTAINER_ROWS
from tests.bench.rows import regressions

from .conftest import IMAGE

pytestmark = pytest.mark.timeout(900)


@pytest.mark.parametrize(
    ("row", "rounds"), [("container_acquire", 9), ("container_play", 2), ("container_connection", 1)]
)
def test_no_ratio_is_far_over_its_budget(docker: EngineClient, row: str, rounds: int) -> None:
    if not docker.is_local:
        pytest.skip("the bare requests go over a Unix socket")
    if row == "container_connection" and shutil.which("docker") is None:
        pytest.skip("the connection of community.docker needs the command docker")
    if row == "container_play" and importlib.util.find_spec("requests") is None:
        pytest.skip("the modules of community.docker need the library requests")
    assert regressions(lambda: CONTAINER_ROWS[row](docker.access.docker_host, IMAGE, rounds)) == []
