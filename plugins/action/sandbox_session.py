# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""``sandbox_session`` on the controller."""

from __future__ import annotations

from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs import sandbox_session
from ansible_collections.namzu.sandbox.plugins.plugin_utils.verb_action import VerbAction


class ActionModule(VerbAction):
    """The verb as this collection's action plugin."""

    verb = sandbox_session.VERB
