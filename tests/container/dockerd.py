# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A Docker engine of one test module, which its tests may kill."""

from __future__ import annotations

import contextlib
import os
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.access import engine_access
from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient
from tools.cluster.failures import CannotRun
from tools.cluster.progress import Progress
from tools.engine.private import Instance, PrivateEngine

from .conftest import Way

#: Seconds of one request, so that one to an engine that was killed ends soon.
REQUEST_SECONDS = 20.0


@contextlib.contextmanager
def own_engine(*flags: str) -> t.Iterator[tuple[PrivateEngine, Way]]:
    """A private engine that no other test and no other instance uses.

    Args:
        flags: more flags of dockerd.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    instance = Instance(1000 + 100 * Instance.named_by(os.environ).number + worker)
    engine = PrivateEngine(instance, Progress(), flags)
    try:
        engine.up()
    except CannotRun as error:
        pytest.skip(f"no private engine: {error}")
    try:
        access = engine_access({"docker_host": instance.docker_host, "timeout": REQUEST_SECONDS}, {})
        yield engine, Way(EngineClient(access), "runc", "auto")
    finally:
        engine.down()
