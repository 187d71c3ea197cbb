# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The filter ``template``: a hardened SandboxTemplate from what is asked of its pods."""

from __future__ import annotations

import collections.abc as c
import pathlib
import typing as t

from ansible.errors import AnsibleFilterError

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.template.hardened import agent_body, template_body

DOCUMENTATION = r"""
name: template
short_description: A SandboxTemplate whose pods have no privileges
version_added: 0.1.0
author:
  - The namzu.sandbox authors (@namzu)
description:
  - Makes the SandboxTemplate that role P(namzu.sandbox.template#role) applies, or the ConfigMap of the agent that its
    pods mount, and asks no cluster. Use it where manifests are written to files.
positional: _input
options:
  _input:
    description:
      - What is asked of the template, as a dictionary with C(name), C(namespace) and C(image).
      - Every other option of role P(namzu.sandbox.template#role) may be in it, without C(template_) before its name,
        and has the role's default.
    type: dict
    required: true
  object:
    description:
      - Which object to make. The template names the ConfigMap, which has to be there first.
    type: str
    choices: [template, agent]
    default: template
"""

EXAMPLES = r"""
- name: Write both objects to files
  ansible.builtin.copy:
    content: "{{ wanted | namzu.sandbox.template(object=item) | to_nice_yaml }}"
    dest: "{{ item }}.yml"
    mode: "0644"
  loop: [agent, template]
  vars:
    wanted:
      name: python
      namespace: agents
      image: docker.io/library/python:3.13-slim
      runtime_class: gvisor
"""

RETURN = r"""
_value:
  description: The object.
  type: dict
"""

AGENT = pathlib.Path(__file__).parents[2] / "roles" / "template" / "files" / "agent"
OBJECTS = {"template": template_body, "agent": agent_body}


def template(value: t.Any, object: str = "template") -> dict[str, t.Any]:  # pylint: disable=redefined-builtin
    """The template of a request, or its agent.

    Raises:
        AnsibleFilterError: the request cannot be honoured.
    """
    try:
        if object not in OBJECTS:
            raise InputError(f"object is one of {', '.join(OBJECTS)}, got {object!r}.")
        if not isinstance(value, c.Mapping):
            raise InputError(f"A template is asked for by a dictionary, got {value!r}.")
        return OBJECTS[object](value, agent_files())
    except SandboxError as error:
        raise AnsibleFilterError(f"template: {error}") from error


def agent_files() -> dict[str, str]:
    """Every file of the agent by name, so that a new one needs no change here."""
    return {path.name: path.read_text(encoding="utf-8") for path in sorted(AGENT.iterdir()) if path.is_file()}


class FilterModule:
    """Ansible's way to find filters."""

    def filters(self) -> dict[str, t.Callable[..., t.Any]]:
        """The filters by name."""
        return {"template": template}
