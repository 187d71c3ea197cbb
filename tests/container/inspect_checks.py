# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""inspect_ai's own checks of sandbox providers, on ours.

Run by test_inspect.py in an environment with the wheel, where neither Ansible nor this project is installed.
``NAMZU_CONFIG`` is the configuration of the sandbox as JSON.
"""

from __future__ import annotations

import json
import os
import typing as t

import pytest
from inspect_ai.util._sandbox.registry import registry_find_sandboxenv
from inspect_ai.util._sandbox.self_check import *  # noqa: F403  # pylint: disable=wildcard-import,unused-wildcard-import

pytestmark = pytest.mark.anyio

#: The sandbox refuses it: its programs cannot become another user.
_OTHER_USER = "test_exec_as_user"


@pytest.fixture(scope="module")
def anyio_backend() -> str:
    return "asyncio"


@pytest.fixture(scope="module")
async def environment() -> t.AsyncIterator[t.Any]:
    provider: t.Any = registry_find_sandboxenv("namzu")
    config = provider.config_deserialize(json.loads(os.environ["NAMZU_CONFIG"]))
    environments = await provider.sample_init("checks", config, {})
    try:
        yield environments["default"]
    finally:
        await provider.sample_cleanup("checks", config, environments, False)


@pytest.fixture
def sandbox_env(environment: t.Any, request: pytest.FixtureRequest) -> t.Any:
    if request.node.originalname == _OTHER_USER:
        request.node.add_marker(pytest.mark.xfail(reason="one user", strict=True))
    return environment
