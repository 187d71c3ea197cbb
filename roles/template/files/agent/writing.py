# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""write-file: a file of any size, which nobody sees before it is whole.

It grows under another name beside its target (``partials.py``). When the client has said how large it is and what its
checksum is, and both are right, it is given its mode and then its name, in one step.
"""

from __future__ import annotations

import os
import stat

from fields import check_fields, parse_flag, parse_name, parse_number
from partials import Partial
from paths import Place, parse_path
from receiving import Receiving
from wire import Refused

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
            Receiving(peer, path, partial.write, Finishing(partial, mode, sync)).run()


class Finishing:
    """Gives a file that is what it should be its mode and its name."""

    def __init__(self, partial: Partial, mode: int, sync: bool) -> None:
        self._partial = partial
        self._mode = mode
        self._sync = sync

    def __call__(self, size: int, checksum: str) -> dict[str, Any]:
        self._partial.check(size, checksum)
        self._partial.become(self._mode, self._sync)
        return {"size": size, "sha256": checksum}


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
