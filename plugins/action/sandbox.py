# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox`` on the controller."""

from __future__ import annotations

import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import sandbox
from ansible_collections.namzu.sandbox.plugins.plugin_utils import keeper_link
from ansible_collections.namzu.sandbox.plugins.plugin_utils.verb_action import VerbAction


class ActionModule(VerbAction):
    """The verb as this collection's action plugin."""

    verb = sandbox.VERB

    def run(self, tmp: str | None = None, task_vars: dict[str, t.Any] | None = None) -> dict[str, t.Any]:
        """The task's result; it warns of what the lease keeper cannot know."""
        result: dict[str, t.Any] = super().run(tmp, task_vars)
        acquires = self._task.args.get("state", "present") == "present" and not self._task.check_mode
        if keeper_link.active() and acquires and not self._runs_here() and not result.get("failed"):
            # Not in the result: Ansible puts another in its place when a task in the background has ended.
            self._display.warning(
                "The lease keeper does not renew what a module acquired elsewhere, with become or with async: it ends "
                "with its ttl."
            )
        return result
