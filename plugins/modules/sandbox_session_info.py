#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Say which sessions a sandbox or workspace has, and read what one has said."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_session_info
short_description: Say which sessions there are, and read what one has said
version_added: 0.1.0
description:
  - Lists the background programs of M(namzu.sandbox.sandbox_session) in a sandbox or workspace, and the terminals and
    detached commands there; or reads the output of one of them, from an offset, without waiting for more.
  - Those that have ended are known for an hour, and of all the last 64.
author:
  - The namzu.sandbox authors (@namzu)
options:
  session:
    description:
      - Only this one, by its name or its RV(sessions[].id), with its output. When several had the name it is the one
        that runs, or else the last.
    type: str
  offset:
    description:
      - With O(session), the first byte of its output that is wanted, counted over both streams as they came; the
        RV(offset) of an earlier task goes on without a gap.
    type: int
    default: 0
  max_output:
    description:
      - Bytes of output that are read, at most 1048576.
    type: int
    default: 1048576
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.agent
  - namzu.sandbox.guest
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: It changes nothing.
    support: none
seealso:
  - module: namzu.sandbox.sandbox_session
"""

EXAMPLES = r"""
- name: What runs there?
  namzu.sandbox.sandbox_session_info:
    namespace: agents
    workspace_id: user-17
  register: found

- name: What has the notebook server said after its first 4096 bytes?
  namzu.sandbox.sandbox_session_info:
    namespace: agents
    workspace_id: user-17
    session: notebook
    offset: 4096
"""

RETURN = r"""
stdout:
  description: What it wrote to standard output, as UTF-8 with other bytes replaced.
  returned: with O(session), when there is one
  type: str
stderr:
  description: What it wrote to standard error, likewise.
  returned: with O(session), when there is one
  type: str
offset:
  description: Where to read on.
  returned: with O(session), when there is one
  type: int
lost:
  description: Bytes from O(offset) on that are no longer kept.
  returned: with O(session), when there is one
  type: int
sessions:
  description: The sessions, oldest first; with O(session) only that one, or none.
  returned: success
  type: list
  elements: dict
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
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_session_info import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
