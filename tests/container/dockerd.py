# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Docker engines of the tests' own, which no other test and no other instance uses."""

from __future__ import annotations

import contextlib
import os
import typing as t

import pytest

from tools.cluster.failures import CannotRun
from tools.cluster.progress import Progress
from tools.engine.private import Instance, PrivateEngine

#: Numbers of instances that no NAMZU_ENGINE_INSTANCE names; each worker of pytest-xdist adds its own.
OF_A_WORKER, OF_A_MODULE = 1000, 2000


@contextlib.contextmanager
def own_engine(first: int, *flags: str) -> t.Iterator[tuple[PrivateEngine, str]]:
    """A private engine, and its address.

    Args:
        first: ``OF_A_WORKER`` or ``OF_A_MODULE``.
        flags: more flags of dockerd.
    """
    worker = int(os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw"))
    instance = Instance(first + 100 * Instance.named_by(os.environ).number + worker)
    engine = PrivateEngine(instance, Progress(), flags)
    try:
        engine.up()
    except CannotRun as error:
        pytest.skip(f"no private engine: {error}")
    try:
        yield engine, instance.docker_host
    finally:
        engine.down()
