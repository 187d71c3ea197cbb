#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Say whether a warm pool can serve more work now."""

from __future__ import annotations

DOCUMENTATION = r"""
module: capacity_info
short_description: Say whether a warm pool can serve more work now
version_added: 0.1.0
description:
  - Reads what a SandboxWarmPool has, which claims are on it, how many pods have not started, and why members are not
    ready. One read and two or three lists, no writes.
author:
  - The namzu.sandbox authors (@namzu)
options:
  warm_pool:
    description:
      - Name of the SandboxWarmPool.
    type: str
    required: true
extends_documentation_fragment:
  - namzu.sandbox.access
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: It changes nothing.
    support: none
seealso:
  - module: namzu.sandbox.sandbox
"""

EXAMPLES = r"""
- name: Wait until ten sandboxes can be had at once
  namzu.sandbox.capacity_info:
    namespace: agents
    warm_pool: python
  register: pool
  until: pool.capacity.headroom >= 10
  retries: 30
  delay: 2
"""

RETURN = r"""
capacity:
  description: What the pool has, read at one moment.
  returned: success
  type: dict
  contains:
    warm_pool:
      description: The pool's name.
      type: str
    ready:
      description: Members that are ready to be handed out.
      type: int
    desired:
      description: Members that the pool keeps.
      type: int
    active_claims:
      description: Claims on this pool, bound or not.
      type: int
    waiting_claims:
      description: Those of them that are not ready yet.
      type: int
    pending_pods:
      description: Pods in the namespace that have not started, gated ones included.
      type: int
    gated_pods:
      description: Those of them that a scheduling gate holds.
      type: int
    headroom:
      description: Claims that can be served at once from now.
      type: int
    problem:
      description: Why members of the pool are not ready, as the reason and the message with which
        M(namzu.sandbox.sandbox) would fail; null when all members are ready, or none of them has a reason.
      type: dict
      contains:
        reason:
          description: As one word, for example V(image-pull), V(capacity) or V(quota).
          type: str
        message:
          description: As a sentence, with the next step.
          type: str
reason:
  description: Why the task failed, as one word.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.capacity_info import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
