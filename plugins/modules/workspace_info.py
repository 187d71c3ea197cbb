#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Say which workspaces there are, without waking any."""

from __future__ import annotations

DOCUMENTATION = r"""
module: workspace_info
short_description: Say which workspaces there are, without waking any
version_added: 0.1.0
description:
  - Lists the workspaces of a namespace with their mode, age, holder and disks, and says whether their template was
    edited
    since. A suspended one stays suspended.
  - It costs one list request each for Sandboxes, claims and templates, whatever the number of workspaces.
author:
  - The namzu.sandbox authors (@namzu)
options:
  workspace_id:
    description:
      - Only the workspace of this id. An id that does not exist gives an empty list.
    type: str
  label_selector:
    description:
      - Only workspaces whose Sandbox matches.
    type: str
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
  - module: namzu.sandbox.workspace
"""

EXAMPLES = r"""
- name: Which workspaces are there?
  namzu.sandbox.workspace_info:
    namespace: agents
    label_selector: team=search
  register: found

- name: Say which of them are older than their template
  ansible.builtin.debug:
    msg: "{{ found.workspaces | rejectattr('template_current') | map(attribute='workspace_id') }}"
"""

RETURN = r"""
workspaces:
  description: The workspaces by id.
  returned: success
  type: list
  elements: dict
  contains:
    workspace_id:
      description: Its id.
      type: str
    name:
      description: Name of its Sandbox.
      type: str
    namespace:
      description: Its namespace.
      type: str
    uid:
      description: The uid of its Sandbox.
      type: str
    resource_version:
      description: The state of its Sandbox that this line is about; O(namzu.sandbox.workspace#module:resource_version)
        takes it.
      type: str
    labels:
      description: The labels of its Sandbox.
      type: dict
    mode:
      description: V(running) or V(suspended), as it shall be.
      type: str
    phase:
      description: >-
        As it is; V(ready), V(pending), V(suspending), V(suspended), V(expired) (its ttl has passed, and a start brings
        it
        back on its disk), V(finished) (its pod ended with 0), V(failed) (ended otherwise) or V(terminating).
      type: str
    reason:
      description: Why it is not ready, as one word of the controller.
      type: str
    message:
      description: The same in the controller's words.
      type: str
    mode_since:
      description: When its mode was last changed by this collection, in UTC; null when it never was.
      type: str
    created_at:
      description: When it was made, in UTC.
      type: str
    expires_at:
      description: When the controller stops its pod, in UTC; null when it does not.
      type: str
    age:
      description: Seconds since it was made.
      type: int
    mode_for:
      description: Seconds since its mode was changed, or else since it was made.
      type: int
    stopped_for:
      description: Seconds since its pod stopped, by a suspend, by its ttl or because it ended; null while it has a pod,
        and where the time is not known.
      type: int
    template:
      description: Its template.
      type: str
    template_current:
      description: Whether its pod template is what the template says now; null when that is not known.
      type: bool
    holder_epoch:
      description: The epoch that it carries, or null.
      type: int
    holder_epoch_readable:
      description: Whether it carries an epoch that can be read, or none; every write to another one is refused.
      type: bool
    disks:
      description: >-
        Its disks, each with C(name), C(claim), C(uid), C(phase), C(size), C(storage_class), C(volume), C(deleting) and
        C(replaced) (it is not the one that the workspace had before).
      type: list
      elements: dict
reason:
  description: Why the task failed, as one word.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.workspace_info import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
