# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""An image that runs plays inside the cluster, as an execution environment does: Python, ansible-core, this collection.

It is the image with Python and two layers more. The one with ansible-core is made once; the one with the collection
is made each time, from the current files.
"""

from __future__ import annotations

import io
import json
import os
import platform
import re
import shutil
import sys
import tarfile
import tempfile
from functools import partial
from pathlib import Path

from ..failures import ClusterError
from ..host import commands
from ..layout import REPOSITORY
from ..progress import Progress
from . import cache, images, packages

RUNNER_IMAGE = "localhost/namzu/runner:3"
RECIPE = "1"  # raise it when what is made below changes

PACKAGES = ("ansible-core", "urllib3", "PyYAML", "jmespath")
PINS = REPOSITORY / "requirements"
# Debian's Python imports from this folder for every user.
SITE_PACKAGES = "usr/lib/python3/dist-packages"
LOCALES = "usr/lib/locale"
COLLECTION = "usr/share/ansible/collections/ansible_collections/namzu/sandbox"
COLLECTION_PARTS = ("galaxy.yml", "meta", "playbooks", "plugins", "roles")
PROGRAM = """\
#!/usr/bin/python3
import sys
from ansible.cli.playbook import main
sys.exit(main())
"""


def make(cache_folder: Path, into: Path, progress: Progress) -> Path:
    """Write the archive of the image into a folder, and return its path."""
    python = images.make(cache_folder, progress)
    version = python_version(python)
    name = f"runner-{_key(version)}"
    ansible = cache.folder(cache_folder / "images", name, partial(_make_ansible, version, progress), progress)
    layers = [images.python_layer(python), (ansible / "layer.tar").read_bytes(), collection_layer(REPOSITORY)]
    archive = into / "runner.tar"
    images.write_archive(layers, archive, images.Image((RUNNER_IMAGE,), ("ansible-playbook", "--version")))
    return archive


def python_version(folder: Path) -> str:
    """The version that the image with Python is tagged with, for example 3.11."""
    with tarfile.open(folder / "python.tar") as tar:
        manifest = tar.extractfile("manifest.json")
        tags = json.load(manifest)[0]["RepoTags"] if manifest else []
    found = re.search(r":(3\.\d+)$", "\n".join(tags), re.MULTILINE)
    if found is None:
        raise ClusterError(f"{folder / 'python.tar'}: has no tag with a Python version. Remove that folder.")
    return found[1]


def collection_layer(repository: Path) -> bytes:
    """The collection's files as they are now, as a layer."""
    layer = io.BytesIO()
    with tarfile.open(fileobj=layer, mode="w") as tar:
        for part in COLLECTION_PARTS:
            tar.add((repository / part).resolve(), arcname=f"{COLLECTION}/{part}", filter=_plain)
    return layer.getvalue()


def _plain(entry: tarfile.TarInfo) -> tarfile.TarInfo | None:
    if Path(entry.name).name == "__pycache__":
        return None
    entry.mtime = entry.uid = entry.gid = 0
    entry.uname = entry.gname = ""
    entry.mode = 0o755 if entry.isdir() or entry.mode & 0o100 else 0o644
    return entry


def _key(version: str) -> str:
    return cache.key([RECIPE, *PACKAGES, version, platform.machine(), _pins(version).read_bytes()])


def _pins(version: str) -> Path:
    """The pinned versions of that Python, else those of the oldest, which newer ones take as well."""
    exact = PINS / f"py{version.replace('.', '')}.txt"
    return exact if exact.exists() else PINS / "py311.txt"


def _make_ansible(version: str, progress: Progress, into: Path) -> None:
    progress.report("making the layer with ansible-core")
    root = into / "root"
    target = root / SITE_PACKAGES
    target.mkdir(parents=True)
    chosen = ["--target", str(target), "--python-version", version, "--only-binary", ":all:"]
    with tempfile.NamedTemporaryFile("w", suffix=".txt", encoding="utf-8") as constraints:
        constraints.write(without_hashes(_pins(version).read_text(encoding="utf-8")))
        constraints.flush()
        pinned = ["--constraint", constraints.name]
        commands.run([*_installer(), *chosen, *pinned, *PACKAGES], environment=dict(os.environ), timeout=600)
    # Its programs name the interpreter of this machine.
    shutil.rmtree(target / "bin", ignore_errors=True)
    program = root / "usr/local/bin/ansible-playbook"
    program.parent.mkdir(parents=True)
    program.write_text(PROGRAM, encoding="utf-8")
    program.chmod(0o755)
    _add_locale(root, into, progress)
    with tarfile.open(into / "layer.tar", mode="w") as tar:
        tar.add(root / "usr", arcname="usr", filter=_plain)
    shutil.rmtree(root)


def _add_locale(root: Path, scratch: Path, progress: Progress) -> None:
    """C.UTF-8, without which Ansible does not start."""
    package = scratch / "libc-bin"
    package.mkdir()
    packages.apt(["apt-get", "-o", "APT::Sandbox::User=root", "download", "libc-bin"], progress, package)
    for archive in package.glob("*.deb"):
        commands.run(["dpkg-deb", "-x", str(archive), str(package)])
    shutil.copytree(package / LOCALES, root / LOCALES)
    shutil.rmtree(package)


def without_hashes(pins: str) -> str:
    """The lines with versions: an installer that sees hashes wants one for everything that it is asked for."""
    return "\n".join(re.findall(r"^[A-Za-z0-9].*?==[^\s;]+(?:\s*;[^\\\n]*)?", pins, re.MULTILINE)) + "\n"


def _installer() -> list[str]:
    uv = shutil.which("uv") or shutil.which("uv", path=str(REPOSITORY / ".venv" / "bin"))
    if uv is not None:
        return [uv, "pip", "install", "--quiet", "--python", sys.executable]
    return [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
