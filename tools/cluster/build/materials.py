# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs, images and objects that are made once and cached before an instance can start."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from ..progress import Progress
from . import gvisor, images, objects, packages, programs
from .programs import Programs


@dataclass(frozen=True)
class Materials:
    """Programs, images and objects of an instance."""

    programs: Programs
    gvisor: Path
    images: Path
    objects: objects.Objects


def gather(cache_folder: Path, progress: Progress, *, enforce: bool) -> Materials:
    """Install, build and make what is missing; `enforce` includes the program that enforces NetworkPolicy."""
    packages.install(progress)
    return Materials(
        programs.build(cache_folder, progress, enforce=enforce),
        gvisor.build(cache_folder, progress),
        images.make(cache_folder, progress),
        objects.load(cache_folder, progress),
    )


def needs_go(cache_folder: Path) -> bool:
    """Whether Go is needed to gather the materials."""
    return programs.is_missing(cache_folder) or gvisor.is_missing(cache_folder) or objects.is_missing(cache_folder)
