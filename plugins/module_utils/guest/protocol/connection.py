# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""One connection to an agent: connecting, sending and receiving frames, all within one deadline.

Sending and receiving alternate, because an agent that writes a command's output does not read the rest of its input.
"""

from __future__ import annotations

import collections
import contextlib
import functools
import selectors
import socket
import threading
import typing as t

from ...deadline import Deadline
from ...resolution import unknown_host
from ..errors import GuestError, GuestProtocolError, GuestTimeoutError, GuestUnreachableError
from .heartbeat import HEARTBEAT_SENDER
from .waiting import connected, pause, wait_for_events, wait_until_writable
from .wire import HEARTBEAT, MISSES, FrameDecoder, encode

#: Waits between the tries to connect: an agent needs some tens of milliseconds from exec to listen.
CONNECT_WAITS = (0.1, 0.3)

#: Seconds within which an agent that is there accepts: the address of a pod that is gone may give no answer at all, and
#: what is to be done there may have days.
CONNECT_SECONDS = 10.0

#: Seconds for all look-ups of a host name together; where no DNS server answers, one look-up alone may take longer.
RESOLVE_SECONDS = 5.0

#: A command may be silent for hours, and a lost node sends nothing either: it is found after 30 + 3 * 10 s.
_KEEPALIVE = {"TCP_KEEPIDLE": 30, "TCP_KEEPINTVL": 10, "TCP_KEEPCNT": 3}

#: Seconds of one wait: the kernel takes milliseconds in a C int, which ends after 24 days, and a deadline may be later.
LONGEST_WAIT = 3600.0

#: Bytes of one call to the kernel; a file that is sent costs a turn of the loop on both sides for each.
_RECEIVED = 64 * 1024
_SENT = 256 * 1024
#: Stop taking from the source of outgoing frames while this much is unsent.
_OUTGOING_MARK = 256 * 1024

#: The text of Go (API server, kubelet) for a port without a listener: nothing was sent then.
_REFUSED = "connection refused"

_NO_LISTENER_STEP = "Check that the pod runs, that its agent listens there, and that an ingress policy allows this."

#: Makes a connected socket within a deadline.
Dial = t.Callable[[Deadline], socket.socket]


class Peer(t.NamedTuple):
    """The address and the subject of an agent, for messages and for the socket; never the token."""

    host: str
    port: int
    subject: str | None
    dial: Dial | None = None

    @property
    def name(self) -> str:
        """``agent host:port``, and the subject when the caller named it."""
        host = f"[{self.host}]" if ":" in self.host else self.host
        return f"agent {host}:{self.port}" + (f" of {self.subject}" if self.subject else "")


class Connection:
    """A connected socket that speaks in frames. Use it as a context manager."""

    def __init__(self, sock: socket.socket, peer: Peer, operation: str, deadline: Deadline) -> None:
        self._socket = sock
        self._peer = peer
        self._operation = operation
        self.deadline = deadline
        self._decoder = FrameDecoder()
        self._frames: collections.deque[bytes] = collections.deque()
        self._outgoing = bytearray()
        self._source: t.Iterator[bytes] = iter(())
        self._sending = True
        self._answered = False
        #: Guards the outgoing bytes: the heartbeat's thread and writers may not be the thread that receives.
        self._lock = threading.Lock()
        self._heartbeat = 0.0
        self._last_received = 0.0
        sock.setblocking(False)
        self._cutting = deadline.cancellation.cutting(functools.partial(_shut, sock))
        self._cutting.__enter__()
        self._selector = selectors.DefaultSelector()
        self._selector.register(sock, selectors.EVENT_READ)

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the connection; the agent ends a command that is still running on it."""
        if self._heartbeat:
            HEARTBEAT_SENDER.remove(self)
        self._cutting.__exit__(None, None, None)
        self._selector.close()
        self._socket.close()

    def send(self, frame: bytes, then: t.Iterable[bytes] = ()) -> None:
        """Queue a frame, and frames that are to follow it as the agent takes them. Nothing blocks here."""
        with self._lock:
            self._outgoing += frame
            self._source = iter(then)

    def write(self, frame: bytes, deadline: Deadline) -> bool:
        """Send a frame, waiting while the agent takes none; any thread may. False when the agent has closed.

        Raises GuestTimeoutError when the deadline passes before there was room for it.
        """
        while True:
            with self._lock:
                self._flush()
                if not self._sending:
                    return False
                if len(self._outgoing) < _OUTGOING_MARK:
                    self._outgoing += frame
                    self._flush()
                    if self._outgoing and self._sending:
                        # The thread that waits for a frame sends the rest.
                        self._watch()
                    return self._sending
            remaining = deadline.remaining()
            if remaining <= 0.0:
                raise timed_out(self._peer, self._operation, "stream", deadline)
            wait_until_writable(self._socket, min(remaining, LONGEST_WAIT))

    def start_heartbeat(self, interval: float) -> None:
        """From now on both sides send a heartbeat every ``interval`` seconds; three missing ones end the connection."""
        self._last_received = self.deadline.clock.monotonic()
        self._heartbeat = interval
        HEARTBEAT_SENDER.add(self, interval)

    def send_heartbeat(self) -> None:
        """Send a heartbeat, unless other bytes are outgoing."""
        with self._lock:
            if not self._outgoing:
                self._outgoing += encode(HEARTBEAT)
                self._flush()

    def receive(self, deadline: Deadline | None = None) -> bytes:
        """The next frame's bytes, sending what is queued meanwhile.

        Args:
            deadline: for this frame, instead of the connection's own.

        Raises GuestTimeoutError when the deadline passes, GuestUnreachableError when the connection ends or its
        heartbeat does, GuestProtocolError when the other side does not send valid frames.
        """
        within = deadline or self.deadline
        while True:
            while not self._frames:
                self._refill()
                with self._lock:
                    self._flush()
                self._wait(within)
                self._read()
            frame = self._frames.popleft()
            if not (self._heartbeat and frame == HEARTBEAT):
                return frame

    def _refill(self) -> None:
        while self._sending and len(self._outgoing) < _OUTGOING_MARK:
            frame = next(self._source, None)
            if frame is None:
                return
            with self._lock:
                self._outgoing += frame

    def _wait(self, deadline: Deadline) -> None:
        with self._lock:
            self._watch()
        remaining = deadline.remaining()
        patience = remaining
        if self._heartbeat:
            silent = deadline.clock.monotonic() - self._last_received
            patience = min(remaining, max(self._heartbeat * MISSES - silent, 0.0))
        if remaining > 0.0 and (
            wait_for_events(self._selector, min(patience, LONGEST_WAIT)) or patience > LONGEST_WAIT
        ):
            return
        if patience < remaining:
            raise self._lost(f"nothing was received for {MISSES * self._heartbeat:g} s, three heartbeats,")
        raise timed_out(self._peer, self._operation, "stream" if self._answered else "answer", deadline)

    def _watch(self) -> None:
        """Wait for room too while something is outgoing, also in a wait that goes on already."""
        events = selectors.EVENT_READ
        if self._outgoing and self._sending:
            events |= selectors.EVENT_WRITE
        self._selector.modify(self._socket, events)

    def _flush(self) -> None:
        if not (self._outgoing and self._sending):
            return
        try:
            sent = self._socket.send(memoryview(self._outgoing)[:_SENT])
        except BlockingIOError:
            return
        except OSError:
            # The agent may have closed after an error answer, which is still to be read.
            self._sending = False
            return
        del self._outgoing[:sent]

    def _read(self) -> None:
        try:
            data = self._socket.recv(_RECEIVED)
        except BlockingIOError:
            return
        except OSError as error:
            raise self._lost(f"the connection broke ({os_error_text(error)})") from None
        if not data:
            raise self._lost("the connection was closed")
        try:
            self._frames.extend(self._decoder.feed(data))
        except GuestProtocolError as error:
            raise protocol_error(self._peer, self._operation, error.message) from None
        self._answered = self._answered or bool(self._frames)
        if self._heartbeat:
            self._last_received = self.deadline.clock.monotonic()

    def _lost(self, what: str) -> GuestError:
        answered = self._answered or self._decoder.midway
        when = "in the middle of the answer" if answered else "before any answer"
        # A forwarded port has the API server's error text.
        said = getattr(self._socket, "said", "")
        lost = f"{self._operation} at {self._peer.name}: {what} {when}" + (f" ({said})" if said else "")
        if _REFUSED in said and not answered:
            return GuestUnreachableError(f"{lost}.", object=self._peer.name, next_step=_NO_LISTENER_STEP)
        return GuestUnreachableError(
            f"{lost}; the request may have been carried out.",
            sent=True,
            object=self._peer.name,
            next_step="Check whether the pod was deleted, restarted or killed for its memory.",
        )


def connect(peer: Peer, operation: str, deadline: Deadline) -> Connection:
    """Connect within ``deadline``; a refused or unroutable address is tried three times, because nothing was sent yet.

    A host name is looked up again for RESOLVE_SECONDS at most.

    Raises GuestUnreachableError or GuestTimeoutError. The first is not ``retryable`` when the host name does not exist.
    """
    failure: OSError | None = None
    started = deadline.elapsed()
    for wait in (*CONNECT_WAITS, None):
        try:
            sock = connected(functools.partial(dial, peer, operation, deadline), deadline)
            return Connection(sock, peer, operation, deadline)
        except OSError as error:
            failure = error
        if deadline.expired:
            break
        if isinstance(failure, socket.gaierror) and deadline.elapsed() - started >= RESOLVE_SECONDS:
            break
        if wait is not None:
            pause(deadline, wait)
    next_step = _NO_LISTENER_STEP
    if isinstance(failure, socket.gaierror):
        next_step = (
            "This machine cannot resolve the names of the cluster's services: run where the cluster's DNS answers, or "
            "set agent.address (of a host: ansible_sandbox_agent_address) to pod_ip (with a route to the pods) or "
            "port_forward (without one)."
        )
    raise GuestUnreachableError(
        f"{operation} at {peer.name}: could not connect ({os_error_text(failure)}).",
        object=peer.name,
        next_step=next_step,
        retryable=not unknown_host(failure),
    ) from None


def dial(peer: Peer, operation: str, deadline: Deadline) -> socket.socket:
    """One try over every address of the host, each with its share of the time that is left."""
    if peer.dial is not None:
        return peer.dial(deadline)
    deadline = Deadline(min(deadline.remaining(), CONNECT_SECONDS), deadline.clock, cancellation=deadline.cancellation)
    addresses = _resolve(peer, operation, deadline)
    failure: OSError = OSError("the name has no address")
    for index, (family, address) in enumerate(addresses):
        sock = socket.socket(family, socket.SOCK_STREAM)
        try:
            _set_options(sock)
            sock.settimeout(max(deadline.remaining() / (len(addresses) - index), 0.001))
            with deadline.cancellation.cutting(functools.partial(_shut, sock)):
                sock.connect(address)
            return sock
        except OSError as error:
            sock.close()
            failure = error
        if deadline.expired:
            raise timed_out(peer, operation, "connect", deadline)
    raise failure


def _shut(sock: socket.socket) -> None:
    with contextlib.suppress(OSError):
        sock.shutdown(socket.SHUT_RDWR)


def _set_options(sock: socket.socket) -> None:
    sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _KEEPALIVE.items():
        # Not every system lets a program set these.
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _resolve(peer: Peer, operation: str, deadline: Deadline) -> list[tuple[int, t.Any]]:
    """The host's addresses. A name is looked up in a thread, because the C library's resolver knows no deadline."""
    try:
        return _addresses(peer, socket.AI_NUMERICHOST)
    except socket.gaierror:
        pass
    found: list[list[tuple[int, t.Any]]] = []
    failed: list[OSError] = []

    def look_up() -> None:
        try:
            found.append(_addresses(peer, 0))
        except OSError as error:
            failed.append(error)

    thread = threading.Thread(target=look_up, name="namzu-resolve", daemon=True)
    thread.start()
    thread.join(deadline.at_most(RESOLVE_SECONDS))
    if failed:
        raise failed[0]
    if not found:
        raise timed_out(peer, operation, "resolve", deadline)
    return found[0]


def _addresses(peer: Peer, flags: int) -> list[tuple[int, t.Any]]:
    try:
        infos = socket.getaddrinfo(peer.host, peer.port, type=socket.SOCK_STREAM, flags=flags)
    except UnicodeError:
        # From the encoding of internationalised names, before anything is looked up.
        raise OSError(f"{peer.host[:80]!r} is no host name") from None
    return [(info[0], info[4]) for info in infos]


def os_error_text(error: OSError | None) -> str:
    """An operating system error as its own words, without Python's decoration."""
    if error is None:
        return "no reason given"
    return error.strerror or str(error) or type(error).__name__


_STAGES = {
    "resolve": ("the name was not resolved", "Look at the resolver, or use the pod's address."),
    "connect": (
        "the connection attempt got no reply, neither yes nor no",
        "A network policy that drops packets, or a node that is down, looks like this.",
    ),
    "answer": (
        "the port accepts connections but the agent did not answer",
        "The agent hangs, or its pod has no processor time or memory left.",
    ),
    "stream": (
        "the answer began but did not end",
        "A command that was still running is ended by the agent, because its connection is closed now.",
    ),
}


def timed_out(peer: Peer, operation: str, stage: str, deadline: Deadline) -> GuestTimeoutError:
    """The error for a deadline that passed in ``stage`` (a key of the table above)."""
    what, next_step = _STAGES[stage]
    return GuestTimeoutError(
        f"{operation} at {peer.name}: {what} within {round(deadline.seconds, 2):g} s.",
        stage=stage,
        object=peer.name,
        next_step=next_step,
    )


def protocol_error(peer: Peer, operation: str, what: str) -> GuestProtocolError:
    """The error for an answer that is not one of this protocol."""
    return GuestProtocolError(
        f"{operation} at {peer.name}: {what}.",
        object=peer.name,
        next_step="Look at the agent port: another program answers there, or an agent of another protocol version.",
    )
