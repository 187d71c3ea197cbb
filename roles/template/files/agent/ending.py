# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""How a command's process group is brought to its end: SIGTERM, a grace, SIGKILL."""

from __future__ import annotations

import signal
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from children import Child, Children

#: Seconds after SIGKILL until we stop waiting for a process that the kernel does not let go.
UNKILLABLE = 5.0
#: How often, in seconds, a group whose leader has ended is looked at.
TICK = 0.02


class Ending:
    """The end of one group. It begins with ``begin``; after that ``keep_time`` is called at ``moment``."""

    def __init__(self, children: Children, child: Child, grace: float, terminal: bool = False) -> None:
        """``terminal``: the whole session is meant, and hears that its terminal hung up: shells ignore SIGTERM."""
        self._child = child
        self._grace = grace
        self._first = signal.SIGHUP if terminal else signal.SIGTERM
        self._signal = children.signal_session if terminal else children.signal_group
        self._kill_at: float | None = None
        self._give_up_at: float | None = None

    def begin(self, grace: float | None = None) -> None:
        """Ask all of the group to end. Nothing happens when that was done, or when the command has ended."""
        if self._child.status is None and self._kill_at is None and self._give_up_at is None:
            self._signal(self._child, self._first)
            self._kill_at = time.monotonic() + (self._grace if grace is None else grace)

    @property
    def moment(self) -> float | None:
        """When to look again."""
        if self._kill_at is not None and self._child.status is not None:
            # The rest of the group gives no signal when it ends.
            return min(self._kill_at, time.monotonic() + TICK)
        return self._kill_at if self._kill_at is not None else self._give_up_at

    def keep_time(self, now: float) -> None:
        if self._kill_at is None:
            return
        if self._child.status is not None and not self._signal(self._child, 0):
            self._kill_at = None
        elif now >= self._kill_at:
            self._signal(self._child, signal.SIGKILL)
            self._kill_at = None
            self._give_up_at = now + UNKILLABLE

    @property
    def under_way(self) -> bool:
        """Whether some of the group still has its grace."""
        return self._kill_at is not None

    def given_up(self, now: float) -> bool:
        return self._give_up_at is not None and now >= self._give_up_at
