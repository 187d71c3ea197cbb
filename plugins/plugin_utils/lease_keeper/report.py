# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""What became of the leases of a play, in words: a line for each event that matters, and a summary."""

from __future__ import annotations

import threading
import typing as t

from ...module_utils.lifecycle.lease.protocol import Message


class Story:
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

    def heard(self, message: Message) -> str | None:
        """The line for an event, or None when nobody needs to see one."""
        with self._lock:
            if message["event"] == "ending":
                self._renewals = message["renewals"]
                self._held.update({lease["uid"]: lease for lease in message["leases"]})
                return None
            lease = message["lease"]
            uid = lease["uid"]
            if message["event"] == "held":
                self._held[uid] = lease
                # A workspace is opened anew under the uid that it had.
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

    def broken_off(self) -> str | None:
        """The line for a keeper that ended before the play did, or None when it held nothing."""
        with self._lock:
            left = [self._held[uid] for uid in self._open()]
        if not left:
            return None
        return f"the keeper's process has ended. Not renewed and not released any more: {_until(left)}."

    def summary(self) -> list[str]:
        """What to say at the end; nothing when nothing was held."""
        with self._lock:
            if not self._held:
                return []
            stays = [self._held[uid] for uid in self._open() if uid not in self._marked]
            lines = [self._counts()]
            if self._lost:
                lines.append(f"lost: {_names(self._held[uid] for uid in self._lost)}")
            if stays:
                lines.append(f"not released, as nobody asked for it: {_until(stays)}")
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
        held = " and ".join(_counted(len(uids), noun) for noun, _word, uids in kinds if uids)
        over = " and ".join(f"{len(uids & self._released)} {word}" for _noun, word, uids in kinds if uids)
        return f"{held} held{renewals}, {over} at the end"

    def _failed(self, uid: str) -> str:
        why = self._unreleased.get(uid, "there was no answer in time, and it is tried for another minute")
        return f"NOT released: {_until([self._held[uid]])}: {why}"


def _line(message: Message) -> str | None:
    lease = message["lease"]
    if message["event"] == "failed":
        return f"{message['message']} The lease of {_until([lease])}; it is tried again."
    if message["event"] == "recovered":
        return f"{_names([lease])} is renewed again, after {_counted(message['failures'], 'failed attempt')}"
    if message["event"] == "lost":
        return f"LOST {_names([lease])}. {message['message']}"
    return None


def _is_workspace(lease: Message) -> bool:
    return "workspace_id" in lease


def _names(leases: t.Iterable[Message]) -> str:
    names = ((lease["kind"], lease["namespace"], lease.get("workspace_id") or lease["name"]) for lease in leases)
    return ", ".join(sorted(f"{kind} {namespace}/{name}" for kind, namespace, name in names))


def _until(leases: t.Iterable[Message]) -> str:
    return ", ".join(sorted(f"{_names([lease])} ({_end(lease)})" for lease in leases))


def _end(lease: Message) -> str:
    if _is_workspace(lease):
        return f"its pod stops by itself at {lease['expires_at']}" if lease["expires_at"] else "it runs on"
    return f"ends by itself at {lease['expires_at'] or 'no time'}"


def _counted(number: int, noun: str) -> str:
    plural = {"sandbox": "sandboxes"}.get(noun, f"{noun}s")
    return f"{number} {noun if number == 1 else plural}"
