#!/usr/bin/python
# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Let one acquired sandbox reach more than its template's boundary."""

from __future__ import annotations

DOCUMENTATION = r"""
module: sandbox_egress
short_description: Let one acquired sandbox reach more than its template's boundary
version_added: 0.1.0
description:
  - Sets, changes and takes away the network policy of one sandbox, while the sandbox runs. It was acquired with option
    C(per_sandbox_egress) of M(namzu.sandbox.sandbox).
  - Policies add up, so a policy of one sandbox can only open. The boundary of its template should be V(dns_only) or
    V(no_network); a pod that other policies leave open, or open further than O(egress), is refused with the policy that
    does it.
  - Whoever may write policies could open every sandbox of the namespace. So nothing is written unless the operator's
    fence stands, which role P(namzu.sandbox.admission_fence#role) makes. It is read, compared with what the role
    writes, and tried with one policy that it must refuse. An operator who may change the fence is not held by it, and
    RV(fence) says so.
  - The policy belongs to the claim or Sandbox, and the cluster deletes it with that.
  - The task says what the policies allow. Network plugins enforce them some moments later.
  - A workspace has the boundary of its template, and is refused.
author:
  - The namzu.sandbox authors (@namzu)
options:
  state:
    description:
      - V(present) makes the policy be O(egress). V(absent) takes it away, so that the boundary of the template is left;
        where no other policy closes the pod this is refused, as it would open it.
    type: str
    choices: [present, absent]
    default: present
  name:
    description:
      - Name of the claim, or of the sandbox that was made directly from a template.
      - Exactly one of O(name) and O(sandbox) is given.
    type: str
  uid:
    description:
      - The RV(namzu.sandbox.sandbox#module:sandbox.uid) that the acquire returned. When another sandbox has the name
        now, the task fails with reason C(replaced) and does nothing.
    type: str
  sandbox:
    description:
      - The RV(namzu.sandbox.sandbox#module:sandbox) that the acquire returned, instead of O(name), O(namespace) and
        O(uid).
    type: dict
  egress:
    description:
      - What the sandbox may reach. Needed unless O(state=absent).
      - A kind alone, such as V(no_network), stands for the dictionary with that O(egress.kind).
    type: dict
    suboptions:
      kind:
        description:
          - V(no_network) is nothing at all, DNS neither. V(dns_only) is the cluster's DNS servers. V(public_internet)
            is DNS and every address that is not private, shared, link-local, loopback or a cloud's platform endpoint.
            V(hosts) is DNS and the names in O(egress.hosts). V(allow_all) is everything.
        type: str
        required: true
        choices: [no_network, dns_only, public_internet, hosts, allow_all]
      except_cidrs:
        description:
          - With V(public_internet), further blocks that are left out.
        type: list
        elements: str
      hosts:
        description:
          - With V(hosts), the DNS names, each a name or C(*.) and a name, or a dictionary with C(host) and C(ports).
            Without ports it is TCP 443. Only O(egress.engine=cilium) can express names.
        type: list
        elements: raw
      ports:
        description:
          - With V(public_internet), the only ports that may be reached; with V(hosts), the ports of hosts that have
            none of their own. Each is a number for TCP, or a text such as V(53/UDP).
        type: list
        elements: raw
      dns:
        description:
          - Where the cluster's DNS servers are.
        type: dict
        suboptions:
          namespace:
            description:
              - The namespace of their pods; V(kube-system) unless it is given.
            type: str
          labels:
            description:
              - The labels of their pods; C(k8s-app=kube-dns) unless they are given.
            type: dict
          addresses:
            description:
              - Blocks of DNS servers that are not pods, such as a cache on the node.
            type: list
            elements: str
          names:
            description:
              - With V(dns_only) and V(public_internet), the only names that may be looked up, each a name, or C(*.)
                and a name. Without it any name is looked up, and a resolver that answers for any name is a tunnel to
                whoever serves the name. Only O(egress.engine=cilium) can limit names.
            type: list
            elements: str
      engine:
        description:
          - Who enforces policies. V(core) writes a NetworkPolicy, V(cilium) a CiliumNetworkPolicy.
        type: str
        choices: [core, cilium]
        default: core
  ready_timeout:
    description:
      - How long everything may take, in seconds or as V(90s), V(2m).
    type: str
    default: 60s
extends_documentation_fragment:
  - namzu.sandbox.access
attributes:
  check_mode:
    description: Asks the API server in a dry run whether it would take the policy, and judges what the pod would reach.
    support: full
  diff_mode:
    description: Returns the policy before and after.
    support: full
seealso:
  - module: namzu.sandbox.sandbox
  - module: namzu.sandbox.boundary_check
"""

EXAMPLES = r"""
- name: Take a sandbox that may get a policy of its own
  namzu.sandbox.sandbox:
    namespace: agents
    warm_pool: python
    per_sandbox_egress: true
  register: acquired

- name: Let it reach the internet for as long as packages are installed
  namzu.sandbox.sandbox_egress:
    sandbox: "{{ acquired.sandbox }}"
    egress:
      kind: public_internet
      except_cidrs: [203.0.113.0/24]

- name: Close it again before untrusted code runs
  namzu.sandbox.sandbox_egress:
    sandbox: "{{ acquired.sandbox }}"
    state: absent
"""

RETURN = r"""
name:
  description: Name of the claim or direct Sandbox.
  returned: success
  type: str
namespace:
  description: Its namespace.
  returned: success
  type: str
uid:
  description: Its uid; null when it is not there, with O(state=absent).
  returned: success
  type: str
policy:
  description: The policy that was set or taken away, as kind, namespace and name; null when there was none.
  returned: success
  type: str
  sample: NetworkPolicy agents/namzu-egress-0c7d5b0e-6f2a-4d0e-9a55-3a1c7f2b8e11
verdict:
  description: What the pod reaches by all policies together, compared with O(egress); null with O(state=absent).
  returned: success
  type: dict
fence:
  description: The fence behind which the policy stands.
  returned: success, unless O(state=absent)
  type: dict
  contains:
    policy:
      description: The ValidatingAdmissionPolicy.
      type: str
    held:
      description: Whether it holds who ran the task; false for an operator, who may change the fence itself.
      type: bool
reason:
  description:
    - Why the task failed, as one word. V(fence-missing), V(fence-unbound), V(fence-unreadable), V(fence-not-denying),
      V(fence-weakened), V(fence-elsewhere) and V(fence-not-held) are about the fence, V(boundary) about other policies,
      V(replaced), V(expired), V(unlabelled), V(workspace) and V(not-found) about the sandbox.
  returned: on failure
  type: str
retryable:
  description: Whether the same task may succeed later.
  returned: on failure
  type: bool
object:
  description: The object that the failure is about; with V(boundary) the policy that opens more.
  returned: on failure
  type: str
findings:
  description: With V(boundary), the evidence, a witness for each policy and rule that opens more.
  returned: on failure
  type: list
  elements: dict
"""

from ansible_collections.namzu.sandbox.plugins.module_utils.front.module import run_module
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verbs.sandbox_egress import VERB


def main() -> None:
    """Run the verb."""
    run_module(VERB)


if __name__ == "__main__":
    main()
