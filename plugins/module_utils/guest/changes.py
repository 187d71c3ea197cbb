# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Changes in a folder of a sandbox, as they are found."""

from __future__ import annotations

import typing as t

from ..deadline import Deadline
from .agent import Agent
from .execution.running import explained
from .execution.stream import StreamReader
from .filesystem import KINDS, require_inside
from .protocol.call import Call

#: Entries that are watched, unless the caller asks for another limit (at most 100,000).
DEFAULT_LIMIT = 10_000

#: Changes that one frame may hold.
_BATCH_LIMIT = 1000

_CHANGES = frozenset({"created", "modified", "deleted"})


class Change(t.NamedTuple):
    """A change in a folder.

    Attributes:
        path: below the folder.
        change: ``created``, ``modified`` (its content, time or mode, or another file has its name) or ``deleted``.
        kind: ``file``, ``directory``, ``link`` or ``other``.
    """

    path: str
    change: str
    kind: str


class FolderChanges:
    """The changes of a folder, as an iterator. A context manager; to leave it ends the watch.

    Attributes:
        path: the folder in the sandbox, absolute.
    """

    def __init__(self, call: Call) -> None:
        self._call = call
        self.path = str(call.part("folder", path=str)["path"])

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch."""
        self._call.close()

    def __iter__(self) -> t.Iterator[Change]:
        """The changes, until the deadline passes: GuestTimeoutError."""
        found: list[t.Any] = []
        reader = StreamReader(0, lambda event: found.append(event.get("changes", [])))
        with explained(self._call):
            while not reader.ended:
                reader.take(self._call.connection.receive())
                while found:
                    yield from self._changes(found.pop(0))

    def _changes(self, values: t.Any) -> list[Change]:
        if not isinstance(values, list) or len(values) > _BATCH_LIMIT:
            raise self._call.protocol_error("the changes in the answer are not valid")
        return [self._change(value) for value in values]

    def _change(self, value: t.Any) -> Change:
        fields = self._call.checked("change", value, path=str, change=str, kind=str)
        if fields["change"] not in _CHANGES or fields["kind"] not in KINDS:
            raise self._call.protocol_error("a change in the answer is not valid")
        require_inside(self._call, fields["path"])
        return Change(fields["path"], fields["change"], fields["kind"])


def watch(
    agent: Agent,
    path: str,
    *,
    deadline: Deadline,
    recursive: bool = False,
    interval: float = 1.0,
    limit: int = DEFAULT_LIMIT,
) -> FolderChanges:
    """Begin to watch a folder; changes after this call returns are found.

    The agent compares the folder with itself at the interval: of several changes of one entry within it there is one.

    Args:
        path: absolute, or relative to the workspace.
        deadline: for the whole watch.
        recursive: whether all folders below are watched too.
        interval: seconds (0.1 to 3600) between two looks.
        limit: how many entries (1 to 100,000) there may be; GuestRefusedError ``too-large`` when there are more.

    Raises GuestRefusedError ``not-found``, ``not-a-directory``, ``denied`` or ``outside``, at the beginning or when the
    folder is removed; GuestUnsupportedError for an agent without the feature ``watch``; and the errors of ``Agent``.
    """
    body = {"path": path, "recursive": recursive, "interval": interval, "limit": limit}
    call = agent.caller.call("watch-folder", body, deadline, feature="watch", heartbeat=agent.heartbeat)
    try:
        return FolderChanges(call)
    except BaseException:
        call.close()
        raise
