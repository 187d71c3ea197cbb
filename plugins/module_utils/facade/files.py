# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a sandbox."""

from __future__ import annotations

import io
import os
import pathlib

from ..deadline import Deadline
from ..guest.agent import Agent
from ..guest.files import FileInfo, Files
from ..guest.local_file import complete_file
from .processes import UNBOUNDED_SECONDS


class SandboxFiles:
    """The files of a sandbox. Paths are absolute, or relative to the workspace. Each copy is bounded by a day."""

    def __init__(self, agent: Agent) -> None:
        """See ``Sandbox.files``."""
        self._files = Files(agent)

    def read(self, path: str) -> bytes:
        """The content of a file, which is held in memory."""
        buffer = io.BytesIO()
        self._files.fetch(path, buffer, deadline=Deadline(UNBOUNDED_SECONDS))
        return buffer.getvalue()

    def write(self, path: str, content: bytes | str, *, mode: int | None = None) -> None:
        """Write a file whole or not at all; folders that are missing are created."""
        data = content.encode() if isinstance(content, str) else content
        self._files.put(data, path, mode=mode, parents=True, deadline=Deadline(UNBOUNDED_SECONDS))

    def upload(self, source: str | os.PathLike[str], path: str) -> None:
        """Copy a file of this machine into the sandbox in constant memory; its mode goes with it."""
        with pathlib.Path(source).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            self._files.put(file, path, mode=mode, parents=True, deadline=Deadline(UNBOUNDED_SECONDS))

    def download(self, path: str, target: str | os.PathLike[str]) -> FileInfo:
        """Copy a file of the sandbox to this machine in constant memory; a failure leaves the old target."""
        with complete_file(target) as file:
            return self._files.fetch(path, file, deadline=Deadline(UNBOUNDED_SECONDS))
