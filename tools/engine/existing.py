# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The engine of DOCKER_HOST: used as it is, and never started or stopped."""

from __future__ import annotations

import shlex

from tools.cluster.failures import NotUp
from tools.cluster.progress import Progress

from .requests import is_ready


class ExistingEngine:
    """An engine that somebody else runs. Images are pulled by the tests and the demo, not loaded."""

    def __init__(self, docker_host: str, progress: Progress) -> None:
        self.docker_host = docker_host
        self._progress = progress

    def up(self) -> None:
        """Nothing, when it answers; a TLS engine is taken on trust."""
        if self.docker_host.startswith("unix:") and not is_ready(self.docker_host):
            raise NotUp(f"no engine answers at DOCKER_HOST ({self.docker_host}).")
        self._progress.report(f"using the engine of DOCKER_HOST ({self.docker_host})")

    def down(self) -> None:
        """Nothing: it was not started here."""
        self._progress.report(f"the engine of DOCKER_HOST ({self.docker_host}) is not stopped")

    def status(self) -> None:
        """Report whether it answers."""
        self.up()

    def env(self) -> None:
        """Print its variable."""
        print(f"export DOCKER_HOST={shlex.quote(self.docker_host)}")
