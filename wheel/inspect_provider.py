# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The sandbox provider ``namzu`` of inspect_ai: one sandbox for each sample, on either backend.

    Task(…, sandbox=("namzu", SandboxConfig(image="docker.io/library/python:3.13-slim")))

Registered by the entry point of the group ``inspect_ai``. Source of the contract: ``SandboxEnvironment`` of inspect_ai.
"""

from __future__ import annotations

import pathlib
import typing as t

import yaml
from inspect_ai.util import (
    ExecResult,
    OutputLimitExceededError,
    SandboxEnvironment,
    SandboxEnvironmentLimits,
    SandboxUnavailableError,
    SandboxUserUnsupportedError,
    sandboxenv,
)
from pydantic import BaseModel, ConfigDict

from .api import AsyncSandbox, Execution, SandboxError
from .guest.errors import GuestRefusedError

#: The exit code of a shell for a program that does not exist.
_NOT_FOUND = 127


class SandboxConfig(BaseModel, frozen=True):
    """Where the sandboxes of a task come from; exactly one of ``image``, ``pool`` and ``template``.

    Further fields are options of ``Sandbox.acquire``: ``backend``, ``namespace``, ``egress``, ``memory``, ``agent``, …
    """

    model_config = ConfigDict(extra="allow")

    image: str | None = None
    pool: str | None = None
    template: str | None = None

    def options(self) -> dict[str, t.Any]:
        """The options of the acquire."""
        return {name: value for name, value in self.model_dump().items() if value is not None}


@sandboxenv(name="namzu")
class NamzuSandboxEnvironment(SandboxEnvironment):
    """One sandbox. Commands run as the user of the sandbox, and none is run twice: a timeout is not retried."""

    def __init__(self, sandbox: AsyncSandbox) -> None:
        """See ``sample_init``."""
        super().__init__()
        self.sandbox = sandbox

    @classmethod
    async def sample_init(
        cls,
        task_name: str,  # noqa: ARG003
        config: BaseModel | str | None,
        metadata: dict[str, str],  # noqa: ARG003
    ) -> dict[str, SandboxEnvironment]:
        """Acquire the sandbox of a sample; ``config`` is a SandboxConfig, or a YAML file with its fields."""
        sandbox = await AsyncSandbox.acquire(**_config(config).options())
        return {"default": cls(sandbox)}

    @classmethod
    async def sample_cleanup(
        cls,
        task_name: str,  # noqa: ARG003
        config: BaseModel | str | None,  # noqa: ARG003
        environments: dict[str, SandboxEnvironment],
        interrupted: bool,  # noqa: ARG003
    ) -> None:
        """Release the sandbox of a sample."""
        for environment in environments.values():
            await environment.as_type(cls).sandbox.release()

    @classmethod
    def config_files(cls) -> list[str]:
        """The configuration that is found beside a task."""
        return ["namzu-sandbox.yaml"]

    @classmethod
    def config_deserialize(cls, config: dict[str, t.Any]) -> BaseModel:
        """The configuration of a log."""
        return SandboxConfig(**config)

    async def exec(
        self,
        cmd: list[str],
        input: str | bytes | None = None,  # noqa: A002
        cwd: str | None = None,
        env: dict[str, str] | None = None,
        user: str | None = None,
        timeout: int | None = None,  # noqa: ASYNC109
        timeout_retry: bool = True,  # noqa: ARG002
        concurrency: bool = True,  # noqa: ARG002
    ) -> ExecResult[str]:
        """Run a command. Errors are those of the contract."""
        if user is not None:
            raise SandboxUserUnsupportedError(
                f"Sandbox {self.sandbox.name} has one user, and programs cannot become another: {user!r} was requested."
            )
        limit = SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE
        try:
            done = await self.sandbox.run(cmd, stdin=input, cwd=cwd, env=env, timeout=timeout, max_output=limit)
        except GuestRefusedError as error:
            if error.kind != "not-found":
                raise
            return ExecResult(False, _NOT_FOUND, "", error.message)
        except SandboxError as error:
            if isinstance(error, OSError) or not error.retryable:
                raise
            raise SandboxUnavailableError(str(error)) from error
        if done.timed_out:
            raise TimeoutError(f"The command did not end within {timeout} s and was ended.")
        _check_output(done)
        return ExecResult(done.rc == 0, done.rc, _text(done.stdout), _text(done.stderr))

    async def write_file(self, file: str, contents: str | bytes) -> None:
        """Write a file; missing folders are created."""
        await self.sandbox.files.write(file, contents)

    async def read_file(self, file: str, text: bool = True) -> t.Any:
        """The content of a file, as text or as bytes."""
        entry = await self.sandbox.files.stat(file)
        if entry.is_file and entry.size > SandboxEnvironmentLimits.MAX_READ_FILE_SIZE:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_READ_FILE_SIZE_STR, None)
        content = await self.sandbox.files.read(file)
        return content.decode() if text else content


def _config(config: BaseModel | str | None) -> SandboxConfig:
    if isinstance(config, str):
        return SandboxConfig(**(yaml.safe_load(pathlib.Path(config).read_text(encoding="utf-8")) or {}))
    return SandboxConfig(**config.model_dump()) if config is not None else SandboxConfig()


def _check_output(done: Execution) -> None:
    for content, truncated in ((done.stdout, done.truncated_stdout), (done.stderr, done.truncated_stderr)):
        if truncated:
            raise OutputLimitExceededError(SandboxEnvironmentLimits.MAX_EXEC_OUTPUT_SIZE_STR, _text(content))


def _text(content: bytes) -> str:
    return content.decode(errors="replace")
