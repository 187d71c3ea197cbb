# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Every operation, and what its handler may use.

A file of the agent is compiled each time that it is loaded, for there is nowhere to keep the result. So only what every
sandbox is asked for (its health, its privileges and a command) is loaded at the start.
"""

from __future__ import annotations

import threading
import time

import execute
import health
import privileges
from wire import Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from children import Children
    from partials import Partials
    from programs import Programs
    from settings import Settings
    from wire import Peer

    Handler = Callable[["Context", Peer, dict[str, Any]], None]

LOADED: dict[str, Handler] = {
    "healthz": health.healthz,
    "privileges": privileges.privileges,
    "execute": execute.execute,
}

#: Operation to its file, its function there, and the feature that names it.
LATER: dict[str, tuple[str, str, str]] = {
    "attach": ("attach", "attach", "detach"),
    "cancel": ("sessions", "kill", "detach"),
    "read-file": ("reading", "read_file", "read-file"),
    "read-file-stream": ("reading", "read_file_stream", "read-file-stream"),
    "write-file": ("writing", "write_file", "write-file"),
    "list-files": ("listing", "list_files", "files"),
    "stat-file": ("listing", "stat_file", "files"),
    "make-folder": ("changing", "make_folder", "files"),
    "move-file": ("changing", "move_file", "files"),
    "remove-file": ("changing", "remove_file", "files"),
    "read-tree": ("packing", "read_tree", "trees"),
    "write-tree": ("unpacking", "write_tree", "trees"),
    "watch-folder": ("watching", "watch_folder", "watch"),
    "open-terminal": ("terminal", "open_terminal", "open-terminal"),
    "open-tcp": ("forwarding", "open_tcp", "open-tcp"),
    "session-start": ("sessions", "start", "sessions"),
    "session-list": ("sessions", "list_all", "sessions"),
    "session-read": ("sessions", "read", "sessions"),
    "session-attach": ("attach", "attach", "sessions"),
    "session-kill": ("sessions", "kill", "sessions"),
    "quiesce": ("quiesce", "quiesce", "quiesce"),
    "flush": ("flush", "flush", "flush"),
}

FEATURES = sorted({"execute", "heartbeat", "privileges", *(feature for _file, _function, feature in LATER.values())})


def find(operation: str) -> Handler:
    """The operation's handler; Refused ``unsupported`` when there is none."""
    handler = LOADED.get(operation)
    if handler is None and operation in LATER:
        file, function, _feature = LATER[operation]
        handler = LOADED[operation] = getattr(__import__(file), function)
    if handler is None:
        raise Refused("unsupported", "this agent does not have that operation")
    return handler


class Context:
    """What a handler may use."""

    def __init__(self, settings: Settings, children: Children) -> None:
        self.settings = settings
        self.children = children
        self.started = time.monotonic()
        self.features = FEATURES
        self._lock = threading.Lock()
        self._programs: Programs | None = None
        self._partials: Partials | None = None

    @property
    def programs(self) -> Programs:
        """What runs without a client."""
        from programs import Programs

        with self._lock:
            if self._programs is None:
                self._programs = Programs(self)
            return self._programs

    @property
    def partials(self) -> Partials:
        """The files that are not whole yet."""
        from partials import Partials

        with self._lock:
            if self._partials is None:
                self._partials = Partials()
            return self._partials
