# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Connections to ports in a sandbox, and a local port that leads to one."""

from __future__ import annotations

import contextlib
import socket
import threading
import typing as t

from ..deadline import SYSTEM_CLOCK, Cancellation, Clock, Deadline
from ..errors import SandboxError
from .agent import Agent
from .execution.running import explained
from .execution.stream import StreamReader
from .protocol.call import Call
from .protocol.wire import CHANNEL_STDIN, END_OF_STREAM, encode_channel

_CHUNK = 64 * 1024
#: Seconds for one connection through the agent to be made.
CONNECT_SECONDS = 15.0
#: Connections that one local port carries at a time.
CONNECTION_LIMIT = 64
#: Seconds that a connection may be silent: the heartbeat finds lost connections earlier.
_UNBOUNDED = 10 * 365 * 86400.0


class TcpStream:
    """A connection to a port in the sandbox. A context manager; one thread may receive while another sends."""

    def __init__(self, call: Call) -> None:
        self._call = call
        self._reader = StreamReader(on_event=self._on_event)
        self._eof = False

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End both ways."""
        self._call.close()

    def receive(self, deadline: Deadline) -> bytes:
        """The next bytes; none when the other side sends no more.

        Raises GuestTimeoutError, after which one may receive again, and GuestUnreachableError when the connection to
        the agent is lost.
        """
        with explained(self._call):
            while not (self._reader.ended or self._eof):
                piece = self._reader.take(self._call.connection.receive(deadline))
                if piece is not None:
                    return piece[1]
        return b""

    def send(self, data: bytes, deadline: Deadline) -> bool:
        """Send all of ``data``, waiting while none is taken; False when the connection is closed."""
        return all(
            self._call.connection.write(encode_channel(CHANNEL_STDIN, data[start : start + _CHUNK]), deadline)
            for start in range(0, len(data), _CHUNK)
        )

    def end_sending(self, deadline: Deadline) -> None:
        """End the outward direction; the other direction stays open."""
        self._call.connection.write(END_OF_STREAM, deadline)

    def _on_event(self, event: dict[str, t.Any]) -> None:
        self._eof = self._eof or "eof" in event


def open_tcp(agent: Agent, port: int, *, deadline: Deadline) -> TcpStream:
    """Connect to a port in the sandbox, on 127.0.0.1 or ::1 there.

    Raises GuestRefusedError ``not-connected`` when no program listens, GuestUnsupportedError for an agent without the
    feature ``open-tcp``, and the errors of ``Agent``.
    """
    call = agent.caller.call("open-tcp", {"port": port}, deadline, feature="open-tcp", heartbeat=agent.heartbeat)
    call.part("connected", port=int)
    return TcpStream(call)


class Forwarder:
    """A local port whose connections lead to a port in the sandbox. A context manager that closes all of it.

    A connection that cannot be made there is closed here, and ``failure`` is the error.
    """

    def __init__(
        self, agent: Agent, port: int, *, host: str = "127.0.0.1", local_port: int = 0, clock: Clock = SYSTEM_CLOCK
    ) -> None:
        """Listen, and serve in threads.

        Args:
            port: in the sandbox.
            host: the local address; every program that can connect to it reaches the sandbox; the loopback by default.
            local_port: 0 takes a free one.

        Raises OSError when the local port cannot be listened on.
        """
        self._agent = agent
        self._port = port
        self._clock = clock
        self._lock = threading.Lock()
        self._open: set[socket.socket] = set()
        self._cancellation = Cancellation()
        #: The error of the last connection that could not be made, or was lost.
        self.failure: SandboxError | None = None
        self._listener = socket.create_server((host, local_port), backlog=CONNECTION_LIMIT)
        self._address: tuple[str, int] = self._listener.getsockname()[:2]
        self._thread = threading.Thread(target=self._accept, name="namzu-forward", daemon=True)
        self._thread.start()

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @property
    def address(self) -> tuple[str, int]:
        """The local host and port."""
        return self._address

    def close(self) -> None:
        """Listen no more, and end every connection."""
        self._cancellation.cancel()
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listener.close()
        with self._lock:
            for end in self._open:
                _shut(end, socket.SHUT_RDWR)

    def _accept(self) -> None:
        while not self._cancellation.cancelled:
            try:
                near, _address = self._listener.accept()
            except OSError:
                return
            with self._lock:
                if len(self._open) >= CONNECTION_LIMIT:
                    near.close()
                    continue
                self._open.add(near)
            threading.Thread(target=self._serve, args=(near,), name="namzu-forward", daemon=True).start()

    def _serve(self, near: socket.socket) -> None:
        try:
            with near, open_tcp(self._agent, self._port, deadline=self._within(CONNECT_SECONDS)) as far:
                outward = threading.Thread(target=self._outward, args=(near, far), name="namzu-forward", daemon=True)
                outward.start()
                try:
                    self._inward(near, far)
                finally:
                    outward.join()
        except SandboxError as error:
            if not self._cancellation.cancelled:
                self.failure = error
        except OSError:
            pass
        finally:
            with self._lock:
                self._open.discard(near)

    def _within(self, seconds: float) -> Deadline:
        return Deadline(seconds, self._clock, cancellation=self._cancellation)

    def _inward(self, near: socket.socket, far: TcpStream) -> None:
        """Bytes from the sandbox; when the connection is lost, the near side is closed, which ends the other thread."""
        how = socket.SHUT_RDWR
        try:
            while data := far.receive(self._within(_UNBOUNDED)):
                near.sendall(data)
            how = socket.SHUT_WR
        finally:
            _shut(near, how)

    def _outward(self, near: socket.socket, far: TcpStream) -> None:
        with contextlib.suppress(SandboxError, OSError):
            while data := near.recv(_CHUNK):
                if not far.send(data, self._within(_UNBOUNDED)):
                    return
            far.end_sending(self._within(_UNBOUNDED))


def _shut(end: socket.socket, how: int) -> None:
    with contextlib.suppress(OSError):
        end.shutdown(how)
