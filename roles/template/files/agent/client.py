# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A client as the owner of a command, for ``Relay``."""

from __future__ import annotations

from wire import END_OF_STREAM, STDIN, encode_channel, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from stream import Stream


class AttachedClient:
    """A command's client: it is there for as long as its connection, and the command for as long as it is there."""

    #: The command's own.
    grace = None

    def __init__(self, stream: Stream) -> None:
        self._stream = stream
        self.fd = stream.fd
        self.events = stream.events
        self.keep_time = stream.keep_time

    @property
    def gone(self) -> bool:
        return self._stream.gone

    @property
    def full(self) -> bool:
        return self._stream.full

    @property
    def served(self) -> bool:
        """Whether it has all that it was sent."""
        return self._stream.empty or self._stream.gone

    @property
    def moment(self) -> float | None:
        return self._stream.moment

    def read_input(self, events: int) -> tuple[bytes, bool]:
        """Input for the command, and whether it was the last (a frame of length zero)."""
        frame = self._stream.receive(events)
        if frame and frame[0] != STDIN:
            # The client sends a channel that this operation does not have.
            self._stream.leave()
        return (b"", frame is not None) if not frame else (frame[1:], False)

    def write_output(self, channel: int, data: bytes) -> bool:
        self._stream.send(encode_channel(channel, data))
        return True

    def finish(self, end: dict[str, Any], still_talking: bool) -> None:
        self._stream.send(encode_event({"end": end}) + END_OF_STREAM)
        self._still_talking = still_talking

    def part(self) -> None:
        if self._still_talking and not self._stream.gone:
            self._stream.linger()
