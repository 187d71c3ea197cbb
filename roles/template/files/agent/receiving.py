# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The loop of a stream that only the client sends: bytes on channel 0, and one event that says what they should be."""

from __future__ import annotations

import json
import time

from fields import is_whole, require
from paths import refusal
from stream import Stream
from watch import Watch
from wire import END_OF_STREAM, EVENT, STDIN, Refused, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import Any

    from wire import Peer


class Receiving:
    """Gives bytes to ``write``, and to ``finish`` the size and the checksum; what that returns is the end."""

    def __init__(
        self, peer: Peer, path: str, write: Callable[[memoryview], None], finish: Callable[[int, str], dict[str, Any]]
    ) -> None:
        self._stream = Stream(peer)
        self._path = path
        self._write = write
        self._finish = finish
        self._end_sent = False
        self._watch = Watch()

    def run(self) -> None:
        while not self._stream.gone and not (self._end_sent and self._stream.empty):
            events = self._stream.events(True)
            for _fd, happened in self._watch.wait({self._stream.fd: events}, [self._stream.moment]):
                frame = self._stream.receive(happened)
                if frame is not None and not self._end_sent:
                    self._answer(frame)
            self._stream.keep_time(time.monotonic())
        if self._end_sent and not self._stream.gone:
            self._stream.linger()

    def _answer(self, frame: bytes) -> None:
        """Take a frame; when it was the last, or cannot be taken, say how it went."""
        try:
            end = self._take(frame)
        except Refused as refused:
            end = refused.answer()
        except OSError as error:
            end = refusal(error, self._path).answer()
        if end is not None:
            self._end_sent = True
            self._stream.send(encode_event(end) + END_OF_STREAM)

    def _take(self, frame: bytes) -> dict[str, Any] | None:
        if frame[:1] == bytes((STDIN,)):
            self._write(memoryview(frame)[1:])
            return None
        require(frame[:1] == bytes((EVENT,)), "the content comes on channel 0, and then the event finish")
        return {"end": self._finish(*parse_finish(frame[1:]))}


def parse_finish(event: bytes) -> tuple[int, str]:
    try:
        value = json.loads(event)
    except (ValueError, RecursionError):
        value = None
    finish = value.get("finish") if isinstance(value, dict) else None
    finish = finish if isinstance(finish, dict) else {}
    size, checksum = finish.get("size"), finish.get("sha256")
    require(is_whole(size) and isinstance(checksum, str), "finish has the size and the sha256 of the whole content")
    return int(size or 0), str(checksum)
