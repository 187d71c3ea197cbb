# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Errors of the commands, each with its exit code."""

from __future__ import annotations

from pathlib import Path


class ClusterError(Exception):
    """The command failed; its text is a complete message for the user."""

    exit_code = 1


class ComponentFailed(ClusterError):
    """A component ended, or did not become healthy, while it was started."""

    def __init__(self, component: str, what: str, log: Path, tail: str) -> None:
        super().__init__(f"{component} {what}. The end of {log}:\n{tail or '(nothing)'}")
        self.component, self.what, self.log, self.tail = component, what, log, tail

    def with_log_in(self, folder: Path) -> ComponentFailed:
        """The same failure after its log was copied to a folder."""
        return ComponentFailed(self.component, self.what, folder / self.log.name, self.tail)


class CannotRun(ClusterError):
    """The request cannot be met on this machine; nothing was started."""

    exit_code = 2


class NotUp(ClusterError):
    """The cluster is not up."""

    exit_code = 3
