# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Evidence for the privilege probe: what the kernel reports about this process, and whether a program can be started.

The agent reports and the client judges. Every command is a child of the agent: it inherits the capability masks, the
bounding set and no-new-privileges.
"""

from __future__ import annotations

import os
import select
import signal
import sys
import time

from children import exit_of
from execute import Descriptors
from fields import check_fields
from wire import Refused, encode_json

TYPE_CHECKING = False
if TYPE_CHECKING:
    from typing import Any

    from operations import Context
    from wire import Peer

STATUS = "/proc/self/status"
UID_MAP = "/proc/self/uid_map"
#: Seconds within which a program that does nothing must end.
PROGRAM_SECONDS = 10.0

# Numbers of include/uapi/linux/prctl.h.
_PR_GET_NO_NEW_PRIVS = 39
_PR_CAP_AMBIENT = 47
_PR_CAP_AMBIENT_IS_SET = 1
#: Bits of a capability mask (capabilities(7)).
_CAPABILITY_BITS = 64


def privileges(context: Context, peer: Peer, body: dict[str, Any]) -> None:
    check_fields(body, frozenset(), "privileges")
    kernel = os.uname()
    answer = {
        "program": run_trivial_program(context),
        "status": {"text": read_text(STATUS)},
        "prctl": call_prctl(),
        "kernel": {"release": kernel.release, "version": kernel.version},
        "uid_map": read_text_or_none(UID_MAP),
    }
    peer.send(encode_json(answer))


def read_text(path: str) -> str:
    with open(path, encoding="utf-8", errors="replace") as file:
        return file.read()


def read_text_or_none(path: str) -> str | None:
    try:
        return read_text(path)
    except OSError:
        return None


def call_prctl() -> dict[str, Any] | None:
    """The results of prctl(2), a negative number for an errno; None in an image without ctypes."""
    try:
        import ctypes

        prctl = ctypes.CDLL(None, use_errno=True).prctl
    except (ImportError, OSError, AttributeError):
        return None

    def call(option: int, *arguments: int) -> int:
        padded = [*arguments, 0, 0, 0, 0][:4]
        result = prctl(option, *map(ctypes.c_ulong, padded))
        return int(result) if result >= 0 else -ctypes.get_errno()

    return {
        "no_new_privs": call(_PR_GET_NO_NEW_PRIVS),
        "ambient": [call(_PR_CAP_AMBIENT, _PR_CAP_AMBIENT_IS_SET, bit) for bit in range(_CAPABILITY_BITS)],
    }


def run_trivial_program(context: Context) -> dict[str, Any]:
    """Start a program as a command is started, and wait for its end. Refused when it cannot be started."""
    try:
        return run_program(context, ["true"])
    except Refused as refused:
        if refused.kind not in ("not-found", "not-executable"):
            raise
    # An image without the program has a Python, which runs the agent.
    return run_program(context, [sys.executable or "/proc/self/exe", "-I", "-S", "-c", ""])


def run_program(context: Context, argv: list[str]) -> dict[str, Any]:
    children, descriptors, child = context.children, Descriptors(), None
    try:
        ended, notify = descriptors.event_fds()
        null = descriptors.add(os.open(os.devnull, os.O_RDWR | os.O_CLOEXEC))
        child = children.spawn(argv, context.settings.environment, "/", (null, null, null), notify)
        wait_for_end(ended, time.monotonic() + PROGRAM_SECONDS)
        return {"argv": argv, **exit_of(child.status)}
    finally:
        if child is not None:
            if child.status is None:
                children.signal_group(child, signal.SIGKILL)
            children.release(child)
        descriptors.close_all()


def wait_for_end(fd: int, until: float) -> None:
    poll = select.poll()
    poll.register(fd, select.POLLIN)
    poll.poll(max(until - time.monotonic(), 0.0) * 1000)
