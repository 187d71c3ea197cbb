# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The processes that the agent starts, and the one place where processes are waited for.

PID 1 is the parent of every orphan, so it waits for any child. Whoever waits for any child also collects the exit
status of its own commands; therefore nobody else waits. ``spawn`` and ``reap`` exclude each other: a process is in the
table before anybody can collect its status, however short it lives, and its number cannot be given to another one
before the table knows.
"""

from __future__ import annotations

import errno
import os
import struct
import subprocess
import threading

from memory import oom_kills
from processes import list_processes, send_signal
from wire import Refused

_REFUSALS = {
    errno.ENOENT: ("not-found", "the program does not exist"),
    errno.ENOTDIR: ("not-found", "the program does not exist"),
    errno.ELOOP: ("not-found", "its path has too many symbolic links"),
    errno.EACCES: ("not-executable", "the program may not be executed"),
    errno.EPERM: ("not-executable", "the program may not be executed"),
    errno.ENOEXEC: ("not-executable", "the file is not a program and does not begin with #!"),
    errno.EISDIR: ("not-executable", "that is a folder"),
    errno.ETXTBSY: ("not-executable", "the file is being written to"),
    errno.E2BIG: ("bad-request", "arguments and environment are larger than the kernel takes"),
    errno.ENAMETOOLONG: ("bad-request", "its path is too long"),
    errno.EAGAIN: ("exhausted", "no process can be started: the limit of processes is reached"),
    errno.ENOMEM: ("exhausted", "no process can be started: there is no memory left"),
    errno.EMFILE: ("exhausted", "no process can be started: the agent has no file descriptor left"),
    errno.ENFILE: ("exhausted", "no process can be started: the machine has no file descriptor left"),
}


class Child:
    """A process that the agent started, leader of a session and of a process group of its own."""

    def __init__(self, pid: int, notify: int, oom_kills_before: int) -> None:
        self.pid = pid
        #: Processes of the container that had been killed for their memory when it was started.
        self.oom_kills_before = oom_kills_before
        #: Wait status, once it has ended.
        self.status: int | None = None
        #: Descriptor that is written to at that moment, until somebody releases the child.
        self.notify: int | None = notify
        #: Whether everything in the pod was being ended when it did.
        self.stopped = False

    def end(self, status: int, stopped: bool) -> None:
        self.stopped = stopped
        self.status = status
        if self.notify is not None:
            # An event counter wants eight bytes; a pipe does not mind.
            os.write(self.notify, struct.pack("=Q", 1))


class Children:
    """Starts processes, collects those that ended, and signals groups."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._running: dict[int, Child] = {}
        self.stopping = False
        #: Whether everything is being stopped while the agent goes on.
        self.quiescing = False

    def spawn(self, argv: list[str], env: dict[str, str], cwd: str, fds: tuple[int, int, int], notify: int) -> Child:
        """Start a program with ``fds`` as standard input, output and error.

        ``notify`` is a descriptor that is written to when it has ended; it stays open until ``release``.
        """
        with self._lock:
            if self.stopping:
                raise Refused("stopping", "the agent is being stopped")
            if self.quiescing:
                raise Refused("quiescing", "everything in the sandbox is being stopped")
            killed = oom_kills()
            try:
                process = subprocess.Popen(
                    argv,
                    stdin=fds[0],
                    stdout=fds[1],
                    stderr=fds[2],
                    cwd=cwd,
                    env=env,
                    start_new_session=True,
                    restore_signals=True,
                )
            except OSError as error:
                raise refusal(error, argv[0], cwd) from None
            except ValueError as error:
                raise Refused("bad-request", f"the command cannot be passed on: {error}") from None
            # The reaper waits for it. A Popen that knows a return code never does.
            process.returncode = 0
            child = Child(process.pid, notify, killed)
            self._running[child.pid] = child
            return child

    def release(self, child: Child) -> None:
        """Forget the descriptor that is written to at the child's end: it may be closed now."""
        with self._lock:
            child.notify = None

    def reap(self, seconds: float) -> bool:
        """Collect every child that has ended. False when a start in progress kept us waiting for ``seconds``."""
        if not self._lock.acquire(timeout=seconds):
            return False
        try:
            while True:
                try:
                    pid, status = os.waitpid(-1, os.WNOHANG)
                except ChildProcessError:
                    return True
                if pid == 0:
                    return True
                child = self._running.pop(pid, None)
                if child is not None:
                    child.end(status, self.stopping or self.quiescing)
        finally:
            self._lock.release()

    def signal_group(self, child: Child, number: int) -> bool:
        """Signal what is left of a child's process group; False when nothing is.

        The number of a group stays taken as long as it has a member. Only when it had none, and within the seconds of
        a grace, could it be another's; if that is a command of ours the table tells, and it is left alone.
        """
        with self._lock:
            if child.status is not None and child.pid in self._running:
                return False
            try:
                os.killpg(child.pid, number)
            except ProcessLookupError:
                return False
            except PermissionError:
                # All of its members changed their user: they are there, and out of our reach.
                return number == 0
            return True

    def signal_session(self, child: Child, number: int) -> bool:
        """Signal what is left of a child's session: a shell puts each of its jobs into a group of its own."""
        found = self.signal_group(child, number)
        for pid, process in list_processes().items():
            if process.session == child.pid and process.group != child.pid:
                found = send_signal(pid, number) or found
        return found

    def hold(self, quiescing: bool) -> None:
        """Start nothing as long as everything is being stopped. A start in progress is waited for."""
        with self._lock:
            self.quiescing = quiescing

    def stop(self) -> None:
        """Start nothing from now on. It does not wait for a start that hangs in the kernel."""
        self.stopping = True


def refusal(error: OSError, program: str, cwd: str) -> Refused:
    """Why a program did not start, in words."""
    if error.filename == cwd and error.filename != program:
        return Refused("bad-cwd", f"cannot start in {cwd}: {os.strerror(error.errno or 0)}")
    kind, words = _REFUSALS.get(error.errno or 0, ("internal", os.strerror(error.errno or 0)))
    if kind == "not-found" and "/" in program and os.path.isfile(os.path.join(cwd, program)):
        words = "the interpreter that its first line names, or its loader, is not there"
    return Refused(kind, f"{program}: {words}")


def exit_of(status: int | None) -> dict[str, int | None]:
    """A wait status as ``exit`` or ``signal``; one that SIGKILL did not end in time counts as ended by it."""
    if status is None:
        return {"exit": None, "signal": 9}
    if os.WIFSIGNALED(status):
        return {"exit": None, "signal": os.WTERMSIG(status)}
    return {"exit": os.WEXITSTATUS(status), "signal": None}
