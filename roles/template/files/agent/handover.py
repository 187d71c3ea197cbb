# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A listening socket, passed from the program that made it (lease.py) to the agent, which runs as another user.

A name that begins with ``@`` is one of the abstract namespace, which needs no file (unix(7)).
"""

from __future__ import annotations

import array
import errno
import socket
import time

#: Seconds within which the other program must offer the socket: it is started at the same time.
OFFER_SECONDS = 15.0
TICK = 0.01

_NOT_YET = (errno.ENOENT, errno.ECONNREFUSED)


def address(name: str) -> str:
    """The name as the kernel takes it."""
    return "\0" + name[1:] if name.startswith("@") else name


def listen_at(name: str, backlog: int) -> socket.socket:
    """A listening Unix socket that every user who reaches its path may connect to."""
    sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        sock.bind(address(name))
        sock.listen(backlog)
    except OSError:
        sock.close()
        raise
    return sock


def send_listener(sock: socket.socket, listener: socket.socket) -> None:
    """Pass the listener over a connection."""
    sock.sendmsg([b"L"], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, array.array("i", [listener.fileno()]))])


def receive_listener(name: str) -> socket.socket:
    """Connect to ``name`` and take the listener that is passed there.

    Raises OSError when nobody offers one in time, or something else comes.
    """
    until = time.monotonic() + OFFER_SECONDS
    while True:
        with socket.socket(socket.AF_UNIX, socket.SOCK_STREAM) as sock:
            sock.settimeout(OFFER_SECONDS)
            try:
                sock.connect(address(name))
            except OSError as error:
                if error.errno not in _NOT_YET or time.monotonic() >= until:
                    raise
            else:
                return _received(sock)
        time.sleep(TICK)


def _received(sock: socket.socket) -> socket.socket:
    fds = array.array("i")
    _data, ancillary, _flags, _peer = sock.recvmsg(1, socket.CMSG_SPACE(fds.itemsize))
    for level, kind, content in ancillary:
        if (level, kind) == (socket.SOL_SOCKET, socket.SCM_RIGHTS):
            fds.frombytes(content[: fds.itemsize])
            return socket.socket(fileno=fds[0])
    raise OSError(errno.EPROTO, "the listening socket was given to another program")
