# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The process that keeps the leases of another one, and cleans up after it.

It has two sockets. The *lifeline* leads to the one process that it serves: events go there, and when its other end
closes, which the kernel does however that process ends, what is marked ``release_on_end`` is given back. Over the
*door* come those that hold sandboxes. It writes no file, prints nothing, and is told every secret over a socket.
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
from .protocol import Message, answer, event_message, receive, send
from .registry import Event

#: Seconds after the end for which a release is tried on, while the API server cannot be reached.
AFTER_THE_END = 60.0

#: Seconds for which those may still come who had begun an acquire when the one we serve was killed.
LATE_COMERS = 600.0

#: Seconds for which an event may wait to be read; the one that does not read must not hold up the renewals.
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
        lifeline: to the process that is served; nothing is said on it but events.
        door: where clients knock.
        read_lease: makes leases of what they say.
        open_client: makes the client by which a task's leases are renewed and released.
    """

    def __init__(
        self, lifeline: socket.socket, door: socket.socket, read_lease: ReadLease, open_client: OpenClient
    ) -> None:
        self._read_lease = read_lease
        self._open_client = open_client
        self._lifeline = lifeline
        self._door = door
        self._keeper = Keeper(self._report)
        self._clients: dict[str, t.Any] = {}
        self._lock = threading.Lock()
        self._speaking = threading.Lock()
        self._heard = True
        self._over = threading.Event()
        self._nobody_comes = threading.Event()

    def run(self) -> None:
        """Serve until the lifeline ends, then clean up."""
        threading.Thread(target=self._serve_door, name="namzu-door", daemon=True).start()
        with contextlib.suppress(OSError):
            while self._lifeline.recv(1):
                pass
        self._over.set()
        entries = self._keeper.registry.entries()
        renewals = sum(entry.renewals for entry in entries)
        self._say({"event": "ending", "leases": [entry.lease.described() for entry in entries], "renewals": renewals})
        self._release_marked()
        # Only what is marked is left to be done, by those who were not told of the end.
        self._nobody_comes.wait(LATE_COMERS)
        self._keeper.close()

    def _release_marked(self) -> None:
        self._keeper.release_marked(Deadline(AFTER_THE_END))

    def _serve_door(self) -> None:
        callers: list[threading.Thread] = []
        with contextlib.suppress(OSError):
            while (wire := answer(self._door)) is not None:
                callers = [caller for caller in callers if caller.is_alive()]
                callers.append(threading.Thread(target=self._serve, args=(wire,), name="namzu-caller", daemon=True))
                callers[-1].start()
        for caller in callers:
            caller.join()
        self._nobody_comes.set()

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
                # What comes after the end is given back at once.
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
                self._say({"event": "held", "lease": part, "marked": marked})
            return {"marked": marked_uids}
        operation = message.get("op")
        if operation not in ("leave", "stay", "forget"):
            return {"unknown": str(operation)[:40]}
        chosen = self._keeper.registry.named(client.access.server, message["namespace"], message["names"])
        for entry in chosen:
            if operation == "forget":
                self._keeper.let_go(entry.lease.uid)
                self._say({"event": "forgotten", "lease": entry.lease.described()})
            else:
                self._keeper.registry.leave(entry, leaving=operation == "leave")
        return {}

    def _client(self, message: Message) -> t.Any:
        """One client for all who come with the same access; its credential stays in this process's memory alone."""
        said = json.dumps([message["options"], message["environ"]], sort_keys=True)
        key = hashlib.sha256(said.encode()).hexdigest()
        with self._lock:
            if key not in self._clients:
                self._clients[key] = self._open_client(message["options"], message["environ"])
            return self._clients[key]

    def _report(self, event: Event) -> None:
        self._say(event_message(event))

    def _say(self, message: Message) -> None:
        """Tell the process that is served, if it is there and reads; else nothing is said any more."""
        with self._speaking:
            if not self._heard:
                return
            try:
                send(self._lifeline, message)
            except OSError:
                self._heard = False


def main(lifeline: int, door: int, read_lease: ReadLease, open_client: OpenClient) -> None:
    """Keep leases until the other end of the lifeline is closed.

    Args:
        lifeline, door: descriptors of inherited sockets.
        read_lease: makes leases of what clients say.
        open_client: makes the client by which a task's leases are renewed and released.
    """
    for signum in (signal.SIGINT, signal.SIGHUP):
        signal.signal(signum, signal.SIG_IGN)
    with socket.socket(fileno=lifeline) as line, socket.socket(fileno=door) as entrance:
        # For sending alone: a message is waited for without a bound.
        line.setsockopt(socket.SOL_SOCKET, socket.SO_SNDTIMEO, _TIMEVAL.pack(EVENT_SECONDS, 0))
        signal.signal(signal.SIGTERM, lambda *_signal: line.shutdown(socket.SHUT_RD))
        KeeperProcess(line, entrance, read_lease, open_client).run()
