# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``workspace`` on the controller."""

from __future__ import annotations

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import workspace
from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper.action import KeptAction


class ActionModule(KeptAction):
    """The verb as this collection's action plugin."""

    verb = workspace.VERB

    def acquires(self) -> bool:
        """A workspace that is started has an end only with a ttl."""
        arguments = self._task.args
        return bool(arguments.get("state", "running") == "running" and arguments.get("ttl") is not None)
