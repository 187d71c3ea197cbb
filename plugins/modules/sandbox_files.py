#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Copy a folder into a sandbox, or out of it."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_files
short_description: Copy a folder into a sandbox, or out of it
version_added: 0.1.0
description:
  - Copies what is in a folder, or what patterns select of it, into a sandbox that M(namzu.sandbox.sandbox) has acquired
    or a workspace of M(namzu.sandbox.workspace), or out of it.
  - Both sides are compared by checksum first, and what differs is copied in one stream, however many files it is. The
    agent in the pod must have the features C(files) and C(trees).
  - Each file appears when it is complete. Permission bits and times go with the files; owners and the set-uid, set-gid
    and sticky bits do not. Links are copied as links.
  - A download treats what the sandbox sends as hostile. Nothing outside of O(dest) is written, and a link that leads
    out of it is not copied. At most 16 GiB are downloaded by one task, and the folder in the sandbox
    may have 200000 entries.
author:
  - The namzu.sandbox authors (@namzu)
options:
  direction:
    description:
      - V(upload) copies from the machine on which the task runs into the sandbox, V(download) out of it.
    type: str
    choices: [upload, download]
    default: upload
  src:
    description:
      - The folder whose content is copied. In the sandbox it is absolute, or relative to the workspace. On the
        controller a relative path is found as by M(ansible.builtin.copy), in the folder C(files) of the role or the
        play first.
    type: str
    required: true
  dest:
    description:
      - The folder that gets it; it is created with its parents. In the sandbox it is absolute, or relative to the
        workspace. On the controller a relative path is beside the play.
    type: str
    required: true
  include:
    description:
      - Patterns (C(*), C(?), C([abc])) of the paths below O(src) that are copied, with everything in them; everything
        when not given. A pattern without a slash is for a name at any depth. One with a slash is for the whole path,
        and its C(*) matches slashes as well.
    type: list
    elements: str
  exclude:
    description:
      - Patterns of what is neither copied nor deleted, with everything in it.
    type: list
    elements: str
  delete:
    description:
      - Delete what is in O(dest) and not in O(src), among the paths that O(include) and O(exclude) select.
    type: bool
    default: false
  replace:
    description:
      - Replace existing files in the sandbox also when the user of the agent may not write them. Only with
        O(direction=upload).
    type: bool
    default: false
  timeout:
    description:
      - How long the copy may take, in seconds or as V(90s), V(15m); above 0. Without it it may take a day.
    type: str
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.agent
  - namzu.sandbox.guest
attributes:
  check_mode:
    description: Compares both sides and reports what would be copied and deleted. The sandbox must exist.
    support: full
  diff_mode:
    description: Shows kind, mode, size and checksum of what differs, at most 1000 entries.
    support: full
seealso:
  - module: namzu.sandbox.sandbox_exec
  - plugin: namzu.sandbox.sandbox
    plugin_type: connection
    description: With the connection M(ansible.builtin.copy) and M(ansible.builtin.fetch) copy single files.
"""

EXAMPLES = r"""
- name: Copy a project into the sandbox
  namzu.sandbox.sandbox_files:
    sandbox: "{{ acquired.sandbox }}"
    src: project/
    dest: project
    exclude: [.git, node_modules, "*.pyc"]
    delete: true

- name: Copy the reports back
  namzu.sandbox.sandbox_files:
    sandbox: "{{ acquired.sandbox }}"
    direction: download
    src: project
    dest: /tmp/reports
    include: ["*.xml"]
"""

RETURN = r"""
src:
  description: The folder whose content was copied.
  returned: success
  type: str
dest:
  description: The folder that got it.
  returned: success
  type: str
count:
  description: How many files, folders and links were copied because they differed.
  returned: success
  type: int
size:
  description: Bytes of the files among them.
  returned: success
  type: int
copied:
  description: Their paths below O(src), at most 1000.
  returned: success
  type: list
  elements: str
deleted:
  description: Paths below O(dest) that were deleted with everything in them, at most 1000.
  returned: success
  type: list
  elements: str
skipped:
  description: What cannot be copied, at most 1000.
  returned: success
  type: list
  elements: dict
  contains:
    path:
      description: Its path below O(src).
      type: str
    cause:
      description: V(not-a-file) for pipes, sockets and devices; V(outside) for a link that leads out of O(dest);
        V(denied) for what the agent may not read.
      type: str
sandbox:
  description: Name of the claim, or of the Sandbox.
  returned: success
  type: str
pod:
  description: Name of the pod.
  returned: success
  type: str
reason:
  description: Why the task failed, as one word.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_files import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
