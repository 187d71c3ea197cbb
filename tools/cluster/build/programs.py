# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's programs, built from pinned Go modules and cached."""

from __future__ import annotations

import json
import os
import platform
import re
import shutil
import subprocess
import threading
import time
from collections import deque
from dataclasses import dataclass
from functools import partial
from pathlib import Path

from ..failures import ClusterError
from ..layout import PROGRAM_MODULE
from ..progress import Progress, elapsed
from . import cache

# A release build sets these variables; without them, the API server reports the version v0.0.0-master.
KUBERNETES_VERSION = "k8s.io/component-base/version"
AGENT_SANDBOX_VERSION = "sigs.k8s.io/agent-sandbox/internal/version"


#: What go.mod lists as tools: the programs as their modules ship them.
TOOLS = (
    "agent-sandbox-controller",
    "kube-apiserver",
    "kube-controller-manager",
    "kube-proxy",
    "kube-scheduler",
    "kubectl",
    "kubelet",
)
#: Programs with a main package in this repository, which imports only the parts that the cluster uses.
OWN = ("coredns", "kube-router")
RENAMED = {"server": "etcd"}  # the name that `go build` gives a program, and the name in this project
PROGRAMS = (*TOOLS, *OWN, *RENAMED.values())

# Static programs: no C compiler is needed.
BUILD_ENVIRONMENT = {"CGO_ENABLED": "0"}


@dataclass(frozen=True)
class Programs:
    """The folder of the built programs, and whether the cluster enforces NetworkPolicy with them."""

    folder: Path
    enforce: bool = False

    def path(self, program: str) -> Path:
        """The executable of that name."""
        if program not in PROGRAMS:
            raise KeyError(program)
        return self.folder / program

    def same_sources(self, other: Programs) -> bool:
        """Whether both were built from the same sources; the caches may differ."""
        return self.folder.name == other.folder.name

    def write(self, path: Path) -> None:
        """Record the programs that an instance runs."""
        document = {"folder": str(self.folder), "enforce": self.enforce}
        path.write_text(json.dumps(document) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Programs:
        """The record of `write`; ClusterError when there is none, or when another version of this package wrote it."""
        try:
            document = json.loads(path.read_text(encoding="utf-8"))
        except (OSError, ValueError) as error:
            raise ClusterError("an earlier start was not completed") from error
        if not isinstance(document, dict) or document.keys() != {"folder", "enforce"}:
            raise ClusterError("another version of this package started the instance")
        return cls(Path(document["folder"]), document["enforce"])


def folder_name() -> str:
    """Name in the cache: go.mod and go.sum hold every version, every checksum and the lowest Go version."""
    sources = sorted(path for path in PROGRAM_MODULE.rglob("*") if path.is_file())
    contents = [part for path in sources for part in (str(path.relative_to(PROGRAM_MODULE)), path.read_bytes())]
    return f"programs-{cache.key([*contents, *build_flags(), str(BUILD_ENVIRONMENT), platform.machine()])}"


def build_flags() -> tuple[str, ...]:
    """Flags of `go build`: no symbols, no local paths, and the versions that go.mod requires."""
    settings = ["-s", "-w"]
    kubernetes = required("k8s.io/kubernetes")
    major, minor, _patch = kubernetes.removeprefix("v").split(".", 2)
    for name, value in (("gitVersion", kubernetes), ("gitMajor", major), ("gitMinor", minor)):
        settings.append(f"-X={KUBERNETES_VERSION}.{name}={value}")
    settings.append(f"-X={AGENT_SANDBOX_VERSION}.gitVersion={required('sigs.k8s.io/agent-sandbox')}")
    return "-trimpath", f"-ldflags={' '.join(settings)}"


def required(dependency: str) -> str:
    """The version of a dependency in go.mod."""
    found = re.search(rf"^\t{re.escape(dependency)} (v\S+)", _go_mod(), re.MULTILINE)
    if found is None:
        raise ClusterError(f"{PROGRAM_MODULE / 'go.mod'}: requires no version of {dependency}.")
    return found[1]


def lowest_go() -> tuple[int, int]:
    """The Go version that go.mod asks for."""
    found = re.search(r"^go (\d+)\.(\d+)", _go_mod(), re.MULTILINE)
    if found is None:
        raise ClusterError(f"{PROGRAM_MODULE / 'go.mod'}: has no Go version.")
    return int(found[1]), int(found[2])


def _go_mod() -> str:
    return (PROGRAM_MODULE / "go.mod").read_text(encoding="utf-8")


def is_missing(cache_folder: Path) -> bool:
    """Whether the programs have to be built."""
    return not cached(cache_folder, enforce=False).folder.is_dir()


def cached(cache_folder: Path, *, enforce: bool) -> Programs:
    """The programs in the cache, where `build` puts them; nothing is built."""
    return Programs(cache_folder / "programs" / folder_name(), enforce)


def build(cache_folder: Path, progress: Progress, *, enforce: bool) -> Programs:
    """The programs, built when the cache does not have them."""
    cache.folder(cache_folder / "programs", folder_name(), partial(_build, progress), progress)
    return cached(cache_folder, enforce=enforce)


def go_environment() -> dict[str, str]:
    """The caller's environment, with settings that make Go use the pinned versions."""
    return {**os.environ, "GOWORK": "off", "GOFLAGS": os.environ.get("GOFLAGS", "")}


def _build(progress: Progress, into: Path) -> None:
    began = time.monotonic()
    progress.report("building the cluster's programs (once; minutes when Go's own cache is empty)")
    progress.begin()
    building = subprocess.Popen(
        ["go", "build", "-v", *build_flags(), "-o", f"{into}/", "tool", *(f"./{name}" for name in OWN)],
        cwd=PROGRAM_MODULE,
        env={**go_environment(), **BUILD_ENVIRONMENT},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    log = _BuildLog(building)
    try:
        while building.poll() is None:
            progress.update(f"building: {log.summary()}, {elapsed(time.monotonic() - began)}")
            time.sleep(0.2)
        log.join()
    finally:
        if building.poll() is None:
            os.killpg(building.pid, 15)
            building.wait()
    progress.end()
    if building.returncode != 0:
        raise ClusterError(f"go build of {PROGRAM_MODULE}: failed:\n{log.tail()}")
    for built, wanted in RENAMED.items():
        shutil.move(into / built, into / wanted)
    if absent := [program for program in PROGRAMS if not (into / program).is_file()]:
        raise ClusterError(f"{PROGRAM_MODULE / 'go.mod'}: lists no tool that builds {', '.join(absent)}.")
    progress.report(f"built the cluster's programs in {elapsed(time.monotonic() - began)}")


class _BuildLog:
    """Follows `go build -v`: one line a compiled package, one a downloaded module."""

    def __init__(self, building: subprocess.Popen[str]) -> None:
        self._stream = building.stderr
        self._lines: deque[str] = deque(maxlen=15)
        self._packages = 0
        self._modules = 0
        self._thread = threading.Thread(target=self._follow, daemon=True)
        self._thread.start()

    def _follow(self) -> None:
        for line in self._stream or ():
            self._lines.append(line.rstrip())
            if line.startswith("go: downloading"):
                self._modules += 1
            else:
                self._packages += 1

    def summary(self) -> str:
        last = self._lines[-1] if self._lines else "reading the module graph"
        counted = f"{self._modules} modules downloaded, " if self._modules else ""
        return f"{counted}{self._packages} packages compiled ({last.rsplit('/', 1)[-1]})"

    def tail(self) -> str:
        return "\n".join(self._lines)

    def join(self) -> None:
        self._thread.join(timeout=5)
