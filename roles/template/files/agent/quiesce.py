# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""quiesce: stop everything in the sandbox but the agent, so that nobody writes while its disk is captured."""

from __future__ import annotations

import os
import signal
import threading
import time

from fields import check_fields, parse_seconds
from processes import outside, send_signal, stoppable
from wire import Refused, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from processes import Process
    from wire import Peer

DEFAULT_GRACE = 2.0
GRACE_LIMIT = 60.0
#: Seconds after SIGKILL until what still runs is reported as left.
UNKILLABLE = 5.0
TICK = 0.02
#: Processes that a report names; the rest is counted.
NAMED = 500

_FIELDS = frozenset(("grace",))
_one_at_a_time = threading.Lock()


def quiesce(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    """Report what was stopped and how, and what could not be. While it lasts nothing is started."""
    check_fields(body, _FIELDS, "quiesce")
    grace = parse_seconds(body, "grace", GRACE_LIMIT)
    if not _one_at_a_time.acquire(blocking=False):
        raise Refused("quiescing", "another client is stopping everything")
    try:
        context.children.hold(True)
        report = stop_all(context, DEFAULT_GRACE if grace is None else grace)
    finally:
        context.children.hold(False)
        _one_at_a_time.release()
    peer.send(encode_json({"quiesced": report}))  # last, so that a client that has the answer may start programs


def stop_all(context: Context, grace: float) -> dict[str, Any]:
    started = time.monotonic()
    kinds = {program.child.pid: program for program in context.programs.all() if program.child and not program.end}
    found: dict[int, tuple[Process, int]] = {}
    left = signal_until_ended(found, signal.SIGTERM, started + grace, repeat=False)
    if left:
        left = signal_until_ended(found, signal.SIGKILL, time.monotonic() + UNKILLABLE, repeat=True)
    stopped = [
        {
            "pid": pid,
            "name": process.name,
            "signal": int(number),
            "id": kinds[process.group].id if process.group in kinds else None,
            "kind": kinds[process.group].kind if process.group in kinds else None,
        }
        for pid, (process, number) in found.items()
        if pid not in left
    ]
    beyond = outside()
    return {
        "scope": "container" if os.getpid() == 1 else "descendants",
        "outside": named(beyond),
        "outside_count": len(beyond),
        "stopped": stopped[:NAMED],
        "stopped_count": len(stopped),
        "left": named(left),
        "left_count": len(left),
        "duration_ms": int((time.monotonic() - started) * 1000),
    }


def named(processes: dict[int, Process]) -> list[dict[str, Any]]:
    return [{"pid": pid, "name": process.name} for pid, process in processes.items()][:NAMED]


def signal_until_ended(
    found: dict[int, tuple[Process, int]], number: int, until: float, repeat: bool
) -> dict[int, Process]:
    """Signal everything and wait until it has ended; what is left at ``until``.

    ``repeat``: signal again and again, for what is killed may have started others before.
    """
    signalled: set[int] = set()
    while True:
        there = stoppable()
        for pid, process in there.items():
            if repeat or pid not in signalled:
                send_signal(pid, number)
                signalled.add(pid)
                found[pid] = (process, number)
        if not there or time.monotonic() >= until:
            return there
        time.sleep(TICK)
