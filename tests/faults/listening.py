# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Somebody who hears what a keeper reports."""

from __future__ import annotations

import threading

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.keeper_book import Event


class Listener:
    """Hears what a keeper reports, and can wait for it.

    Args:
        soon: real seconds in which what is waited for has been said.
    """

    def __init__(self, soon: float) -> None:
        self.said: list[Event] = []
        self._soon = soon
        self._changed = threading.Condition()

    def __call__(self, event: Event) -> None:
        with self._changed:
            self.said.append(event)
            self._changed.notify_all()

    def wait_for(self, kind: str) -> Event:
        """The first event of a kind."""

        def found() -> list[Event]:
            return [event for event in self.said if event.kind == kind]

        with self._changed:
            assert self._changed.wait_for(found, self._soon), f"nobody said {kind}: {self.said}"
            return found()[0]
