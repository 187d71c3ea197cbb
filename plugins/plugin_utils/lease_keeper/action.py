# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A verb whose leases the lease keeper of the play renews, as an action plugin."""

from __future__ import annotations

import typing as t

from ansible.module_utils.parsing.convert_bool import boolean

from ...module_utils.errors import InputError
from ...module_utils.front.verb import Result, failure
from ..verb_action import VerbAction
from . import link as keeper_link


class KeptAction(VerbAction):
    """Runs a verb; where it runs as a module, the keeper cannot renew or release what the verb acquires."""

    def acquires(self) -> bool:
        """Whether the task's arguments ask for something that has an end and is to be renewed."""
        raise NotImplementedError

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> Result:
        """The task's result."""
        elsewhere = self.runs_elsewhere() if keeper_link.active() else None
        if elsewhere and boolean(self._task.args.get("release_on_end", False), strict=False):
            return failure(_out_of_reach(elsewhere))
        result: Result = super().run(tmp, task_vars)
        if elsewhere and not self._task.check_mode and self.acquires() and not result.get("failed"):
            # Not in the result: the result of a task with async is replaced when the task has ended.
            self._display.warning(
                f"The lease keeper does not renew what a task acquires {elsewhere}: it expires with its ttl. {_STEP}"
            )
        return result


_STEP = "Run the task on the controller: delegate_to: localhost, connection local, no become, no async."


def _out_of_reach(elsewhere: str) -> InputError:
    return InputError(
        f"release_on_end: the lease keeper releases only what tasks on the controller acquire, and this task runs "
        f"{elsewhere}.",
        next_step=_STEP,
    )
