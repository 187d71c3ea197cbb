# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Progress of long steps, for a terminal or a CI log."""

from __future__ import annotations

import sys
import threading
import time
from typing import TextIO

QUIET_INTERVAL = 20.0  # seconds between two lines in a log that is not a terminal
REDRAW_INTERVAL = 0.2


class Progress:
    """Lines to standard error: one that is redrawn on a terminal, one every 20 s elsewhere."""

    def __init__(self, stream: TextIO | None = None) -> None:
        self._stream = stream if stream is not None else sys.stderr
        self._terminal = self._stream.isatty()
        self._lock = threading.Lock()
        self._shown = 0.0
        self._drawn = False

    def report(self, text: str) -> None:
        """Print one permanent line."""
        with self._lock:
            self._clear()
            self._write(text + "\n")

    def update(self, text: str) -> None:
        """Show the state of the current step; most calls print nothing."""
        now = time.monotonic()
        with self._lock:
            if now - self._shown < (REDRAW_INTERVAL if self._terminal else QUIET_INTERVAL):
                return
            self._shown = now
            self._clear()
            self._write(text[:110] if self._terminal else text + "\n")
            self._drawn = self._terminal

    def begin(self) -> None:
        """Start a new wait: in a log, the first update comes after a full interval."""
        with self._lock:
            self._shown = 0.0 if self._terminal else time.monotonic()

    def end(self) -> None:
        """Remove the redrawn line."""
        with self._lock:
            self._clear()

    def _clear(self) -> None:
        if self._drawn:
            self._write("\r\x1b[K")
            self._drawn = False

    def _write(self, text: str) -> None:
        self._stream.write(text)
        self._stream.flush()


def elapsed(seconds: float) -> str:
    """A duration as text: 4.2 s, 3 min 05 s."""
    if seconds < 60:
        return f"{seconds:.1f} s"
    return f"{int(seconds) // 60} min {int(seconds) % 60:02d} s"
