# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Between ansible-playbook, its workers, and the keeper process.

Ansible forks a worker for each task out of the process in which callbacks live, so a worker inherits the control
socket of the keeper. The task of a worker sends leases and credentials over that socket; neither appears in arguments,
environment or results. The parent-death socket is closed in workers: a worker may outlive an ansible-playbook that was
killed, and must not hide its end from the keeper. Measured on ansible-core 2.19 and 2.21.
"""

from __future__ import annotations

import contextlib
import os
import pathlib
import socket
import subprocess
import sys
import threading
import typing as t

from ...module_utils.errors import SandboxError
from ...module_utils.lifecycle.lease.protocol import Message, connect, receive, send

#: The folder that holds the core as the package ``module_utils``. By that name it is found without the loader of
#: collections, and without the other places in which a package ``ansible_collections`` may stand.
_CORE = pathlib.Path(__file__).resolve().parents[2]

#: Nothing of the core is loaded before the first sandbox: a play without any costs an idle interpreter.
_PROGRAM = """
import select, socket, sys
parent, control_socket = int(sys.argv[2]), int(sys.argv[3])
select.select([parent, control_socket], [], [])
waits = socket.socket(fileno=control_socket)
waits.setblocking(False)
try:
    client = waits.recv(1, socket.MSG_PEEK)
except BlockingIOError:
    client = b""
waits.setblocking(True)
waits.detach()
if client:
    sys.path.insert(0, sys.argv[1])
    from module_utils.front.leases.keeper_process import main
    main(parent, control_socket)
"""

#: Seconds for an answer of the keeper: it loads its libraries, and may run the exec plugin of a kubeconfig.
ANSWER_SECONDS = 30.0


class KeeperError(SandboxError):
    """The keeper process cannot be reached, or cannot use the credentials of a task."""

    reason = "keeper"


class KeeperLink:
    """The keeper process, as the process that started it and its forks see it.

    Args:
        on_event: called with every event, in a separate thread; None when the keeper has ended.

    Attributes:
        renew: whether what tasks acquire from now on is renewed.
    """

    def __init__(self, on_event: t.Callable[[Message | None], None]) -> None:
        self.renew = True
        self._on_event = on_event
        self._parent_death_socket, parent = socket.socketpair()
        self._control_socket, control_socket = socket.socketpair()
        with parent, control_socket:
            numbers = [parent.fileno(), control_socket.fileno()]
            self._process = subprocess.Popen(
                [sys.executable, "-P", "-c", _PROGRAM, str(_CORE), *map(str, numbers)],
                stdin=subprocess.DEVNULL,
                stdout=subprocess.DEVNULL,
                stderr=subprocess.DEVNULL,
                pass_fds=numbers,
                # So that Ctrl-C at the terminal, and a signal to the whole process group, leave it to clean up.
                start_new_session=True,
            )
        self._reader = threading.Thread(target=self._read, name="namzu-keeper-events", daemon=True)
        self._reader.start()
        os.register_at_fork(after_in_child=self._parent_death_socket.close)

    @property
    def pid(self) -> int:
        """The keeper's process."""
        return self._process.pid

    def open(self, options: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> KeeperConnection:
        """A connection for the task of this worker.

        Args:
            options: the access options of the task.
            environ: the environment in which they are read.

        Raises:
            KeeperError: the keeper has ended.
        """
        try:
            wire = connect(self._control_socket)
        except OSError:
            raise _gone() from None
        return KeeperConnection(wire, options, environ, renew=self.renew)

    def end(self, seconds: float) -> None:
        """Let the keeper release what is marked, and wait for that.

        Args:
            seconds: the most to wait; the keeper continues after that.
        """
        with contextlib.suppress(OSError):
            self._parent_death_socket.shutdown(socket.SHUT_WR)
        self._control_socket.close()
        self._reader.join(seconds)
        if not self._reader.is_alive():
            self._parent_death_socket.close()
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(1.0)

    def _read(self) -> None:
        with contextlib.suppress(OSError):
            while (message := receive(self._parent_death_socket)) is not None:
                self._on_event(message)
        self._on_event(None)


class KeeperConnection:
    """The connection of one task to the keeper. Use it as a context manager."""

    def __init__(
        self,
        wire: socket.socket,
        options: t.Mapping[str, t.Any],
        environ: t.Mapping[str, str],
        *,
        renew: bool,
    ) -> None:
        self._wire = wire
        self._renew = renew
        self._unanswered = 0
        wire.settimeout(ANSWER_SECONDS)
        # The answer is waited for when it is needed: meanwhile the keeper gets ready, and the task goes on.
        self._tell({"op": "access", "options": dict(options), "environ": dict(environ)})

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_exc: object) -> None:
        self._wire.close()

    def hold(self, leases: t.Sequence[Message]) -> t.Collection[str]:
        """Hand leases over; each has ``release_on_end`` beside what describes it.

        Returns:
            The uids of those that are released at the end, by this call's wish or by that of an earlier one.

        Raises:
            KeeperError: the keeper has not taken them.
        """
        answer = self._ask({"op": "hold", "leases": list(leases), "renewed": self._renew})
        return frozenset(answer["marked"])

    def leave(self, namespace: str, names: t.Collection[str]) -> None:
        """Say that these are about to be released."""
        self._ask({"op": "leave", "namespace": namespace, "names": list(names)})

    def stay(self, namespace: str, names: t.Collection[str]) -> None:
        """Say that these could not be released."""
        self._ask({"op": "stay", "namespace": namespace, "names": list(names)})

    def forget(self, namespace: str, names: t.Collection[str]) -> None:
        """Say that these are released."""
        self._ask({"op": "forget", "namespace": namespace, "names": list(names)})

    def _ask(self, message: Message) -> Message:
        self._tell(message)
        while self._unanswered > 1:
            self._answered()
        return self._answered()

    def _tell(self, message: Message) -> None:
        try:
            send(self._wire, message)
        except OSError:
            raise _gone() from None
        self._unanswered += 1

    def _answered(self) -> Message:
        try:
            answer = receive(self._wire)
        except OSError:
            answer = None
        if answer is None:
            raise _gone()
        if "refused" in answer:
            raise KeeperError(f"The lease keeper cannot use the credentials of this task: {answer['refused']}")
        self._unanswered -= 1
        if "unknown" in answer:
            raise KeeperError(
                f"The lease keeper has no operation {answer['unknown']!r}, so nothing was done.",
                next_step="Run the play again: the collection was changed while it ran.",
            )
        return answer


def _gone() -> KeeperError:
    return KeeperError(
        "The lease keeper's process does not answer any more, so nothing is renewed or released for this play.",
        retryable=False,
        next_step="Run the play again; if it happens again, look for what ended the process (memory, a signal).",
    )


#: The link of this process: the callback sets it, and the workers inherit it.
_active: list[KeeperLink] = []


def activate(link: KeeperLink | None) -> None:
    """Make a link the one of this process and of the workers that it forks from now on; None for none."""
    _active[:] = [] if link is None else [link]


def active() -> KeeperLink | None:
    """The link of this process."""
    return _active[0] if _active else None
