# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""One agent for the tests of a file, which do not disturb each other; what is run again has one of its own."""

from __future__ import annotations

import pathlib
import typing as t

import pytest

from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import RunningAgent, running_agent


@pytest.fixture(scope="module")
def shared_agent(tmp_path_factory: pytest.TempPathFactory) -> t.Iterator[RunningAgent]:
    with running_agent(workspace=tmp_path_factory.mktemp("workspace")) as started:
        yield started


@pytest.fixture
def agent(
    request: pytest.FixtureRequest, shared_agent: RunningAgent, tmp_path: pathlib.Path
) -> t.Iterator[RunningAgent]:
    # The plugin that runs it again counts; without it there is one run.
    if getattr(request.node, "execution_count", 1) == 1:
        yield shared_agent
    else:
        with running_agent(workspace=tmp_path) as own:
            yield own
