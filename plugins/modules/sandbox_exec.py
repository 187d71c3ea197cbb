#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Run a command in a sandbox."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_exec
short_description: Run a command in a sandbox
version_added: 0.1.0
description:
  - Runs a command in a sandbox that M(namzu.sandbox.sandbox) has acquired, through the agent in its pod. The API server
    is only asked where the pod is; no C(exec) subresource, and no right to it, is needed.
  - The command is never run twice, also when the connection is lost.
author:
  - The namzu.sandbox authors (@namzu)
options:
  name:
    description:
      - Name of the claim that holds the sandbox.
    type: str
    required: true
  argv:
    description:
      - The command as a list of words, run without a shell.
    type: list
    elements: str
  command:
    description:
      - The command as a line for C(/bin/sh -c).
    type: str
  chdir:
    description:
      - Folder to run it in; the sandbox's workspace when not given.
    type: str
  environment:
    description:
      - Variables added to the environment that the agent gives to every command.
    type: dict
  stdin:
    description:
      - Text for the command's standard input.
    type: str
  timeout:
    description:
      - How long the command may run, in seconds or as V(90s), V(15m). Then its whole process group is ended, and the
        task fails.
    type: str
  max_output:
    description:
      - Bytes kept of each of standard output and standard error, at most 67108864. What is over is dropped while the
        command goes on, and RV(truncated) says so.
    type: int
    default: 1048576
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.agent
attributes:
  check_mode:
    description: Says what would be done, without doing it.
    support: partial
    details: A command may change anything, so it is not run; the task only looks whether the sandbox is there.
  diff_mode:
    description: A command has no difference to show.
    support: none
seealso:
  - module: namzu.sandbox.sandbox
"""

EXAMPLES = r"""
- name: Run a program without a shell
  namzu.sandbox.sandbox_exec:
    namespace: agents
    name: build-4711
    argv: [python3, -c, "print('hello')"]
    timeout: 30s

- name: Run a line of shell
  namzu.sandbox.sandbox_exec:
    namespace: agents
    name: build-4711
    command: ls -l | wc -l
"""

RETURN = r"""
cmd:
  description: What was run.
  returned: when it was run
  type: raw
rc:
  description: Its exit status; 128 and the signal's number when a signal ended it.
  returned: when it was run
  type: int
signal:
  description: Number of the signal that ended it, or null.
  returned: when it was run
  type: int
stdout:
  description: Its standard output, as UTF-8 with other bytes replaced.
  returned: when it was run
  type: str
stderr:
  description: Its standard error, likewise.
  returned: when it was run
  type: str
truncated:
  description: Whether output beyond O(max_output) was dropped.
  returned: when it was run
  type: bool
timed_out:
  description: Whether it ran into O(timeout).
  returned: when it was run
  type: bool
duration:
  description: Seconds that it ran.
  returned: when it was run
  type: float
sandbox:
  description: Name of the claim.
  returned: when it was run
  type: str
pod:
  description: Name of the pod that it ran in.
  returned: when it was run
  type: str
reason:
  description: Why the task failed, as one word.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_exec import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
