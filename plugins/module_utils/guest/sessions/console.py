# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A program in the sandbox on this process's own terminal, as ``ssh -t`` runs one."""

from __future__ import annotations

import contextlib
import os
import select
import signal
import termios
import threading
import tty
import typing as t

from ...deadline import Deadline
from ...errors import InputError
from ..agent import Agent
from ..errors import GuestRefusedError, GuestTimeoutError, GuestUnreachableError
from ..execution.stream import Execution
from .attachment import Attachment, open_terminal

#: Signals that end this process; the terminal is restored first.
_ENDINGS = (signal.SIGTERM, signal.SIGHUP, signal.SIGQUIT)
_CHUNK = 64 * 1024
#: Seconds that the sandbox may take over what was typed.
_PATIENCE = 60.0
#: Seconds of one wait for output. Heartbeats, not this, find a lost connection.
_LONG = 3600.0
#: Rows and columns of a terminal that does not know its size.
_ROWS, _COLUMNS = 24, 80

_RESIZED, _OVER = b"r", b"o"


def run_on_console(
    agent: Agent, argv: t.Sequence[str], *, deadline: Deadline, source: int = 0, sink: int = 1, **options: t.Any
) -> Execution:
    """Run a program in the sandbox on the terminal of this process, and wait for its end.

    The terminal is raw meanwhile: every key, also Ctrl-C, goes to the program. It is as before when this returns or
    raises, also because of SIGTERM, SIGHUP or SIGQUIT, which raise SystemExit here. When the terminal goes away the
    program is hung up. To be called from the main thread.

    Args:
        argv: program and arguments.
        deadline: for the start alone.
        source, sink: descriptors of the terminal, for what is typed and for what is shown.
        options: ``cwd``, ``env``, ``timeout`` and ``grace`` of ``Agent.execute``.

    Returns how the program ended, without its output. Raises InputError when there is no terminal, and what
    ``open_terminal`` and ``Attachment.read`` raise.
    """
    check_terminal(source, sink)
    rows, columns = _size(sink)
    with (
        _wakeup_pipe() as (wakeup_fd, wake),
        _handling(_ENDINGS, _leave),
        _handling((signal.SIGWINCH,), lambda *_: wake(_RESIZED)),
        open_terminal(agent, argv, deadline=deadline, rows=rows, columns=columns, **options) as attachment,
        _raw(source),
    ):
        pump = _InputPump(attachment, source, sink, wakeup_fd, deadline.cancel)
        pump.start()
        try:
            _show(attachment, sink)
        except (GuestUnreachableError, OSError):
            if not pump.gone:
                raise
            # The terminal has gone: there is nothing to report to.
            raise SystemExit(128 + signal.SIGHUP) from None
        finally:
            wake(_OVER)
            pump.join(1.0)
        return t.cast("Execution", attachment.result)


def check_terminal(source: int = 0, sink: int = 1) -> None:
    """Raise InputError when standard input or output is not a terminal."""
    if not (os.isatty(source) and os.isatty(sink)):
        raise InputError(
            "Standard input and output: not a terminal.",
            next_step="Call it from a terminal; a program without a person is run with namzu.sandbox.sandbox_exec.",
        )


class _InputPump(threading.Thread):
    """Sends what is typed, and the terminal's size when it has changed.

    Attributes:
        gone: whether the terminal has ended.
    """

    def __init__(
        self, attachment: Attachment, source: int, sink: int, wakeup_fd: int, hang_up: t.Callable[[], None]
    ) -> None:
        super().__init__(name="namzu-pump", daemon=True)
        self.gone = False
        self._attachment = attachment
        self._source = source
        self._sink = sink
        self._wakeup_fd = wakeup_fd
        self._hang_up = hang_up

    def run(self) -> None:
        # The thread that reads reports a lost connection.
        with contextlib.suppress(GuestUnreachableError, GuestTimeoutError):
            self._type()

    def _type(self) -> None:
        while True:
            ready, _writable, _failed = select.select([self._source, self._wakeup_fd], [], [])
            if self._wakeup_fd in ready:
                events = os.read(self._wakeup_fd, _CHUNK)
                if _OVER in events:
                    return
                self._attachment.resize(*_size(self._sink), Deadline(_PATIENCE))
            if self._source in ready:
                typed = _typed(self._source)
                if not typed:
                    self.gone = True
                    self._hang_up()
                    return
                self._attachment.write(typed, Deadline(_PATIENCE))


def _typed(source: int) -> bytes:
    """What was typed; nothing when the terminal has gone."""
    try:
        return os.read(source, _CHUNK)
    except OSError:
        return b""


def _show(attachment: Attachment, sink: int) -> None:
    """Show all output, to its end."""
    while True:
        try:
            piece = attachment.read(Deadline(_LONG))
        except GuestTimeoutError:
            continue
        except GuestRefusedError as error:
            if error.kind != "ended":
                raise
            # A key or a new size that came just after the program's end.
            continue
        if piece is None:
            return
        data = piece[1]
        while data:
            data = data[os.write(sink, data) :]


def _size(sink: int) -> tuple[int, int]:
    size = os.get_terminal_size(sink)
    return size.lines or _ROWS, size.columns or _COLUMNS


def _leave(number: int, _frame: object) -> None:
    raise SystemExit(128 + number)


@contextlib.contextmanager
def _handling(numbers: t.Iterable[int], handler: t.Callable[[int, t.Any], object]) -> t.Iterator[None]:
    """Have signals handled inside the block; one that is ignored stays ignored."""
    before = {number: signal.getsignal(number) for number in numbers}
    changed = {number: action for number, action in before.items() if action is not signal.SIG_IGN}
    for number in changed:
        signal.signal(number, handler)
    try:
        yield
    finally:
        for number, action in changed.items():
            signal.signal(number, signal.SIG_DFL if action is None else action)


@contextlib.contextmanager
def _raw(source: int) -> t.Iterator[None]:
    """The terminal raw inside the block."""
    before = termios.tcgetattr(source)
    try:
        tty.setraw(source, termios.TCSANOW)
        yield
    finally:
        # A terminal that has gone has nothing to be put back.
        with contextlib.suppress(termios.error):
            termios.tcsetattr(source, termios.TCSANOW, before)


@contextlib.contextmanager
def _wakeup_pipe() -> t.Iterator[tuple[int, t.Callable[[bytes], None]]]:
    """A pipe's end to wait at, and what rings there without ever waiting."""
    wakeup_fd, waker_fd = os.pipe()
    os.set_blocking(waker_fd, False)

    def wake(event: bytes) -> None:
        with contextlib.suppress(BlockingIOError):
            os.write(waker_fd, event)

    try:
        yield wakeup_fd, wake
    finally:
        os.close(waker_fd)
        os.close(wakeup_fd)
