#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Say which sandboxes stand in a namespace."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_info
short_description: Say which sandboxes stand in a namespace
version_added: 0.1.0
description:
  - Lists the sandboxes that somebody holds, by a claim or made directly, with their pod, age, lease and phase, and says
    why one is not ready. Members that wait in a warm pool are not listed.
  - It costs one list request a kind, whatever the number of sandboxes, and changes nothing.
author:
  - The namzu.sandbox authors (@namzu)
options:
  name:
    description:
      - Only the sandbox of this name. A name that does not exist gives an empty list.
    type: str
  label_selector:
    description:
      - Only sandboxes whose claim, or whose directly made Sandbox, matches.
    type: str
  query:
    description:
      - A JMESPath expression applied to the list; its result is RV(queried).
    type: str
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: It changes nothing.
    support: none
requirements:
  - jmespath (only for O(query))
seealso:
  - module: namzu.sandbox.sandbox
"""

EXAMPLES = r"""
- name: Which sandboxes have less than five minutes left?
  namzu.sandbox.sandbox_info:
    namespace: agents
    label_selector: team=search
    query: "[?lease_left < `300`].name"
  register: ending
"""

RETURN = r"""
sandboxes:
  description: The sandboxes by name.
  returned: always
  type: list
  elements: dict
  contains:
    name:
      description: Name of the claim, or of the direct Sandbox.
      type: str
    namespace:
      description: Its namespace.
      type: str
    kind:
      description: >-
        V(claim), V(direct) for one that was acquired from a template or an image, or V(unmanaged) for a Sandbox that
        was not acquired at all, such as a workspace.
      type: str
    uid:
      description: The object's uid.
      type: str
    labels:
      description: Its labels.
      type: dict
    warm_pool:
      description: The pool that it was claimed from.
      type: str
    template:
      description: The template of a direct Sandbox.
      type: str
    workspace_id:
      description: Id of the workspace that it is; null for what is none.
      type: str
    sandbox:
      description: Name of the bound Sandbox.
      type: str
    pod:
      description: Name of its pod, when there is one.
      type: str
    service:
      description: DNS name of the sandbox's service; null where the template has no service.
      type: str
    pod_ip:
      description: The pod's address.
      type: str
    node:
      description: The node that it runs on.
      type: str
    warm:
      description: Whether it came out of the pool; null while that is not known.
      type: bool
    phase:
      description: >-
        V(ready), V(pending), V(rejected) (the controller has decided against it), V(suspended), V(expired), V(finished)
        (ended with 0), V(failed) (ended otherwise) or V(terminating).
      type: str
    reason:
      description: Why it is not ready, as one word of the pod or of the controller.
      type: str
    message:
      description: The same in their words.
      type: str
    created_at:
      description: When it was made, in UTC.
      type: str
    expires_at:
      description: When it goes away by itself, in UTC.
      type: str
    age:
      description: Seconds since it was made.
      type: int
    lease_left:
      description: Seconds until it goes away; null when it does not expire.
      type: int
queried:
  description: What O(query) selects.
  returned: with query
  type: raw
reason:
  description: Why the task failed, as one word.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_info import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
