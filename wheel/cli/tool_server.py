# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""``mcp``: one sandbox as tools of the Model Context Protocol, on standard input and output."""

from __future__ import annotations

import asyncio
import dataclasses
import enum
import functools
import os
import signal
import typing as t

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ToolError

from ..api import AsyncSandbox, Execution
from ..errors import SandboxError
from .access import Access

Arguments = t.ParamSpec("Arguments")
Answer = t.TypeVar("Answer")

_INSTRUCTIONS = (
    "An isolated sandbox. Commands are lines for /bin/sh. Paths are absolute, or relative to the workspace folder. "
    "Files and processes exist as long as this server."
)


class Operation(enum.StrEnum):
    """What a client may do."""

    run = "run"
    background = "background"
    read = "read"
    write = "write"


@dataclasses.dataclass(frozen=True)
class Limits:
    """The bounds of one server.

    Attributes:
        operations: what a client may do.
        timeout: the most seconds for a program, and for a wait.
        output: the most bytes of each output stream, and of a file that is read or written.
    """

    operations: frozenset[Operation]
    timeout: float
    output: int


async def serve(options: t.Mapping[str, t.Any], access: Access, limits: Limits) -> None:
    """Acquire a sandbox, serve it until the client disconnects, and release it.

    Raises:
        SandboxError: the sandbox cannot be acquired, or not be released.
    """
    async with await AsyncSandbox.acquire(**options, **access) as sandbox:
        loop = asyncio.get_running_loop()
        for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
            loop.add_signal_handler(number, _leave_soon, sandbox, number)
        await server(sandbox, limits).run_stdio_async()


#: Tasks of signals; the loop itself holds tasks weakly.
_LEAVING: set[asyncio.Task[None]] = set()


def _leave_soon(sandbox: AsyncSandbox, number: int) -> None:
    _LEAVING.add(asyncio.get_running_loop().create_task(_leave(sandbox, number)))


async def _leave(sandbox: AsyncSandbox, number: int) -> None:
    # A thread of the library waits for standard input, which nothing but the client can end.
    try:
        await sandbox.release()
    finally:
        os._exit(128 + number)


def server(sandbox: AsyncSandbox, limits: Limits) -> MCPServer[t.Any]:
    """The server of a sandbox, with the tools that the limits allow."""
    tools = _Tools(sandbox, limits)
    found = MCPServer(f"namzu-sandbox {sandbox.name}", instructions=_INSTRUCTIONS, log_level="WARNING")
    for operation, calls in tools.by_operation().items():
        if operation in limits.operations:
            for call in calls:
                found.add_tool(_reporting(call))
    return found


def _reporting(call: t.Callable[Arguments, t.Awaitable[Answer]]) -> t.Callable[Arguments, t.Awaitable[Answer]]:
    """Report an error of the sandbox to the client with its next step."""

    @functools.wraps(call)
    async def reported(*args: Arguments.args, **kwargs: Arguments.kwargs) -> Answer:
        try:
            return await call(*args, **kwargs)
        except SandboxError as error:
            raise ToolError(str(error)) from None

    return reported


class _Tools:
    """The tools; their names, arguments and docstrings are what a client sees."""

    def __init__(self, sandbox: AsyncSandbox, limits: Limits) -> None:
        self._sandbox = sandbox
        self._limits = limits

    def by_operation(self) -> dict[Operation, tuple[t.Callable[..., t.Awaitable[t.Any]], ...]]:
        """The tools by the operation that allows them."""
        return {
            Operation.run: (self.run_command,),
            Operation.background: (self.start_process, self.wait_for_process, self.kill_process),
            Operation.read: (self.read_file, self.list_files),
            Operation.write: (self.write_file, self.remove_file),
        }

    async def run_command(self, command: str, timeout: float = 60.0, stdin: str = "") -> dict[str, t.Any]:  # noqa: ASYNC109
        """Run a command and wait for its end. It is ended after timeout seconds.

        Returns exit_code, stdout, stderr, timed_out, and truncated (whether output was dropped).
        """
        seconds = self._bounded(timeout)
        done = await self._sandbox.run(command, timeout=seconds, stdin=stdin or None, max_output=self._limits.output)
        return _result(done)

    async def start_process(self, command: str) -> dict[str, t.Any]:
        """Start a command in the background. Returns its id."""
        return {"id": (await self._sandbox.start(command, max_output=self._limits.output)).id}

    async def wait_for_process(self, id: str, timeout: float = 60.0) -> dict[str, t.Any]:  # noqa: A002, ASYNC109
        """Wait for the end of a command in the background, for timeout seconds at most. Returns as run_command does."""
        return _result(await self._sandbox.process(id).wait(timeout=self._bounded(timeout)))

    async def kill_process(self, id: str) -> dict[str, t.Any]:  # noqa: A002
        """End a command in the background. Returns was_running."""
        return {"was_running": await self._sandbox.process(id).kill()}

    async def read_file(self, path: str) -> str:
        """Read a text file."""
        size = (await self._sandbox.files.stat(path)).size
        if size > self._limits.output:
            raise ToolError(f"{path}: has {size} bytes; {self._limits.output} are allowed. Read a part with a command.")
        return (await self._sandbox.files.read(path)).decode(errors="replace")

    async def list_files(self, path: str = ".") -> list[dict[str, t.Any]]:
        """List a folder. Returns path, kind (file, directory, link, other) and size of each entry."""
        found = await self._sandbox.files.list(path)
        return [{"path": one.path, "kind": one.kind, "size": one.size} for one in found]

    async def write_file(self, path: str, content: str) -> dict[str, t.Any]:
        """Write a text file; folders that are missing are created. Returns the size in bytes."""
        data = content.encode()
        if len(data) > self._limits.output:
            raise ToolError(f"{path}: the content has {len(data)} bytes; {self._limits.output} are allowed.")
        await self._sandbox.files.write(path, data)
        return {"size": len(data)}

    async def remove_file(self, path: str, recursive: bool = False) -> dict[str, t.Any]:
        """Remove a file, or with recursive a folder and everything in it. Returns how many entries were removed."""
        return {"removed": await self._sandbox.files.remove(path, recursive=recursive)}

    def _bounded(self, seconds: float) -> float:
        if not 0 < seconds <= self._limits.timeout:
            raise ToolError(f"timeout is {seconds:g}; it must be above 0 and at most {self._limits.timeout:g}.")
        return seconds


def _result(done: Execution) -> dict[str, t.Any]:
    return {
        "exit_code": done.rc,
        "stdout": done.stdout.decode(errors="replace"),
        "stderr": done.stderr.decode(errors="replace"),
        "timed_out": done.timed_out,
        "truncated": bool(done.truncated_stdout or done.truncated_stderr),
    }
