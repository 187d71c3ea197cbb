# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The synchronous core in an event loop of asyncio.

A call to an agent spends its time waiting for the agent. It runs in a greenlet, and each of its waits is a coroutine of
the loop, so that any number of calls share one thread. A call to an API server or an engine is short and runs in one of
``THREADS`` threads.
"""

from __future__ import annotations

import asyncio
import concurrent.futures
import contextlib
import contextvars
import socket
import typing as t

from ..deadline import Deadline
from ..errors import MissingDependencyError
from ..guest.protocol.waiting import WAITER

if t.TYPE_CHECKING:
    import greenlet

#: Acquires and lists at the same time; an acquire may wait for minutes.
THREADS = 16
#: Connections to agents that are being made, and releases; neither waits behind an acquire.
SHORT_THREADS = 8

Result = t.TypeVar("Result")

_ACQUIRES = concurrent.futures.ThreadPoolExecutor(THREADS, "namzu-async")
_SHORT = concurrent.futures.ThreadPoolExecutor(SHORT_THREADS, "namzu-async-short")


async def in_loop(call: t.Callable[[], Result]) -> Result:
    """The result of a call to an agent; when the task is cancelled, its wait raises CancelledError.

    Raises:
        MissingDependencyError: greenlet is not installed here.
    """
    try:
        import greenlet
    except ImportError:
        raise MissingDependencyError(
            "AsyncSandbox needs the Python library greenlet.",
            next_step="Install greenlet, or namzu-sandbox[async].",
        ) from None
    loop_greenlet = greenlet.getcurrent()
    child = greenlet.greenlet(call, loop_greenlet)
    child.gr_context = contextvars.copy_context()
    child.gr_context.run(WAITER.set, _LoopWaiter(loop_greenlet))
    wanted: t.Any = child.switch()
    while not child.dead:
        try:
            found = await wanted
        except BaseException as error:  # noqa: BLE001 - the call decides, a cancellation included
            wanted = child.throw(error)
        else:
            wanted = child.switch(found)
    return t.cast("Result", wanted)


async def in_thread(
    call: t.Callable[[], Result],
    *,
    short: bool = False,
    cancel: t.Callable[[], object] | None = None,
    undo: t.Callable[[Result], object] | None = None,
) -> Result:
    """The result of a call that blocks. A cancelled task waits until a call that has begun has ended.

    Args:
        short: whether the call must not wait for a thread behind acquires.
        cancel: called when the task is cancelled, so that the call ends early.
        undo: called with the result, in a thread, when the call succeeded although the task was cancelled.
    """
    submitted = (_SHORT if short else _ACQUIRES).submit(call)
    future = asyncio.wrap_future(submitted)
    try:
        return await asyncio.shield(future)
    except asyncio.CancelledError:
        if submitted.cancel():
            # It had not begun.
            raise
        if cancel is not None:
            cancel()
        await _ended(future)
        if undo is not None and not future.cancelled() and future.exception() is None:
            await _ended(asyncio.wrap_future(_SHORT.submit(undo, future.result())))
        raise


async def _ended(future: asyncio.Future[t.Any]) -> None:
    """Wait for the end of a future, also when the task is cancelled again."""
    while not future.done():
        with contextlib.suppress(asyncio.CancelledError):
            await asyncio.wait([future])
    if not future.cancelled():
        future.exception()


class _LoopWaiter:
    """Waits in the loop, by switching to its greenlet with a coroutine."""

    def __init__(self, loop_greenlet: greenlet.greenlet) -> None:
        self._switch: t.Callable[[t.Any], t.Any] = loop_greenlet.switch

    def readable(self, fd: int, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        return bool(self._switch(_ready(fd, seconds, loop.add_reader, loop.remove_reader)))

    def writable(self, fd: int, seconds: float) -> bool:
        loop = asyncio.get_running_loop()
        return bool(self._switch(_ready(fd, seconds, loop.add_writer, loop.remove_writer)))

    def sleep(self, seconds: float) -> None:
        self._switch(asyncio.sleep(seconds))

    def connected(self, call: t.Callable[[], socket.socket], deadline: Deadline) -> socket.socket:
        return t.cast(
            "socket.socket", self._switch(in_thread(call, short=True, cancel=deadline.cancel, undo=socket.socket.close))
        )


async def _ready(fd: int, seconds: float, add: t.Callable[..., object], remove: t.Callable[[int], object]) -> bool:
    event = asyncio.get_running_loop().create_future()
    add(fd, _set, event)
    try:
        done, _pending = await asyncio.wait([event], timeout=seconds)
    finally:
        remove(fd)
        event.cancel()
    return bool(done)


def _set(event: asyncio.Future[None]) -> None:
    if not event.done():
        event.set_result(None)
