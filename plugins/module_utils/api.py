# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Sandboxes for Python programs: acquire one, run programs and copy files in it, release it.

    with Sandbox.acquire(image="docker.io/library/python:3.13-slim") as sandbox:
        print(sandbox.run("python3 -c 'print(6 * 7)'").stdout_text)

The options of an acquire are those of module ``namzu.sandbox.sandbox``. Errors are ``SandboxError`` with ``reason``,
``retryable`` and ``next_step``.
"""

from __future__ import annotations

import typing as t

from .errors import SandboxError
from .facade.files import SandboxFiles
from .facade.processes import Process
from .facade.sandbox import Sandbox
from .guest.execution.stream import CommandFailedError, Execution

if t.TYPE_CHECKING:
    from .facade.asynchronous import AsyncProcess, AsyncSandbox, AsyncSandboxFiles
    from .facade.boundary import verify

__all__ = [
    "AsyncProcess",
    "AsyncSandbox",
    "AsyncSandboxFiles",
    "CommandFailedError",
    "Execution",
    "Process",
    "Sandbox",
    "SandboxError",
    "SandboxFiles",
    "verify",
]


def __getattr__(name: str) -> t.Any:
    # asyncio takes longer to import than all the rest.
    if name in {"AsyncProcess", "AsyncSandbox", "AsyncSandboxFiles"}:
        from .facade import asynchronous

        return getattr(asynchronous, name)
    if name == "verify":
        # The boundary library takes longer to import than an acquire needs.
        from .facade.boundary import verify

        return verify
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
