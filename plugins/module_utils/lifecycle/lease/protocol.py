# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The protocol of the keeper process: JSON messages over socket pairs that the process inherits.

A client connects by sending one end of a new socket pair over the control socket, which all clients share. No socket
has a name in a file system, so other processes cannot connect. The keeper replies to every message on a connection.
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
    """The other side has closed the connection, or has sent something that is not a message."""


def send(wire: socket.socket, message: Message) -> None:
    """Send one message.

    Raises:
        OSError: the other side has closed the connection, or the socket's timeout has passed.
    """
    content = json.dumps(message, separators=(",", ":")).encode()
    wire.sendall(_LENGTH.pack(len(content)) + content)


def receive(wire: socket.socket) -> Message | None:
    """The next message, or None when the other side has closed the connection.

    Raises:
        OSError: the message is cut, is too large or is not a JSON object, or the socket's timeout has passed.
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


def connect(control_socket: socket.socket) -> socket.socket:
    """Open a separate connection to the keeper.

    Raises:
        OSError: the keeper has ended.
    """
    client_end, keeper_end = socket.socketpair()
    try:
        with keeper_end:
            socket.send_fds(control_socket, [b"k"], [keeper_end.fileno()])
    except OSError:
        client_end.close()
        raise
    return client_end


def accept(control_socket: socket.socket) -> socket.socket | None:
    """The next connection, or None when all clients have closed the control socket."""
    data, descriptors, _flags, _address = socket.recv_fds(control_socket, 1, 1)
    if not data:
        return None
    return socket.socket(fileno=descriptors[0])


def event_message(event: Event) -> Message:
    """The message that reports an event to the parent."""
    return {
        "event": event.kind,
        "lease": event.lease.described(),
        "message": event.error.message if event.error else None,
        "reason": event.error.reason if event.error else None,
        "failures": event.failures,
    }
