# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The files of a sandbox."""

from __future__ import annotations

import builtins
import io
import os
import pathlib
import typing as t

from ..deadline import Cancellation, Deadline
from ..guest.agent import Agent
from ..guest.changes import Change, FolderChanges, watch
from ..guest.files import FileInfo, Files
from ..guest.filesystem import Entry, FileSystem
from ..guest.local_file import complete_file
from ..guest.trees.selection import Selection
from ..guest.trees.trees import DEFAULT_MAX_ENTRIES, DEFAULT_MAX_SIZE, TreeReport, Trees
from .processes import UNBOUNDED_SECONDS
from .standard_errors import standard_errors


class SandboxChanges:
    """The changes of a folder, as an iterator. A context manager; to leave it ends the watch.

    Attributes:
        path: the folder in the sandbox, absolute.
    """

    def __init__(self, found: FolderChanges, deadline: Deadline) -> None:
        """See ``SandboxFiles.watch``."""
        self._found = found
        self._deadline = deadline
        self._iterator = iter(found)
        self.path = found.path

    def __enter__(self) -> t.Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def close(self) -> None:
        """End the watch."""
        self._found.close()

    def __iter__(self) -> t.Self:
        return self

    def __next__(self) -> Change:
        """The next change. The iteration ends when the time of the watch has passed."""
        try:
            found = self._next()
        except TimeoutError:
            if self._deadline.cancelled or not self._deadline.expired:
                raise
            found = None
        if found is None:
            raise StopIteration
        return found

    @standard_errors
    def _next(self) -> Change | None:
        return next(self._iterator, None)


class SandboxFiles:
    """The files of a sandbox. Paths are absolute, or relative to the workspace.

    Each call is bounded by ``timeout`` in seconds, or by a day, and ends when its ``cancellation`` is cancelled.

    An error of the agent is a FileNotFoundError, FileExistsError, IsADirectoryError, NotADirectoryError,
    PermissionError or TimeoutError as well, where Python has one. What this machine does not allow is an OSError.
    """

    def __init__(self, agent: Agent, check: t.Callable[[], None] = lambda: None) -> None:
        """See ``Sandbox.files``; ``check`` is called first by every method."""
        self._agent = agent
        self._check = check
        self._files = Files(agent)
        self._system = FileSystem(agent)
        self._trees = Trees(agent)

    def _begin(self, timeout: float | None, cancellation: Cancellation | None) -> Deadline:
        self._check()
        return Deadline(UNBOUNDED_SECONDS if timeout is None else timeout, cancellation=cancellation)

    @standard_errors
    def read(self, path: str, *, timeout: float | None = None, cancellation: Cancellation | None = None) -> bytes:
        """The content of a file, which is held in memory."""
        buffer = io.BytesIO()
        deadline = self._begin(timeout, cancellation)
        self._files.fetch(path, buffer, deadline=deadline)
        return buffer.getvalue()

    @standard_errors
    def write(
        self,
        path: str,
        content: bytes | str,
        *,
        mode: int | None = None,
        replace: bool = False,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """Write a file whole or not at all; folders that are missing are created.

        Args:
            mode: permission bits; None keeps those of the file that is replaced, and makes 0644 of a new one.
            replace: whether an existing file is replaced that the user of the sandbox may not write.
        """
        data = content.encode() if isinstance(content, str) else content
        deadline = self._begin(timeout, cancellation)
        self._files.put(data, path, mode=mode, parents=True, replace=replace, deadline=deadline)

    @standard_errors
    def stat(
        self, path: str, *, follow: bool = True, timeout: float | None = None, cancellation: Cancellation | None = None
    ) -> Entry:
        """Kind, size, mode and time of a path; ``follow``: of what a link leads to, not of the link."""
        deadline = self._begin(timeout, cancellation)
        return self._system.stat(path, follow=follow, deadline=deadline)

    @standard_errors
    def exists(self, path: str, *, timeout: float | None = None, cancellation: Cancellation | None = None) -> bool:
        """Whether a path exists. A link that leads nowhere does not."""
        deadline = self._begin(timeout, cancellation)
        return self._system.exists(path, deadline=deadline)

    @standard_errors
    def mkdir(
        self,
        path: str,
        *,
        parents: bool = False,
        mode: int | None = None,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> bool:
        """Create a folder; whether it was created.

        Args:
            parents: whether missing parents are created, and a folder that exists is accepted.
            mode: permission bits (0 to 0o777) of the folder itself.
        """
        deadline = self._begin(timeout, cancellation)
        return self._system.mkdir(path, parents=parents, mode=mode, deadline=deadline)

    @standard_errors
    def move(
        self,
        path: str,
        target: str,
        *,
        parents: bool = False,
        replace: bool = False,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """Give a file or a folder another path on the same file system; see ``FileSystem.move``."""
        deadline = self._begin(timeout, cancellation)
        self._system.move(path, target, parents=parents, replace=replace, deadline=deadline)

    @standard_errors
    def remove(
        self,
        path: str,
        *,
        recursive: bool = False,
        missing_ok: bool = False,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> int:
        """Remove a file, a link or a folder; how many entries were removed.

        Args:
            recursive: whether a folder is removed with everything in it; otherwise it must be empty.
            missing_ok: whether a path that does not exist is accepted.
        """
        deadline = self._begin(timeout, cancellation)
        return self._system.remove(path, recursive=recursive, missing_ok=missing_ok, deadline=deadline)

    @standard_errors
    def upload(
        self,
        source: str | os.PathLike[str],
        path: str,
        *,
        replace: bool = False,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> None:
        """Copy a file of this machine into the sandbox in constant memory; its mode goes with it."""
        deadline = self._begin(timeout, cancellation)
        with pathlib.Path(source).open("rb") as file:
            mode = os.fstat(file.fileno()).st_mode & 0o777
            self._files.put(file, path, mode=mode, parents=True, replace=replace, deadline=deadline)

    @standard_errors
    def download(
        self,
        path: str,
        target: str | os.PathLike[str],
        *,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> FileInfo:
        """Copy a file of the sandbox to this machine in constant memory; a failure leaves the old target."""
        deadline = self._begin(timeout, cancellation)
        with complete_file(target) as file:
            return self._files.fetch(path, file, deadline=deadline)

    @standard_errors
    def upload_tree(
        self,
        source: str | os.PathLike[str],
        path: str,
        *,
        include: t.Sequence[str] = (),
        exclude: t.Sequence[str] = (),
        replace: bool = False,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> TreeReport:
        """Copy what is in a folder of this machine into one of the sandbox in one stream; see ``Trees.upload``.

        Args:
            include, exclude: patterns of what is copied and what is not; see ``Selection``.
            replace: whether existing files are replaced that the user of the sandbox may not write.
        """
        chosen = Selection(include, exclude)
        deadline = self._begin(timeout, cancellation)
        return self._trees.upload(
            source, path, wanted=chosen.takes, enter=chosen.enters, replace=replace, deadline=deadline
        )

    @standard_errors
    def download_tree(
        self,
        path: str,
        target: str | os.PathLike[str],
        *,
        include: t.Sequence[str] = (),
        exclude: t.Sequence[str] = (),
        max_entries: int = DEFAULT_MAX_ENTRIES,
        max_size: int = DEFAULT_MAX_SIZE,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> TreeReport:
        """Copy what is in a folder of the sandbox into one of this machine in one stream; see ``Trees.download``.

        Args:
            include, exclude: patterns of what is copied and what is not; see ``Selection``.
            max_entries: how many entries (1 to 1,000,000) the folder may have.
            max_size: bytes of all files together.
        """
        limits: dict[str, t.Any] = {"max_entries": max_entries, "max_size": max_size}
        deadline = self._begin(timeout, cancellation)
        if include or exclude:
            takes = Selection(include, exclude).takes
            listed = self._system.list(path, recursive=True, limit=max_entries, deadline=deadline)
            limits["only"] = [entry.path for entry in listed if takes(entry.path)]
        return self._trees.download(path, target, deadline=deadline, **limits)

    @standard_errors
    def watch(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        interval: float = 1.0,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> SandboxChanges:
        """Begin to watch a folder; changes after this call returns are found. Iterate over the result in a ``with``.

        Args:
            recursive: whether all folders below are watched too; 10,000 entries at most.
            interval: seconds (0.1 to 3600) between two looks of the agent.
            timeout: seconds after which the iteration ends without an error.
        """
        deadline = self._begin(timeout, cancellation)
        found = watch(self._agent, path, recursive=recursive, interval=interval, deadline=deadline)
        return SandboxChanges(found, deadline)

    @standard_errors
    def list(
        self,
        path: str = ".",
        *,
        recursive: bool = False,
        checksum: bool = False,
        timeout: float | None = None,
        cancellation: Cancellation | None = None,
    ) -> builtins.list[Entry]:
        """The entries of a folder, by path, 100,000 at most. Links are listed and not followed.

        Args:
            recursive: whether the entries of all folders below are listed too.
            checksum: whether each file is read for its ``sha256``.
        """
        deadline = self._begin(timeout, cancellation)
        return self._system.list(path, recursive=recursive, checksum=checksum, deadline=deadline)
