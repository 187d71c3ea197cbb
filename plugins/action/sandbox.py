# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox`` on the controller."""

from __future__ import annotations

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import sandbox
from ansible_collections.namzu.sandbox.plugins.plugin_utils.lease_keeper.action import KeptAction


class ActionModule(KeptAction):
    """The verb as this collection's action plugin."""

    verb = sandbox.VERB

    def acquires(self) -> bool:
        """Every sandbox that is acquired has a ttl."""
        return bool(self._task.args.get("state", "present") == "present")
