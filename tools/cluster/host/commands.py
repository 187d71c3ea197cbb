# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run a program and return its output."""

from __future__ import annotations

import subprocess
from collections.abc import Mapping, Sequence
from pathlib import Path

from ..failures import ClusterError


def run(
    argv: Sequence[str], *, cwd: Path | None = None, environment: Mapping[str, str] | None = None, timeout: float = 120
) -> str:
    """The program's standard output; a ClusterError with its last lines when it fails or takes over `timeout` s."""
    try:
        done = subprocess.run(
            list(argv),
            cwd=cwd,
            env=dict(environment) if environment is not None else None,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=timeout,
            check=False,
        )
    except FileNotFoundError as error:
        raise ClusterError(f"{argv[0]}: not found on the PATH. Install it.") from error
    except subprocess.TimeoutExpired as error:
        raise ClusterError(f"{' '.join(argv)}: not done after {timeout:.0f} s") from error
    if done.returncode != 0:
        tail = "\n".join((done.stderr or done.stdout).strip().splitlines()[-15:])
        raise ClusterError(f"{' '.join(argv)}: exit code {done.returncode}\n{tail}")
    return done.stdout
