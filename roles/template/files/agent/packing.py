# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""read-tree: a folder with everything in it, or with the parts that are asked for, as one stream."""

from __future__ import annotations

import os
import stat

from archive import END, Entry, header, padding
from fields import check_fields, parse_number
from listing import BATCH, DEFAULT_LIMIT, LARGEST_LIMIT, Walk, entry, folders_of, parse_paths
from paths import parse_path, refusal
from reading import PIECE, new_sha256
from sending import send_frames
from wire import END_OF_STREAM, STDOUT, Refused, encode_channel, encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Iterator
    from typing import Any

    from operations import Context
    from wire import Peer

#: Paths that are left out and named in the end.
NAMED = 100


def read_tree(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "only", "limit")), "read-tree")
    only, limit = parse_paths(body, "only"), parse_number(body, "limit", 1, LARGEST_LIMIT, DEFAULT_LIMIT)
    path = parse_path(body, context.settings, folder=True)
    walk = Walk(path, limit, True, None if only is None else folders_of(only))
    try:
        peer.begin({"folder": {"path": path}})
        send_frames(peer, Packing(path, walk, only).frames())
    finally:
        walk.close()


class Packing:
    """Makes the frames of an archive out of a walk."""

    def __init__(self, path: str, walk: Walk, only: frozenset[str] | None) -> None:
        self._path = path
        self._walk = walk
        self._only = only
        self._buffer = bytearray()
        self._hash = new_sha256()
        self._size = 0
        self._count = 0
        self._skipped: list[tuple[str, str]] = []
        self._skipped_count = 0

    def frames(self) -> Iterator[bytes | None]:
        for fd, name, path, found in self._walk:
            if self._walk.count % BATCH == 0:
                yield None
            if self._only is None or path in self._only:
                yield from self._add(fd, name, path, found)
        for path in self._walk.unreadable:
            self._skip(path, "denied")
        self._buffer += END
        yield self._flush()
        end: dict[str, Any] = {"size": self._size, "sha256": self._hash.hexdigest(), "count": self._count}
        end.update(skipped=self._skipped, skipped_count=self._skipped_count)
        yield encode_event({"end": end}) + END_OF_STREAM

    def _add(self, fd: int, name: str, path: str, found: os.stat_result) -> Iterator[bytes]:
        if stat.S_ISREG(found.st_mode):
            yield from self._add_file(fd, name, path)
            return
        about = entry(fd, name, path, found)
        if about["kind"] == "other" or (about["kind"] == "link" and not about["target"]):
            self._skip(path, "not-a-file")
            return
        self._begin(Entry(path, about["kind"], about["mode"], about["mtime"], target=about.get("target", "")))
        if len(self._buffer) >= PIECE:
            yield self._flush()

    def _add_file(self, fd: int, name: str, path: str) -> Iterator[bytes]:
        try:
            file = os.open(name, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC, dir_fd=fd)
        except OSError as error:
            self._skip(path, refusal(error, path).kind)
            return
        try:
            found = os.fstat(file)
            if not stat.S_ISREG(found.st_mode):
                self._skip(path, "changed")
                return
            self._begin(Entry(path, "file", found.st_mode, found.st_mtime, found.st_size))
            left = found.st_size
            while left:
                piece = os.read(file, min(PIECE, left))
                if not piece:
                    raise Refused("changed", f"{path[:300]}: the file became shorter while it was read")
                self._buffer += piece
                left -= len(piece)
                if len(self._buffer) >= PIECE:
                    yield self._flush()
            self._buffer += padding(found.st_size)
        except OSError as error:
            raise refusal(error, os.path.join(self._path, path)) from None
        finally:
            os.close(file)

    def _begin(self, about: Entry) -> None:
        self._count += 1
        self._buffer += header(about)

    def _skip(self, path: str, kind: str) -> None:
        self._skipped_count += 1
        if len(self._skipped) < NAMED:
            self._skipped.append((path, kind))

    def _flush(self) -> bytes:
        data = bytes(self._buffer)
        self._buffer.clear()
        self._hash.update(data)
        self._size += len(data)
        return encode_channel(STDOUT, data)
