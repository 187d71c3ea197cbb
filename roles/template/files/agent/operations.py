# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The operations that this agent knows. A new one is a module with a handler, and a line in the table."""

from __future__ import annotations

import time

import execute
import health

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from children import Children
    from settings import Settings
    from wire import Peer

    Handler = Callable[["Context", Peer, dict[str, Any]], None]

OPERATIONS: dict[str, Handler] = {
    "healthz": health.healthz,
    "execute": execute.execute,
}


class Context:
    """What a handler may use."""

    def __init__(self, settings: Settings, children: Children) -> None:
        self.settings = settings
        self.children = children
        self.started = time.monotonic()
        self.features: list[str] = sorted(health.FEATURES + execute.FEATURES)
