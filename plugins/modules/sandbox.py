#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Acquire or release sandboxes."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox
short_description: Acquire or release sandboxes
version_added: 0.1.0
description:
  - Makes a SandboxClaim on a SandboxWarmPool of the agent-sandbox controller, waits until it is bound, reads the live
    pod, and proves through the agent in it that the sandbox has no privileges, and over all policies that apply to the
    pod that its boundary is what was asked for, all before the sandbox is handed out.
  - With O(backend=container) it starts one container instead, and proves the same from the answers of the engine and
    from inside.
  - When anything fails, or the play is interrupted, the claim or container that this task made is deleted first.
  - On the controller it runs inside Ansible's worker process, which is many times faster than a module; over any other
    connection, with C(become) or C(async), it runs as a module there.
author:
  - The namzu.sandbox authors (@namzu)
options:
  state:
    description:
      - V(present) acquires a sandbox. V(absent) releases the one of that O(name); one that is gone already is fine.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the claim. With O(state=present) a matching live sandbox of that name is left as it is, and one that
        differs is refused, never replaced.
      - A name is used once in a namespace, by a claim, a sandbox from a template, or a workspace's Sandbox. When an
        object of another kind has it, the task fails with reason C(conflict) and creates nothing.
      - Without a name each run acquires a fresh sandbox, named C(namzu-task-) and a random identifier.
      - With O(state=absent) the sandbox to release; O(sandboxes), O(names) and O(label_selector) name several.
    type: str
  uid:
    description:
      - With O(state=absent), the uid of the sandbox of that O(name), as the task that acquired it returned it. When
        another one has the name now, the task fails with reason C(replaced) and releases nothing. Without it whichever
        has the name is released.
    type: str
  sandbox:
    description:
      - With O(state=absent), the sandbox as the task that acquired it returned it, for example
        C({{ acquired.sandbox }}). It is used instead of O(name), O(namespace) and O(uid).
    type: dict
  sandboxes:
    description:
      - With O(state=absent), several of one namespace, for example C({{ acquired.sandboxes }}) of a task with O(count).
    type: list
    elements: dict
  names:
    description:
      - With O(state=absent), names of sandboxes to release, all at the same time.
    type: list
    elements: str
  label_selector:
    description:
      - With O(state=absent), releases the sandboxes whose claims match. It must not be empty.
    type: str
  count:
    description:
      - With O(state=present), acquires so many sandboxes at once (1 to 1000), with one watch for all of them. With a
        O(name) they are called C(<name>-0), C(<name>-1) and so on.
    type: int
  on_failure:
    description:
      - What O(count) does when one of them cannot be had. V(release_all) releases everything that this task made;
        V(keep) keeps what could be had. The task fails either way, and RV(failures) says for which.
    type: str
    choices: [release_all, keep]
    default: release_all
  warm_pool:
    description:
      - Name of the SandboxWarmPool to take a sandbox out of. With O(state=present) this or O(template) is required, or
        O(image) on the container backend.
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
  per_sandbox_egress:
    description:
      - Whether the pod is labelled for a policy of its own, which M(namzu.sandbox.sandbox_egress) writes later. A pod
        gets its labels when it is claimed, so this cannot be made up for. It takes a warm sandbox all the same.
      - The label is C(sandbox.users.io/egress). Its domain must be one of the controller's allowed label domains, as it
        is unless that was changed.
    type: bool
    default: false
  ttl:
    description:
      - How long the sandbox lives unless its lease is renewed, in seconds or as V(90s), V(15m), V(2h); at least 10
        seconds.
      - Where the callback plugin P(namzu.sandbox.lease_keeper#callback) is active, it renews the lease as long as the
        play runs; then this is how long the sandbox outlives a play that is killed.
    type: str
    default: 1h
  release_on_end:
    description:
      - Whether the sandbox is released when ansible-playbook ends, however that ends. A sandbox that stood there
        before this task is not.
      - It is done by the callback plugin P(namzu.sandbox.lease_keeper#callback), and refused where that is not active;
        so it needs C(callbacks_enabled = namzu.sandbox.lease_keeper) in C(ansible.cfg), and a task that runs on the
        controller itself.
    type: bool
    default: false
  ready_timeout:
    description:
      - How long everything from the first request to the probed sandbox may take. The privilege probe has the same time
        again, at most 15 seconds.
    type: str
    default: 60s
  wait_for_template:
    description:
      - Whether to wait within O(ready_timeout) for a SandboxTemplate that is not there yet. The claim is made anew
        every second, because the controller itself looks at one that met no template only after a minute.
      - Without it a missing template fails the task at once.
    type: bool
    default: false
  on_stale:
    description:
      - What to do about a sandbox that is older than the last edit of its template. A pool whose C(updateStrategy) is
        C(OnReplenish), the default, hands such members out on purpose.
      - V(report) says so in RV(sandbox.stale) and in a warning, and V(refuse) releases it and fails. Either costs two
        more reads, one of them of the template. V(ignore) does not look.
    type: str
    choices: [ignore, report, refuse]
    default: ignore
  wait:
    description:
      - With O(state=absent), wait until the claim, its sandbox and its pod are gone.
    type: bool
    default: false
  wait_timeout:
    description:
      - How long a release may take, the waiting included; above 0.
    type: str
    default: 60s
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.agent
  - namzu.sandbox.boundary
  - namzu.sandbox.isolation
  - namzu.sandbox.container
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
    sandbox: "{{ acquired.sandbox }}"
    argv: [python3, -c, "print(6 * 7)"]

- name: Acquire a sandbox that is proven to reach the public internet alone, and to be reached by the runners alone
  namzu.sandbox.sandbox:
    namespace: agents
    warm_pool: python
    egress:
      kind: public_internet
      except_cidrs: [203.0.113.0/24]
    ingress:
      allow_from:
        - namespaceSelector:
            matchLabels:
              kubernetes.io/metadata.name: runners
    network_probe: true
  register: online

- name: Release it
  namzu.sandbox.sandbox:
    sandbox: "{{ acquired.sandbox }}"
    state: absent

- name: Acquire a sandbox of the Docker engine on this machine
  namzu.sandbox.sandbox:
    backend: container
    image: docker.io/library/python:3.13-slim
    memory: 1g
    pids: 256
  register: acquired

- name: Acquire twenty at once
  namzu.sandbox.sandbox:
    namespace: agents
    warm_pool: python
    name: worker
    count: 20
    labels:
      job: "4711"

- name: Release everything of that job, and wait until it is gone
  namzu.sandbox.sandbox:
    state: absent
    label_selector: job=4711
    wait: true
"""

RETURN = r"""
sandbox:
  description: The sandbox. Its agent's token is not part of it.
  returned: with state=present and without count, except in check mode
  type: dict
  contains:
    backend:
      description: V(kubernetes) or V(container).
      type: str
    name:
      description: Name of the claim, by which the sandbox is used and released.
      type: str
    namespace:
      description: Its namespace; null on the container backend.
      type: str
    uid:
      description: The claim's uid, or the container's id.
      type: str
    sandbox:
      description: Name of the bound Sandbox, or of the container.
      type: str
    pod:
      description: Name of its pod; null on the container backend.
      type: str
    address:
      description: Where the agent answers; null on the container backend, whose agent has no address.
      type: dict
      sample: {host: 10.244.0.17, port: 1024}
    warm:
      description: Whether it came out of the pool; false when it had to be started for this task.
      type: bool
    stale:
      description: Whether it is older than its template; null unless O(on_stale) asks.
      type: bool
    labels:
      description: The pod's labels as they were verified.
      type: dict
    expires_at:
      description: When it goes away by itself, in UTC.
      type: str
      sample: "2026-01-31T12:00:00Z"
    host_vars:
      description:
        - Variables that make it a host of the play, ready for M(ansible.builtin.add_host). The connection is
          P(namzu.sandbox.sandbox#connection).
        - Of the access options only names and paths are in it, as they were given or stand in the environment. A later
          play takes O(api_key) and the like from its own environment or variables.
      type: dict
      sample:
        ansible_connection: namzu.sandbox.sandbox
        ansible_sandbox_name: build-4711
        ansible_sandbox_namespace: agents
        ansible_sandbox_uid: 5f0c2b4e-6f0a-4d0e-9f57-0c6a3c1f2b11
        ansible_sandbox_agent_port: 1024
        ansible_sandbox_agent_address: service
        ansible_sandbox_agent_heartbeat: 15s
    timings:
      description: Milliseconds a stage.
      type: dict
      sample: {claim: 6.1, ready: 41.0, bind: 3.2, probe: 6.4, boundary: 0.6, total: 57.3}
    verdict:
      description:
        - What was proven before the sandbox was handed out, and what was not.
        - C(egress) and C(ingress) are V(unverified) when they were not asked for, else dictionaries with the policies
          that apply to the pod, those that close what they do not allow, and the sources of policies that could not be
          read.
          C(egress.policy) is the policy that grants the request.
        - C(network_probe) is what was tried from inside.
        - C(isolation) has the C(kernel) inside, the backend's runtime, and C(level), on which both agree.
        - On the container backend C(confinement) is what the engine reports about the container, with C(runtime),
          C(seccomp), C(read_only_rootfs), C(user), C(limits) and C(networks).
      type: dict
      sample:
        privileges:
          none: true
          capabilities: {effective: "0000000000000000", bounding: "0000000000000000"}
          no_new_privs: true
          uid: 1000
          seccomp: 2
        isolation:
          {level: gvisor, kernel: gvisor, runtime_class: gvisor, handler: runsc, overhead: null, user_namespace: false,
           seccomp: RuntimeDefault, host_namespaces: []}
        egress:
          policy: NetworkPolicy agents/namzu-python-egress
          holds: true
          request: no_network
          policies: [NetworkPolicy agents/namzu-python-egress]
          isolated_by: [NetworkPolicy agents/namzu-python-egress]
          notes: []
          unread: []
        ingress:
          holds: true
          request: an agent port TCP 1024 closed to everyone and to every namespace
          policies: [NetworkPolicy agents/namzu-python-ingress]
          isolated_by: [NetworkPolicy agents/namzu-python-ingress]
          notes: []
          unread: ["ClusterNetworkPolicy (not allowed: list clusternetworkpolicies.policy.networking.k8s.io)"]
        network_probe: null
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
direction:
  description: With the reason V(boundary), whether V(egress) or V(ingress) is more open than was asked for.
  returned: when the boundary does not hold
  type: str
findings:
  description:
    - What is open beyond what was asked for, each with the policy, the number of its rule, the peers and ports, and one
      example that can be tried.
  returned: when the boundary does not hold
  type: list
  elements: dict
unread:
  description: The sources of policies that could not be read.
  returned: when the boundary does not hold
  type: list
  elements: str
network_probe:
  description: What was tried from inside, and what it proves.
  returned: when the network probe failed
  type: dict
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
