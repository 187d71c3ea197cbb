# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Folders of a sandbox: list, create, move and remove what is in them."""

from __future__ import annotations

import dataclasses
import typing as t

from ..deadline import Deadline
from .agent import Agent
from .errors import GuestRefusedError
from .execution.running import explained
from .execution.stream import StreamReader
from .protocol.call import Call

#: Entries of one list, unless the caller asks for another limit, and the most that an agent sends.
DEFAULT_LIMIT = 100_000
LARGEST_LIMIT = 1_000_000

#: Kinds of entries.
FILE, DIRECTORY, LINK, OTHER = "file", "directory", "link", "other"
KINDS = frozenset({FILE, DIRECTORY, LINK, OTHER})

#: The longest path that an agent may send, in characters; Linux allows 4096 bytes.
LONGEST_PATH = 4096

#: Characters that the paths of a list or a tree may have, for each entry that is allowed: what a guest sends is held.
CHARACTERS_PER_ENTRY = 256

#: Seconds from 1970 that a file's time may be away from it: the year 200000, and not NaN.
LATEST_MTIME = 6e12

_FEATURE = "files"


@dataclasses.dataclass(frozen=True)
class Entry:
    """What has a name in a folder of the sandbox.

    Attributes:
        path: absolute for ``stat``; relative to the folder for ``list``.
        kind: ``file``, ``directory``, ``link`` (a symbolic link), or ``other`` (a pipe, a socket, a device).
        size: in bytes.
        mode: permission bits, with set-uid, set-gid and sticky.
        mtime: seconds since 1970 of the last change.
        target: where a link leads, as it is written there; None for the other kinds.
        sha256: of the content of a file, when it was asked for and the agent may read it; else None.
    """

    path: str
    kind: str
    size: int
    mode: int
    mtime: float
    target: str | None = None
    sha256: str | None = None

    @property
    def is_file(self) -> bool:
        """Whether it is a regular file."""
        return self.kind == FILE

    @property
    def is_directory(self) -> bool:
        """Whether it is a directory."""
        return self.kind == DIRECTORY

    @property
    def is_link(self) -> bool:
        """Whether it is a symbolic link."""
        return self.kind == LINK


class FileSystem:
    """The folders of one sandbox. A path is absolute, or relative to the workspace.

    Every method raises GuestRefusedError ``not-found``, ``no-parent`` (a folder of the path is missing), ``denied`` or
    ``outside`` (of the folders that the template allows); GuestUnsupportedError for an agent without the feature
    ``files``; and the errors of ``Agent``.
    """

    def __init__(self, agent: Agent) -> None:
        self._agent = agent

    def list(
        self,
        path: str = ".",
        *,
        deadline: Deadline,
        recursive: bool = False,
        checksum: bool = False,
        limit: int = DEFAULT_LIMIT,
        only: t.Collection[str] | None = None,
    ) -> list[Entry]:
        """The entries of a folder, by path. Links are listed and not followed.

        Args:
            recursive: whether the entries of all folders below are listed too.
            checksum: whether the agent reads each file for its ``sha256``.
            limit: how many entries there may be (1 to 1,000,000); GuestRefusedError ``too-large`` when there are more.
            only: the paths below the folder that are wanted; no folder is read that is above none of them.

        Raises GuestRefusedError ``not-a-directory`` for something else than a folder.
        """
        body: dict[str, t.Any] = {"path": path, "recursive": recursive, "checksum": checksum, "limit": limit}
        body |= {} if only is None else {"only": sorted(only)}
        agent = self._agent
        with agent.caller.call("list-files", body, deadline, feature=_FEATURE, heartbeat=agent.heartbeat) as call:
            call.part("folder", path=str)
            return sorted(_entries(call, limit), key=lambda entry: entry.path)

    def stat(self, path: str, *, deadline: Deadline, follow: bool = True) -> Entry:
        """One entry.

        Args:
            follow: whether a link is followed; otherwise the entry is the link itself.
        """
        with self._call("stat-file", {"path": path, "follow": follow}, deadline) as call:
            return entry_of(call, call.answer.get("entry"))

    def exists(self, path: str, *, deadline: Deadline) -> bool:
        """Whether there is something of that name. A link that leads nowhere is nothing."""
        try:
            self.stat(path, deadline=deadline)
        except GuestRefusedError as error:
            if error.kind in ("not-found", "no-parent"):
                return False
            raise
        return True

    def mkdir(self, path: str, *, deadline: Deadline, parents: bool = False, mode: int | None = None) -> bool:
        """Create a folder.

        Args:
            parents: whether missing parents are created, and a folder that exists is accepted.
            mode: permission bits (0 to 0o777) of the folder itself; as the umask of the agent allows when None.

        Returns whether it was created. Raises GuestRefusedError ``exists``.
        """
        body = {"path": path, "parents": parents, **({} if mode is None else {"mode": mode})}
        with self._call("make-folder", body, deadline) as call:
            return bool(call.part("made", new=bool)["new"])

    def move(self, path: str, target: str, *, deadline: Deadline, parents: bool = False, replace: bool = False) -> None:
        """Give a file, a link or a folder another path on the same file system, in one step.

        Args:
            target: the new path itself, not the folder that gets it.
            parents: whether missing folders of the target are created.
            replace: whether a file (or an empty folder, by a folder) that is there is replaced.

        Raises GuestRefusedError ``exists``, ``not-empty``, ``is-a-directory``, ``not-a-directory`` or ``cross-device``.
        """
        body = {"path": path, "target": target, "parents": parents, "replace": replace}
        with self._call("move-file", body, deadline) as call:
            call.part("moved", path=str, target=str)

    def remove(self, path: str, *, deadline: Deadline, recursive: bool = False, missing_ok: bool = False) -> int:
        """Remove a file, a link (not what it leads to) or a folder.

        Args:
            recursive: whether a folder is removed with everything in it; otherwise it must be empty.
            missing_ok: whether a path that does not exist is accepted.

        Returns how many files, links and folders were removed. Raises GuestRefusedError ``not-empty``.
        """
        try:
            with self._call("remove-file", {"path": path, "recursive": recursive}, deadline) as call:
                return int(call.part("removed", count=int)["count"])
        except GuestRefusedError as error:
            if missing_ok and error.kind in ("not-found", "no-parent"):
                return 0
            raise

    def _call(self, operation: str, body: dict[str, t.Any], deadline: Deadline) -> Call:
        return self._agent.caller.call(operation, body, deadline, feature=_FEATURE)


def _entries(call: Call, limit: int) -> list[Entry]:
    """The entries that a stream lists; GuestProtocolError for what no agent sends."""
    found: list[Entry] = []
    characters = CHARACTERS_PER_ENTRY * limit + LONGEST_PATH

    def on_event(event: dict[str, t.Any]) -> None:
        entries = event.get("entries", [])
        if not isinstance(entries, list) or len(found) + len(entries) > limit:
            raise call.protocol_error(f"the list is not valid, or has more than the {limit} entries asked for")
        for value in entries:
            entry = entry_of(call, value)
            require_inside(call, entry.path)
            found.append(entry)
        nonlocal characters
        characters -= sum(len(value["path"]) + len(value.get("target") or "") for value in entries)
        if characters < 0:
            raise call.protocol_error(f"the paths in the list are longer than {CHARACTERS_PER_ENTRY} characters each")

    reader = StreamReader(0, on_event)
    with explained(call):
        while not reader.ended:
            reader.take(call.connection.receive())
        call.checked("end", reader.end, count=int)
    return found


def entry_of(call: Call, value: t.Any) -> Entry:
    """An entry of an answer; GuestProtocolError when it is not valid."""
    fields = call.checked("entry", value, path=str, kind=str, size=int, mode=int, mtime=(int, float))
    target, sha256 = fields.get("target"), fields.get("sha256")
    valid = fields["kind"] in KINDS and fields["size"] >= 0 and 0 <= fields["mode"] <= 0o7777
    valid = valid and abs(fields["mtime"]) < LATEST_MTIME
    texts = all(isinstance(text, (str, type(None))) for text in (target, sha256))
    if not (
        valid
        and texts
        and len(target or "") <= LONGEST_PATH
        and len(sha256 or "") <= 64
        and 0 < len(fields["path"]) <= LONGEST_PATH
    ):
        raise call.protocol_error("an entry in the answer is not valid")
    return Entry(fields["path"], fields["kind"], fields["size"], fields["mode"], float(fields["mtime"]), target, sha256)


def require_inside(call: Call, path: str) -> None:
    """Refuse a relative path that leads out of its folder: the guest chooses it, and callers join it to their own."""
    if "\0" in path or any(part in ("", ".", "..") for part in path.split("/")):
        raise call.protocol_error("a path in the answer leads out of its folder")
