# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The wire between client and agent, without any input or output: docs/reference/guest.md is its specification.

A frame is eight lower-case hex digits, a newline and that many bytes. Before a stream every frame is one JSON object;
inside a stream the first byte of a frame is its channel, and a frame of length zero ends the stream.
"""

from __future__ import annotations

import json
import typing as t

from ..errors import GuestProtocolError

PROTOCOL = 1

HEADER_SIZE = 9
#: No frame is larger, in either direction.
FRAME_LIMIT = 8 * 1024 * 1024
#: The first frame of a connection, which is what an agent reads from a stranger.
FIRST_FRAME_LIMIT = 64 * 1024

CHANNEL_STDIN = 0
CHANNEL_STDOUT = 1
CHANNEL_STDERR = 2
CHANNEL_EVENT = 3

#: The content of a heartbeat's frame; its channel is 4.
HEARTBEAT = b"\4"
#: After this number of intervals without a byte the connection counts as lost.
MISSES = 3

END_OF_STREAM = b"00000000\n"

#: Lists and objects in one JSON frame.
_STRUCTURES = 10_000

_HEX_DIGITS = frozenset(b"0123456789abcdef")


def encode(payload: bytes) -> bytes:
    """One frame that holds ``payload`` (at most 8 MiB; ValueError above)."""
    if len(payload) > FRAME_LIMIT:
        raise ValueError(f"a frame holds at most {FRAME_LIMIT} bytes, not {len(payload)}")
    return b"%08x\n%b" % (len(payload), payload)


def encode_channel(channel: int, data: bytes) -> bytes:
    """One stream frame: ``data`` (not empty, at most 8 MiB less a byte) on a channel."""
    if len(data) >= FRAME_LIMIT:
        raise ValueError(f"a stream frame holds at most {FRAME_LIMIT - 1} bytes, not {len(data)}")
    return b"%08x\n%c%b" % (len(data) + 1, channel, data)


def encode_event(value: t.Mapping[str, t.Any]) -> bytes:
    """One stream frame: an event."""
    return encode_channel(CHANNEL_EVENT, encode_json(value))


def encode_json(value: t.Mapping[str, t.Any]) -> bytes:
    """``value`` as the bytes of a JSON frame (without the header), in ASCII, so that no text can break it."""
    return json.dumps(value, separators=(",", ":")).encode("ascii")


def decode_json(payload: bytes) -> dict[str, t.Any]:
    """The object that a JSON frame holds; GuestProtocolError when it holds none.

    Deep nesting, which recurses in C, is refused before it is read: a guest must not end the client's process.
    """
    outside = payload.replace(b"\\\\", b"").replace(b'\\"', b"").split(b'"')[::2]
    if sum(part.count(b"[") + part.count(b"{") for part in outside) > _STRUCTURES:
        raise GuestProtocolError(f"a frame of {len(payload)} bytes holds more than {_STRUCTURES} lists and objects")
    try:
        value = json.loads(payload)
    except (ValueError, RecursionError):
        raise GuestProtocolError(f"a frame of {len(payload)} bytes is not JSON: {excerpt(payload)}") from None
    if not isinstance(value, dict):
        raise GuestProtocolError(f"a frame holds {type(value).__name__} where a JSON object belongs")
    return value


def excerpt(data: bytes, limit: int = 60) -> str:
    """The start of ``data`` as printable ASCII, for messages."""
    return repr(data[:limit])[1:] + ("…" if len(data) > limit else "")


class FrameDecoder:
    """Bytes in, however they were cut; whole frames out.

    It holds at most one header and one frame below ``limit``; a frame is refused when its header is complete, before
    any of its bytes are kept. After an error it stays in error.
    """

    def __init__(self, limit: int = FRAME_LIMIT) -> None:
        self.limit = limit
        self._buffer = bytearray()
        self._length: int | None = None
        self._failure: str | None = None

    @property
    def midway(self) -> bool:
        """Whether a frame has begun and not ended: an end of input here is a cut."""
        return bool(self._buffer) or self._length is not None

    def feed(self, data: bytes) -> list[bytes]:
        """Take ``data`` and return the frames that it completes, in order (``b""`` ends a stream).

        Raises GuestProtocolError for an invalid header, or a length above ``limit``; frames that were complete
        before it in the same call are lost with it, because nothing from such a peer can be relied on.
        """
        if self._failure is not None:
            raise GuestProtocolError(self._failure)
        self._buffer += data
        frames: list[bytes] = []
        start = 0
        while True:
            if self._length is None:
                header = self._buffer[start : start + HEADER_SIZE]
                self._check_digits(header)
                if len(header) < HEADER_SIZE:
                    break
                self._length = self._parse_length(header)
                start += HEADER_SIZE
            if len(self._buffer) - start < self._length:
                break
            frames.append(bytes(self._buffer[start : start + self._length]))
            start += self._length
            self._length = None
        del self._buffer[:start]
        return frames

    def _check_digits(self, header: bytearray) -> None:
        """Refuse at the first wrong byte, so that a banner of five letters is not waited on."""
        digits, end = header[: HEADER_SIZE - 1], bytes(header[HEADER_SIZE - 1 :])
        if not _HEX_DIGITS.issuperset(digits) or end not in (b"", b"\n"):
            self._fail(f"a frame begins with {excerpt(bytes(header))} where eight hex digits and a newline belong")

    def _parse_length(self, header: bytearray) -> int:
        length = int(header[: HEADER_SIZE - 1], 16)
        if length > self.limit:
            self._fail(f"a frame announces {length} bytes; at most {self.limit} are allowed")
        return length

    def _fail(self, what: str) -> t.NoReturn:
        self._failure = what
        self._buffer.clear()
        raise GuestProtocolError(what)
