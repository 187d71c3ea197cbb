#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Make sure that a sandbox or workspace lives long enough."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_lease
short_description: Make sure that a sandbox or workspace lives long enough
version_added: 0.1.0
description:
  - Extends the lease of a sandbox when less than O(remaining) is left of it. A lease that lasts longer is left as it
    is, and never shortened.
  - A sandbox whose lease has ended, or that is being deleted, is refused. Extending it then would not bring it back but
    start a new, empty one.
  - Time is the API server's. In the last seconds of a lease, where clocks may differ, the task looks a second time
    whether the sandbox lives on before it says so.
  - With O(workspace_id) it is the O(namzu.sandbox.workspace#module:ttl) of a workspace that runs, the time until its
    pod is stopped. Neither its boundary nor its privileges are proven anew for that. One without a ttl is left as it
    is.
  - For as long as a whole play runs, the callback plugin P(namzu.sandbox.lease_keeper#callback) does this by itself.
author:
  - The namzu.sandbox authors (@namzu)
options:
  holder_epoch:
    description:
      - The number of this holder of the workspace. It is compared, and stored when the time is extended, as
        M(namzu.sandbox.workspace) does.
    type: int
  remaining:
    description:
      - What shall be left at least, in seconds or as V(90s), V(15m), V(2h).
    type: str
    required: true
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.guest
attributes:
  check_mode:
    description: Asks the API server in a dry run whether it would take the change.
    support: full
  diff_mode:
    description: Returns when the lease ended before and when it ends now.
    support: full
seealso:
  - module: namzu.sandbox.sandbox
  - module: namzu.sandbox.sandbox_info
  - module: namzu.sandbox.workspace
  - plugin: namzu.sandbox.lease_keeper
    plugin_type: callback
"""

EXAMPLES = r"""
- name: The next step takes up to half an hour
  namzu.sandbox.sandbox_lease:
    sandbox: "{{ acquired.sandbox }}"
    remaining: 30m

- name: The same for a workspace that runs with a ttl
  namzu.sandbox.sandbox_lease:
    namespace: agents
    workspace_id: customer-4711/main
    holder_epoch: 8
    remaining: 30m
"""

RETURN = r"""
name:
  description: Name of the claim, the direct Sandbox, or the Sandbox of the workspace.
  returned: success
  type: str
namespace:
  description: Its namespace.
  returned: success
  type: str
uid:
  description: Its uid.
  returned: success
  type: str
expires_at:
  description: When it goes away by itself, in UTC; null when it does not.
  returned: success
  type: str
  sample: "2026-01-31T12:00:00Z"
lease_left:
  description: Seconds until then; null when it does not go away.
  returned: success
  type: int
reason:
  description:
    - Why the task failed, as one word. V(expired), V(replaced) and V(gone) mean that the sandbox, and what was in it,
      is lost; the disk of a workspace outlives V(expired).
    - For a workspace also V(suspended), and V(precondition), V(not-found) and V(mismatch) as of
      M(namzu.sandbox.workspace).
  returned: on failure
  type: str
retryable:
  description: Whether the same task may succeed later.
  returned: on failure
  type: bool
object:
  description: The object that the failure is about.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_lease import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
