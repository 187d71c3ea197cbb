# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``Sandbox`` for programs of asyncio."""

from __future__ import annotations

import builtins
import functools
import os
import typing as t

from ..deadline import Cancellation
from ..guest.changes import Change
from ..guest.execution.stream import Execution
from ..guest.files import FileInfo
from ..guest.filesystem import Entry
from ..guest.forwarding import Forwarder
from ..guest.trees.trees import TreeReport
from .loop import in_loop, in_thread
from .processes import Process
from .sandbox import Sandbox


class AsyncSandbox:
    """A sandbox that this program holds or uses. Arguments and errors are those of ``Sandbox``.

    A cancelled task ends the program, copy or acquire that it waits for, and what an acquire created is released.
    Any number of programs and copies run in one thread; acquires and lists share 16 threads, releases
    and new connections 8 others.

    Attributes:
        name, uid: by which it is found, and told from another one of that name.
        info: the sandbox as module ``namzu.sandbox.sandbox`` returns it; empty for one that ``connect`` found.
        files: its files.
    """

    def __init__(self, sandbox: Sandbox) -> None:
        """See ``acquire`` and ``connect``."""
        self._sandbox = sandbox
        self.name = sandbox.name
        self.uid = sandbox.uid
        self.info = sandbox.info
        self.files = AsyncSandboxFiles(sandbox)

    @classmethod
    async def acquire(cls, **options: t.Any) -> t.Self:
        """Acquire and verify a sandbox; see ``Sandbox.acquire``."""
        cancellation = Cancellation()
        acquire = functools.partial(Sandbox.acquire, cancellation=cancellation, **options)
        return cls(await in_thread(acquire, cancel=cancellation.cancel, undo=Sandbox.release))

    @classmethod
    async def acquire_many(cls, count: int, **options: t.Any) -> builtins.list[t.Self]:
        """Acquire ``count`` (1 to 1000) at once, all or none; a cancelled task waits for that, and releases them."""

        def release(sandboxes: builtins.list[Sandbox]) -> None:
            for sandbox in sandboxes:
                sandbox.release()

        found = await in_thread(functools.partial(Sandbox.acquire_many, count, **options), undo=release)
        return [cls(sandbox) for sandbox in found]

    @classmethod
    async def connect(cls, name: str, **options: t.Any) -> t.Self:
        """Use a sandbox that is held already; see ``Sandbox.connect``."""
        return cls(await in_thread(functools.partial(Sandbox.connect, name, **options)))

    @staticmethod
    async def list(**options: t.Any) -> builtins.list[dict[str, t.Any]]:
        """The sandboxes that are held; see ``Sandbox.list``."""
        return await in_thread(functools.partial(Sandbox.list, **options))

    async def run(self, command: str | t.Sequence[str], **options: t.Any) -> Execution:
        """Run a program and wait for its end; see ``Sandbox.run``. Callbacks run in the loop's thread."""
        return await in_loop(functools.partial(self._sandbox.run, command, **options))

    async def start(self, command: str | t.Sequence[str], **options: t.Any) -> AsyncProcess:
        """Start a program and return at once; see ``Sandbox.start``."""
        return AsyncProcess(await in_loop(functools.partial(self._sandbox.start, command, **options)))

    def process(self, id: str) -> AsyncProcess:  # noqa: A002  # pylint: disable=redefined-builtin
        """A program that ``start`` started; see ``Sandbox.process``."""
        return AsyncProcess(self._sandbox.process(id))

    def forward(self, port: int, *, local_port: int = 0) -> Forwarder:
        """A local port that leads to a port of the sandbox; see ``Sandbox.forward``."""
        return self._sandbox.forward(port, local_port=local_port)

    async def extend(self, remaining: float | str) -> None:
        """Renew the lease unless at least ``remaining`` are left; see ``Sandbox.extend``."""
        await in_thread(functools.partial(self._sandbox.extend, remaining), short=True)

    async def release(self) -> None:
        """Release the sandbox; see ``Sandbox.release``. A cancelled task waits for that."""
        await in_thread(self._sandbox.release, short=True)

    async def __aenter__(self) -> t.Self:
        return self

    async def __aexit__(self, *exception: object) -> None:
        await in_thread(functools.partial(self._sandbox.__exit__, *exception), short=True)


class AsyncProcess:
    """A program that runs in a sandbox without a connection to it; see ``Process``.

    Attributes:
        id: by which it is found.
    """

    def __init__(self, process: Process) -> None:
        """See ``AsyncSandbox.start`` and ``AsyncSandbox.process``."""
        self._process = process
        self.id = process.id

    async def wait(self, **options: t.Any) -> Execution:
        """Wait for its end; see ``Process.wait``. A cancelled task ends the wait, not the program."""
        return await in_loop(functools.partial(self._process.wait, **options))

    async def kill(self, *, grace: float | None = None) -> bool:
        """End its process group; see ``Process.kill``."""
        return await in_loop(functools.partial(self._process.kill, grace=grace))


class AsyncSandboxFiles:
    """The files of a sandbox. Arguments and errors are those of ``SandboxFiles``."""

    def __init__(self, sandbox: Sandbox) -> None:
        """See ``AsyncSandbox.files``."""
        self._files = sandbox.files

    async def read(self, path: str, **options: t.Any) -> bytes:
        """The content of a file, which is held in memory."""
        return await in_loop(functools.partial(self._files.read, path, **options))

    async def write(self, path: str, content: bytes | str, **options: t.Any) -> None:
        """Write a file whole or not at all; folders that are missing are created."""
        await in_loop(functools.partial(self._files.write, path, content, **options))

    async def stat(self, path: str, **options: t.Any) -> Entry:
        """Kind, size, mode and time of a path."""
        return await in_loop(functools.partial(self._files.stat, path, **options))

    async def exists(self, path: str, **options: t.Any) -> bool:
        """Whether a path exists."""
        return await in_loop(functools.partial(self._files.exists, path, **options))

    async def mkdir(self, path: str, **options: t.Any) -> bool:
        """Create a folder; whether it was created."""
        return await in_loop(functools.partial(self._files.mkdir, path, **options))

    async def move(self, path: str, target: str, **options: t.Any) -> None:
        """Give a file or a folder another path."""
        await in_loop(functools.partial(self._files.move, path, target, **options))

    async def remove(self, path: str, **options: t.Any) -> int:
        """Remove a file, a link or a folder; how many entries were removed."""
        return await in_loop(functools.partial(self._files.remove, path, **options))

    async def upload(self, source: str | os.PathLike[str], path: str, **options: t.Any) -> None:
        """Copy a file of this machine into the sandbox in constant memory."""
        await in_loop(functools.partial(self._files.upload, source, path, **options))

    async def download(self, path: str, target: str | os.PathLike[str], **options: t.Any) -> FileInfo:
        """Copy a file of the sandbox to this machine in constant memory; a failure leaves the old target."""
        return await in_loop(functools.partial(self._files.download, path, target, **options))

    async def upload_tree(self, source: str | os.PathLike[str], path: str, **options: t.Any) -> TreeReport:
        """Copy what is in a folder of this machine into one of the sandbox in one stream."""
        return await in_loop(functools.partial(self._files.upload_tree, source, path, **options))

    async def download_tree(self, path: str, target: str | os.PathLike[str], **options: t.Any) -> TreeReport:
        """Copy what is in a folder of the sandbox into one of this machine in one stream."""
        return await in_loop(functools.partial(self._files.download_tree, path, target, **options))

    async def watch(self, path: str = ".", **options: t.Any) -> t.AsyncIterator[Change]:
        """The changes of a folder, from the first step of the iteration on; to close the iteration ends the watch."""
        changes = await in_loop(functools.partial(self._files.watch, path, **options))
        with changes:
            while (change := await in_loop(functools.partial(next, changes, None))) is not None:
                yield change

    async def list(self, path: str = ".", **options: t.Any) -> builtins.list[Entry]:
        """The entries of a folder, by path."""
        return await in_loop(functools.partial(self._files.list, path, **options))
