# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Two container images made from Debian packages: one with Python, one that only waits (pause).

The pause image runs busybox's sleep: nothing has to be compiled. It reaps no orphans, which matters only to pods that
share a process namespace.
"""

from __future__ import annotations

import hashlib
import io
import json
import os
import platform
import re
import shutil
import subprocess
import tarfile
import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from ..failures import CannotRun, ClusterError
from ..host import commands
from ..progress import Progress, elapsed
from . import cache, packages

PYTHON_IMAGE = "localhost/namzu/python:3"  # also tagged with the version, for example localhost/namzu/python:3.11
PAUSE_IMAGE = "localhost/namzu/pause:1"
RECIPE = "4"  # raise it when what is made below changes

ARCHITECTURES: Mapping[str, str] = {"x86_64": "amd64", "aarch64": "arm64"}
SEARCH_PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"
# Packages that Python's dependencies name for installing and for documentation, not for running.
LEFT_OUT = re.compile(r"^(dpkg|perl.*|libperl.*|libgdbm.*|libdb.*|tar|install-info|mailcap|mime-support|debconf.*)$")
ACCOUNTS = (
    "root:x:0:0:root:/root:/bin/sh\nagent:x:1000:1000:agent:/home/agent:/bin/sh\nnobody:x:65534:65534::/:/bin/false\n"
)
GROUPS = "root:x:0:\nagent:x:1000:\nnogroup:x:65534:\n"
FOLDERS: Mapping[str, tuple[int, int]] = {  # path -> (mode, owner)
    "tmp": (0o1777, 0),
    "var/tmp": (0o1777, 0),
    "root": (0o700, 0),
    "home/agent": (0o755, 1000),
    "workspace": (0o1777, 0),
    "etc": (0o755, 0),
    "proc": (0o755, 0),
    "sys": (0o755, 0),
    "dev": (0o755, 0),
    "run": (0o755, 0),
}


@dataclass(frozen=True)
class Image:
    """The names of an image, and its command."""

    tags: tuple[str, ...]
    command: tuple[str, ...]


def make(cache_folder: Path, progress: Progress) -> Path:
    """The folder with both archives, made when the cache does not have it."""
    return cache.folder(cache_folder / "images", key(), lambda into: _make(into, progress), progress)


def is_missing(cache_folder: Path) -> bool:
    """Whether `make` needs apt."""
    return not (cache_folder / "images" / key()).is_dir()


def key() -> str:
    """Name in the cache: recipe, architecture, and the exact release of the distribution the packages come from."""
    release = b"".join(_content(Path(path)) for path in ("/etc/os-release", "/etc/debian_version"))
    return cache.key([RECIPE, platform.machine(), release])


def _make(into: Path, progress: Progress) -> None:
    if not packages.has_apt() or packages.find("dpkg-deb") is None:
        raise CannotRun("the images are made from Debian packages: apt-get and dpkg-deb are missing on this system.")
    began = time.monotonic()
    progress.report("making the container images from Debian packages")
    version = _python_version(progress)
    root, pause = into / "python-root", into / "pause-root"
    downloads = into / "packages"
    for folder in (root, pause, downloads):
        folder.mkdir()
    names = _closure([f"python{version}-minimal", f"libpython{version}-stdlib", "busybox-static"], progress)
    packages.apt(["apt-get", "-o", "APT::Sandbox::User=root", "download", *names], progress, downloads)
    for archive in sorted(downloads.glob("*.deb")):
        commands.run(["dpkg-deb", "-x", str(archive), str(root)])
    _furnish(root, version)
    (pause / "bin").mkdir()
    shutil.copy(root / "bin/busybox", pause / "bin/busybox")
    tags = (PYTHON_IMAGE, f"{PYTHON_IMAGE.rsplit(':', 1)[0]}:{version}")
    write_archive([layer_of(root)], into / "python.tar", Image(tags, ("python3",)))
    write_archive([layer_of(pause)], into / "pause.tar", Image((PAUSE_IMAGE,), ("/bin/busybox", "sleep", "2147483647")))
    versions = sorted(archive.name for archive in downloads.glob("*.deb"))
    (into / "packages.txt").write_text("\n".join(versions) + "\n", encoding="utf-8")
    for folder in (root, pause, downloads):
        shutil.rmtree(folder)
    progress.report(f"made the images in {elapsed(time.monotonic() - began)}")


def _python_version(progress: Progress) -> str:
    described = packages.apt(["apt-cache", "depends", "python3"], progress)
    found = re.search(r"Depends: python(3\.\d+)$", described, re.MULTILINE)
    if found is None:
        raise ClusterError("apt-cache: shows no Python version for the package python3. Run apt-get update.")
    return found[1]


def _closure(names: Sequence[str], progress: Progress) -> list[str]:
    options = [f"--no-{kind}" for kind in ("recommends", "suggests", "conflicts", "breaks", "replaces", "enhances")]
    listed = packages.apt(["apt-cache", "depends", "--recurse", "--important", *options, *names], progress)
    found = {line.strip() for line in listed.splitlines() if line and not line.startswith(" ")}
    return sorted(name for name in found if not name.startswith("<") and not LEFT_OUT.match(name))


def _furnish(root: Path, version: str) -> None:
    for path, (mode, owner) in FOLDERS.items():
        folder = root / path
        folder.mkdir(parents=True, exist_ok=True)
        folder.chmod(mode)
        os.chown(folder, owner, owner)
    (root / "etc/passwd").write_text(ACCOUNTS, encoding="utf-8")
    (root / "etc/group").write_text(GROUPS, encoding="utf-8")
    for name in ("python3", "python"):
        link = root / "usr/bin" / name
        if not link.exists():
            link.symlink_to(f"python{version}")
    for unused in ("usr/share/doc", "usr/share/man", "usr/share/lintian"):
        shutil.rmtree(root / unused, ignore_errors=True)
    _link_applets(root)


def _link_applets(root: Path) -> None:
    busybox = root / "bin/busybox"
    if not busybox.exists():
        busybox.parent.mkdir(exist_ok=True)
        shutil.copy(root / "usr/bin/busybox", busybox)
    for applet in commands.run([str(busybox), "--list-full"]).split():
        link = root / applet
        if not os.path.lexists(link) and applet != "bin/busybox":
            link.parent.mkdir(parents=True, exist_ok=True)
            link.symlink_to("/bin/busybox")


def layer_of(root: Path) -> bytes:
    """A folder as a layer; the same folder gives the same bytes."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        tar.add(root, arcname=".", filter=_without_time)
    return layer.getvalue()


def python_layer(folder: Path) -> bytes:
    """The layer of the image with Python, out of the folder that `make` returns."""
    with tarfile.open(folder / "python.tar") as tar:
        layer = tar.extractfile("layer-0.tar")
        if layer is None:
            raise ClusterError(f"{folder / 'python.tar'} has no layer. Remove that folder.")
        return layer.read()


def write_archive(layers: Sequence[bytes], archive: Path, image: Image) -> None:
    """Write layers, the lowest first, as a docker archive: configuration, layers, manifest."""
    configuration = {
        "architecture": ARCHITECTURES.get(platform.machine(), platform.machine()),
        "os": "linux",
        "config": {"Env": [f"PATH={SEARCH_PATH}"], "Cmd": list(image.command)},
        "rootfs": {"type": "layers", "diff_ids": [f"sha256:{hashlib.sha256(layer).hexdigest()}" for layer in layers]},
        "history": [{"created_by": "tools/cluster"}] * len(layers),
    }
    described = json.dumps(configuration).encode()
    name = f"{hashlib.sha256(described).hexdigest()}.json"
    contents = {f"layer-{number}.tar": layer for number, layer in enumerate(layers)}
    manifest = json.dumps([{"Config": name, "RepoTags": list(image.tags), "Layers": list(contents)}]).encode()
    with tarfile.open(archive, "w") as tar:
        for member, data in {name: described, **contents, "manifest.json": manifest}.items():
            entry = tarfile.TarInfo(member)
            entry.size = len(data)
            tar.addfile(entry, io.BytesIO(data))


def _without_time(entry: tarfile.TarInfo) -> tarfile.TarInfo:
    entry.mtime = 0
    entry.uname = entry.gname = ""
    return entry


def archives(folder: Path) -> list[Path]:
    """The archives in the folder that `make` returns."""
    return [folder / "pause.tar", folder / "python.tar"]


def load_into(socket: Path, files: Sequence[Path]) -> None:
    """Import archives into containerd, where the kubelet finds them."""
    importing = [
        subprocess.Popen(
            ["ctr", "--address", str(socket), "--namespace", "k8s.io", "images", "import", str(archive)],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        for archive in files
    ]
    for process in importing:
        output, _unused = process.communicate(timeout=120)
        if process.returncode != 0:
            raise ClusterError(f"ctr images import: failed: {output.strip()[-500:]}")


def _content(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError:
        return b""
