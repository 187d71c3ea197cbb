# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Isolated sandboxes for the code of AI agents, on Kubernetes, Docker and Podman."""

from .api import CommandFailedError, Execution, Process, Sandbox, SandboxError, SandboxFiles

__all__ = ["CommandFailedError", "Execution", "Process", "Sandbox", "SandboxError", "SandboxFiles"]
