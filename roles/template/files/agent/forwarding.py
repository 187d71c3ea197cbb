# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""open-tcp: a connection to a port in the sandbox, and to nowhere else: what the pod may reach is not ours to lend."""

from __future__ import annotations

import os
import select
import socket
import time

from fields import check_fields, parse_number, require
from stream import CHUNK, HIGH_WATER, Stream
from watch import Watch
from wire import END_OF_STREAM, STDIN, STDOUT, Refused, encode_channel, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer

#: Where a port of the sandbox may be listened on, in the order in which they are tried.
HERE = ("127.0.0.1", "::1")
#: Seconds for connecting; on the loopback only a full queue takes any.
CONNECT_TIME = 5.0

_FIELDS = frozenset(("port",))


def open_tcp(_context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, _FIELDS, "open-tcp")
    require("port" in body, "open-tcp needs a port")
    port = parse_number(body, "port", 1, 65535, 0)
    with connect(port) as far:
        peer.begin({"connected": {"host": far.getpeername()[0], "port": port}})
        Forwarding(Stream(peer), far).run()


def connect(port: int) -> socket.socket:
    reasons = []
    for host in HERE:
        try:
            return socket.create_connection((host, port), CONNECT_TIME)
        except OSError as error:  # noqa: PERF203
            reasons.append(f"{host}: {os.strerror(error.errno) if error.errno else 'no answer'}")
    raise Refused("not-connected", f"no program accepts connections at port {port} ({', '.join(reasons)})")


class Forwarding:
    """Bytes both ways, and the end of each way as its own."""

    def __init__(self, stream: Stream, far: socket.socket) -> None:
        self._stream = stream
        self._far = far
        self._watch = Watch()
        self._pending = bytearray()
        self._input_open = True
        self._output_open = True
        far.setblocking(False)

    def run(self) -> None:
        while not self._stream.gone and (self._output_open or self._input_open or self._pending):
            self._turn()
        self._stream.send(encode_event({"end": {}}) + END_OF_STREAM)
        while not (self._stream.gone or self._stream.empty):
            self._turn()

    def _turn(self) -> None:
        fd = self._far.fileno()
        wanted = {self._stream.fd: self._stream.events(len(self._pending) < HIGH_WATER)}
        events = select.POLLIN if self._output_open and not self._stream.full else 0
        events |= select.POLLOUT if self._pending else 0
        if events:
            wanted[fd] = events
        for ready, happened in self._watch.wait(wanted, [self._stream.moment]):
            if ready == fd:
                self._exchange(happened)
            else:
                self._take(self._stream.receive(happened))
        self._stream.keep_time(time.monotonic())

    def _take(self, frame: bytes | None) -> None:
        if frame is None:
            return
        if frame and frame[0] != STDIN:
            self._stream.leave()
        elif frame:
            self._pending += memoryview(frame)[1:]
            self._write()
        else:
            self._input_open = False
            self._write()

    def _exchange(self, events: int) -> None:
        if events & (select.POLLIN | select.POLLHUP | select.POLLERR):
            self._read()
        if events & (select.POLLOUT | select.POLLHUP | select.POLLERR):
            self._write()

    def _read(self) -> None:
        if not self._output_open or self._stream.full:
            return
        try:
            data = self._far.recv(CHUNK)
        except BlockingIOError:
            return
        except OSError:
            data = b""
        if data:
            self._stream.send(encode_channel(STDOUT, data))
        else:
            self._output_open = False
            self._stream.send(encode_event({"eof": {}}))

    def _write(self) -> None:
        try:
            while self._pending:
                del self._pending[: self._far.send(self._pending)]
            if not self._input_open:
                self._far.shutdown(socket.SHUT_WR)
        except BlockingIOError:
            return
        except OSError:
            # The program there reads no more. What still comes is thrown away; what it says is still passed on.
            self._pending.clear()
            self._input_open = False
