# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""read-file, a range of a file in one answer, and read-file-stream, a file of any size."""

from __future__ import annotations

import os
import stat

from fields import check_fields, parse_flag, parse_number
from paths import Place, parse_path, refusal
from sending import send_frames
from wire import END_OF_STREAM, STDOUT, Refused, encode, encode_channel, encode_event, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from operations import Context
    from wire import Peer

#: Bytes of one answer of read-file.
RANGE_LIMIT = 4 * 1024 * 1024
#: Seconds that a slow client may take over them.
RANGE_TIME = 60.0
#: Bytes of one frame of a stream.
PIECE = 256 * 1024
LARGEST = (1 << 63) - 1

_RANGE = frozenset(("path", "offset", "length"))


def read_file(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, _RANGE, "read-file")
    offset = parse_number(body, "offset", 0, LARGEST, 0)
    length = parse_number(body, "length", 0, RANGE_LIMIT, RANGE_LIMIT)
    with Reading(parse_path(body, context.settings), offset, length) as file:
        data = b""
        while len(data) < length:
            piece = file.read(length - len(data))
            if not piece:
                break
            data += piece
        about = {**file.about, "length": len(data), "end": file.at_end}
        peer.send(encode_json({"file": about}) + encode(data), RANGE_TIME)


def read_file_stream(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, _RANGE | {"checksum"}, "read-file-stream")
    offset = parse_number(body, "offset", 0, LARGEST, 0)
    length = parse_number(body, "length", 0, LARGEST, LARGEST)
    checksum = parse_flag(body, "checksum")
    with Reading(parse_path(body, context.settings), offset, length, checksum) as file:
        peer.begin({"file": file.about})
        send_frames(peer, pieces(file))


def pieces(file: Reading) -> Iterator[bytes | None]:
    """The frames of a file, and the event of its end."""
    while True:
        piece = file.read(PIECE)
        if not piece:
            break
        yield encode_channel(STDOUT, piece)
    yield encode_event({"end": {"size": file.done, "sha256": file.sha256}}) + END_OF_STREAM


class Reading:
    """A file that is read from ``offset`` on, at most ``length`` bytes of it. A context manager that closes it."""

    def __init__(self, path: str, offset: int, length: int, checksum: bool = False) -> None:
        self._path = path
        with Place(path) as place:
            try:
                self._fd = place.open(place.name, os.O_RDONLY)
            except OSError as error:
                raise refusal(error, path) from None
            found = os.fstat(self._fd)
            try:
                place.check_file(found)
            except Refused:
                os.close(self._fd)
                raise
        self.about = {
            "path": path,
            "size": found.st_size,
            "mode": stat.S_IMODE(found.st_mode),
            "mtime": found.st_mtime,
            "offset": offset,
        }
        self._at = offset
        #: How many bytes were read.
        self.done = 0
        # Files of the kernel say that they are empty. Of any other no more is read than it had: it may grow for ever.
        known = found.st_size > 0
        self._left = min(length, max(found.st_size - offset, 0)) if known else length
        self._promised = self._left if known else 0
        self._size = found.st_size
        self._hash = new_sha256() if checksum else None

    def __enter__(self) -> Reading:  # noqa: PYI034
        return self

    def __exit__(self, *_: object) -> None:
        os.close(self._fd)

    @property
    def at_end(self) -> bool:
        return self._at >= self._size

    @property
    def sha256(self) -> str | None:
        return self._hash.hexdigest() if self._hash else None

    def read(self, size: int) -> bytes:
        """The next bytes; none at the end. Refused ``changed`` when the file ends before it should."""
        try:
            data = os.pread(self._fd, min(size, self._left), self._at)
        except OSError as error:
            raise refusal(error, self._path) from None
        if not data and self.done < self._promised:
            raise Refused("changed", f"{self._path[:300]}: the file became shorter while it was read")
        self._at += len(data)
        self._left -= len(data)
        self.done += len(data)
        if self._hash:
            self._hash.update(data)
        return data


def new_sha256() -> Any:
    # Loads OpenSSL, which is too slow for the start of a sandbox.
    import hashlib

    return hashlib.sha256()
