#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Acquire a sandbox, or give it back."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox
short_description: Take a sandbox out of a warm pool, or give it back
version_added: 0.1.0
description:
  - Makes a SandboxClaim on a SandboxWarmPool of the agent-sandbox controller, waits until it is bound, reads the live
    pod, and proves through the agent in it that the sandbox has no privileges, all before the sandbox is handed out.
  - When anything fails, or the play is interrupted, the claim that this task made is deleted first.
  - On the controller it runs inside Ansible's worker process, which is many times faster than a module; over any other
    connection, with C(become) or C(async), it runs as a module there.
author:
  - The namzu.sandbox authors (@namzu)
options:
  state:
    description:
      - V(present) acquires a sandbox. V(absent) gives the one of that O(name) back; one that is gone already is fine.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the claim. With O(state=present) a matching live sandbox of that name is left as it is, and one that
        differs is refused, never replaced.
      - Without a name each run acquires a fresh sandbox, named C(namzu-task-) and a random identifier.
      - With O(state=absent) the sandbox to give back; O(names) and O(label_selector) name several.
    type: str
  names:
    description:
      - With O(state=absent), names of sandboxes to give back, all at the same time.
    type: list
    elements: str
  label_selector:
    description:
      - With O(state=absent), gives back the sandboxes whose claims match. It must not be empty.
    type: str
  count:
    description:
      - With O(state=present), acquires so many sandboxes at once (1 to 1000), with one watch for all of them. With a
        O(name) they are called C(<name>-0), C(<name>-1) and so on.
    type: int
  on_failure:
    description:
      - What O(count) does when one of them cannot be had. V(release_all) gives back everything that this task made;
        V(keep) keeps what could be had. The task fails either way, and RV(failures) says for which.
    type: str
    choices: [release_all, keep]
    default: release_all
  warm_pool:
    description:
      - Name of the SandboxWarmPool to take a sandbox out of. With O(state=present) this or O(template) is required.
    type: str
  template:
    description:
      - Name of the SandboxTemplate to make a Sandbox from, without a pool. It starts cold, which
        takes as long as its pod.
    type: str
  runtime_class:
    description:
      - The RuntimeClass of a sandbox that is made from O(template). A member of a pool runs already, under the class of
        its template, so this is refused with O(warm_pool).
    type: str
  labels:
    description:
      - Labels of the claim.
    type: dict
  pod_labels:
    description:
      - Labels that the controller puts on the pod. Their domain must be one of the controller's allowed label domains
        (V(sandbox.users.io) unless it was changed). A sandbox on whose pod they do not appear is not handed out.
    type: dict
  ttl:
    description:
      - How long the sandbox lives unless its lease is renewed, in seconds or as V(90s), V(15m), V(2h); at least 10
        seconds.
    type: str
    default: 1h
  ready_timeout:
    description:
      - How long everything from the first request to the probed sandbox may take. The privilege probe has the same time
        again, at most 15 seconds.
    type: str
    default: 60s
  wait:
    description:
      - With O(state=absent), wait until the claim, its sandbox and its pod are gone.
    type: bool
    default: false
  wait_timeout:
    description:
      - How long a release may take, the waiting included.
    type: str
    default: 60s
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.agent
attributes:
  check_mode:
    description: Asks the API server in a dry run whether it would take the claim.
    support: full
  diff_mode:
    description: Returns what is made or deleted.
    support: full
seealso:
  - module: namzu.sandbox.sandbox_exec
"""

EXAMPLES = r"""
- name: Acquire a sandbox for an hour
  namzu.sandbox.sandbox:
    namespace: agents
    warm_pool: python
  register: acquired

- name: Run a program in it
  namzu.sandbox.sandbox_exec:
    namespace: agents
    name: "{{ acquired.sandbox.name }}"
    argv: [python3, -c, "print(6 * 7)"]

- name: Give it back
  namzu.sandbox.sandbox:
    namespace: agents
    name: "{{ acquired.sandbox.name }}"
    state: absent

- name: Acquire twenty at once
  namzu.sandbox.sandbox:
    namespace: agents
    warm_pool: python
    name: worker
    count: 20
    labels:
      job: "4711"

- name: Give back everything of that job, and wait until it is gone
  namzu.sandbox.sandbox:
    namespace: agents
    state: absent
    label_selector: job=4711
    wait: true

- name: Acquire by name from outside of the cluster network's DNS, once
  namzu.sandbox.sandbox:
    namespace: agents
    warm_pool: python
    name: build-4711
    ttl: 15m
    labels:
      job: "4711"
    agent:
      address: pod_ip
"""

RETURN = r"""
sandbox:
  description: The sandbox. Its agent's token is not part of it.
  returned: with state=present and without count, except in check mode
  type: dict
  contains:
    name:
      description: Name of the claim, by which the sandbox is used and released.
      type: str
    namespace:
      description: Its namespace.
      type: str
    uid:
      description: The claim's uid.
      type: str
    sandbox:
      description: Name of the bound Sandbox.
      type: str
    pod:
      description: Name of its pod.
      type: str
    address:
      description: Where the agent answers.
      type: dict
      sample: {host: 10.244.0.17, port: 1024}
    warm:
      description: Whether it came out of the pool; false when it had to be started for this task.
      type: bool
    labels:
      description: The pod's labels as they were verified.
      type: dict
    expires_at:
      description: When it goes away by itself, in UTC.
      type: str
      sample: "2026-01-31T12:00:00Z"
    timings:
      description: Milliseconds a stage.
      type: dict
      sample: {claim: 6.1, ready: 41.0, bind: 3.2, probe: 6.4, total: 56.7}
    verdict:
      description: What was proven before the sandbox was handed out, and what was not.
      type: dict
      sample:
        privileges:
          none: true
          capabilities:
            inheritable: "0000000000000000"
            permitted: "0000000000000000"
            effective: "0000000000000000"
            bounding: "0000000000000000"
            ambient: "0000000000000000"
          no_new_privs: true
          uid: 1000
          seccomp: 2
        egress: unverified
        ingress: unverified
sandboxes:
  description: All sandboxes, as a list.
  returned: with state=present
  type: list
  elements: dict
failures:
  description: The sandboxes that could not be had, or not be given back, each with C(name), C(reason) and C(msg).
  returned: when some of several failed
  type: list
  elements: dict
released:
  description: Names of the claims that were deleted.
  returned: with state=absent
  type: list
  elements: str
reason:
  description:
    - Why the task failed, as one word.
  returned: on failure
  type: str
  sample: capacity
retryable:
  description: Whether the same task may succeed later.
  returned: on failure
  type: bool
object:
  description: The object that the failure is about.
  returned: on failure
  type: str
  sample: SandboxClaim agents/build-4711
controller_reason:
  description: The reason of the claim's Ready condition.
  returned: when the controller gave one
  type: str
controller_message:
  description: The message of the claim's Ready condition.
  returned: when the controller gave one
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
