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
  - Runs a command in a sandbox that M(namzu.sandbox.sandbox) has acquired, or in a workspace of
    M(namzu.sandbox.workspace), through the agent in its pod. The API server is only asked where the pod is; no C(exec)
    subresource, and no right to it, is needed.
  - The command is never run twice, also when the connection is lost.
  - With O(detach) it goes on when the task is over, for as long as the sandbox lives; a later task follows it with
    O(attach).
author:
  - The namzu.sandbox authors (@namzu)
options:
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
      - How long the command may run, in seconds or as V(90s), V(15m); above 0. Then its whole process group is
        ended, and the task fails. Without it the command may run for a day.
      - When the pod does not answer, the task fails at most 5 seconds after this time. Without it a connection attempt
        without an answer fails after 10 seconds, and a lost connection after three intervals of O(agent.heartbeat). The
        requests to the API server that find the pod have 30 seconds of their own.
    type: str
  max_output:
    description:
      - Bytes kept of each of standard output and standard error, at most 67108864. What is over is dropped while the
        command goes on, and RV(truncated) says so.
      - With O(detach) at most 16777216, because the agent keeps them.
    type: int
    default: 1048576
  detach:
    description:
      - Start the command and leave it running. The result has its RV(id).
      - Nobody waits for it, so O(timeout) is the only bound on how long it runs.
    type: bool
    default: false
  attach:
    description:
      - Follow a command that was started with O(detach), instead of running one, until it has ended, or for
        O(timeout), and then it goes on. RV(running) says which it was.
      - The agent knows it for an hour after its end. When the pod was replaced, it is lost, and the task fails with
        reason V(execution-lost).
    type: dict
    suboptions:
      id:
        description:
          - The RV(id) that it was started with.
        type: str
        required: true
      offset:
        description:
          - The first byte of its output that is wanted, counted over both streams as they came; the RV(offset) of an
            earlier task goes on without a gap.
        type: int
        default: 0
      cancel:
        description:
          - End it first, with its whole process group.
        type: bool
        default: false
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.agent
  - namzu.sandbox.guest
attributes:
  check_mode:
    description: Says what would be done, without doing it.
    support: partial
    details: >-
      A command may change anything, so it is not run, and none is cancelled; the task only looks whether the sandbox is
      there. A command that runs already is followed as always.
  diff_mode:
    description: A command has no difference to show.
    support: none
seealso:
  - module: namzu.sandbox.sandbox
  - module: namzu.sandbox.sandbox_session
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

- name: Run one in a workspace
  namzu.sandbox.sandbox_exec:
    namespace: agents
    workspace_id: user-17
    argv: [git, pull]
    chdir: project

- name: Start a long build
  namzu.sandbox.sandbox_exec:
    namespace: agents
    name: build-4711
    command: make all
    detach: true
  register: started

- name: Look at it once a minute until it has ended
  namzu.sandbox.sandbox_exec:
    namespace: agents
    name: build-4711
    attach:
      id: "{{ started.id }}"
    timeout: 1m
  register: build
  until: not build.running
  retries: 60
  delay: 0
"""

RETURN = r"""
cmd:
  description: What was run; null when it was attached to.
  returned: when it has ended
  type: raw
rc:
  description: Its exit status; 128 and the signal's number when a signal ended it.
  returned: when it has ended
  type: int
signal:
  description: Number of the signal that ended it, or null.
  returned: when it has ended
  type: int
stdout:
  description: Its standard output, as UTF-8 with other bytes replaced.
  returned: when it has ended
  type: str
stderr:
  description: Its standard error, likewise.
  returned: when it has ended
  type: str
truncated:
  description: Whether output beyond O(max_output) was dropped.
  returned: when it has ended
  type: bool
out_of_memory:
  description: Whether the command was killed because the container reached its memory limit. V(false) where the kernel
    does not show that.
  returned: when it has ended
  type: bool
timed_out:
  description: Whether it ran into O(timeout).
  returned: when it has ended
  type: bool
duration:
  description: Seconds that it ran.
  returned: when it has ended
  type: float
id:
  description: By which a detached command is found.
  returned: with O(detach) or O(attach)
  type: str
offset:
  description: How much of its output was returned, from its beginning; where to attach to go on.
  returned: with O(detach) or O(attach)
  type: int
running:
  description: Whether it has not ended.
  returned: with O(detach) or O(attach)
  type: bool
sandbox:
  description: Name of the claim, or of the Sandbox.
  returned: success
  type: str
pod:
  description: Name of the pod that it ran in.
  returned: success
  type: str
reason:
  description: Why the task failed, as one word. V(pod-stopping) when the command was ended with everything in its pod.
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
