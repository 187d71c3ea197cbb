# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The thread that sends the heartbeats of all open streams, whatever the caller does meanwhile.

There is one for the process, and only while there are streams. A forked process has none of its parent's streams.
"""

from __future__ import annotations

import os
import threading
import time
import typing as t

from ...errors import InputError

#: Seconds between the heartbeats of a stream when the caller does not name another interval.
DEFAULT_HEARTBEAT = 15.0
SHORTEST_HEARTBEAT = 0.1
LONGEST_HEARTBEAT = 3600.0


def check_heartbeat(option: str, interval: float) -> float:
    """The interval in seconds: 0.1 to 3600, or 0 for no heartbeat.

    Args:
        option: its name, for the error.

    Raises InputError for any other number.
    """
    if interval != 0 and not SHORTEST_HEARTBEAT <= interval <= LONGEST_HEARTBEAT:
        raise InputError(
            f"{option} is {interval:g} s; it must be {SHORTEST_HEARTBEAT:g} to {LONGEST_HEARTBEAT:g} s, or 0 for no "
            "heartbeat."
        )
    return interval


class HeartbeatStream(t.Protocol):
    """A stream that can send a heartbeat without blocking."""

    def send_heartbeat(self) -> None:
        """Send a heartbeat, unless other bytes are outgoing."""


class Heartbeat:
    """Calls ``send_heartbeat`` of each stream at its interval."""

    def __init__(self) -> None:
        self._changed = threading.Condition()
        self._streams: dict[HeartbeatStream, tuple[float, float]] = {}
        self._running = False

    def add(self, stream: HeartbeatStream, interval: float) -> None:
        """Begin, ``interval`` seconds from now."""
        with self._changed:
            self._streams[stream] = (interval, time.monotonic() + interval)
            if not self._running:
                self._running = True
                threading.Thread(target=self._run, name="namzu-heartbeat", daemon=True).start()
            self._changed.notify()

    def remove(self, stream: HeartbeatStream) -> None:
        """End; nothing is called any more once this returns."""
        with self._changed:
            self._streams.pop(stream, None)
            self._changed.notify()

    def _run(self) -> None:
        with self._changed:
            while self._streams:
                now = time.monotonic()
                for stream, (interval, at) in list(self._streams.items()):
                    if at <= now:
                        stream.send_heartbeat()
                        self._streams[stream] = (interval, now + interval)
                self._changed.wait(min(at for _interval, at in self._streams.values()) - now)
            self._running = False


HEARTBEAT_SENDER = Heartbeat()


def _forget_parents_streams() -> None:
    HEARTBEAT_SENDER.__init__()  # type: ignore[misc]  # pylint: disable=unnecessary-dunder-call


os.register_at_fork(after_in_child=_forget_parents_streams)
