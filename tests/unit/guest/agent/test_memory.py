# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What a command reports that was killed because the container's memory limit was reached."""

from __future__ import annotations

import pathlib

import pytest

from ansible_collections.namzu.sandbox.tests.unit.guest.running_agent import running_agent, within


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("echo 'oom_kill 3' > events; kill -9 $$", True),
        ("sh -c \"echo 'oom_kill 3' > events; kill -9 \\$\\$\"; exit $?", True),
        ("kill -9 $$", False),
        ("echo 'oom_kill 3' > events; exit 1", False),
        ("echo 'oom_kill 3' > events; kill -15 $$", False),
        ("rm events; kill -9 $$", False),
    ],
)
def test_a_command_that_was_killed_for_its_memory_is_reported_as_that(
    tmp_path: pathlib.Path, script: str, expected: bool
) -> None:
    (tmp_path / "events").write_text("low 0\noom 2\noom_kill 2\noom_group_kill 0\n", encoding="utf-8")
    patch = f"import memory; memory.EVENT_FILES = ({str(tmp_path / 'events')!r},)"
    with running_agent(workspace=tmp_path, patch=patch) as agent:
        done = agent.client.execute(["/bin/sh", "-c", script], deadline=within())
    assert done.out_of_memory is expected
