# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The loop of a stream that only the agent sends."""

from __future__ import annotations

import time

from stream import Stream
from watch import Watch
from wire import END_OF_STREAM, Refused, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator

    from wire import Peer


def send_frames(peer: Peer, frames: Iterator[bytes | None], pause: float = 0.0) -> None:
    """Send what ``frames`` gives, as the client takes it; a refusal there ends the stream as its last event.

    During long work ``frames`` gives None at times, so that heartbeats are sent and a client that left is noticed.
    ``pause``: seconds until ``frames`` is asked again after an empty frame, which is not sent.
    """
    stream = Stream(peer)
    watch = Watch()
    ended = False
    while not stream.gone and not (ended and stream.empty):
        resting = 0.0
        if not (ended or stream.full):
            try:
                frame = next(frames)
                if frame:
                    stream.send(frame)
                elif frame is not None:
                    resting = pause
            except StopIteration:
                ended = True
            except Refused as refused:
                stream.send(encode_event(refused.answer()) + END_OF_STREAM)
                ended = True
        wait_for_client(stream, watch, None if ended or stream.full else time.monotonic() + resting)


def wait_for_client(stream: Stream, watch: Watch, until: float | None) -> None:
    """Look at the client until the moment ``until``, or its next one: it may take more, or leave."""
    while True:
        moments = [stream.moment] if until is None else [stream.moment, until]
        happened = watch.wait({stream.fd: stream.events(True)}, moments)
        for _fd, events in happened:
            if stream.receive(events) is not None:
                stream.leave()
        now = time.monotonic()
        stream.keep_time(now)
        if stream.gone or until is None or now >= until:
            return
