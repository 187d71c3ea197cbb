# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""How a keeper process is spoken to: over socket pairs that it inherits, in messages of JSON.

A client asks for a connection of its own by sending one end of a new socket pair over the *door*, a socket that all
clients share; so nothing is named in a file system or seen by others. On the connection every message is answered.
"""

from __future__ import annotations

import json
import socket
import struct
import typing as t

if t.TYPE_CHECKING:
    from .registry import Event

Message = dict[str, t.Any]

#: The largest message: a kubeconfig and an environment, some hundred KiB at most, and 1000 leases of 400 bytes.
MAXIMUM_MESSAGE = 8 * 1024 * 1024

_LENGTH = struct.Struct("!I")


class KeeperGone(OSError):
    """The other side has closed the connection, or says what is no message."""


def send(wire: socket.socket, message: Message) -> None:
    """Send one message.

    Raises:
        OSError: nobody reads any more, or the socket's timeout has passed.
    """
    content = json.dumps(message, separators=(",", ":")).encode()
    wire.sendall(_LENGTH.pack(len(content)) + content)


def receive(wire: socket.socket) -> Message | None:
    """The next message, or None when the other side has closed the connection.

    Raises:
        OSError: it was cut in the middle, is too large or no JSON object, or the socket's timeout has passed.
    """
    head = _read(wire, _LENGTH.size)
    if not head:
        return None
    (length,) = _LENGTH.unpack(head)
    if length > MAXIMUM_MESSAGE:
        raise KeeperGone("a message is too large")
    try:
        message = json.loads(_read(wire, length))
    except ValueError:
        message = None
    if not isinstance(message, dict):
        raise KeeperGone("a message is no JSON object")
    return message


def _read(wire: socket.socket, size: int) -> bytes:
    content = b""
    while len(content) < size:
        part = wire.recv(size - len(content))
        if not part:
            if content:
                raise KeeperGone("a message was cut")
            return b""
        content += part
    return content


def knock(door: socket.socket) -> socket.socket:
    """A connection of one's own.

    Raises:
        OSError: nobody is behind the door any more.
    """
    ours, theirs = socket.socketpair()
    try:
        with theirs:
            socket.send_fds(door, [b"k"], [theirs.fileno()])
    except OSError:
        ours.close()
        raise
    return ours


def answer(door: socket.socket) -> socket.socket | None:
    """The next connection that somebody asks for, or None when nobody can ask any more."""
    data, descriptors, _flags, _address = socket.recv_fds(door, 1, 1)
    if not data:
        return None
    return socket.socket(fileno=descriptors[0])


def event_message(event: Event) -> Message:
    """An event for whoever shows it."""
    return {
        "event": event.kind,
        "lease": event.lease.described(),
        "message": event.error.message if event.error else None,
        "reason": event.error.reason if event.error else None,
        "failures": event.failures,
    }
