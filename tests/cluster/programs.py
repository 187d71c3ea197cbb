# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""The cluster's programs, built from pinned Go modules and kept in the cache."""

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
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

from . import cache
from .failures import ClusterError
from .layout import PROGRAM_MODULES
from .progress import Progress, elapsed

# What a release build writes into its programs; without it, the API server says that its version is v0.0.0-master.
KUBERNETES_VERSION = "k8s.io/component-base/version"
AGENT_SANDBOX_VERSION = "sigs.k8s.io/agent-sandbox/internal/version"


@dataclass(frozen=True)
class Module:
    """A Go module under programs/ whose tools are built together."""

    name: str
    programs: tuple[str, ...]
    renamed: Mapping[str, str] = field(default_factory=dict)  # what `go build` calls it -> what we call it

    @property
    def source(self) -> Path:
        return PROGRAM_MODULES / self.name

    @property
    def folder_name(self) -> str:
        """Name in the cache: versions, checksums and the least Go version stand in go.mod and go.sum."""
        sums = [(self.source / name).read_bytes() for name in ("go.mod", "go.sum")]
        return f"{self.name}-{cache.key([*sums, *self.build_flags, platform.machine()])}"

    @property
    def build_flags(self) -> tuple[str, ...]:
        """Without symbols, and with the versions that go.mod requires."""
        settings = ["-s", "-w"]
        if version := self.required("k8s.io/kubernetes"):
            major, minor, _patch = version.removeprefix("v").split(".", 2)
            for name, value in (("gitVersion", version), ("gitMajor", major), ("gitMinor", minor)):
                settings.append(f"-X={KUBERNETES_VERSION}.{name}={value}")
        if version := self.required("sigs.k8s.io/agent-sandbox"):
            settings.append(f"-X={AGENT_SANDBOX_VERSION}.gitVersion={version}")
        return (f"-ldflags={' '.join(settings)}",)

    def required(self, dependency: str) -> str | None:
        """The version of a dependency in go.mod."""
        found = re.search(rf"^\t{re.escape(dependency)} (v\S+)", self._go_mod(), re.MULTILINE)
        return found[1] if found else None

    @property
    def least_go(self) -> tuple[int, int]:
        """The Go version that go.mod asks for."""
        found = re.search(r"^go (\d+)\.(\d+)", self._go_mod(), re.MULTILINE)
        if found is None:
            raise ClusterError(f"{self.source / 'go.mod'} names no Go version.")
        return int(found[1]), int(found[2])

    def _go_mod(self) -> str:
        return (self.source / "go.mod").read_text(encoding="utf-8")


MODULES = (
    Module(
        "kubernetes",
        (
            "kube-apiserver",
            "kube-controller-manager",
            "kube-scheduler",
            "kube-proxy",
            "kubelet",
            "kubectl",
            "agent-sandbox-controller",
        ),
    ),
    Module("etcd", ("etcd",), {"server": "etcd"}),
    Module("coredns", ("coredns",)),
)
BARE_MODULES = MODULES[:2]  # etcd and the API server
FIREWALL_MODULE = Module("kube-router", ("kube-router",))


def modules_for(*, enforce: bool) -> tuple[Module, ...]:
    """The modules of a whole cluster, with what enforces NetworkPolicy or without."""
    return (*MODULES, FIREWALL_MODULE) if enforce else MODULES


@dataclass(frozen=True)
class Programs:
    """The folder of each module's programs, in the order of MODULES; the firewall's comes last when it is there."""

    folders: tuple[Path, ...]

    @property
    def enforce(self) -> bool:
        """Whether NetworkPolicy is enforced."""
        return len(self.folders) > len(MODULES)

    def path(self, program: str) -> Path:
        """The executable of that name."""
        for module, folder in zip(modules_for(enforce=self.enforce), self.folders, strict=True):
            if program in module.programs:
                return folder / program
        raise KeyError(program)

    def are_those_of(self, other: Programs) -> bool:
        """Whether both were built from the same sources, in whichever cache they are."""
        return [folder.name for folder in self.folders] == [folder.name for folder in other.folders]

    def write(self, path: Path) -> None:
        """Note which programs an instance runs."""
        path.write_text(json.dumps([str(folder) for folder in self.folders]) + "\n", encoding="utf-8")

    @classmethod
    def read(cls, path: Path) -> Programs:
        """The note of `write`; ClusterError when there is none, or one of another version of this program."""
        try:
            folders = tuple(Path(folder) for folder in json.loads(path.read_text(encoding="utf-8")))
        except (OSError, ValueError) as error:
            raise ClusterError("an earlier start was not completed") from error
        if len(folders) not in (len(MODULES), len(MODULES) + 1):
            raise ClusterError("started by another version of tests/cluster")
        return cls(folders)


def missing(cache_folder: Path, modules: Sequence[Module]) -> list[Module]:
    """The modules that have to be built."""
    return [module for module in modules if not (cache_folder / "programs" / module.folder_name).is_dir()]


def cached(cache_folder: Path, *, enforce: bool) -> Programs:
    """The programs of a whole cluster where the cache has them, or will have them; nothing is built."""
    wanted = modules_for(enforce=enforce)
    return Programs(tuple(cache_folder / "programs" / module.folder_name for module in wanted))


def build(cache_folder: Path, progress: Progress, *, enforce: bool) -> Programs:
    """The programs of a whole cluster, built where the cache does not have them."""
    return _build_missing(cache_folder, progress, modules_for(enforce=enforce), enforce)


def build_bare(cache_folder: Path, progress: Progress) -> Programs:
    """The programs of etcd and the API server, built where the cache does not have them."""
    return _build_missing(cache_folder, progress, BARE_MODULES, enforce=False)


def _build_missing(cache_folder: Path, progress: Progress, modules: Sequence[Module], enforce: bool) -> Programs:
    for module in modules:
        cache.folder(cache_folder / "programs", module.folder_name, partial(_build, module, progress), progress)
    return cached(cache_folder, enforce=enforce)


def go_environment() -> dict[str, str]:
    """The caller's environment without what would make Go leave the pinned versions."""
    return {**os.environ, "GOWORK": "off", "GOFLAGS": os.environ.get("GOFLAGS", "")}


def _build(module: Module, progress: Progress, into: Path) -> None:
    began = time.monotonic()
    progress.say(f"building {module.name} programs (once; minutes when Go's own cache is empty)")
    progress.begin()
    building = subprocess.Popen(
        ["go", "build", "-v", *module.build_flags, "-o", f"{into}/", "tool"],
        cwd=module.source,
        env=go_environment(),
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        text=True,
        errors="replace",
        start_new_session=True,
    )
    watch = _BuildLog(building)
    try:
        while building.poll() is None:
            progress.update(f"building {module.name}: {watch.summary()}, {elapsed(time.monotonic() - began)}")
            time.sleep(0.2)
        watch.join()
    finally:
        if building.poll() is None:
            os.killpg(building.pid, 15)
            building.wait()
    progress.end()
    if building.returncode != 0:
        raise ClusterError(f"go build of {module.source} failed:\n{watch.tail()}")
    for built, wanted in module.renamed.items():
        shutil.move(into / built, into / wanted)
    if absent := [program for program in module.programs if not (into / program).is_file()]:
        raise ClusterError(f"{module.source / 'go.mod'} lists no tool that builds {', '.join(absent)}")
    progress.say(f"built {module.name} programs in {elapsed(time.monotonic() - began)}")


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
