# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The process that keeps the leases of another one, and cleans up after it.

The process inherits two sockets. The parent-death socket leads to the process that started the keeper. The keeper
sends events over it. The kernel closes its other end when that process ends; then the keeper releases every sandbox
that is marked ``release_on_end``. Clients connect over the control socket. The keeper writes no file, prints nothing,
and receives every secret over a socket.
"""

from __future__ import annotations

import contextlib
import hashlib
import json
import signal
import socket
import struct
import threading
import typing as t

from ...deadline import Deadline
from ...errors import SandboxError
from .keeper import Keeper
from .lease import Lease
from .protocol import Message, accept, event_message, receive, send
from .registry import Event

#: Seconds for which a release is retried after the parent has ended, while the API server cannot be reached.
RELEASE_RETRY_SECONDS = 60.0

#: Seconds for which a client may still connect that had begun an acquire when the parent was killed.
LATE_CLIENT_SECONDS = 600.0

#: Seconds for which an event may wait to be read; a parent that does not read must not delay the renewals.
EVENT_SECONDS = 1

#: ``struct timeval``: two C longs (getsockopt(2)).
_TIMEVAL = struct.Struct("@ll")

#: The lease that a part of a message describes.
ReadLease = t.Callable[[Message], Lease]

#: The client that the access options and the environment of a task lead to; ``access.server`` is its server's address.
OpenClient = t.Callable[[t.Mapping[str, t.Any], t.Mapping[str, str]], t.Any]


class KeeperProcess:
    """The keeper with its two sockets.

    Args:
        parent_death_socket: leads to the parent; only events are sent over it.
        control_socket: clients connect over it.
        read_lease: makes a lease from a part of a message.
        open_client: makes the client by which a task's leases are renewed and released.
    """

    def __init__(
        self,
        parent_death_socket: socket.socket,
        control_socket: socket.socket,
        read_lease: ReadLease,
        open_client: OpenClient,
    ) -> None:
        self._read_lease = read_lease
        self._open_client = open_client
        self._parent_death_socket = parent_death_socket
        self._control_socket = control_socket
        self._keeper = Keeper(self._report)
        self._clients: dict[str, t.Any] = {}
        self._lock = threading.Lock()
        self._event_lock = threading.Lock()
        self._parent_reads = True
        self._over = threading.Event()
        self._clients_closed = threading.Event()

    def run(self) -> None:
        """Serve until the parent-death socket closes, then clean up."""
        threading.Thread(target=self._serve_control_socket, name="namzu-control", daemon=True).start()
        with contextlib.suppress(OSError):
            while self._parent_death_socket.recv(1):
                pass
        self._over.set()
        entries = self._keeper.registry.entries()
        renewals = sum(entry.renewals for entry in entries)
        self._send_event(
            {"event": "ending", "leases": [entry.lease.described() for entry in entries], "renewals": renewals}
        )
        self._release_marked()
        # A client that is still connected may yet register a sandbox that is marked for release.
        self._clients_closed.wait(LATE_CLIENT_SECONDS)
        self._keeper.close()

    def _release_marked(self) -> None:
        self._keeper.release_marked(Deadline(RELEASE_RETRY_SECONDS))

    def _serve_control_socket(self) -> None:
        callers: list[threading.Thread] = []
        with contextlib.suppress(OSError):
            while (wire := accept(self._control_socket)) is not None:
                callers = [caller for caller in callers if caller.is_alive()]
                callers.append(threading.Thread(target=self._serve, args=(wire,), name="namzu-caller", daemon=True))
                callers[-1].start()
        for caller in callers:
            caller.join()
        self._clients_closed.set()

    def _serve(self, wire: socket.socket) -> None:
        """One caller: first ``access``, then what it holds and releases."""
        with wire, contextlib.suppress(OSError):
            first = receive(wire)
            if first is None:
                return
            try:
                client = self._client(first)
            except SandboxError as error:
                send(wire, {"refused": error.message})
                return
            send(wire, {})
            while (message := receive(wire)) is not None:
                send(wire, self._act(message, client))
                # A sandbox that is registered after the parent has ended is released at once.
                if self._over.is_set():
                    self._release_marked()

    def _act(self, message: Message, client: t.Any) -> Message:
        if message.get("op") == "hold":
            marked_uids = []
            for part in message["leases"]:
                marked = bool(part["release_on_end"])
                lease, renewed = self._read_lease(part), bool(message["renewed"])
                entry = self._keeper.hold(client, lease, renewed=renewed, release_on_end=marked)
                if entry.release_on_end:
                    marked_uids.append(entry.lease.uid)
                self._send_event({"event": "held", "lease": part, "marked": marked})
            return {"marked": marked_uids}
        operation = message.get("op")
        if operation not in ("leave", "stay", "forget"):
            return {"unknown": str(operation)[:40]}
        chosen = self._keeper.registry.named(client.access.server, message["namespace"], message["names"])
        for entry in chosen:
            if operation == "forget":
                self._keeper.let_go(entry.lease.uid)
                self._send_event({"event": "forgotten", "lease": entry.lease.described()})
            else:
                self._keeper.registry.leave(entry, leaving=operation == "leave")
        return {}

    def _client(self, message: Message) -> t.Any:
        """One client for each set of access options; its credential stays in the memory of this process."""
        access = json.dumps([message["options"], message["environ"]], sort_keys=True)
        key = hashlib.sha256(access.encode()).hexdigest()
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._open_client(message["options"], message["environ"])
            return self._clients[key]

    def _report(self, event: Event) -> None:
        self._send_event(event_message(event))

    def _send_event(self, message: Message) -> None:
        """Send an event to the parent; after the first failure no event is sent."""
        with self._event_lock:
            if not self._parent_reads:
                return
            try:
                send(self._parent_death_socket, message)
            except OSError:
                self._parent_reads = False


def main(parent_death_socket: int, control_socket: int, read_lease: ReadLease, open_client: OpenClient) -> None:
    """Keep leases until the other end of the parent-death socket is closed.

    Args:
        parent_death_socket, control_socket: descriptors of inherited sockets.
        read_lease: makes a lease from a part of a message.
        open_client: makes the client by which a task's leases are renewed and released.
    """
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    with socket.socket(fileno=parent_death_socket) as parent, socket.socket(fileno=control_socket) as control:
        # For sending alone: a message is waited for without a bound.
        parent.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(EVENT_SECONDS, 0))
        signal.signal(signal.SIGTERM, lambda *_signal: parent.shutdown(socket.SHUT_RD))
        KeeperProcess(parent, control, read_lease, open_client).run()
