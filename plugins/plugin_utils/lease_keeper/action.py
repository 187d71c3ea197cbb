# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verb that the lease keeper of the play knows of, as an action plugin."""

from __future__ import annotations

import typing as t

from ...module_utils.front.verb import Result
from ..verb_action import VerbAction
from . import link as keeper_link


class KeptAction(VerbAction):
    """Runs a verb, and warns where the keeper cannot know what it has acquired."""

    def acquires(self) -> bool:
        """Whether the task's arguments ask for something that has an end and is to be kept."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """The task's result."""
        result: Result = super().run(tmp, task_vars)
        was_elsewhere = not self._runs_here() and not self._task.check_mode
        if keeper_link.active() and was_elsewhere and self.acquires() and not result.get("failed"):
            # Not in the result: Ansible puts another in its place when a task in the background has ended.
            self._display.warning(
                "The lease keeper does not renew what a module acquired elsewhere, with become or with async: it ends "
                "with its ttl."
            )
        return result
