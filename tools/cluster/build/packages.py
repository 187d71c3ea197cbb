# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Programs of the operating system, installed with apt where they are missing."""

from __future__ import annotations

import os
import shutil
import time
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path

from ..failures import CannotRun, ClusterError
from ..host import commands
from ..progress import Progress, elapsed

CNI_FOLDERS = (Path("/usr/lib/cni"), Path("/opt/cni/bin"), Path("/usr/libexec/cni"))
CNI_PLUGINS = ("bridge", "host-local", "loopback")
SYSTEM_PATH = os.pathsep.join(("/usr/local/sbin", "/usr/local/bin", "/usr/sbin", "/usr/bin", "/sbin", "/bin"))

# program -> the Debian package that has it
PROGRAM_PACKAGES: Mapping[str, str] = {
    "containerd": "containerd",
    "ctr": "containerd",
    "containerd-shim-runc-v2": "containerd",
    "runc": "runc",
    "ip": "iproute2",
    "mount": "mount",
    "umount": "mount",
    "nsenter": "util-linux",
    "unshare": "util-linux",
    "iptables": "iptables",
    "ipset": "ipset",
}
CNI_PACKAGE = "containernetworking-plugins"
APT_QUIET = {"DEBIAN_FRONTEND": "noninteractive", "LC_ALL": "C.UTF-8"}


@dataclass(frozen=True)
class Missing:
    """Programs that this machine lacks."""

    programs: tuple[str, ...]
    packages: tuple[str, ...]


def find(program: str) -> str | None:
    """The path of a program in the system's own folders; the caller's PATH is not used."""
    return shutil.which(program, path=SYSTEM_PATH)


def cni_folder() -> Path | None:
    """The folder that has all required CNI plugins."""
    for folder in CNI_FOLDERS:
        if all(os.access(folder / plugin, os.X_OK) for plugin in CNI_PLUGINS):
            return folder
    return None


def missing() -> Missing:
    """Programs that are missing, and the packages that contain them."""
    programs = [program for program in PROGRAM_PACKAGES if find(program) is None]
    packages = {PROGRAM_PACKAGES[program] for program in programs}
    if cni_folder() is None:
        programs.append("the CNI plugins " + ", ".join(CNI_PLUGINS))
        packages.add(CNI_PACKAGE)
    return Missing(tuple(programs), tuple(sorted(packages)))


def install(progress: Progress) -> None:
    """Install what is missing; CannotRun with the programs' names where there is no apt."""
    lacking = missing()
    if not lacking.programs:
        return
    if not has_apt():
        raise CannotRun(f"missing: {'; '.join(lacking.programs)}. Install them; this system has no apt-get to do so.")
    apt_install(lacking.packages, progress)
    if still := missing().programs:
        raise ClusterError(f"still missing after installing {', '.join(lacking.packages)}: {'; '.join(still)}")


def has_apt() -> bool:
    return find("apt-get") is not None


def apt_install(packages: Iterable[str], progress: Progress) -> None:
    """Install packages, and refresh apt's lists once when a package is not in them."""
    names = sorted(packages)
    began = time.monotonic()
    progress.report(f"installing {', '.join(names)}")
    apt(["apt-get", "install", "--yes", "--no-install-recommends", *names], progress)
    progress.report(f"installed in {elapsed(time.monotonic() - began)}")


def apt(argv: list[str], progress: Progress, folder: Path | None = None) -> str:
    """Run an apt program; when it fails, refresh the lists and run it once more."""
    environment = {**os.environ, **APT_QUIET}
    try:
        return commands.run(argv, cwd=folder, environment=environment, timeout=900)
    except ClusterError:
        progress.report("refreshing apt's package lists")
        commands.run(["apt-get", "update"], environment=environment, timeout=600)
        return commands.run(argv, cwd=folder, environment=environment, timeout=900)
