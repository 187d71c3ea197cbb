# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The agent's files as an archive that an engine unpacks below the sandbox's volume."""

from __future__ import annotations

import contextlib
import functools
import io
import pathlib
import tarfile

from ..errors import MissingDependencyError
from .names import AGENT, FOLDER, LEASE, LEASE_USER, PRIVATE, TOKEN

#: Beside the collection's plugins; the same files that role ``template`` puts into a ConfigMap.
#: Where the collection has the agent's files, and where the wheel has them.
_SOURCES = (
    pathlib.Path(__file__).resolve().parents[3] / "roles" / "template" / "files" / "agent",
    pathlib.Path(__file__).resolve().parents[1] / "_agent",
)


@functools.cache
def agent_files() -> dict[str, bytes]:
    """The agent's files by name.

    Raises MissingDependencyError where the collection is not installed as a whole.
    """
    for folder in _SOURCES:
        with contextlib.suppress(OSError):
            files = {path.name: path.read_bytes() for path in sorted(folder.glob("*.py"))}
            if "__main__.py" in files:
                return files
    raise MissingDependencyError(
        f"The agent's files are not at {_SOURCES[0]}.",
        next_step="Run the task on the controller (connection: local), where the whole collection is installed.",
    )


def agent_archive(until: int, token: str) -> bytes:
    """A tar archive of the agent, its bind token, the private folder, and a lease that ends at ``until`` (seconds)."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, _inside(AGENT), None, 0o755)
        _add(tar, _inside(PRIVATE), None, 0o700, int(LEASE_USER.partition(":")[0]))
        for name, content in agent_files().items():
            _add(tar, f"{_inside(AGENT)}/{name}", content, 0o644)
        _add(tar, _inside(TOKEN), token.encode(), 0o600)
        _add(tar, _inside(LEASE), str(until).encode(), 0o644, time=until)
    return buffer.getvalue()


def lease_archive(until: int) -> bytes:
    """A tar archive of nothing but a lease."""
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w", format=tarfile.USTAR_FORMAT) as tar:
        _add(tar, _inside(LEASE), str(until).encode(), 0o644, time=until)
    return buffer.getvalue()


def _inside(path: str) -> str:
    return path.removeprefix(f"{FOLDER}/")


def _add(tar: tarfile.TarFile, name: str, content: bytes | None, mode: int, owner: int = 0, time: int = 0) -> None:
    entry = tarfile.TarInfo(name)
    entry.mode, entry.uid, entry.gid, entry.mtime = mode, owner, owner, time
    if content is None:
        entry.type = tarfile.DIRTYPE
        tar.addfile(entry)
    else:
        entry.size = len(content)
        tar.addfile(entry, io.BytesIO(content))
