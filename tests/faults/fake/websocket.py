# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A WebSocket server for tests of port-forwards: as much of RFC 6455 as they need."""

from __future__ import annotations

import base64
import contextlib
import hashlib
import socket
import ssl
import threading
import typing as t

#: RFC 6455, section 1.3.
ACCEPT = b"258EAFA5-E914-47DA-95CA-C5AB0DC85B11"
TEXT, BINARY, CLOSE, PING, PONG = 1, 2, 8, 9, 10
PORT = 1024


class Peer:
    """The server's end of one WebSocket."""

    def __init__(self, connection: socket.socket) -> None:
        self.connection = connection
        self.stream = connection.makefile("rb")
        self.head = b""
        while (line := self.stream.readline()) not in (b"\r\n", b""):
            self.head += line

    def header(self, name: str) -> str:
        """A header of the request."""
        lines = [line.partition(":") for line in self.head.decode().splitlines()]
        return next((value.strip() for key, _colon, value in lines if key.lower() == name.lower()), "")

    def accept(self, protocol: str = "v4.channel.k8s.io") -> None:
        """Upgrade the connection, and begin both channels."""
        key = hashlib.sha1(self.header("Sec-WebSocket-Key").encode() + ACCEPT, usedforsecurity=False).digest()
        lines = ["HTTP/1.1 101 Switching Protocols", "Upgrade: websocket", "Connection: Upgrade"]
        lines += [f"Sec-WebSocket-Accept: {base64.b64encode(key).decode()}", f"Sec-WebSocket-Protocol: {protocol}"]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode())
        for channel in (0, 1):
            self.send(bytes([channel]) + PORT.to_bytes(2, "little"))

    def refuse(self, status: int, *headers: str) -> None:
        """Answer without an upgrade."""
        body = f"no, {self.header('Authorization')}".encode()
        lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(body)}", *headers]
        self.connection.sendall("\r\n".join([*lines, "", ""]).encode() + body)

    def send(self, payload: bytes, opcode: int = BINARY) -> None:
        """Send one whole frame."""
        size = len(payload)
        head = bytes([0x80 | opcode])
        head += bytes([size]) if size < 126 else bytes([126]) + size.to_bytes(2, "big")
        self.connection.sendall(head + payload)

    def receive(self) -> tuple[int, bytes]:
        """One frame of the client: opcode and content."""
        first, second = self.stream.read(2)
        size = second & 0x7F
        if size > 125:
            size = int.from_bytes(self.stream.read(2 if size == 126 else 8), "big")
        mask = self.stream.read(4)
        masked = self.stream.read(size)
        return first & 0x0F, bytes(byte ^ mask[place % 4] for place, byte in enumerate(masked))

    def data(self) -> bytes:
        """The content of one message on the data channel."""
        opcode, content = self.receive()
        assert (opcode, content[0]) == (BINARY, 0)
        return content[1:]

    def at_end(self) -> bool:
        """Whether the client has gone."""
        with contextlib.suppress(OSError):
            return not self.stream.read(1)
        return True


class Server:
    """A server that runs one function with every connection. Use it as a context manager."""

    def __init__(self, serve: t.Callable[[Peer], object], tls: ssl.SSLContext | None = None) -> None:
        self.peers: list[Peer] = []
        self.failures: list[BaseException] = []
        self._serve = serve
        self._tls = tls
        self._listener = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, name="websocket-server")

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        with contextlib.suppress(OSError):
            self._listener.shutdown(socket.SHUT_RDWR)
        self._thread.join(10.0)
        self._listener.close()
        assert self.failures == []

    @property
    def address(self) -> str:
        """Host and port."""
        return f"127.0.0.1:{self._listener.getsockname()[1]}"

    def _accept(self) -> None:
        while True:
            try:
                connection, _peer = self._listener.accept()
            except OSError:
                return
            connection.settimeout(5.0)
            try:
                self._speak(connection)
            except (ssl.SSLError, ConnectionError):  # the client may go at any time
                connection.close()
            except Exception as error:  # noqa: BLE001 - told where the test is
                self.failures.append(error)
                connection.close()

    def _speak(self, connection: socket.socket) -> None:
        wire = self._tls.wrap_socket(connection, server_side=True) if self._tls else connection
        with wire:
            peer = Peer(wire)
            self.peers.append(peer)
            with peer.stream:
                self._serve(peer)
