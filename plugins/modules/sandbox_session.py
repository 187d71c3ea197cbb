#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Have a background program run in a sandbox or workspace."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_session
short_description: Have a background program run in a sandbox or workspace
version_added: 0.1.0
description:
  - Starts a program under a name, or stops it, through the agent in the pod. It outlives the task and the play, and
    ends with its pod at the latest, so a workspace that was suspended and resumed runs none.
  - Asked for again while it runs, nothing happens. Another command under a name that is taken is refused, and so is the
    same command with other O(chdir), O(environment), O(stdin) or O(timeout).
  - The last MiB of its output is kept in the pod; M(namzu.sandbox.sandbox_session_info) reads it.
author:
  - The namzu.sandbox authors (@namzu)
options:
  session:
    description:
      - Name of the session, 1 to 64 letters, digits, dots, dashes and underscores. It is unique among those that run.
    type: str
    required: true
  state:
    description:
      - V(started) has it run. A program of that name that has ended is started again.
      - V(stopped) ends its whole process group and waits until it has ended. One that does not run is V(stopped).
    type: str
    choices: [started, stopped]
    default: started
  argv:
    description:
      - The command as a list of words, run without a shell. This or O(command) is needed for O(state=started).
    type: list
    elements: str
  command:
    description:
      - The command as a line for C(/bin/sh -c).
    type: str
  chdir:
    description:
      - Folder to run it in; the workspace's own when not given.
    type: str
  environment:
    description:
      - Variables added to the environment that the agent gives to every command.
    type: dict
  stdin:
    description:
      - Text for its standard input, which is empty otherwise.
    type: str
  timeout:
    description:
      - How long it may run, in seconds or as V(90s), V(15m); above 0. Without it, as long as its pod.
    type: str
  grace:
    description:
      - With O(state=stopped), the time between SIGTERM and SIGKILL, at most V(60s).
    type: str
    default: 2s
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.agent
  - namzu.sandbox.guest
attributes:
  check_mode:
    description: Says what would be done, without doing it. The sandbox must be there.
    support: full
  diff_mode:
    description: Shows whether it ran before and runs after.
    support: full
seealso:
  - module: namzu.sandbox.sandbox_session_info
  - module: namzu.sandbox.sandbox_exec
"""

EXAMPLES = r"""
- name: Have a notebook server run in a workspace
  namzu.sandbox.sandbox_session:
    namespace: agents
    workspace_id: user-17
    session: notebook
    argv: [python3, -m, http.server, "8000"]
    chdir: project

- name: Stop it
  namzu.sandbox.sandbox_session:
    namespace: agents
    workspace_id: user-17
    session: notebook
    state: stopped
    grace: 10s
"""

RETURN = r"""
session:
  description: The session that runs, or that was ended; null when there is none.
  returned: success
  type: dict
  contains:
    id:
      description: By which it is found, also when another one has its name by now.
      type: str
    name:
      description: Its name; null when it has none.
      type: str
    kind:
      description: V(background), V(terminal), or V(execution) for what M(namzu.sandbox.sandbox_exec) has detached.
      type: str
    program:
      description: The first word of its command. The others may be secret.
      type: str
    pid:
      description: Number of its process in the pod.
      type: int
    running:
      description: Whether it has not ended.
      type: bool
    started_at:
      description: When it was started, in UTC by the pod's clock.
      type: str
    ended_at:
      description: When it ended, or null.
      type: str
    rc:
      description: Its exit status, 128 and the signal's number when a signal ended it, null while it runs.
      type: int
    signal:
      description: Number of the signal that ended it, or null.
      type: int
    timed_out:
      description: Whether it was ended because its timeout had passed.
      type: bool
    attached:
      description: How many connections follow it.
      type: int
    first:
      description: Offset of the first byte of its output that is kept.
      type: int
    next:
      description: Offset of the byte of its output that comes next.
      type: int
sandbox:
  description: Name of the claim, or of the Sandbox.
  returned: success
  type: str
pod:
  description: Name of the pod that it runs in.
  returned: success
  type: str
reason:
  description: Why the task failed, as one word.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_session import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
