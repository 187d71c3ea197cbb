# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""A server that answers each request with the next bytes of a script, however wrong these are."""

from __future__ import annotations

import contextlib
import dataclasses
import json
import socket
import ssl
import threading
import typing as t

#: Bytes to send, or seconds to wait before the next ones.
Step = bytes | float


@dataclasses.dataclass(frozen=True)
class Received:
    """One request as it came."""

    line: str
    headers: list[tuple[str, str]]
    body: bytes

    def all(self, name: str) -> list[str]:
        """The values of a header, in order."""
        return [value for key, value in self.headers if key.lower() == name.lower()]


class Scripted:
    """Use it as a context manager.

    Attributes:
        script: the answers, in order; the last one is repeated. An answer is one Step or a list of them; the connection
            is closed after it.
        received: the requests so far.
    """

    def __init__(self, *script: Step | list[Step], tls: ssl.SSLContext | None = None) -> None:
        self.script = list(script)
        self.received: list[Received] = []
        self._tls = tls
        self._stopping = threading.Event()
        self._socket = socket.create_server(("127.0.0.1", 0))
        self._thread = threading.Thread(target=self._accept, name="scripted")
        self._peers: list[threading.Thread] = []

    def __enter__(self) -> t.Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopping.set()
        with contextlib.suppress(OSError):
            self._socket.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._socket.close()
        for peer in self._peers:
            peer.join()

    @property
    def port(self) -> int:
        """Where it listens, on 127.0.0.1."""
        return int(self._socket.getsockname()[1])

    @property
    def connections(self) -> int:
        """How many were opened so far."""
        return len(self._peers)

    @property
    def url(self) -> str:
        """Its address."""
        return f"{'https' if self._tls else 'http'}://127.0.0.1:{self.port}"

    def _accept(self) -> None:
        while not self._stopping.is_set():
            try:
                connection, _unused = self._socket.accept()
            except OSError:
                return
            peer = threading.Thread(target=self._serve, args=(connection,))
            self._peers.append(peer)
            peer.start()

    def _serve(self, connection: socket.socket) -> None:
        connection.settimeout(5.0)
        with connection, contextlib.suppress(OSError):
            if self._tls is None:
                self._answer(connection)
            else:
                with self._tls.wrap_socket(connection, server_side=True) as secure:
                    self._answer(secure)

    def _answer(self, connection: socket.socket) -> None:
        with connection.makefile("rb") as stream:
            line = stream.readline().decode("latin-1").strip()
            if not line:
                return
            headers: list[tuple[str, str]] = []
            while (header := stream.readline().decode("latin-1").strip()) != "":
                name, _unused, value = header.partition(":")
                headers.append((name, value.strip()))
            length = next((int(value) for name, value in headers if name.lower() == "content-length"), 0)
            self.received.append(Received(line, headers, stream.read(length)))
        answer = self.script[min(len(self.received), len(self.script)) - 1]
        for step in answer if isinstance(answer, list) else [answer]:
            if isinstance(step, bytes):
                connection.sendall(step)
            elif self._stopping.wait(step):
                return
        self._linger(connection)

    def _linger(self, connection: socket.socket) -> None:
        """Close our side, and the other when the peer does: a close that overtakes the last bytes resets them away."""
        connection.shutdown(socket.SHUT_WR)
        connection.settimeout(0.05)
        while not self._stopping.is_set():
            with contextlib.suppress(TimeoutError):
                if not connection.recv(65536):
                    return


def answer(status: int, body: bytes | dict[str, t.Any], **headers: str) -> bytes:
    """A whole HTTP answer; underscores in header names become dashes."""
    content = json.dumps(body).encode() if isinstance(body, dict) else body
    lines = [f"HTTP/1.1 {status} Whatever", f"Content-Length: {len(content)}", "Connection: close"]
    lines += [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([*lines, "", ""]).encode() + content


def watch_head() -> bytes:
    """The head of an answer that streams."""
    return b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"


def chunk(data: bytes | dict[str, t.Any]) -> bytes:
    """One chunk of a stream: bytes, or an event as a line of JSON; ``b""`` ends the stream."""
    content = json.dumps(data).encode() + b"\n" if isinstance(data, dict) else data
    return b"%x\r\n%b\r\n" % (len(content), content)


def claim(version: int = 1, uid: str = "uid-1", name: str = "one", **rest: t.Any) -> dict[str, t.Any]:
    """A claim as an API server answers it."""
    return {"kind": "SandboxClaim", "metadata": {"name": name, "uid": uid, "resourceVersion": str(version)}, **rest}


def status_object(code: int, reason: str, message: str = "words", name: str | None = "one") -> dict[str, t.Any]:
    """A Status object."""
    details = {"name": name} if name else {}
    return {"kind": "Status", "metadata": {}, "code": code, "reason": reason, "message": message, "details": details}
