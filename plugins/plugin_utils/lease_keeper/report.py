# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The report about the leases of a play: a line for each event that matters, and a summary."""

from __future__ import annotations

import threading
import typing as t

from ...module_utils.lifecycle.lease.protocol import Message


class LeaseReport:
    """Collects the events of a keeper. Any thread may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._held: dict[str, Message] = {}
        self._marked: set[str] = set()
        self._forgotten: set[str] = set()
        self._released: set[str] = set()
        self._unreleased: dict[str, str] = {}
        self._unflushed: dict[str, str] = {}
        self._lost: set[str] = set()
        self._renewals: int | None = None

    def add(self, message: Message) -> str | None:
        """Record an event; the line to show for it, or None."""
        with self._lock:
            if message["event"] == "ending":
                self._renewals = message["renewals"]
                self._held.update({lease["uid"]: lease for lease in message["leases"]})
                return None
            lease = message["lease"]
            uid = lease["uid"]
            if message["event"] == "held":
                self._held[uid] = lease
                # A workspace is opened again under the same uid.
                self._forgotten.discard(uid)
                self._lost.discard(uid)
                if message["marked"]:
                    self._marked.add(uid)
            elif message["event"] == "forgotten":
                self._forgotten.add(uid)
                self._marked.discard(uid)
            elif message["event"] == "released":
                self._released.add(uid)
                self._unreleased.pop(uid, None)
                if message.get("message"):
                    self._unflushed[uid] = message["message"]
            elif message["event"] == "unreleased":
                self._unreleased[uid] = message["message"]
            elif message["event"] == "lost":
                self._lost.add(uid)
            return _line(message)

    def interrupted(self) -> str | None:
        """The line for a keeper that ended before the play did, or None when it held nothing."""
        with self._lock:
            left = [self._held[uid] for uid in self._open()]
        if not left:
            return None
        return f"the keeper's process has ended. Not renewed and not released any more: {_until(left)}."

    def summary(self) -> list[str]:
        """The lines to show at the end; none when nothing was held."""
        with self._lock:
            if not self._held:
                return []
            stays = [self._held[uid] for uid in self._open() if uid not in self._marked]
            lines = [self._counts()]
            if self._lost:
                lines.append(f"lost: {_names(self._held[uid] for uid in self._lost)}")
            if stays:
                lines.append(f"not released, as release_on_end is off: {_until(stays)}")
            lines += [f"suspended without a flush: {message}" for message in self._unflushed.values()]
            lines += [self._failed(uid) for uid in self._open() if uid in self._marked]
            return lines

    def problems(self) -> bool:
        """Whether something was lost, could not be released, or was suspended without a flush."""
        with self._lock:
            return bool(self._lost or self._unflushed or [uid for uid in self._open() if uid in self._marked])

    def _open(self) -> list[str]:
        over = self._forgotten | self._released | self._lost
        return [uid for uid in self._held if uid not in over]

    def _counts(self) -> str:
        renewals = "" if self._renewals is None else f", {_counted(self._renewals, 'renewal')}"
        workspaces = {uid for uid, lease in self._held.items() if _is_workspace(lease)}
        kinds = [("sandbox", "released", self._held.keys() - workspaces), ("workspace", "suspended", workspaces)]
        held = " and ".join(_counted(len(uids), noun) for noun, _verb, uids in kinds if uids)
        ends = []
        for _noun, verb, uids in kinds:
            by_play = len(uids & self._forgotten - self._released)
            by_whom = "suspended or deleted by the play" if verb == "suspended" else "released by the play"
            ends += [f"{by_play} {by_whom}"] if by_play else []
            ends += [f"{len(uids & self._released)} {verb} at the end"] if uids - self._forgotten else []
        return f"{held} held{renewals}, {' and '.join(ends)}"

    def _failed(self, uid: str) -> str:
        why = self._unreleased.get(uid, "no response in time; it is tried for another minute")
        return f"NOT released: {_until([self._held[uid]])}: {why}"


def _line(message: Message) -> str | None:
    lease = message["lease"]
    if message["event"] == "failed":
        return f"{message['message']} The lease of {_until([lease])} is tried again."
    if message["event"] == "recovered":
        return f"{_names([lease])} is renewed again, after {_counted(message['failures'], 'failed attempt')}"
    if message["event"] == "lost":
        return f"LOST {_names([lease])}. {message['message']}"
    return None


def _is_workspace(lease: Message) -> bool:
    return "workspace_id" in lease


def _names(leases: t.Iterable[Message]) -> str:
    return ", ".join(sorted(map(_name, leases)))


def _name(lease: Message) -> str:
    # A container engine has no namespaces.
    place = f"{lease['namespace']}/" if lease["namespace"] else ""
    return f"{lease['kind']} {place}{lease.get('workspace_id') or lease['name']}"


def _until(leases: t.Iterable[Message]) -> str:
    return ", ".join(sorted(f"{_names([lease])} ({_end(lease)})" for lease in leases))


def _end(lease: Message) -> str:
    if _is_workspace(lease):
        return f"its pod stops at {lease['expires_at']}" if lease["expires_at"] else "it runs on"
    return f"expires at {lease['expires_at']}" if lease["expires_at"] else "does not expire"


def _counted(number: int, noun: str) -> str:
    plural = {"sandbox": "sandboxes"}.get(noun, f"{noun}s")
    return f"{number} {noun if number == 1 else plural}"
