# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""write-file: a file of any size, which nobody sees before it is whole.

It grows under another name beside its target (``partials.py``). When the client has said how large it is and what its
checksum is, and both are right, it is given its mode and then its name, in one step.
"""

from __future__ import annotations

import json
import os
import stat
import time

from fields import check_fields, is_whole, parse_flag, parse_name, parse_number, require
from partials import Partial
from paths import Place, parse_path, refusal
from stream import Stream
from watch import Watch
from wire import END_OF_STREAM, EVENT, STDIN, Refused, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer

DEFAULT_MODE = 0o644
LARGEST_MODE = 0o7777

_FIELDS = frozenset(("path", "id", "mode", "parents", "replace", "sync"))


def write_file(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, _FIELDS, "write-file")
    key = parse_name(body, "id")
    mode = parse_number(body, "mode", 0, LARGEST_MODE, DEFAULT_MODE) if body.get("mode") is not None else None
    parents, replace, sync = (parse_flag(body, name) for name in ("parents", "replace", "sync"))
    path = parse_path(body, context.settings)
    with Place(path, make=parents) as place:
        found = check_target(place, replace)
        mode = (DEFAULT_MODE if found is None else found) if mode is None else mode
        with context.partials.open(place, key) as partial:
            peer.begin({"ready": {"path": path, "id": partial.id, "offset": partial.size}})
            Writing(Stream(peer), partial, mode, sync).run()


def check_target(place: Place, replace: bool) -> int | None:
    """The mode of the file that will be replaced, or None. Refused for what is not a file, and for a file that the
    agent's user may not write, unless ``replace``: a rename needs no permission of the file itself."""
    found = place.stat(place.name)
    if found is None:
        return None
    place.check_file(found)
    if not replace and not os.access(place.name, os.W_OK, dir_fd=place.fd, effective_ids=True):
        raise Refused("denied", f"{place.path[:300]}: the agent's user may not write to the existing file")
    return stat.S_IMODE(found.st_mode)


class Writing:
    """The loop of one client: bytes on channel 0, and one event that says what they should be."""

    def __init__(self, stream: Stream, partial: Partial, mode: int, sync: bool) -> None:
        self._stream = stream
        self._partial = partial
        self._mode = mode
        self._sync = sync
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
            end = refusal(error, self._partial.path).answer()
        if end is not None:
            self._end_sent = True
            self._stream.send(encode_event(end) + END_OF_STREAM)

    def _take(self, frame: bytes) -> dict[str, Any] | None:
        if frame[:1] == bytes((STDIN,)):
            self._partial.write(memoryview(frame)[1:])
            return None
        require(frame[:1] == bytes((EVENT,)), "a file comes on channel 0, and then the event finish")
        size, checksum = parse_finish(frame[1:])
        self._partial.check(size, checksum)
        self._partial.become(self._mode, self._sync)
        return {"end": {"size": size, "sha256": checksum}}


def parse_finish(event: bytes) -> tuple[int, str]:
    try:
        value = json.loads(event)
    except (ValueError, RecursionError):
        value = None
    finish = value.get("finish") if isinstance(value, dict) else None
    finish = finish if isinstance(finish, dict) else {}
    size, checksum = finish.get("size"), finish.get("sha256")
    require(is_whole(size) and isinstance(checksum, str), "finish has the size and the sha256 of the whole file")
    return int(size or 0), str(checksum)
