# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a sandbox."""

from __future__ import annotations

import builtins
import io
import os
import pathlib

from ..deadline import Deadline
from ..guest import changes
from ..guest.agent import Agent
from ..guest.files import FileInfo, Files
from ..guest.filesystem import Entry, FileSystem
from ..guest.local_file import complete_file
from ..guest.trees.trees import TreeReport, Trees
from .processes import CALL_SECONDS, UNBOUNDED_SECONDS
from .standard_errors import standard_errors


class SandboxFiles:
    """The files of a sandbox. Paths are absolute, or relative to the workspace. Each copy is bounded by a day.

    An error of the agent is a FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError or
    PermissionError as well, where Python has one.
    """

    def __init__(self, agent: Agent) -> None:
        """See ``Sandbox.files``."""
        self._agent = agent
        self._files = Files(agent)
        self._system = FileSystem(agent)
        self._trees = Trees(agent)

    @standard_errors
    def read(self, path: str) -> bytes:
        """The content of a file, which is held in memory."""
        buffer = io.BytesIO()
        self._files.fetch(path, buffer, deadline=Deadline(UNBOUNDED_SECONDS))
        return buffer.getvalue()

    @standard_errors
    def write(self, path: str, content: bytes | str, *, mode: int | None = None) -> None:
        """Write a file whole or not at all; folders that are missing are created."""
        data = content.encode() if isinstance(content, str) else content
        self._files.put(data, path, mode=mode, parents=True, deadline=Deadline(UNBOUNDED_SECONDS))

    @standard_errors
    def upload(self, source: str | os.PathLike[str], path: str) -> None:
        """Copy a file of this machine into the sandbox in constant memory; its mode goes with it."""
        with pathlib.Path(source).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            self._files.put(file, path, mode=mode, parents=True, deadline=Deadline(UNBOUNDED_SECONDS))

    @standard_errors
    def download(self, path: str, target: str | os.PathLike[str]) -> FileInfo:
        """Copy a file of the sandbox to this machine in constant memory; a failure leaves the old target."""
        with complete_file(target) as file:
            return self._files.fetch(path, file, deadline=Deadline(UNBOUNDED_SECONDS))

    @standard_errors
    def upload_tree(self, source: str | os.PathLike[str], path: str) -> TreeReport:
        """Copy what is in a folder of this machine into a folder of the sandbox, as one stream.

        The folder is created with its parents; other entries in it are kept. Links are copied as links.
        """
        return self._trees.upload(source, path, deadline=Deadline(UNBOUNDED_SECONDS))

    @standard_errors
    def download_tree(self, path: str, target: str | os.PathLike[str]) -> TreeReport:
        """Copy what is in a folder of the sandbox into a folder of this machine, as one stream.

        Nothing outside of the target is written, whatever the sandbox sends. The report names what was skipped.
        """
        return self._trees.download(path, target, deadline=Deadline(UNBOUNDED_SECONDS))

    @standard_errors
    def list(self, path: str = ".", *, recursive: bool = False) -> builtins.list[Entry]:
        """The entries of a folder, by path. Links are listed and not followed."""
        return self._system.list(path, recursive=recursive, deadline=Deadline(CALL_SECONDS))

    @standard_errors
    def stat(self, path: str, *, follow: bool = True) -> Entry:
        """One entry; ``follow`` says whether a link is followed."""
        return self._system.stat(path, follow=follow, deadline=Deadline(CALL_SECONDS))

    @standard_errors
    def exists(self, path: str) -> bool:
        """Whether there is something of that name. A link that leads nowhere is nothing."""
        return self._system.exists(path, deadline=Deadline(CALL_SECONDS))

    @standard_errors
    def mkdir(self, path: str, *, parents: bool = False, mode: int | None = None) -> bool:
        """Create a folder; whether it was created.

        Args:
            parents: whether missing parents are created, and a folder that exists is accepted.
            mode: permission bits (0 to 0o777); as the umask of the agent allows when None.
        """
        return self._system.mkdir(path, parents=parents, mode=mode, deadline=Deadline(CALL_SECONDS))

    @standard_errors
    def move(self, path: str, target: str, *, parents: bool = False, replace: bool = False) -> None:
        """Give a file, a link or a folder another path on the same file system, in one step.

        Args:
            target: the new path itself, not the folder that gets it.
            parents: whether missing folders of the target are created.
            replace: whether an existing file, or an empty folder, is replaced.
        """
        self._system.move(path, target, parents=parents, replace=replace, deadline=Deadline(CALL_SECONDS))

    @standard_errors
    def remove(self, path: str, *, recursive: bool = False, missing_ok: bool = False) -> int:
        """Remove a file, a link (not what it leads to) or a folder; how many entries were removed.

        Args:
            recursive: whether a folder is removed with everything in it; otherwise it must be empty.
            missing_ok: whether a path that does not exist is accepted.
        """
        deadline = Deadline(UNBOUNDED_SECONDS)
        return self._system.remove(path, recursive=recursive, missing_ok=missing_ok, deadline=deadline)

    @standard_errors
    def watch(self, path: str = ".", *, recursive: bool = False, timeout: float | None = None) -> changes.FolderChanges:
        """The changes of a folder as they happen: an iterator and a context manager.

        Args:
            timeout: seconds (above 0) after which the iteration ends with a TimeoutError; a day when None.
        """
        deadline = Deadline(UNBOUNDED_SECONDS if timeout is None else timeout)
        return changes.watch(self._agent, path, recursive=recursive, deadline=deadline)
