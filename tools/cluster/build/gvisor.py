# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""gVisor's runtime and its shim for containerd, built from a pinned Go module and cached."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import time
from functools import partial
from pathlib import Path

from ..failures import ClusterError
from ..host import commands
from ..progress import Progress, elapsed
from . import cache
from .programs import BUILD_ENVIRONMENT, go_environment

MODULE = "gvisor.dev/gvisor"
VERSION = "v0.0.0-20260224225140-573d5e7127a8"  # of the branch "go", which builds without Bazel
CHECKSUM = "h1:Zy8IV/+FMLxy6j6p87vk/vQGKcdnbprwjTxc8UiUtsA="

RUNTIME = "runsc"
SHIM = "containerd-shim-runsc-v1"
#: Packages to build, by the name that `go build` gives their programs.
PACKAGES = {"runsc": RUNTIME, "shim": SHIM}
FLAGS = ("-trimpath", "-ldflags=-s -w")

#: The shim sets its OOM score to -999, which needs CAP_SYS_RESOURCE; root of a container often lacks it.
OOM_SCORE_FILE = "pkg/shim/v1/service.go"
OOM_SCORE = re.compile(r"^(\s*oomScoreMaxKillable\s*=\s*)-999$", re.MULTILINE)

BUILD_TIMEOUT_SECONDS = 1200.0


def folder_name() -> str:
    """Name in the cache: the versions, and what is changed in the source."""
    source = (MODULE, VERSION, CHECKSUM, OOM_SCORE_FILE, OOM_SCORE.pattern)
    return f"gvisor-{cache.key([*source, *FLAGS, str(BUILD_ENVIRONMENT), platform.machine()])}"


def is_missing(cache_folder: Path) -> bool:
    """Whether the programs have to be built."""
    return not (cache_folder / "programs" / folder_name()).is_dir()


def build(cache_folder: Path, progress: Progress) -> Path:
    """The folder of both programs, built when the cache does not have them."""
    return cache.folder(cache_folder / "programs", folder_name(), partial(_build, progress), progress)


def _build(progress: Progress, into: Path) -> None:
    began = time.monotonic()
    progress.report("building gVisor (once; minutes when Go's own cache is empty)")
    source = into / "source"
    environment = {**go_environment(), **BUILD_ENVIRONMENT}
    copy_source(source, into, environment)
    packages = [f"./{package}" for package in PACKAGES]
    commands.run(
        ["go", "build", *FLAGS, "-o", f"{into}/", *packages],
        cwd=source,
        environment=environment,
        timeout=BUILD_TIMEOUT_SECONDS,
    )
    shutil.rmtree(source)
    for built, wanted in PACKAGES.items():
        os.rename(into / built, into / wanted)
    progress.report(f"built gVisor in {elapsed(time.monotonic() - began)}")


def copy_source(source: Path, folder: Path, environment: dict[str, str]) -> None:
    """A writable copy of the module, with another OOM score; Go's cache of modules is read-only."""
    answer = json.loads(
        commands.run(
            ["go", "mod", "download", "-json", f"{MODULE}@{VERSION}"],
            cwd=folder,
            environment=environment,
            timeout=BUILD_TIMEOUT_SECONDS,
        )
    )
    if answer.get("Sum") != CHECKSUM:
        raise ClusterError(
            f"{MODULE}@{VERSION}: has the checksum {answer.get('Sum')}, not {CHECKSUM}. Nothing was built."
        )
    shutil.copytree(answer["Dir"], source)
    for path in (source, *source.rglob("*")):
        path.chmod(path.stat().st_mode | 0o200)
    file = source / OOM_SCORE_FILE
    text, count = OOM_SCORE.subn(r"\g<1>0", file.read_text(encoding="utf-8"))
    if count != 1:
        raise ClusterError(
            f"{MODULE}@{VERSION}: {OOM_SCORE_FILE} has {count} OOM scores of -999, not 1. Adapt OOM_SCORE."
        )
    file.write_text(text, encoding="utf-8")
