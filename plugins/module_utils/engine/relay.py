# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A connection to a command in a container, over the engine's exec API: for engines without a common file system."""

from __future__ import annotations

import contextlib
import select
import socket
import ssl
import threading
import typing as t

from ..deadline import Deadline
from ..text import clean_text
from .client import EngineClient
from .containers import create_exec

_CHUNK = 64 * 1024
#: Bytes that wait for one side before no more are taken from the other.
_MARK = 256 * 1024
_HEADER = 8
_STDOUT, _STDERR = 1, 2
#: Bytes of what the command wrote to standard error that are retained.
_STDERR_LIMIT = 2000
#: Seconds of silence after which a connection ends: longer than any command may run.
_IDLE_SECONDS = 2 * 86400.0


class RelaySocket(socket.socket):
    """Our end of a connection to a command.

    Attributes:
        errors: what the command wrote to standard error, as it came.
    """

    errors: t.Sequence[bytes] = ()

    @property
    def said(self) -> str:
        """The same as one line of text."""
        return clean_text(" ".join(b"".join(self.errors).decode("utf-8", "replace").split()), 600)


def open_relay(
    client: EngineClient, container: str, argv: t.Sequence[str], user: str, deadline: Deadline
) -> RelaySocket:
    """Run a command in a container and connect to its standard input and output.

    Closing the socket ends the connection. A thread for each direction carries the bytes while it is open.
    """
    command = create_exec(client, container, argv, user, deadline, attach=True)
    remote, ahead = client.hijack(
        f"/exec/{command}/start", deadline, subject=f"Container {container}", body={"Detach": False, "Tty": False}
    )
    near, theirs = socket.socketpair()
    ours = RelaySocket(fileno=near.detach())
    # Shared without the socket itself, which closes when it is forgotten.
    ours.errors = errors = list[bytes]()
    threading.Thread(target=_carry, args=(remote, theirs, ahead, errors), name="namzu-relay", daemon=True).start()
    return ours


def _carry(remote: socket.socket, near: socket.socket, ahead: bytes, errors: list[bytes]) -> None:
    """Carry both directions until either side ends. One thread: a TLS connection is not safe between two."""
    remote.setblocking(False)
    near.setblocking(False)
    stream = _CommandStream(errors)
    outgoing = bytearray()
    poll = select.poll()
    with contextlib.suppress(OSError, ValueError), remote, near:
        stream.feed(ahead)
        while True:
            poll.register(remote, _events(len(stream.output) < _MARK, bool(outgoing)))
            poll.register(near, _events(len(outgoing) < _MARK, bool(stream.output)))
            pending = isinstance(remote, ssl.SSLSocket) and remote.pending() > 0
            if not poll.poll(0 if pending else _IDLE_SECONDS * 1000) and not pending:
                return
            with _unready():
                _write(near, stream.output)
            with _unready():
                _write(remote, outgoing)
            if len(outgoing) < _MARK:
                with _unready():
                    outgoing += _read(near)
            if len(stream.output) < _MARK:
                with _unready():
                    stream.feed(_read(remote))


def _events(reading: bool, writing: bool) -> int:
    return (select.POLLIN if reading else 0) | (select.POLLOUT if writing else 0)


def _unready() -> contextlib.AbstractContextManager[None]:
    return contextlib.suppress(BlockingIOError, ssl.SSLWantReadError, ssl.SSLWantWriteError)


def _read(sock: socket.socket) -> bytes:
    data = sock.recv(_CHUNK)
    if not data:
        raise ConnectionResetError
    return data


def _write(sock: socket.socket, data: bytearray) -> None:
    if data:
        del data[: sock.send(bytes(data[:_CHUNK]))]


class _CommandStream:
    """Takes the stream of a command apart: each piece has a header with its stream's number and its length.

    Attributes:
        output: what the command wrote to standard output, as far as it was not passed on.
    """

    def __init__(self, errors: list[bytes]) -> None:
        self.output = bytearray()
        self._errors = errors
        self._buffer = bytearray()

    def feed(self, data: bytes) -> None:
        """Take what has arrived; ValueError for what is not such a stream."""
        self._buffer += data
        while len(self._buffer) >= _HEADER:
            number, length = self._buffer[0], int.from_bytes(self._buffer[4:_HEADER], "big")
            if number not in (_STDOUT, _STDERR):
                raise ValueError
            if len(self._buffer) < _HEADER + length:
                return
            piece = bytes(self._buffer[_HEADER : _HEADER + length])
            del self._buffer[: _HEADER + length]
            if number == _STDOUT:
                self.output += piece
            elif sum(map(len, self._errors)) < _STDERR_LIMIT:
                self._errors.append(piece[:_STDERR_LIMIT])
