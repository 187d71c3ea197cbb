# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The mount table, and unmounting below a folder."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path

from ..failures import ClusterError
from . import commands

MOUNT_TABLE = Path("/proc/self/mountinfo")


@dataclass(frozen=True)
class Mount:
    """One line of the mount table."""

    point: Path
    kind: str


def mount_table(text: str | None = None) -> list[Mount]:
    """The mount table of this process, in the order of mounting."""
    lines = (MOUNT_TABLE.read_text(encoding="utf-8", errors="surrogateescape") if text is None else text).splitlines()
    mounts = []
    for line in lines:
        fields, _unused, rest = line.partition(" - ")
        mounts.append(Mount(Path(_unescape(fields.split(" ")[4])), rest.split(" ")[0]))
    return mounts


def below(folder: Path) -> list[Path]:
    """Mount points at or below a folder, the last mounted first."""
    return [entry.point for entry in reversed(mount_table()) if entry.point == folder or folder in entry.point.parents]


def unmount_below(folder: Path) -> None:
    """Unmount everything below a folder; busy mounts are detached."""
    for point in below(folder):
        try:
            commands.run(["umount", "--no-canonicalize", str(point)])
        except ClusterError:
            commands.run(["umount", "--no-canonicalize", "--lazy", str(point)])


def _unescape(text: str) -> str:
    # The kernel writes blanks, tabs, newlines and backslashes of a path as three octal digits.
    return re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), text)
