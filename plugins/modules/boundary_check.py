#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Check what pods may reach and who may reach them."""

from __future__ import annotations

DOCUMENTATION = r"""
module: boundary_check
short_description: Check what pods may reach and who may reach them
version_added: 0.1.0
description:
  - Reads every policy that applies to a pod, computes exactly what they allow together, and compares it with what was
    asked for. It fails with evidence when there is more, and changes nothing.
  - It checks a sandbox or a pod that runs, the pods that a warm pool or a template will have before any of them runs,
    or manifests, which needs no cluster.
  - It says who reaches the agent's port, and whether the machine that it runs on is among them.
  - Everything is read anew each time. Policies are judged, not traffic; O(network_probe) tries traffic.
author:
  - The namzu.sandbox authors (@namzu)
options:
  name:
    description:
      - Check the pod of this sandbox, by the name of its claim, or of a Sandbox that was made directly.
    type: str
  pod:
    description:
      - Check this pod.
    type: str
  warm_pool:
    description:
      - Check the pods that this pool will have, by the template that it has now. A policy that the controller will
        write for the template, because that is V(Managed), counts as well.
    type: str
  template:
    description:
      - Check the pod that a sandbox which is made directly from this template will have.
    type: str
  labels:
    description:
      - Check a pod that carries these labels.
    type: dict
  label_selector:
    description:
      - Check all pods that match; an empty text is all pods of the namespace. Pods that no policy tells apart are
        checked once.
    type: str
  pod_labels:
    description:
      - With O(warm_pool), O(template) and O(labels), further labels of the pod, such as those of option C(pod_labels)
        of M(namzu.sandbox.sandbox).
    type: dict
  manifests:
    description:
      - Judge these objects instead of a cluster's. Each is a path of a YAML or JSON file, a path of a folder (all such
        files in it and below), or an object as a dictionary. What does not say its namespace is in O(namespace).
      - The pod, template or warm pool is then one of them.
    type: list
    elements: raw
  required_sources:
    description:
      - Kinds of policies that must be readable. Those not named here are listed in RV(unread) when the credential may
        not read them.
    type: list
    elements: str
    choices: [AdminNetworkPolicy, BaselineAdminNetworkPolicy, CiliumClusterwideNetworkPolicy, ClusterNetworkPolicy]
  peer_namespaces:
    description:
      - Further namespaces whose pods are read, so that evidence and RV(matrix) name them.
    type: list
    elements: str
  matrix:
    description:
      - With O(label_selector), also compute who may reach whom, for all of the pods by all of their peers.
    type: bool
    default: false
  template_boundary:
    description:
      - Instead of O(egress), judge each pod against the boundary of its template, which is the policies of role
        P(namzu.sandbox.boundary#role) or the NetworkPolicy that the controller makes for the template. What any other
        policy opens is a finding, and a pod without a boundary must reach nothing.
      - The agent's port is judged the same way, unless C(allow_from) of O(ingress) is given.
    type: bool
  probe_timeout:
    description:
      - How long O(network_probe) is repeated until it holds, and how long a probe of O(isolation) may take, in seconds
        or as V(90s), V(2m).
    type: str
    default: 30s
  fail:
    description:
      - Whether the task fails when a boundary does not hold. Without it the task only reports.
    type: bool
    default: true
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.agent
  - namzu.sandbox.boundary
  - namzu.sandbox.isolation
attributes:
  check_mode:
    description: It changes nothing anyway.
    support: full
  diff_mode:
    description: It changes nothing.
    support: none
seealso:
  - module: namzu.sandbox.sandbox
  - plugin: namzu.sandbox.network_policy
    plugin_type: filter
"""

EXAMPLES = r"""
- name: Before anything runs, does the pool's boundary hold?
  namzu.sandbox.boundary_check:
    namespace: agents
    warm_pool: python
    egress:
      kind: public_internet
      except_cidrs: [203.0.113.0/24]

- name: Do the manifests of a merge request keep the sandboxes closed?
  namzu.sandbox.boundary_check:
    namespace: agents
    manifests: [deploy/policies, deploy/template.yml]
    template: python
    egress: {kind: dns_only}
    ingress: {allow_from: []}

- name: Try it from inside of a running sandbox
  namzu.sandbox.boundary_check:
    namespace: agents
    name: build-1
    egress: {kind: no_network}
    network_probe: true

- name: Everything in the namespace, for a report
  namzu.sandbox.boundary_check:
    namespace: agents
    label_selector: ""
    matrix: true
    fail: false
  register: found
"""

RETURN = r"""
holds:
  description: Whether every boundary that was asked for holds.
  returned: when the policies could be read
  type: bool
checks:
  description: What was found, for each pod, or for each group of pods that no policy tells apart.
  returned: when the policies could be read
  type: list
  elements: dict
  contains:
    name:
      description: What was checked.
      type: str
    namespace:
      description: Its namespace.
      type: str
    pods:
      description: The names of the pods that it stands for; none for a pod that is to be created.
      type: list
      elements: str
    labels:
      description: The labels by which policies select it.
      type: dict
    holds:
      description: Whether everything that was asked for holds for it.
      type: bool
    egress:
      description: >-
        The verdict on what it reaches, with C(holds), C(findings) and C(undecided) (each with policy, rule, peers,
        ports and an example), C(policies), C(isolated_by), C(notes), C(unread) and all of it as C(text); null when not
        asked.
      type: dict
    policy:
      description: >-
        The policy that should grant its egress, with C(name), C(holds) and C(problem); null when none is known.
      type: dict
    ingress:
      description: The verdict on who reaches the agent's port, in the shape of C(egress); null when not asked.
      type: dict
    agent_port:
      description: That port.
      type: int
    reached_by:
      description: Everybody whom a policy, or the lack of one, lets reach it, beside the pod's own node.
      type: list
      elements: dict
    controller:
      description: >-
        Whether the machine that this ran on may reach it, as C(allowed) and in words as C(text), with the C(address)
        that it was taken to have.
      type: dict
    network_probe:
      description: What was tried from inside.
      returned: with O(network_probe)
      type: dict
    isolation:
      description:
        - How the sandbox is isolated from its node, with C(holds), C(problem), and the fields of C(verdict.isolation)
          of M(namzu.sandbox.sandbox). Of a template C(kernel) is V(unknown).
      returned: with O(isolation=gvisor) or O(isolation=vm)
      type: dict
matrix:
  description: >-
    Who may reach whom. C(rows) are groups of pods that no policy tells apart, C(peers) the columns, C(cells) one for
    each pair with both directions (C(egress) to the peer, C(ingress) from the peer), each with C(state), C(ports) and
    C(evidence).
  returned: with O(matrix)
  type: dict
unread:
  description: Policies that could not be read; nothing here is said about them.
  returned: when the policies could be read
  type: list
  elements: str
text:
  description: All verdicts in words.
  returned: when the policies could be read
  type: str
reason:
  description: Why the task failed, as one word; V(boundary) when one does not hold.
  returned: on failure
  type: str
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.boundary_check import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
