#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Have a workspace run, suspend it, or delete it with its disk."""

from __future__ import annotations

DOCUMENTATION = r"""
module: workspace
short_description: Have a workspace run, suspend it, or delete it with its disk
version_added: 0.1.0
description:
  - A workspace is a sandbox with a disk that is found again by its O(workspace_id). While it is suspended it has no
    pod,
    and its disk stays as it was.
  - With O(state=running) it is made, taken as it runs, started again on its disk, or recovered after its pod has ended
    by
    itself. RV(origin) says which it was. Each time the boundary and the privileges of its pod are proven as
    M(namzu.sandbox.sandbox) does. What this task has started and cannot prove is suspended, never deleted.
  - With O(state=suspended) the guest first puts everything on its disk. The task ends when the pod has stopped.
  - O(state=absent) deletes the disk as well, so O(delete_disk) must say so.
  - With O(holder_epoch) a workspace is fenced. Its holder passes a number that goes up whenever the workspace passes to
    another holder; from then on a task with an older number, or without one, changes nothing and fails with
    V(precondition).
  - A workspace has no lease that could take its disk. With O(ttl) only its pod is stopped when nobody extends it. The
    callback plugin P(namzu.sandbox.lease_keeper#callback) extends it for as long as the play runs, under the
    O(holder_epoch) of the task.
author:
  - The namzu.sandbox authors (@namzu)
options:
  state:
    description:
      - What the workspace shall be.
    type: str
    choices: [running, suspended, absent]
    default: running
  workspace_id:
    description:
      - Its name for as long as its disk shall be found again, 1 to 253 printable characters. The name of its Sandbox
        follows from it.
    type: str
    required: true
  uid:
    description:
      - The uid of its Sandbox, as RV(workspace.uid) of an earlier task. When another Sandbox has the id now, the task
        fails with reason C(replaced) and does nothing; with O(state=running) nothing is created then.
    type: str
  template:
    description:
      - Name of the SandboxTemplate that it is made from. It must have C(volumeClaimTemplates).
      - Without it a workspace that is there already is taken, and none is made.
    type: str
  holder_epoch:
    description:
      - The number of this holder, from 0 to 9007199254740991.
    type: int
  refresh:
    description:
      - Whether the whole pod template of the workspace is replaced when its template has changed. With
        O(state=running) a
        running pod is suspended and started again for that; its disk stays.
      - Other disks in the template cannot be taken over, and are a V(mismatch) always.
    type: bool
    default: false
  on_stale:
    description:
      - What becomes of O(state=running) when the template was edited since, and O(refresh) is off. V(refuse) fails with
        V(mismatch) and changes nothing, V(report) goes on and warns, V(ignore) goes on.
    type: str
    choices: [ignore, report, refuse]
    default: refuse
  labels:
    description:
      - Labels of the workspace's Sandbox.
    type: dict
  pod_labels:
    description:
      - Labels of its pod.
    type: dict
  runtime_class:
    description:
      - The RuntimeClass of its pod; that of the template when not given. A name that does not exist is refused before
        anything is created, where the caller may read C(runtimeclasses).
      - Another one than that of an existing workspace is a V(mismatch), unless O(refresh) is on.
    type: str
  carry_over:
    description:
      - Whether O(pod_labels), O(runtime_class), O(egress) and O(ingress) of earlier tasks stay in force when this task
        does not repeat them. They are recorded on the Sandbox (annotation C(sandbox.namzu.ai/opened-with)), carried
        over by O(refresh), and verified at each start. An O(ingress=unverified) is never recorded.
      - With V(false) only the options of this task count, and O(refresh) removes the labels and the runtime class that
        it does not name.
    type: bool
    default: true
  ttl:
    description:
      - With O(state=running), how long the pod runs unless another task extends it, in seconds or as V(90s), V(15m),
        V(8h); at least ten seconds. Then the controller stops the pod; the disk stays, and the next O(state=running)
        starts
        it again. Nothing is flushed in that case.
      - For a workspace that runs already it is extended when less than half of it is left. One that runs without an
        end keeps none.
      - Without it the pod runs until somebody suspends it.
    type: str
  release_on_end:
    description:
      - With O(state=running), suspend the workspace when ansible-playbook ends, also when it fails, crashes or is
        killed, after the guest has put everything on its disk, unless O(flush) is off. Nothing is ever deleted.
      - The callback plugin P(namzu.sandbox.lease_keeper#callback) does it, so the task fails where that is not active.
      - A workspace that ran before this play is not suspended, as others may work in it; a warning reports it. Neither
        is one that has passed to another holder meanwhile. One whose guest does not flush within half a minute is
        suspended all the same, and reported.
    type: bool
    default: false
  flush:
    description:
      - Whether the guest must have put everything on its disk before the pod is stopped. An agent that is too old,
        does not
        answer, or reports an error of the disk lets the task fail with V(flush-unsupported), V(flush-unreachable) or
        V(flush-failed), and the workspace runs on; see O(on_flush_failure).
      - Where no program runs any more there is nothing to flush.
    type: bool
    default: true
  quiesce:
    description:
      - With O(state=suspended), whether every process in the workspace must have been stopped before the flush.
    type: bool
    default: false
  on_flush_failure:
    description:
      - What happens when the guest does not flush, or with O(quiesce) does not stop its processes, because its agent is
        too old, does not answer, or reports an error.
      - V(refuse) fails the task, and the workspace runs on.
      - V(suspend) tries it for at most half of O(wait_timeout), stops the pod all the same, and reports what was not
        done in RV(workspace.unsettled) and as a warning. Data that is not on the disk is lost.
      - O(release_on_end) always does the latter.
    type: str
    choices: [refuse, suspend]
    default: refuse
  delete_disk:
    description:
      - Must be true with O(state=absent). What becomes of the volume itself is up to its StorageClass.
    type: bool
    default: false
  resource_version:
    description:
      - With O(state=suspended) and O(state=absent), act only on a workspace that is exactly as
        M(namzu.sandbox.workspace_info) has told with this
        RV(namzu.sandbox.workspace_info#module:workspaces[].resource_version).
    type: str
  ready_timeout:
    description:
      - With O(state=running), how long everything may take, from the first request to the proven guest.
    type: str
    default: 60s
  wait:
    description:
      - With O(state=absent), whether to wait until Sandbox, pod and claims are gone.
    type: bool
    default: false
  wait_timeout:
    description:
      - How long a suspend may take up to the stopped pod, and a deletion with its wait.
      - A suspend that takes longer fails with V(suspend-timeout). It is not taken back, and the same task again waits
        on.
    type: str
    default: 60s
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.agent
  - namzu.sandbox.boundary
  - namzu.sandbox.isolation
  - namzu.sandbox.refused
attributes:
  check_mode:
    description: Asks the API server in a dry run whether it would take the change; the guest is not asked anything.
    support: full
  diff_mode:
    description: Returns the mode before and after.
    support: full
seealso:
  - module: namzu.sandbox.workspace_info
  - module: namzu.sandbox.sandbox_exec
  - module: namzu.sandbox.sandbox_lease
  - plugin: namzu.sandbox.lease_keeper
    plugin_type: callback
"""

EXAMPLES = r"""
- name: Open the workspace, new or not
  namzu.sandbox.workspace:
    namespace: agents
    workspace_id: customer-4711/main
    template: python-workspace
    ttl: 8h
  register: opened

- name: Work in it
  namzu.sandbox.sandbox_exec:
    sandbox: "{{ opened.workspace }}"
    command: git pull --ff-only

- name: Put it to sleep
  namzu.sandbox.workspace:
    namespace: agents
    workspace_id: customer-4711/main
    state: suspended

- name: Take over from a scheduler that is gone
  namzu.sandbox.workspace:
    namespace: agents
    workspace_id: customer-4711/main
    holder_epoch: 8

- name: Start it anew with what the template says today
  namzu.sandbox.workspace:
    namespace: agents
    workspace_id: customer-4711/main
    template: python-workspace
    refresh: true

- name: Delete it, and everything that is on its disk
  namzu.sandbox.workspace:
    namespace: agents
    workspace_id: customer-4711/main
    state: absent
    delete_disk: true
"""

RETURN = r"""
origin:
  description: >-
    How it came to run, or in check mode would: V(created) with an empty disk, V(adopted) as it ran, V(resumed) on its
    disk,
    or V(recovered) on its disk after its pod had ended by itself.
  returned: with O(state=running)
  type: str
workspace:
  description: The workspace.
  returned: success, but not with O(state=absent) and not in check mode with O(state=running)
  type: dict
  contains:
    workspace_id:
      description: Its id.
      type: str
    name:
      description: Name of its Sandbox, pod and service; O(namzu.sandbox.sandbox_exec#module:name) takes it.
      type: str
    namespace:
      description: Its namespace.
      type: str
    uid:
      description: The uid of its Sandbox.
      type: str
    mode:
      description: V(running) or V(suspended).
      type: str
    origin:
      description: As RV(origin); with O(state=running).
      type: str
    refreshed:
      description: Whether its pod template was replaced.
      type: bool
    pod:
      description: Name of its pod; with O(state=running).
      type: str
    address:
      description: Where its agent answers; with O(state=running).
      type: dict
    identity:
      description: >-
        Which guest answers; with O(state=running). C(guest) and C(restarts) are the same for as long as nothing that
        runs in
        it was lost.
      type: dict
    template:
      description: Its template; with O(state=running).
      type: str
    template_current:
      description: >-
        Whether its pod template is what the template says now; null when that is not known. With O(state=running).
      type: bool
    holder_epoch:
      description: The epoch that it carries now, or null.
      type: int
    disks:
      description: >-
        Its disks, each with C(name), C(claim), C(uid), C(phase), C(size), C(storage_class), C(volume), C(deleting)
        (only the
        running pod keeps it) and C(replaced). With O(state=running).
      type: list
      elements: dict
    labels:
      description: The labels of its pod; with O(state=running).
      type: dict
    expires_at:
      description: When the controller stops its pod, or null; with O(state=running).
      type: str
    timings:
      description: Milliseconds a stage; with O(state=running).
      type: dict
    verdict:
      description: What was proven, as M(namzu.sandbox.sandbox) returns it; with O(state=running).
      type: dict
    host_vars:
      description: Variables for C(add_host), by which the workspace is a host of a play; with O(state=running).
      type: dict
    flushed:
      description: >-
        What the guest said about its flush, with C(path), C(scope) and C(duration); null when there was none. With
        O(state=suspended).
      type: dict
    unsettled:
      description: What the guest did not do before its pod was stopped, with RV(reason) and a message each; empty for
        nothing. With O(state=suspended).
      type: list
      elements: dict
    quiesced:
      description: >-
        How many processes were stopped (C(count)) and how long it took (C(duration)); null when it was not asked for.
        C(scope) is V(container) when all of the agent's container was stopped, or V(descendants) when only what the
        agent started was. C(outside_count) is the number of processes that it could see and did not stop, and
        C(unseen_containers) names the containers of the pod whose processes it could not see. With O(state=suspended).
      type: dict
reason:
  description:
    - Why the task failed, as one word. Beside those of M(namzu.sandbox.sandbox) it is V(not-found), V(mismatch),
      V(disk),
      V(precondition), V(replaced), V(suspend-timeout), V(flush-unsupported), V(flush-unreachable), V(flush-failed),
      V(quiesce-unsupported), V(quiesce-unreachable), V(quiesce-failed) or V(not-gone). None of them loses a disk.
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
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.workspace import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
