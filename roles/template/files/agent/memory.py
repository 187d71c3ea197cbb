# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the kernel killed processes of the container because its memory limit was reached."""

from __future__ import annotations

#: Files of the container's own cgroup with a line ``oom_kill N``: version 2, version 1.
EVENT_FILES = ("/sys/fs/cgroup/memory.events", "/sys/fs/cgroup/memory/memory.oom_control")


def oom_kills() -> int:
    """The number of processes that were killed for memory since the container started; 0 where it is not shown."""
    for path in EVENT_FILES:
        try:
            with open(path, "rb") as file:
                lines = file.read().splitlines()
        except OSError:
            continue
        counts = [line.split()[1] for line in lines if line.startswith(b"oom_kill ")]
        if counts and counts[0].isdigit():
            return int(counts[0])
    return 0
