# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One agent for the tests of a file, which do not disturb each other."""

from __future__ import annotations

import typing as t

import pytest

from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, running_agent


@pytest.fixture(scope="module")
def agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace")) as started:
        yield started
