# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Isolated sandboxes for the code of AI agents, on Kubernetes, Docker and Podman."""

import typing as t

from . import api
from .api import CommandFailedError, Execution, Process, Sandbox, SandboxError, SandboxFiles

if t.TYPE_CHECKING:
    from .api import AsyncProcess, AsyncSandbox, AsyncSandboxFiles, verify

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
    return getattr(api, name) if name in __all__ else _missing(name)


def _missing(name: str) -> t.NoReturn:
    raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
