# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The client's side of a stream: a socket that is never waited for."""

from __future__ import annotations

import select
import time

from wire import BEAT, FRAME_LIMIT, HEARTBEAT, MISSES, Refused

TYPE_CHECKING = False
if TYPE_CHECKING:
    from wire import Peer

CHUNK = 64 * 1024
#: Bytes that are taken from the client at once: a large file costs a turn of the loop for each.
RECEIVED = 256 * 1024
#: Bytes that wait to be taken before whoever makes them is held back.
HIGH_WATER = 256 * 1024
#: Seconds without a byte being taken, after which a client that owes us reading has gone.
STALL = 60.0

_BEAT = bytes((BEAT,))
_CLOSED = select.POLLRDHUP | select.POLLHUP | select.POLLERR | select.POLLNVAL


class Stream:
    """Frames to and from a client that may be slow, or gone. A client that has closed its side has gone."""

    def __init__(self, peer: Peer) -> None:
        self._peer = peer
        self._outgoing = bytearray()
        self._taken = 0.0
        self.gone = False
        self._beat = peer.heartbeat
        self._beat_at = self._last_received = time.monotonic()
        self._listening = True
        peer.streaming = True
        peer.decoder.limit = FRAME_LIMIT
        peer.socket.setblocking(False)
        self.fd = peer.socket.fileno()

    @property
    def full(self) -> bool:
        return len(self._outgoing) >= HIGH_WATER

    @property
    def empty(self) -> bool:
        return not self._outgoing

    @property
    def moment(self) -> float | None:
        """When ``keep_time`` wants to be called."""
        moments = [self._taken + STALL] if self._outgoing else []
        if self._beat:
            moments.append(self._beat_at + self._beat)
            if self._listening:
                moments.append(self._last_received + MISSES * self._beat)
        return min(moments, default=None)

    def keep_time(self, now: float) -> None:
        """Send a heartbeat when it is due, and leave a client that reads nothing, or sends nothing, for too long."""
        silent = self._listening and self._beat and now >= self._last_received + MISSES * self._beat
        if silent or (self._outgoing and now >= self._taken + STALL):
            self.leave()
        elif self._beat and now >= self._beat_at + self._beat:
            self._beat_at = now
            if not self._outgoing:
                self.send(HEARTBEAT)

    def events(self, reading: bool) -> int:
        """What to ask poll for. A client that is not listened to cannot be missed."""
        if reading and not self._listening:
            self._last_received = time.monotonic()
        self._listening = reading
        return select.POLLRDHUP | (select.POLLIN if reading else 0) | (select.POLLOUT if self._outgoing else 0)

    def send(self, data: bytes) -> None:
        """Pass ``data`` on, now or later; to nobody when the client has gone."""
        if self.gone:
            return
        if not self._outgoing:
            self._taken = time.monotonic()
        self._outgoing += data
        self.flush()

    def flush(self) -> None:
        try:
            sent = self._peer.socket.send(self._outgoing)
        except BlockingIOError:
            return
        except OSError:
            self.leave()
            return
        del self._outgoing[:sent]
        self._taken = time.monotonic()

    def receive(self, events: int) -> bytes | None:
        """Act on what poll said; a whole frame when there is one."""
        if events & _CLOSED:
            self.leave()
            return None
        if events & select.POLLOUT:
            self.flush()
        if self.gone or not events & select.POLLIN:
            return None
        try:
            data = self._peer.socket.recv(min(self._peer.decoder.wanted, RECEIVED))
            frame = self._peer.decoder.feed(data)
        except BlockingIOError:
            return None
        except (OSError, Refused):
            self.leave()
            return None
        if not data:
            self.leave()
        if self._beat:
            self._last_received = time.monotonic()
        return None if frame == _BEAT else frame

    def linger(self) -> None:
        """Throw away what the client still sends, so that closing does not discard the last frames."""
        self._peer.linger()

    def leave(self) -> None:
        """Treat the client as gone."""
        self.gone = True
        self._outgoing.clear()
