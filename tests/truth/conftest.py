# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The stage of the truth tests, on the cluster that KUBECONFIG names."""

from __future__ import annotations

import os
import pathlib
import uuid
from collections.abc import Iterator

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.deadline import SYSTEM_CLOCK
from tests.truth.stage import Stage

#: The image of tools/cluster; any image with python3 serves.
IMAGE = os.environ.get("NAMZU_TEST_IMAGE") or "localhost/namzu/python:3"


@pytest.fixture(scope="session")
def stage() -> Iterator[Stage]:
    """Pods that listen and probe."""
    kubeconfig = os.environ.get("KUBECONFIG", "")
    if not pathlib.Path(kubeconfig).is_file():
        pytest.fail('KUBECONFIG names no file. Start a cluster first: make up && eval "$(make -s env)"')
    made = Stage(kubeconfig, uuid.uuid4().hex[:8], IMAGE, SYSTEM_CLOCK)
    try:
        made.open()
        yield made
    finally:
        made.close()
