# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""watch-folder: what changes in a folder, found by comparing it with itself at an interval.

This works on every file system and kernel (gVisor too), loses nothing when much happens at once, and its cost is
bounded by the interval and the limit of entries.
"""

from __future__ import annotations

import stat

from fields import check_fields, parse_flag, parse_number, parse_seconds, require
from listing import BATCH, Walk, kind_of
from paths import parse_path
from sending import send_frames
from wire import encode_event

TYPE_CHECKING = False
if TYPE_CHECKING:
    import os
    from collections.abc import Iterator
    from typing import Any

    from operations import Context
    from wire import Peer

    Snapshot = dict[str, tuple[Any, ...]]

#: Entries that are watched, unless the client asks for another limit, and the most that it may ask for.
DEFAULT_LIMIT = 10_000
LARGEST_LIMIT = 100_000
#: Seconds between two looks.
DEFAULT_INTERVAL = 1.0
SHORTEST_INTERVAL = 0.1
LONGEST_INTERVAL = 3600.0


def watch_folder(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(("path", "recursive", "interval", "limit")), "watch-folder")
    recursive, limit = parse_flag(body, "recursive"), parse_number(body, "limit", 1, LARGEST_LIMIT, DEFAULT_LIMIT)
    interval = parse_seconds(body, "interval", LONGEST_INTERVAL)
    interval = DEFAULT_INTERVAL if interval is None else interval
    require(interval >= SHORTEST_INTERVAL, f"interval is at least {SHORTEST_INTERVAL:g} s")
    path = parse_path(body, context.settings, folder=True)
    before: Snapshot = {}
    for _moment in look(path, limit, recursive, before):
        pass
    peer.begin({"folder": {"path": path, "count": len(before)}})
    send_frames(peer, changes(before, path, limit, recursive), interval)


def changes(before: Snapshot, path: str, limit: int, recursive: bool) -> Iterator[bytes | None]:
    """Events of changes, and an empty frame before each look."""
    while True:
        yield b""
        now: Snapshot = {}
        yield from look(path, limit, recursive, now)
        found = compare(before, now)
        for start in range(0, len(found), BATCH):
            yield encode_event({"changes": found[start : start + BATCH]})
        before = now


def look(path: str, limit: int, recursive: bool, found: Snapshot) -> Iterator[None]:
    """Fill ``found``, in steps."""
    walk = Walk(path, limit, recursive)
    try:
        for _fd, _name, below, about in walk:
            found[below] = state(about)
            if walk.count % BATCH == 0:
                yield None
    finally:
        walk.close()


def state(found: os.stat_result) -> tuple[Any, ...]:
    """What differs after a change. A folder changes with what is in it, which is reported itself."""
    identity = (kind_of(found.st_mode), found.st_ino, found.st_mode)
    return identity if stat.S_ISDIR(found.st_mode) else (*identity, found.st_size, found.st_mtime_ns)


def compare(before: Snapshot, now: Snapshot) -> list[dict[str, Any]]:
    found = [
        {"path": path, "kind": before[path][0], "change": "deleted"} for path in sorted(before.keys() - now.keys())
    ]
    for path, is_now in now.items():
        was = before.get(path)
        if was != is_now:
            found.append({"path": path, "kind": is_now[0], "change": "created" if was is None else "modified"})
    return found
