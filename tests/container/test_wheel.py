# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel, installed into an empty environment and used on a real engine."""

from __future__ import annotations

import os
import pathlib
import subprocess
import tomllib
import typing as t

import pytest
import yaml

from ansible_collections.namzu.sandbox.plugins.module_utils.engine.client import EngineClient

from .conftest import IMAGE, Way

ROOT = pathlib.Path(__file__).resolve().parents[2]
UV = ROOT / ".venv" / "bin" / "uv"

PROGRAM = f"""
from namzu_sandbox import Sandbox

with Sandbox.acquire(image={IMAGE!r}, ready_timeout="120s") as sandbox:
    print(sandbox.run("python3 -c 'print(6 * 7)'").stdout_text, end="")
"""


def command(*arguments: object, **environ: str) -> str:
    done = subprocess.run(
        [str(one) for one in arguments], capture_output=True, text=True, timeout=300, check=False,
        env={"PATH": os.environ["PATH"], "HOME": os.environ.get("HOME", "/root"), **environ},
    )  # fmt: skip
    assert done.returncode == 0, done.stdout + done.stderr
    return done.stdout


@pytest.fixture(scope="module")
def python(tmp_path_factory: pytest.TempPathFactory) -> pathlib.Path:
    """The Python of an environment with the wheel and what it requires, and nothing else."""
    folder = tmp_path_factory.mktemp("wheel")
    registry = {name: value for name, value in os.environ.items() if name.startswith(("UV_", "PIP_", "SSL_"))}
    command(UV, "build", "--wheel", "--out-dir", folder, ROOT, **registry)
    (wheel,) = folder.glob("*.whl")
    command(UV, "venv", "--python", ROOT / ".venv" / "py313" / "bin" / "python", folder / "env", **registry)
    command(UV, "pip", "install", "--python", folder / "env" / "bin" / "python", wheel, **registry)
    return folder / "env" / "bin" / "python"


def test_a_program_uses_a_sandbox(python: pathlib.Path, docker: EngineClient) -> None:
    engine = Way(docker, None, "auto")
    before = engine.names()
    assert command(python, "-I", "-c", PROGRAM, DOCKER_HOST=docker.access.docker_host) == "42\n"
    assert engine.names() == before


def test_importing_it_loads_no_large_library(python: pathlib.Path) -> None:
    program = "import sys, namzu_sandbox; print(*sorted({name.partition('.')[0] for name in sys.modules}))"
    loaded = set(command(python, "-I", "-c", program).split())
    assert "namzu_sandbox" in loaded
    assert not loaded & {"ansible", "ansible_collections", "asyncio", "kubernetes", "urllib3", "websocket", "yaml"}


def test_every_name_that_it_exports_can_be_imported(python: pathlib.Path) -> None:
    program = "import namzu_sandbox as n; print([getattr(n, one) for one in n.__all__] and n.__all__ == n.api.__all__)"
    assert command(python, "-I", "-c", program) == "True\n"


def test_it_is_typed_and_has_the_version_of_the_collection(python: pathlib.Path) -> None:
    program = "import importlib.resources as r; print(r.files('namzu_sandbox').joinpath('py.typed').is_file())"
    assert command(python, "-I", "-c", program) == "True\n"
    project: dict[str, t.Any] = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
    assert project["version"] == yaml.safe_load((ROOT / "galaxy.yml").read_text(encoding="utf-8"))["version"]
