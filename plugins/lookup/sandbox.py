# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""The lookup ``sandbox``: address, lease, phase and labels of sandboxes, for templates."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sandbox
short_description: Read sandboxes and workspaces in a template
version_added: 0.1.0
author:
  - The namzu.sandbox authors (@namzu)
description:
  - Reads the sandboxes and workspaces of a namespace and returns one dictionary for each, with the keys of
    RV(namzu.sandbox.sandbox_info#module:sandboxes), the address of its agent and the variables that make it a host.
  - It changes nothing and does not resume a suspended workspace.
  - All sandboxes of a namespace are read with one list request for each kind of object, whatever the number of terms.
  - It runs on the controller. Its access options come from the environment of the controller and from its arguments,
    not from C(environment) of a task.
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.agent
options:
  _terms:
    description:
      - Names of claims or direct Sandboxes. Without a name, all sandboxes that match the other options.
      - A name that does not exist is an error. C(errors=ignore) returns nothing instead.
    type: list
    elements: str
  label_selector:
    description:
      - Only sandboxes whose claim, or whose Sandbox where there is no claim, matches.
    type: str
  phases:
    description:
      - Only sandboxes in one of these phases; all phases when not given.
    type: list
    elements: str
    choices: [ready, pending, rejected, suspended, expired, finished, failed, terminating]
seealso:
  - module: namzu.sandbox.sandbox_info
  - plugin: namzu.sandbox.sandboxes
    plugin_type: inventory
"""

EXAMPLES = r"""
- name: Show where the agent of a sandbox listens
  ansible.builtin.debug:
    msg: "{{ agent.host }}:{{ agent.port }}"
  vars:
    agent: "{{ lookup('namzu.sandbox.sandbox', 'box', namespace='agents').address }}"

- name: Write the ready sandboxes of a team into a file
  ansible.builtin.copy:
    content: "{{ ready | map(attribute='name') | join('\n') }}"
    dest: sandboxes.txt
    mode: "0644"
  vars:
    ready: "{{ query('namzu.sandbox.sandbox', namespace='agents', label_selector='team=search', phases=['ready']) }}"

- name: Fail when less than five minutes of the lease are left
  ansible.builtin.assert:
    that: lookup('namzu.sandbox.sandbox', 'box', namespace='agents') is not namzu.sandbox.expiring(300)
"""

RETURN = r"""
_raw:
  description:
    - The sandboxes in the order of the terms, or by name without terms.
    - The keys of RV(namzu.sandbox.sandbox_info#module:sandboxes); C(address) (C(host) and C(port) of the agent, or
      null where O(agent.address) gives none); and C(host_vars), which M(ansible.builtin.add_host) takes.
  type: list
  elements: dict
"""

import os
import typing as t

from ansible.errors import AnsibleLookupError
from ansible.plugins.lookup import LookupBase

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import GoneError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.opening import open_backend
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.protocol import Backend
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import ACCESS, BACKEND
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.names import check_name
from ansible_collections.namzu.sandbox.plugins.module_utils.text import clean_value


class LookupModule(LookupBase):
    """The plugin."""

    def run(self, terms: list[t.Any], variables: t.Any = None, **kwargs: t.Any) -> list[dict[str, t.Any]]:
        """The sandboxes.

        Raises:
            AnsibleLookupError: a name does not exist, an option is wrong, or the API server cannot be read.
        """
        self.set_options(var_options=variables, direct=kwargs)
        params = {option: self.get_option(option) for option in (*ACCESS, *BACKEND, "agent")}
        try:
            with open_backend(params, Context(check_mode=True, environ=os.environ)) as backend:
                found = self._read(backend)
                names = [str(term) for term in terms]
                chosen = [_named(found, name, backend.place) for name in names] if names else list(found.values())
        except SandboxError as error:
            raise AnsibleLookupError(f"namzu.sandbox.sandbox: {error}") from None
        phases = self.get_option("phases")
        return [sandbox for sandbox in chosen if not phases or sandbox["phase"] in phases]

    def _read(self, backend: Backend[t.Any]) -> dict[str, dict[str, t.Any]]:
        """All sandboxes of the namespace, or of the engine, by name."""
        if backend.namespace is not None:
            check_name("namespace", backend.namespace)
        found = backend.list(name=None, label_selector=self.get_option("label_selector") or None)
        if not found:
            backend.check_exists()
        return {sandbox["name"]: _result(sandbox, backend.host_vars(sandbox)) for sandbox in found}


def _result(sandbox: dict[str, t.Any], variables: dict[str, t.Any]) -> dict[str, t.Any]:
    mode = variables.get("ansible_sandbox_agent_address")
    host = {"pod_ip": sandbox["pod_ip"], "service": sandbox["service"]}.get(str(mode))
    address = {"host": host, "port": variables["ansible_sandbox_agent_port"]} if host else None
    return t.cast("dict[str, t.Any]", clean_value({**sandbox, "address": address, "host_vars": variables}))


def _named(found: dict[str, dict[str, t.Any]], name: str, place: str) -> dict[str, t.Any]:
    if name not in found:
        raise GoneError(
            f"Sandbox {name} in {place} does not exist, or does not match label_selector.",
            status=404,
            next_step="List the sandboxes with namzu.sandbox.sandbox_info, or set errors='ignore'.",
        )
    return found[name]
