# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The provider of inspect_ai, by inspect_ai's own checks and by an evaluation, on a real engine."""

from __future__ import annotations

import json
import os
import pathlib
import re
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient

from .conftest import IMAGE, Way

CHECKS = pathlib.Path(__file__).with_name("inspect_checks.py")
PAGE = pathlib.Path(__file__).resolve().parents[2] / "docs" / "guides" / "inspect.md"


@pytest.fixture
def engine(docker: EngineClient) -> Way:
    return Way(docker, None, "auto")


def run(wheel: pathlib.Path, engine: Way, folder: pathlib.Path, *words: object, **variables: t.Any) -> str:
    environ = {"PATH": f"{wheel}:{os.environ['PATH']}", "HOME": str(folder)}
    environ |= {"DOCKER_HOST": engine.client.access.docker_host, **variables}
    done = subprocess.run(
        [str(word) for word in words], cwd=folder, env=environ, capture_output=True, text=True, timeout=600, check=False
    )
    assert done.returncode == 0, done.stdout[-4000:] + done.stderr[-2000:]
    return done.stdout


def test_the_checks_of_inspect_pass_but_for_other_users(
    wheel: pathlib.Path, engine: Way, tmp_path: pathlib.Path
) -> None:
    before = engine.names()
    shutil.copy(CHECKS, tmp_path / "test_checks.py")
    config = json.dumps({"image": IMAGE})
    shown = run(
        wheel, engine, tmp_path, wheel / "python", "-m", "pytest", "-q", "-p", "no:cacheprovider", NAMZU_CONFIG=config
    )
    passed = re.search(r"(\d+) passed, 1 xfailed", shown)
    assert passed is not None, shown
    assert int(passed[1]) >= 43
    assert engine.names() == before


def test_the_task_of_the_page_runs_in_sandboxes(wheel: pathlib.Path, engine: Way, tmp_path: pathlib.Path) -> None:
    before = engine.names()
    code = re.search(r"```python\n(.*?)```", PAGE.read_text(encoding="utf-8"), re.DOTALL)
    assert code is not None
    (tmp_path / "task.py").write_text(code[1].replace("docker.io/library/python:3.13-slim", IMAGE))
    words = ("inspect", "eval", "task.py", "--model", "mockllm/model", "--display", "none")
    run(wheel, engine, tmp_path, *words, "--log-dir", tmp_path / "logs", "--log-format", "json")
    (log,) = (tmp_path / "logs").glob("*.json")
    document = json.loads(log.read_text(encoding="utf-8"))
    assert document["status"] == "success"
    assert [sample["scores"]["includes"]["value"] for sample in document["samples"]] == ["C", "I"]
    assert engine.names() == before
