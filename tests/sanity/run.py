# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Run `ansible-test sanity` of this environment's ansible-core on the files of this clone.

ansible-test wants to stand in …/ansible_collections/namzu/sandbox of a git work tree, and keeps its environments there.
So the files are brought up to date in a folder of that name below .cache, and the user's home stays as it is.

    .venv/py313/bin/python tests/sanity/run.py [what ansible-test sanity takes, such as --test pylint or file names]
"""

from __future__ import annotations

import filecmp
import os
import pathlib
import shutil
import subprocess
import sys
import types

from ansible_test._internal.python_requirements import get_venv_packages

ROOT = pathlib.Path(__file__).resolve().parents[2]
VERSION = f"{sys.version_info.major}.{sys.version_info.minor}"
CACHE = ROOT / ".cache" / "sanity" / f"py{VERSION.replace('.', '')}"
HOME = CACHE / "home"
COLLECTION = CACHE / "ansible_collections" / "namzu" / "sandbox"

# What ansible-test keeps in the work tree itself.
KEPT = (".git", "tests/output")

# ansible-test fetches pip's bootstrap from a server of its own, which is more than a package registry has to offer.
# A file of the name that it looks for first, does the same with what Python ships.
BOOTSTRAP = "import ensurepip\n\nensurepip.bootstrap(default_pip=True)\n"


def copy_files() -> None:
    """Make the copy hold the files of the clone: tracked ones, and new ones that are not ignored."""
    listing = ("git", "ls-files", "-z", "--cached", "--others", "--exclude-standard")
    listed = subprocess.run(listing, cwd=ROOT, check=True, capture_output=True, text=True).stdout.split("\0")
    names = {name for name in listed if name and (ROOT / name).is_file()}
    for name in names:
        source, target = ROOT / name, COLLECTION / name
        if not (target.is_file() and filecmp.cmp(source, target, shallow=False)):
            target.parent.mkdir(parents=True, exist_ok=True)
            shutil.copyfile(source, target)
        shutil.copymode(source, target)
    for path in sorted(COLLECTION.rglob("*"), reverse=True):
        name = str(path.relative_to(COLLECTION))
        if name.startswith(KEPT) or any(kept.startswith(f"{name}/") for kept in KEPT):
            continue
        if path.is_dir() and not any(path.iterdir()):
            path.rmdir()
        elif path.is_file() and name not in names:
            path.unlink()
    subprocess.run(("git", "init", "--quiet"), cwd=COLLECTION, check=True)


def prepare_home() -> None:
    """A home for ansible-test: pip's bootstrap, and how this machine's pip finds its registry."""
    pip_version = get_venv_packages(types.SimpleNamespace(version=VERSION))["pip"]
    bootstrap = HOME / ".ansible" / "test" / "cache" / f"get_pip_{pip_version.replace('.', '_')}.py"
    bootstrap.parent.mkdir(parents=True, exist_ok=True)
    bootstrap.write_text(BOOTSTRAP)
    # ansible-test hands no PIP_* variables on, and looks for the user's settings in this home.
    variables = {name.removeprefix("PIP_"): value for name, value in os.environ.items() if name.startswith("PIP_")}
    settings = [f"{name.lower().replace('_', '-')} = {value}" for name, value in variables.items()]
    configuration = HOME / ".config" / "pip" / "pip.conf"
    configuration.parent.mkdir(parents=True, exist_ok=True)
    configuration.unlink(missing_ok=True)
    configuration.touch(mode=0o600)
    configuration.write_text("\n".join(["[global]", "quiet = 1", *settings, ""]))
    users_own, link = pathlib.Path("~/.config/pip/pip.conf").expanduser(), HOME / ".pip" / "pip.conf"
    link.parent.mkdir(exist_ok=True)
    link.unlink(missing_ok=True)
    link.symlink_to(users_own)


def main() -> int:
    """Copy, then let ansible-test speak for itself."""
    copy_files()
    prepare_home()
    tool = pathlib.Path(sys.executable).with_name("ansible-test")
    command = [str(tool), "sanity", "--venv", "--color", "no", "--python", VERSION, *sys.argv[1:]]
    return subprocess.run(command, cwd=COLLECTION, env={**os.environ, "HOME": str(HOME)}, check=False).returncode


if __name__ == "__main__":
    sys.exit(main())
