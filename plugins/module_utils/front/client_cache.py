# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The client of one loop: its items run in one process, one after the other, and need the server's trust only once."""

from __future__ import annotations

import contextlib
import os
import time
import typing as t

if t.TYPE_CHECKING:
    from ..cluster.client import Client

#: Seconds after which files and exec plugins are asked anew for the way to the server.
KEPT_SECONDS = 60.0


class KeptClient:
    """Keeps the last client of this process for the same question, for a while, and only after success.

    Nothing is kept across processes: a forked one would speak on its parent's connections.

    Args:
        monotonic: the clock, in seconds.
    """

    def __init__(self, monotonic: t.Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._kept: _Kept | None = None

    @contextlib.contextmanager
    def lend(self, asked: t.Any, make: t.Callable[[], Client]) -> t.Iterator[Client]:
        """The client that was made for ``asked``, or a new one; a block that fails closes it.

        Args:
            asked: everything that ``make`` depends on; compared.
            make: makes a client.
        """
        one = self._take(asked) or _Kept(os.getpid(), asked, self._monotonic(), make())
        try:
            yield one.client
        except BaseException:
            one.client.close()
            raise
        before, self._kept = self._kept, one
        if before is not None:
            before.client.close()

    def _take(self, asked: t.Any) -> _Kept | None:
        one, self._kept = self._kept, None
        if one is None or one.process != os.getpid():
            return None
        if one.asked == asked and self._monotonic() - one.made_at < KEPT_SECONDS:
            return one
        one.client.close()
        return None


class _Kept(t.NamedTuple):
    process: int
    asked: t.Any
    made_at: float
    client: Client

    def __repr__(self) -> str:
        return f"_Kept({self.client!r})"
