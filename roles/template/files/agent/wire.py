# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The agent's side of the wire: frames, refusals, and the socket of one peer.

docs/reference/guest.md is the specification.
"""

from __future__ import annotations

import json
import select
import socket
import time

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

PROTOCOL = 1

HEADER_SIZE = 9
FRAME_LIMIT = 8 * 1024 * 1024
#: Bytes that are held for a peer without the token.
FIRST_FRAME_LIMIT = 64 * 1024
#: Seconds that a stranger may take; with a refusal and its linger that makes ten in all.
FIRST_FRAME_TIME = 8.0
#: How long one who has the token may take over a large request.
REQUEST_TIME = 60.0

#: A client whose machine died leaves after 30 + 3 * 10 s, however silent its command is.
KEEPALIVE = ((socket.TCP_KEEPIDLE, 30), (socket.TCP_KEEPINTVL, 10), (socket.TCP_KEEPCNT, 3))

STDIN, STDOUT, STDERR, EVENT, BEAT = 0, 1, 2, 3, 4

#: A heartbeat: a frame that holds its channel and nothing else.
HEARTBEAT = b"00000001\n\4"
#: Seconds between two heartbeats that a client may ask for.
SHORTEST_BEAT = 0.1
LONGEST_BEAT = 3600.0
#: After so many intervals without a byte from the other side, it counts as gone.
MISSES = 3

END_OF_STREAM = b"00000000\n"

#: Every kind of refusal there is.
KINDS = frozenset(
    (
        "unauthorized",  # no token, or another agent's
        "bad-frame",  # no frame, or cut short
        "too-large",  # a frame or a tree above its limit
        "bad-request",  # a request that cannot be honoured as it stands
        "unsupported",  # an operation that this agent does not know
        "busy",  # as many connections as there may be
        "stopping",  # SIGTERM was received
        "not-found",  # no such program or file
        "no-parent",  # a folder of the path does not exist
        "not-executable",  # a file that cannot be executed
        "bad-cwd",  # no such folder to start in
        "exhausted",  # no process, memory or descriptor left
        "denied",  # the agent's user may not do that
        "outside",  # a path that leads out of the folders that the agent may use
        "is-a-directory",  # a folder where a file is needed
        "not-a-file",  # a device, a pipe, a socket
        "not-a-directory",  # something else where a folder is needed
        "not-empty",  # a folder that holds something
        "cross-device",  # a move to another file system
        "no-space",  # the disk, or the quota, is full
        "io-error",  # the disk failed
        "changed",  # a file that became another while it was read or written
        "checksum",  # what arrived is not what was sent
        "exists",  # an id, a name or a path that is taken
        "ended",  # a program that runs no more cannot be written to or signalled
        "not-connected",  # no program listens on that port of the sandbox
        "quiescing",  # everything is being stopped, so nothing is started
        "internal",  # a fault of the agent
    )
)

_HEX_DIGITS = frozenset(b"0123456789abcdef")
#: How long and how much is read and thrown away after a refusal, so that closing does not reset it away.
_LINGER_TIME = 1.0
_LINGER_BYTES = FRAME_LIMIT + FIRST_FRAME_LIMIT


class Refused(Exception):
    """A request that is answered with an error frame."""

    def __init__(self, kind: str, message: str) -> None:
        super().__init__(message)
        assert kind in KINDS  # noqa: S101
        self.kind = kind
        self.message = message

    def answer(self) -> dict[str, Any]:
        return {"error": {"kind": self.kind, "message": self.message}}


class PeerGone(Exception):
    """The other side closed, or the connection broke: there is no peer to answer."""


def encode(payload: bytes) -> bytes:
    return b"%08x\n%b" % (len(payload), payload)


def encode_json(value: dict[str, Any]) -> bytes:
    return encode(dump(value))


def encode_channel(channel: int, data: bytes) -> bytes:
    return b"%08x\n%c%b" % (len(data) + 1, channel, data)


def encode_event(value: dict[str, Any]) -> bytes:
    return encode_channel(EVENT, dump(value))


def dump(value: dict[str, Any]) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode("ascii")


class Decoder:
    """Frames out of bytes, holding at most one frame below ``limit``."""

    def __init__(self, limit: int) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._length: int | None = None

    @property
    def wanted(self) -> int:
        """How many bytes complete the header or the frame that is under way."""
        return (HEADER_SIZE if self._length is None else self._length) - len(self._buffer)

    @property
    def empty(self) -> bool:
        return self._length is None and not self._buffer

    def feed(self, data: bytes) -> bytes | None:
        """Take at most ``wanted`` bytes; the frame when they complete one, otherwise None."""
        self._buffer += data
        if self._length is None:
            digits, end = self._buffer[: HEADER_SIZE - 1], bytes(self._buffer[HEADER_SIZE - 1 :])
            if not _HEX_DIGITS.issuperset(digits) or end not in (b"", b"\n"):
                raise Refused("bad-frame", "a frame begins with eight lower-case hex digits and a newline")
            if len(self._buffer) < HEADER_SIZE:
                return None
            self._length = int(self._buffer[: HEADER_SIZE - 1], 16)
            self._buffer.clear()
            if self._length > self.limit:
                raise Refused("too-large", f"this frame may hold {self.limit} bytes, not {self._length}")
        if len(self._buffer) < self._length:
            return None
        frame = bytes(self._buffer)
        self._buffer.clear()
        self._length = None
        return frame


class Peer:
    """The socket of one connection, before and after its stream."""

    def __init__(self, sock: socket.socket) -> None:
        self.socket = sock
        #: Whether frames are those of a stream by now: then a refusal is an event, and ends it.
        self.streaming = False
        #: Seconds between heartbeats once it is a stream; 0 is off.
        self.heartbeat = 0.0
        self.decoder = Decoder(FIRST_FRAME_LIMIT)
        if sock.family != socket.AF_UNIX:
            sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
            for option, value in KEEPALIVE:
                sock.setsockopt(socket.IPPROTO_TCP, option, value)

    def read_frame(self, limit: int, seconds: float) -> bytes:
        """Wait for one whole frame. PeerGone when the peer closes first, or takes longer than ``seconds``."""
        self.decoder.limit = limit
        until = time.monotonic() + seconds
        while True:
            remaining = until - time.monotonic()
            if remaining <= 0:
                raise PeerGone
            self.socket.settimeout(remaining)
            try:
                data = self.socket.recv(min(self.decoder.wanted, 256 * 1024))
            except OSError:
                raise PeerGone from None
            if not data:
                raise PeerGone
            frame = self.decoder.feed(data)
            if frame is not None:
                return frame

    def begin(self, answer: dict[str, Any]) -> None:
        """Send the first answer of a stream, which repeats the heartbeat that was asked for."""
        self.send(encode_json({**answer, "heartbeat": self.heartbeat} if self.heartbeat else answer))

    def send(self, data: bytes, seconds: float = 10.0) -> None:
        """Send an answer that is small enough to be sent at once."""
        self.socket.settimeout(seconds)
        try:
            self.socket.sendall(data)
        except OSError:
            raise PeerGone from None

    def refuse(self, refused: Refused) -> None:
        """Answer with an error, and see that it arrives: unread bytes at close would reset it on its way."""
        try:
            answer = refused.answer()
            self.send(encode_event(answer) + END_OF_STREAM if self.streaming else encode_json(answer), 1.0)
            self.linger()
        except (OSError, PeerGone):
            pass

    def linger(self) -> None:
        """End the outgoing direction, and throw away what the peer is still sending."""
        try:
            self.socket.shutdown(socket.SHUT_WR)
            until, left = time.monotonic() + _LINGER_TIME, _LINGER_BYTES
            while left > 0 and wait_readable(self.socket, until - time.monotonic()):
                data = self.socket.recv(min(left, 64 * 1024))
                if not data:
                    return
                left -= len(data)
        except OSError:
            pass


def wait_readable(sock: socket.socket, seconds: float) -> bool:
    poll = select.poll()
    poll.register(sock, select.POLLIN)
    return bool(poll.poll(max(seconds, 0.0) * 1000))
