# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The processes of the sandbox, as /proc shows them."""

from __future__ import annotations

import os


class Process:
    """One line of /proc/PID/stat, as far as we look."""

    def __init__(self, stat: bytes) -> None:
        # The second field is a name in brackets that may hold anything, brackets and blanks too.
        head, _bracket, tail = stat.rpartition(b")")
        self.name = head.partition(b"(")[2].decode("utf-8", "replace")
        state, *numbers = tail.split()[:4]
        self.parent, self.group, self.session = map(int, numbers)
        self.zombie = state == b"Z"


def list_processes() -> dict[int, Process]:
    """Every process that can be seen, by its number; zombies excepted."""
    found: dict[int, Process] = {}
    for name in filter(str.isdigit, os.listdir("/proc")):
        try:
            with open(f"/proc/{name}/stat", "rb") as file:
                process = Process(file.read())
        except OSError:
            continue
        if not process.zombie:
            found[int(name)] = process
    return found


def outside() -> dict[int, Process]:
    """The processes that can be seen and are not ours to end; none for PID 1."""
    found, ours = list_processes(), stoppable()
    return {pid: process for pid, process in found.items() if pid not in ours and pid != os.getpid()}


def stoppable() -> dict[int, Process]:
    """The processes that are ours to end: as PID 1 all in its namespace but itself, otherwise those below it."""
    found, own = list_processes(), os.getpid()
    if own == 1:
        found.pop(own, None)
        return found
    below = {own}
    while True:
        more = {pid for pid, process in found.items() if process.parent in below} - below
        if not more:
            return {pid: found[pid] for pid in below - {own}}
        below |= more


def send_signal(target: int, number: int) -> bool:
    """Signal a process; whether it was there, and ours to signal."""
    try:
        os.kill(target, number)
    except (ProcessLookupError, PermissionError):
        return False
    return True
