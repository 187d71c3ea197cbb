# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Sandboxes and workspaces that stand in a cluster, as hosts."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sandboxes
short_description: Sandboxes and workspaces as hosts
version_added: 0.1.0
description:
  - Reads which sandboxes and workspaces stand in one or several namespaces, without waking or changing anything, and
    makes each a host that P(namzu.sandbox.sandbox#connection) leads to.
  - The configuration is a file whose name ends with C(sandboxes.yml) or C(sandboxes.yaml).
  - Every host has the variables of the connection, and what is known about it as variables C(sandbox_*)
    (C(sandbox_kind), C(sandbox_phase), C(sandbox_labels), C(sandbox_warm_pool), C(sandbox_template),
    C(sandbox_workspace_id), C(sandbox_pod), C(sandbox_node), C(sandbox_expires_at) and so on, as
    M(namzu.sandbox.sandbox_info) returns them).
  - No token, password or content of a kubeconfig becomes a variable of a host or part of the cache.
author:
  - The namzu.sandbox authors (@namzu)
extends_documentation_fragment:
  - namzu.sandbox.access
  - namzu.sandbox.backend
  - namzu.sandbox.agent
  - ansible.builtin.constructed
  - ansible.builtin.inventory_cache
options:
  plugin:
    description:
      - Always V(namzu.sandbox.sandboxes).
    type: str
    required: true
    choices: [namzu.sandbox.sandboxes, sandboxes]
  namespaces:
    description:
      - Namespaces to look into; O(namespace) alone when not given.
      - Refused with O(backend=container). A container engine has no namespaces.
    type: list
    elements: str
  label_selector:
    description:
      - Only those whose claim, or whose Sandbox where there is no claim, matches.
    type: str
  kinds:
    description:
      - V(claim) for those out of a warm pool, V(direct) for those made from a template, V(workspace) for workspaces,
        V(unmanaged) for Sandboxes that this collection did not make; the agent need not be in those.
    type: list
    elements: str
    choices: [claim, direct, workspace, unmanaged]
    default: [claim, direct, workspace]
  phases:
    description:
      - Which phases are taken. Only a ready one can be connected to; the others are good for a look at what is there.
    type: list
    elements: str
    choices: [ready, pending, rejected, suspended, expired, finished, failed, terminating]
    default: [ready]
  hostname:
    description:
      - V(name) calls a host like its claim or Sandbox; two of one name in several namespaces are refused then.
      - V(qualified) adds a dot and the namespace.
    type: str
    choices: [name, qualified]
    default: name
"""

EXAMPLES = r"""
# agents.sandboxes.yml: what somebody holds in two namespaces, grouped by pool and by a label
plugin: namzu.sandbox.sandboxes
namespaces: [agents, builds]
hostname: qualified
agent:
  address: pod_ip
groups:
  sandboxes: true
  expiring: sandbox_expires_at is not none
keyed_groups:
  - key: sandbox_warm_pool | default('none', true)
    prefix: pool
  - key: sandbox_labels.team | default('nobody')
    prefix: team
compose:
  # A play goes on in a new pod of these.
  ansible_sandbox_follow: sandbox_kind == 'workspace'
---
# The sandboxes of a container engine
plugin: namzu.sandbox.sandboxes
backend: container
docker_host: unix:///var/run/docker.sock
---
# One team's, kept for a minute
plugin: namzu.sandbox.sandboxes
namespace: agents
label_selector: team=search
cache: true
cache_timeout: 60
"""

import os
import typing as t

from ansible.errors import AnsibleParserError
from ansible.plugins.inventory import BaseInventoryPlugin, Cacheable, Constructable

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import InputError, SandboxError
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.opening import open_backend
from ansible_collections.namzu.sandbox.plugins.module_utils.front.backends.protocol import Backend
from ansible_collections.namzu.sandbox.plugins.module_utils.front.options.specs import ACCESS, BACKEND
from ansible_collections.namzu.sandbox.plugins.module_utils.front.verb import Context
from ansible_collections.namzu.sandbox.plugins.module_utils.lifecycle.names import check_name
from ansible_collections.namzu.sandbox.plugins.module_utils.text import clean_value

#: What changes by itself, and would be wrong as soon as it is kept.
_PASSING = ("age", "lease_left")

Info = dict[str, t.Any]
Host = dict[str, t.Any]


class InventoryModule(BaseInventoryPlugin, Constructable, Cacheable):
    """The plugin."""

    NAME = "namzu.sandbox.sandboxes"

    def verify_file(self, path: str) -> bool:
        """Whether a file is this plugin's, by its name."""
        return bool(super().verify_file(path)) and path.endswith(("sandboxes.yml", "sandboxes.yaml"))

    def parse(self, inventory: t.Any, loader: t.Any, path: str, cache: bool = True) -> None:
        """Add the hosts that a configuration file describes."""
        super().parse(inventory, loader, path)
        self._read_config_data(path)
        self.load_cache_plugin()
        for host in self._hosts(self.get_cache_key(path), use_cache=cache):
            self._add(host)

    def _hosts(self, key: str, *, use_cache: bool) -> list[Host]:
        """From the cache when that may be used and has them, else from the cluster and then in the cache."""
        caching = self.get_option("cache")
        if caching and use_cache and key in self._cache:
            return list(self._cache[key])
        hosts = self._read()
        if caching:
            self._cache[key] = hosts
        return hosts

    def _read(self) -> list[Host]:
        params = {option: self.get_option(option) for option in (*ACCESS, *BACKEND, "agent", "namespaces")}
        try:
            with open_backend(params, Context(check_mode=True, environ=os.environ)) as backend:
                namespaces = self.get_option("namespaces") or [backend.namespace]
                found = [one for namespace in namespaces for one in self._listed(backend, namespace)]
                return _named([self._host(one, backend) for one in found])
        except SandboxError as error:
            raise AnsibleParserError(str(error)) from None

    def _listed(self, backend: Backend[t.Any], namespace: str | None) -> list[Info]:
        if namespace is not None:
            check_name("namespaces", namespace)
        selector = self.get_option("label_selector") or None
        found = backend.list(name=None, label_selector=selector, namespace=namespace)
        if not found:
            backend.check_exists(namespace)
        kinds, phases = self.get_option("kinds"), self.get_option("phases")
        return [one for one in found if _kind(one) in kinds and one["phase"] in phases]

    def _host(self, info: Info, backend: Backend[t.Any]) -> Host:
        known = {key: value for key, value in info.items() if key not in _PASSING}
        qualified = self.get_option("hostname") == "qualified" and info["namespace"] is not None
        host: Host = {
            "host": f"{info['name']}.{info['namespace']}" if qualified else info["name"],
            "variables": {
                **{f"sandbox_{key}": value for key, value in {**known, "kind": _kind(info)}.items()},
                **backend.host_vars(known),
            },
        }
        return t.cast("Host", clean_value(host))

    def _add(self, host: Host) -> None:
        name, variables, strict = host["host"], host["variables"], self.get_option("strict")
        self.inventory.add_host(name)
        for key, value in variables.items():
            self.inventory.set_variable(name, key, value)
        self._set_composite_vars(self.get_option("compose"), variables, name, strict=strict)
        self._add_host_to_composed_groups(self.get_option("groups"), variables, name, strict=strict)
        self._add_host_to_keyed_groups(self.get_option("keyed_groups"), variables, name, strict=strict)


def _kind(info: Info) -> str:
    return "workspace" if info["workspace_id"] is not None else str(info["kind"])


def _named(hosts: list[Host]) -> list[Host]:
    """The same hosts; InputError when two have one name."""
    names = [host["host"] for host in hosts]
    twice = sorted({name for name in names if names.count(name) > 1})
    if twice:
        raise InputError(
            f"More than one namespace has a sandbox called {', '.join(twice)}.",
            next_step="Set hostname: qualified, so that the namespace becomes part of the host's name.",
        )
    return hosts
