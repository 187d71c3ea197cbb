# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Running a command for a task, and what its failures mean to Ansible."""

from __future__ import annotations

import typing as t

from ...module_utils.deadline import Deadline
from ...module_utils.errors import InputError, MissingDependencyError, SandboxError
from ...module_utils.guest.agent import Agent
from ...module_utils.guest.errors import GuestRefusedError, GuestStoppedError

#: Seconds that a command may take. Ansible has its own limits (``timeout``, ``async``); a week is for a lost one.
RUN_SECONDS = 7 * 86400.0

#: Bytes of each of standard output and standard error: what an agent sends at most.
LARGEST_OUTPUT = 256 * 1024 * 1024

#: Reasons for which another task on the same host may well succeed.
_OF_THE_TASK = frozenset({"output-too-large", "transfer-failed", "checksum"})


class OutputError(SandboxError):
    """A command wrote more than can be taken over."""

    reason = "output-too-large"


def run(agent: Agent, argv: t.Sequence[str], stdin: bytes, bytecode_folder: str = "") -> tuple[int, bytes, bytes]:
    """Run a command; its exit code (128 and the signal's number after a signal), standard output and standard error.

    Args:
        bytecode_folder: where a Python that it starts keeps its bytecode; empty for where the image has it.

    Raises:
        OutputError: it wrote more than ``LARGEST_OUTPUT``.
        GuestStoppedError: it was ended with its pod.
        GuestError: it did not start, or its end is not known.
    """
    env = {"PYTHONPYCACHEPREFIX": bytecode_folder} if bytecode_folder else {}
    done = agent.execute(argv, deadline=Deadline(RUN_SECONDS), env=env, stdin=stdin, max_output=LARGEST_OUTPUT)
    if done.truncated_stdout or done.truncated_stderr:
        raise OutputError(
            f"A command at {agent.peer.name} wrote more than {LARGEST_OUTPUT} bytes of output.",
            object=agent.peer.name,
            next_step="Let it write to a file, and take that with ansible.builtin.fetch.",
        )
    if done.cut_short:
        raise GuestStoppedError("A command", agent.peer.name)
    return done.rc, done.stdout, done.stderr


def is_unreachable(error: SandboxError) -> bool:
    """Whether the host is at fault, and not the task: Ansible leaves an unreachable host out of the rest of a play."""
    if isinstance(error, GuestRefusedError):
        return error.retryable
    return not (isinstance(error, (InputError, MissingDependencyError)) or error.reason in _OF_THE_TASK)


def described(error: SandboxError) -> str:
    """The error with the object that it is about, which its text may name in other words."""
    about = f"{error.object}: " if error.object and error.object not in str(error) else ""
    return f"{about}{error}"
