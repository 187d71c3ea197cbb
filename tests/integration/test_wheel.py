# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The wheel on a cluster: the command line, AsyncSandbox, and the provider of inspect_ai, each from a warm pool."""

from __future__ import annotations

import asyncio
import json
import pathlib
import re
import shutil
import subprocess
import typing as t

import pytest

from ansible_collections.namzu.sandbox.plugins.module_utils.api import AsyncSandbox

from ..container.conftest import wheel  # noqa: F401 - a fixture  # pylint: disable=unused-import
from .conftest import Pool

CHECKS = pathlib.Path(__file__).resolve().parents[1] / "container" / "inspect_checks.py"


@pytest.fixture
def cli(wheel: pathlib.Path, pool: Pool) -> t.Callable[..., str]:  # noqa: F811
    """Runs the command on the pool's cluster, and returns its output."""
    access = {option: value for option, value in pool.access.items() if option != "agent"}
    options = [f"--{option.replace('_', '-')}={value}" for option, value in access.items()]
    options += [f"--agent-{option}={value}" for option, value in pool.access["agent"].items()]

    def call(command: str, *words: object, status: int = 0) -> str:
        done = subprocess.run(
            [str(wheel / "namzu-sandbox"), command, *options, *map(str, words)],
            capture_output=True, text=True, timeout=180, check=False,
        )  # fmt: skip
        assert done.returncode == status, done.stdout + done.stderr
        return done.stdout

    return call


def test_the_command_line_uses_a_warm_pool(cli: t.Callable[..., str], pool: Pool) -> None:
    assert (
        cli("run", "--pool", pool.name, "--egress", "no_network", "--", "sh", "-c", "echo hi; exit 3", status=3)
        == "hi\n"
    )
    name = cli("acquire", "--pool", pool.name).strip()
    try:
        assert cli("exec", name, "--", "echo", "hi") == "hi\n"
        assert name in {one["name"] for one in json.loads(cli("list", "-o", "json"))}
    finally:
        assert cli("release", name) == f"{name} released\n"


def test_doctor_names_each_step(cli: t.Callable[..., str], pool: Pool) -> None:
    found = json.loads(cli("doctor", "--pool", pool.name, "-o", "json"))
    assert {one["result"] for one in found} == {"ok"}, found
    assert {"access", "sandbox", "privileges", "egress", "program", "release"} <= {one["check"] for one in found}
    found = json.loads(cli("doctor", "--pool", "no-such-pool", "-o", "json", status=1))
    assert found[-1]["result"].startswith("failed (")
    assert found[-1]["next_step"]


def test_programs_of_one_loop_run_at_the_same_time(pool: Pool) -> None:
    async def work() -> list[bytes]:
        async with await AsyncSandbox.acquire(pool=pool.name, **pool.access) as sandbox:
            done = await asyncio.gather(*(sandbox.run(f"sleep 1; echo {number}") for number in range(20)))
            return [one.stdout for one in done]

    assert asyncio.run(work()) == [f"{number}\n".encode() for number in range(20)]


def test_the_checks_of_inspect_pass_but_for_other_users(
    wheel: pathlib.Path,  # noqa: F811
    pool: Pool,
    kubeconfig: str,
    tmp_path: pathlib.Path,
) -> None:
    shutil.copy(CHECKS, tmp_path / "test_checks.py")
    config = json.dumps({"pool": pool.name, **pool.access})
    done = subprocess.run(
        [str(wheel / "python"), "-m", "pytest", "-q", "-p", "no:cacheprovider"],
        cwd=tmp_path,
        env={"PATH": "/usr/bin:/bin", "HOME": str(tmp_path), "KUBECONFIG": kubeconfig, "NAMZU_CONFIG": config},
        capture_output=True, text=True, timeout=600, check=False,
    )  # fmt: skip
    passed = re.search(r"(\d+) passed, 1 xfailed", done.stdout)
    assert passed is not None, done.stdout[-4000:]
    assert int(passed[1]) >= 43
