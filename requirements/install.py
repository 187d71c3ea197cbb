# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Bring .venv up to date: uv, an environment for each supported pair of Python and ansible-core, and the importer's.

    python3 requirements/install.py [py311] [py313] [importer]     all of them when none is named
    python3 requirements/install.py --pin                          write the pinned *.txt files anew from the *.in files

Only what changed is done again, so that every make target may call this first. Needs nothing but Python 3.11.
"""

from __future__ import annotations

import argparse
import contextlib
import fcntl
import hashlib
import os
import pathlib
import pwd
import shutil
import subprocess
import sys
import time
import typing as t

ROOT = pathlib.Path(__file__).resolve().parent.parent
REQUIREMENTS = ROOT / "requirements"
VENV = ROOT / ".venv"
UV = VENV / "bin" / "uv"

PYTHONS = {"py311": "3.11", "py313": "3.13", "importer": "3.13"}
#: Pinned, but installed by tests alone.
OF_TESTS = {"wheel": "3.13"}
#: Where this clone is what Ansible finds as namzu.sandbox. The importer is given a built collection.
LINKED = ("py311", "py313")


class InstallError(Exception):
    """What keeps the environments from being made, for a person to read."""


def install_uv() -> None:
    """Make .venv itself, with uv in it."""
    pins = REQUIREMENTS / "bootstrap.txt"
    place, content = stamps(pins)
    if stamped(VENV) == (place, content):
        return
    say("uv: installing")
    for leftover in ("bin", "lib", "lib64", "include", "pyvenv.cfg"):
        remove(VENV / leftover)
    run(sys.executable, "-m", "venv", VENV, purpose="python3 -m venv (on Debian it needs the package python3-venv)")
    pip = (VENV / "bin" / "python", "-m", "pip", "--disable-pip-version-check", "install", "--quiet")
    run(*pip, "--requirement", pins, purpose="Installing uv")
    stamp(VENV, place, content)


def install_environment(name: str) -> None:
    """Make or correct one environment, and link the collection into it."""
    folder = VENV / name
    pins = REQUIREMENTS / f"{name}.txt"
    place, content = stamps(pins)
    found_place, found_content = stamped(folder)
    if found_place != place:
        python = find_python(PYTHONS[name])
        run(UV, "venv", "--quiet", "--clear", "--python", python, folder, purpose=f"{name}: uv venv")
    if (found_place, found_content) != (place, content):
        started = time.monotonic()
        say(f"{name}: installing {count_pins(pins)} packages for Python {PYTHONS[name]}")
        sync = (UV, "pip", "sync", "--quiet", "--require-hashes", "--python", folder / "bin" / "python", pins)
        run(*sync, purpose=f"{name}: uv pip sync")
        stamp(folder, place, content)
        say(f"{name}: installed in {time.monotonic() - started:.0f} s")
    if name in LINKED:
        link_collection(folder / "lib" / f"python{PYTHONS[name]}" / "site-packages")


def link_collection(folder: pathlib.Path) -> None:
    """Let Ansible and Python find this clone as namzu.sandbox below a folder, also after the clone moved."""
    link = folder / "ansible_collections" / "namzu" / "sandbox"
    target = os.path.relpath(ROOT, link.parent)
    if link.is_symlink() and os.readlink(link) == target:
        return
    remove(link)
    link.parent.mkdir(parents=True, exist_ok=True)
    link.symlink_to(target)


def find_python(version: str) -> str:
    """An interpreter of this version: on the PATH, in a pyenv folder, or one that uv knows or can fetch."""
    for candidate in candidates(version):
        if reports_version(candidate, version):
            return str(candidate)
    fetched = VENV / "pythons"
    for request in (
        (UV, "python", "find", "--no-project", "--system", version),
        (UV, "python", "install", "--quiet", "--no-bin", "--install-dir", fetched, version),
    ):
        answer = subprocess.run(request, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
        for found in (answer.stdout.strip(), *map(str, fetched.glob(f"cpython-{version}*/bin/python{version}"))):
            if answer.returncode == 0 and found and reports_version(found, version):
                return found
    raise InstallError(f"Python {version} is neither here nor to be fetched: put python{version} on the PATH.")


def candidates(version: str) -> t.Iterator[pathlib.Path]:
    """Where an interpreter may be that is not only a name: pyenv's shims exist for versions that are switched off."""
    on_path = shutil.which(f"python{version}")
    if on_path:
        yield pathlib.Path(on_path)
    # The home of the account as well: HOME may name another folder.
    homes = (os.path.expanduser("~"), pwd.getpwuid(os.getuid()).pw_dir)
    roots = [os.environ.get("PYENV_ROOT", ""), *(f"{home}/.pyenv" for home in homes)]
    if on_path and pathlib.Path(on_path).parent.name == "shims":
        roots.append(str(pathlib.Path(on_path).parent.parent))
    for root in filter(None, dict.fromkeys(roots)):
        yield from sorted(pathlib.Path(root, "versions").glob(f"{version}*/bin/python{version}"), reverse=True)


def reports_version(python: str | pathlib.Path, version: str) -> bool:
    """Whether this file runs, and is the version that its name says."""
    question = "import sys, ensurepip; print('%d.%d' % sys.version_info[:2])"
    try:
        answer = subprocess.run([python, "-c", question], capture_output=True, text=True, timeout=30, check=False)
    except (OSError, subprocess.TimeoutExpired):
        return False
    return answer.returncode == 0 and answer.stdout.strip() == version


def pin() -> None:
    """Write every *.txt anew. The files name no registry: whoever installs from them uses their own."""
    for name, version in {"bootstrap": "3.11", **PYTHONS, **OF_TESTS}.items():
        compile_ = (UV, "pip", "compile", "--quiet", "--upgrade", "--universal", "--python-version", version)
        output = ("--no-header", "--no-emit-index-url", "--no-emit-find-links", "--generate-hashes")
        files = (REQUIREMENTS / f"{name}.in", "--output-file", REQUIREMENTS / f"{name}.txt")
        run(*compile_, *output, *files, purpose=f"{name}: uv pip compile")
        say(f"{name}: pinned {count_pins(REQUIREMENTS / f'{name}.txt')} packages")


def count_pins(pins: pathlib.Path) -> int:
    """The number of packages in a pinned file."""
    return sum("==" in line and not line.startswith((" ", "#")) for line in pins.read_text().splitlines())


def stamps(pins: pathlib.Path) -> tuple[str, str]:
    """What an environment was made from: the place of the clone, since scripts in it name it, and the pinned file."""
    return str(ROOT), hashlib.sha256(pins.read_bytes()).hexdigest()


def stamped(folder: pathlib.Path) -> tuple[str, str]:
    """What an environment says it was made from; empty words when it is unfinished or its interpreter went away."""
    file = folder / "stamp"
    if not file.is_file() or not (folder / "bin" / "python").exists():
        return "", ""
    place, _separator, content = file.read_text().strip().rpartition("\n")
    return place, content


def stamp(folder: pathlib.Path, place: str, content: str) -> None:
    """Say that an environment is finished."""
    (folder / "stamp").write_text(f"{place}\n{content}\n")


def environment() -> dict[str, str]:
    """The variables of pip and uv: the caller's, plus what an empty or read-only home needs."""
    variables = dict(os.environ)
    # A machine's own certificates, where a proxy of its own stands between it and the registry.
    variables.setdefault("UV_SYSTEM_CERTS", "true")
    variables.pop("VIRTUAL_ENV", None)
    if writable(cache_folder()):
        variables.setdefault("UV_LINK_MODE", "hardlink" if same_filesystem() else "copy")
    else:
        variables.setdefault("UV_CACHE_DIR", str(VENV / "cache" / "uv"))
        variables.setdefault("PIP_NO_CACHE_DIR", "1")
    return variables


def cache_folder() -> pathlib.Path:
    """Where pip and uv keep what they downloaded."""
    return pathlib.Path(os.environ.get("XDG_CACHE_HOME") or os.path.expanduser("~/.cache"))


def same_filesystem() -> bool:
    """Whether uv can link from its cache; it warns at length when it finds out by trying."""
    return existing(cache_folder()).stat().st_dev == existing(VENV).stat().st_dev


def writable(folder: pathlib.Path) -> bool:
    """Whether the folder can be written to; it is made to find out."""
    with contextlib.suppress(OSError):
        folder.mkdir(parents=True, exist_ok=True)
    return os.access(folder, os.W_OK)


def existing(folder: pathlib.Path) -> pathlib.Path:
    """The folder itself, or the nearest one above it that exists."""
    while not folder.exists():
        folder = folder.parent
    return folder


def remove(path: pathlib.Path) -> None:
    """Remove a file, a link or a folder, if it is there."""
    if path.is_dir() and not path.is_symlink():
        shutil.rmtree(path)
    else:
        path.unlink(missing_ok=True)


def run(*command: str | pathlib.Path, purpose: str) -> None:
    """Run a command silently; when it fails, its output becomes the error."""
    finished = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True, check=False)
    if finished.returncode != 0:
        output = f"{finished.stdout}{finished.stderr}".strip()
        raise InstallError(f"{purpose} failed ({finished.returncode}):\n{output}")


@contextlib.contextmanager
def only_one_at_a_time() -> t.Iterator[None]:
    """Hold .venv for this process; two make targets may start together."""
    VENV.mkdir(exist_ok=True)
    with open(VENV / "lock", "w") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield


def say(line: str) -> None:
    """Tell the person at the terminal; stdout stays free for those who read it."""
    print(line, file=sys.stderr, flush=True)


def main() -> int:
    """Install, or pin, and say in one line what went wrong."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("environments", nargs="*", metavar="environment", help=f"of {', '.join(PYTHONS)}")
    parser.add_argument("--pin", action="store_true", help="write the pinned files anew, then install")
    arguments = parser.parse_args()
    unknown = set(arguments.environments) - set(PYTHONS)
    if unknown:
        parser.error(f"no such environment: {', '.join(sorted(unknown))}")
    try:
        with only_one_at_a_time():
            install_uv()
            if arguments.pin:
                pin()
            for name in arguments.environments or PYTHONS:
                install_environment(name)
            link_collection(VENV / "collections")
    except (InstallError, OSError) as error:
        say(f"requirements/install.py: {error}")
        return 1
    return 0


if __name__ == "__main__":
    sys.exit(main())
