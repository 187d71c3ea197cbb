# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter ``warm_pool_problem``: why the members of a warm pool are not ready."""

from __future__ import annotations

import typing as t

from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.observed.members import members_complaint

DOCUMENTATION = r"""
name: warm_pool_problem
short_description: Why the members of a warm pool are not ready
version_added: 0.1.0
author:
  - The namzu.sandbox authors (@namzu)
description:
  - Finds the first member of a SandboxWarmPool that is not ready and has a reason, and returns the reason and the next
    step as text, as M(namzu.sandbox.sandbox) reports them.
  - It reads nothing from the cluster. M(namzu.sandbox.capacity_info) reads the objects and returns the same as
    RV(namzu.sandbox.capacity_info#module:capacity.problem).
positional: _input
options:
  _input:
    description:
      - The name of the pool.
    type: str
    required: true
  sandboxes:
    description: The Sandboxes of the pool's namespace, as C(kubernetes.core.k8s_info) returns them.
    type: list
    elements: dict
    required: true
  pods:
    description: The pods of the pool's namespace.
    type: list
    elements: dict
    required: true
"""

EXAMPLES = r"""
- name: Show why the pool is not ready
  ansible.builtin.debug:
    msg: "{{ 'python' | namzu.sandbox.warm_pool_problem(sandboxes=sandboxes.resources, pods=pods.resources) }}"
"""

RETURN = r"""
_value:
  description: The reason and the next step, or an empty text.
  type: str
"""


def warm_pool_problem(warm_pool: str, sandboxes: list[dict[str, t.Any]], pods: list[dict[str, t.Any]]) -> str:
    """The reason and the next step, or an empty text."""
    found = members_complaint(str(warm_pool), sandboxes, pods)
    return "" if found is None else f"{found.words}. {found.next_step}"


class FilterModule:
    """Ansible's way to find filters."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """The filters by name."""
        return {"warm_pool_problem": warm_pool_problem}
