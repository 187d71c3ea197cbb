# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter ``network_policy``: a request as the policy that grants it."""

from __future__ import annotations

import collections.abc as c
import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.named import policy_labels, policy_name
from ansible_collections.namzu.sandbox.plugins.module_utils.boundary.policies.translation import (
    translate,
    translate_ingress,
)
from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.verification.spec import (
    EgressBoundary,
    IngressBoundary,
)

DOCUMENTATION = r"""
name: network_policy
short_description: A boundary as the policy that grants it
version_added: 0.1.0
author:
  - The namzu.sandbox authors (@namzu)
description:
  - Makes the policy object of what a sandbox may reach, or of who may reach its agent, and nothing more.
  - It is the very object that M(namzu.sandbox.sandbox) and M(namzu.sandbox.boundary_check) look for, and that role
    P(namzu.sandbox.boundary#role) applies.
positional: _input
options:
  _input:
    description:
      - For V(egress), what the sandbox may reach, as a kind or as the dictionary that is option C(egress) of
        M(namzu.sandbox.sandbox). Its C(engine) says whether a NetworkPolicy or a CiliumNetworkPolicy is made, its
        C(name) and C(profile) how it is called and which pods it selects.
      - For V(ingress), who may reach the agent's port, as a list of peers of a NetworkPolicy rule, or as the dictionary
        that is option C(ingress) of M(namzu.sandbox.sandbox). An empty list is nobody. Peers that take in everyone,
        every namespace or the sandboxes themselves are refused.
    type: raw
    required: true
  namespace:
    description: The namespace of the sandboxes.
    type: str
    required: true
  template:
    description: The template of the sandboxes. It gives the policy its name, and its pods by their label.
    type: str
  name:
    description: The policy's name, instead of the one that the template gives.
    type: str
  labels:
    description: The labels of the pods, instead of the one that the template gives.
    type: dict
  direction:
    description: Whether the policy is about what the sandboxes reach or about who reaches them.
    type: str
    choices: [egress, ingress]
    default: egress
  port:
    description: With V(ingress), the agent's port.
    type: int
    default: 1024
"""

EXAMPLES = r"""
- name: The internet, but not one part of it
  kubernetes.core.k8s:
    definition: "{{ wanted | namzu.sandbox.network_policy(namespace='agents', template='python') }}"
    apply: true
  vars:
    wanted:
      kind: public_internet
      except_cidrs: [203.0.113.0/24]

- name: Two hosts, with Cilium, for the sandboxes of one profile
  ansible.builtin.copy:
    content: "{{ wanted | namzu.sandbox.network_policy(namespace='agents', template='python') | to_nice_yaml }}"
    dest: policy.yml
    mode: "0644"
  vars:
    wanted:
      kind: hosts
      hosts: [pypi.org, files.pythonhosted.org]
      engine: cilium
      profile: {value: packages}

- name: Only the plays of one namespace reach the agents
  kubernetes.core.k8s:
    definition: >-
      {{ [{'namespaceSelector': {'matchLabels': {'kubernetes.io/metadata.name': 'awx'}}}]
         | namzu.sandbox.network_policy(namespace='agents', template='python', direction='ingress') }}
    apply: true
"""

RETURN = r"""
_value:
  description: The policy object.
  type: dict
"""

DIRECTIONS = ("egress", "ingress")


def network_policy(
    value: t.Any,
    namespace: str | None = None,
    template: str | None = None,
    name: str | None = None,
    labels: dict[str, str] | None = None,
    direction: str = "egress",
    port: int = 1024,
) -> dict[str, t.Any]:
    """The policy object of a boundary.

    Raises:
        AnsibleFilterError: the boundary cannot be read or expressed, or namespace or template is missing.
    """
    try:
        if direction not in DIRECTIONS:
            raise InputError(f"direction is one of {', '.join(DIRECTIONS)}, got {direction!r}.")
        if not namespace:
            raise InputError("namespace is missing.")
        if not template and not (name and labels):
            raise InputError("template is missing; without it the policy needs a name and labels.")
        place = _Place(namespace, template, name, labels)
        return _egress(value, place) if direction == "egress" else _ingress(value, place, port)
    except SandboxError as error:
        raise AnsibleFilterError(f"network_policy: {error}") from error


class _Place(t.NamedTuple):
    namespace: str
    template: str | None
    name: str | None
    labels: dict[str, str] | None


def _egress(value: t.Any, place: _Place) -> dict[str, t.Any]:
    egress = EgressBoundary.of(_plain(value))
    template = place.template or ""
    return translate(
        egress.request,
        namespace=place.namespace,
        name=place.name or egress.name or policy_name(template, egress.profile),
        labels=place.labels or policy_labels(template, egress.profile),
        engine=egress.engine,
    )


def _ingress(value: t.Any, place: _Place, port: t.Any) -> dict[str, t.Any]:
    ingress = IngressBoundary.of(_plain(value) if isinstance(value, c.Mapping) else {"allow_from": _plain(value)})
    if not isinstance(ingress, IngressBoundary) or ingress.peers is None:
        raise InputError("allow_from is missing: nobody is an empty list.")
    if isinstance(port, bool) or not str(port).isdecimal() or not 1 <= int(port) <= 65535:
        raise InputError(f"port is a number from 1 to 65535, got {port!r}.")
    template = place.template or ""
    return translate_ingress(
        ingress.peers,
        namespace=place.namespace,
        name=place.name or policy_name(template, direction="ingress"),
        labels=place.labels or policy_labels(template),
        port=int(port),
        engine=ingress.engine or "core",
    )


def _plain(value: t.Any) -> t.Any:
    """Ansible's own kinds of text, list and dictionary as Python's."""
    if isinstance(value, c.Mapping):
        return {str(key): _plain(item) for key, item in value.items()}
    if isinstance(value, (list, tuple)):
        return [_plain(item) for item in value]
    return str(value) if isinstance(value, str) else value


class FilterModule:
    """Ansible's way to find filters."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """The filters by name."""
        return {"network_policy": network_policy}
