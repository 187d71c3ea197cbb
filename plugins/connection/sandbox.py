# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
# GNU General Public License v3.0+ (see LICENSES/GPL-3.0-or-later.txt or https://www.gnu.org/licenses/gpl-3.0.txt)
"""Runs any task inside a sandbox, through the agent in its pod."""

from __future__ import annotations

DOCUMENTATION = r"""
name: sandbox
short_description: Run tasks in a sandbox
version_added: 0.1.0
description:
  - Runs the tasks of a host inside a sandbox that M(namzu.sandbox.sandbox) has acquired, or inside a workspace that
    runs, through the agent in its pod. No C(exec) subresource, no SSH and no password takes part.
  - The API server is asked once a run where the pod is. After that every task talks to the agent alone.
  - Modules are pipelined; files of any size are copied in constant memory.
author:
  - The namzu.sandbox authors (@namzu)
requirements:
  - urllib3
  - PyYAML (to read a kubeconfig from a file)
  - websocket-client (for O(agent_address=port_forward))
notes:
  - The image needs C(python3) for modules, which the agent needs as well.
  - Tasks run as the user of the pod. C(become) is refused, because a sandbox has no privileges to gain; C(ansible_user)
    is ignored.
  - The variables C(K8S_AUTH_*) and C(KUBECONFIG) are those of ansible-playbook; C(environment) of a task does not
    change them.
options:
  name:
    description:
      - Name of the claim that holds the sandbox, of the Sandbox that was made from a template, or of a workspace's
        Sandbox.
    type: str
    vars:
      - name: inventory_hostname
      - name: ansible_host
      - name: ansible_sandbox_name
  workspace:
    description:
      - Id of a workspace, as M(namzu.sandbox.workspace) takes it; then O(name) does not count. It must be running.
    type: str
    vars:
      - name: ansible_sandbox_workspace
  namespace:
    description:
      - The namespace that it is in; that of the context or of the service account when not given, else V(default).
    type: str
    vars:
      - name: ansible_sandbox_namespace
    env:
      - name: NAMZU_SANDBOX_NAMESPACE
    ini:
      - section: namzu_sandbox_connection
        key: namespace
  uid:
    description:
      - The uid of that claim or Sandbox, as the sandbox module returns it. Another one of that name is then refused.
    type: str
    vars:
      - name: ansible_sandbox_uid
  follow:
    description:
      - What to do when another pod has taken the place of the one that this run used first. Normally that is an error,
        for whatever the first one had in memory, in C(/tmp) and in its processes is lost. With V(true) the run goes on
        there.
      - C(meta=reset_connection) and M(ansible.builtin.wait_for_connection) start anew, with whatever pod is there then.
    type: bool
    default: false
    vars: [{name: ansible_sandbox_follow}]
    env: [{name: NAMZU_SANDBOX_FOLLOW}]
    ini: [{section: namzu_sandbox_connection, key: follow}]
  agent_port:
    description:
      - The agent's port in the pod.
    type: int
    default: 1024
    vars: [{name: ansible_sandbox_agent_port}]
    env: [{name: NAMZU_SANDBOX_AGENT_PORT}]
    ini: [{section: namzu_sandbox_connection, key: agent_port}]
  agent_address:
    description:
      - V(service) uses the sandbox's service name, and needs the cluster's DNS on the controller.
      - V(pod_ip) uses the pod's own address, and needs a route to the pod network from the controller.
      - V(port_forward) goes through the API server, and works from anywhere. It needs create and get on
        C(pods/portforward).
    type: str
    choices: [service, pod_ip, port_forward]
    default: service
    vars: [{name: ansible_sandbox_agent_address}]
    env: [{name: NAMZU_SANDBOX_AGENT_ADDRESS}]
    ini: [{section: namzu_sandbox_connection, key: agent_address}]
  agent_heartbeat:
    description:
      - The interval of the heartbeats between agent and connection while a command runs or a file is copied, in seconds
        or as V(1m); V(0) is none. When three of them are missing, the host is unreachable and the command is ended.
    type: str
    default: 15s
    vars: [{name: ansible_sandbox_agent_heartbeat}]
    env: [{name: NAMZU_SANDBOX_AGENT_HEARTBEAT}]
    ini: [{section: namzu_sandbox_connection, key: agent_heartbeat}]
  connect_timeout:
    description:
      - How long finding the agent and hearing from it may take, in seconds or as V(90s), V(2m); at least one second.
    type: str
    default: 30s
    vars:
      - name: ansible_sandbox_connect_timeout
    env:
      - name: NAMZU_SANDBOX_CONNECT_TIMEOUT
    ini:
      - section: namzu_sandbox_connection
        key: connect_timeout
  pipelining:
    description:
      - Whether modules are sent over the standard input of Python instead of being copied first. There is no reason to
        switch it off but to keep files with E(ANSIBLE_KEEP_REMOTE_FILES).
    type: bool
    default: true
    vars:
      - name: ansible_pipelining
      - name: ansible_sandbox_pipelining
    env:
      - name: NAMZU_SANDBOX_PIPELINING
    ini:
      - section: namzu_sandbox_connection
        key: pipelining
  bytecode_folder:
    description:
      - Folder of the pod in which Python keeps its bytecode for tasks (C(PYTHONPYCACHEPREFIX)). Images of Python come
        without any, and below a read-only root every module would be compiled anew for every task. Empty for none.
    type: str
    default: /tmp/.namzu-bytecode
    vars:
      - name: ansible_sandbox_bytecode_folder
    env:
      - name: NAMZU_SANDBOX_BYTECODE_FOLDER
    ini:
      - section: namzu_sandbox_connection
        key: bytecode_folder
  kubeconfig:
    description:
      - Path of a kubeconfig, or its content as a dictionary; E(KUBECONFIG), then C(~/.kube/config) when not given.
    type: raw
    vars:
      - name: ansible_sandbox_kubeconfig
    env:
      - name: K8S_AUTH_KUBECONFIG
    ini:
      - section: namzu_sandbox_connection
        key: kubeconfig
  context:
    description:
      - Name of a context in the kubeconfig; the current one when not given.
    type: str
    vars:
      - name: ansible_sandbox_context
    env:
      - name: K8S_AUTH_CONTEXT
    ini:
      - section: namzu_sandbox_connection
        key: context
  host:
    description:
      - URL of the API server. With a credential (O(api_key), or O(client_cert) and O(client_key)) no file is read.
    type: str
    vars:
      - name: ansible_sandbox_host
    env:
      - name: K8S_AUTH_HOST
  api_key:
    description:
      - Bearer token. Also E(K8S_AUTH_API_KEY), which is read when it is needed and shows in no listing of settings.
    type: str
    vars:
      - name: ansible_sandbox_api_key
  ca_cert:
    description:
      - Path of the certificate authority that signed the API server's certificate.
    type: path
    vars:
      - name: ansible_sandbox_ca_cert
    env:
      - name: K8S_AUTH_CA_CERT
      - name: K8S_AUTH_SSL_CA_CERT
  client_cert:
    description:
      - Path of a client certificate.
    type: path
    vars:
      - name: ansible_sandbox_client_cert
    env:
      - name: K8S_AUTH_CLIENT_CERT
      - name: K8S_AUTH_CERT_FILE
  client_key:
    description:
      - Path of the client certificate's key.
    type: path
    vars:
      - name: ansible_sandbox_client_key
    env:
      - name: K8S_AUTH_CLIENT_KEY
      - name: K8S_AUTH_KEY_FILE
  validate_certs:
    description:
      - Whether the API server's certificate is checked; checked when not given.
    type: bool
    vars:
      - name: ansible_sandbox_validate_certs
    env:
      - name: K8S_AUTH_VALIDATE_CERTS
      - name: K8S_AUTH_VERIFY_SSL
  proxy:
    description:
      - URL of an HTTP proxy. Also E(K8S_AUTH_PROXY), which is read when it is needed, for it may hold a password;
        E(HTTPS_PROXY) and E(NO_PROXY) are honoured.
    type: str
    vars:
      - name: ansible_sandbox_proxy
  impersonate_user:
    description:
      - User on whose behalf requests are made.
    type: str
    vars:
      - name: ansible_sandbox_impersonate_user
    env:
      - name: K8S_AUTH_IMPERSONATE_USER
  impersonate_groups:
    description:
      - Groups on whose behalf requests are made.
    type: list
    elements: str
    vars:
      - name: ansible_sandbox_impersonate_groups
    env:
      - name: K8S_AUTH_IMPERSONATE_GROUPS
  request_timeout:
    description:
      - Bound on one request to the API server, in seconds or as V(90s), V(2m); at least one second.
    type: str
    default: 30s
    vars:
      - name: ansible_sandbox_request_timeout
    env:
      - name: NAMZU_SANDBOX_REQUEST_TIMEOUT
extends_documentation_fragment:
  - namzu.sandbox.connection_backend
"""

EXAMPLES = r"""
- name: Take a sandbox out of the pool
  hosts: localhost
  gather_facts: false
  tasks:
    - name: Acquire
      namzu.sandbox.sandbox:
        namespace: agents
        warm_pool: python
        ttl: 30m
      register: acquired

    - name: Make it a host of this run
      ansible.builtin.add_host: "{{ host | combine(acquired.sandbox.host_vars) }}"
      vars:
        host:
          name: "{{ acquired.sandbox.name }}"
          groups: sandboxes
      changed_when: false

- name: Work in it
  hosts: sandboxes
  gather_facts: false
  tasks:
    - name: Copy a program
      ansible.builtin.copy:
        src: program.py
        dest: program.py
        mode: "0644"

    - name: Run it
      ansible.builtin.command:
        argv: [python3, program.py]
      changed_when: true
"""

import os
import pathlib
import typing as t

from ansible import constants
from ansible.errors import AnsibleConnectionFailure, AnsibleError, AnsibleFileNotFound
from ansible.plugins.connection import ConnectionBase, ensure_connect
from ansible.utils.display import Display

from ansible_collections.namzu.sandbox.plugins.module_utils.errors import SandboxError
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection import commands as connection_work
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.cache import Memory
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.link import Link, link_to
from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.target import target_from

display = Display()

Result = t.TypeVar("Result")


class Connection(ConnectionBase):
    """A connection to the agent of one sandbox."""

    transport = "namzu.sandbox.sandbox"
    has_pipelining = True
    has_tty = False

    def __init__(self, *args: t.Any, **kwargs: t.Any) -> None:
        super().__init__(*args, **kwargs)
        self._link: Link | None = None

    def _connect(self) -> t.Self:
        """Find the agent and hear from it."""
        if not self._connected:
            self._do(lambda: self._linked().open())
            self._connected = True
            display.vvv("CONNECTED to the agent of the sandbox", host=self._host)
        return self

    @ensure_connect
    def exec_command(self, cmd: str, in_data: bytes | None = None, sudoable: bool = True) -> tuple[int, bytes, bytes]:
        """Run a command line in the pod; ``in_data`` is its whole standard input."""
        super().exec_command(cmd, in_data=in_data, sudoable=sudoable)
        self._raise_if_become()
        display.vvv(f"EXEC {cmd}", host=self._host)
        argv = [self._play_context.executable or "/bin/sh", "-c", cmd]
        folder = str(self.get_option("bytecode_folder") or "")
        return self._do(
            lambda: self._linked().call(lambda agent: connection_work.run(agent, argv, in_data or b"", folder))
        )

    @ensure_connect
    def put_file(self, in_path: str, out_path: str) -> None:
        """Copy a file into the pod."""
        super().put_file(in_path, out_path)
        self._raise_if_become()
        display.vvv(f"PUT {in_path} TO {out_path}", host=self._host)
        if not os.path.isfile(in_path):
            raise AnsibleFileNotFound(file_name=in_path)
        # Most tasks copy nothing, and every task has a process that would load this anew.
        from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.files import put

        self._do(lambda: self._linked().call(lambda agent: put(agent, in_path, out_path)))

    @ensure_connect
    def fetch_file(self, in_path: str, out_path: str) -> None:
        """Copy a file out of the pod."""
        super().fetch_file(in_path, out_path)
        self._raise_if_become()
        display.vvv(f"FETCH {in_path} TO {out_path}", host=self._host)
        from ansible_collections.namzu.sandbox.plugins.plugin_utils.connection.files import fetch

        self._do(lambda: self._linked().call(lambda agent: fetch(agent, in_path, out_path)))

    def reset(self) -> None:
        """Look anew for the pod, and take whichever is there."""
        self._do(lambda: self._memory().forget())
        self.close()

    def close(self) -> None:
        """Close what is open."""
        if self._link is not None:
            self._link.close()
            self._link = None
        self._connected = False

    @property
    def _host(self) -> str:
        return str(self._play_context.remote_addr)

    def _linked(self) -> Link:
        if self._link is None:
            self._link = link_to(target_from(self.get_option), self._memory(), os.environ)
        return self._link

    def _memory(self) -> Memory:
        folder = pathlib.Path(constants.DEFAULT_LOCAL_TMP, "namzu_sandbox_locations")
        return Memory(folder, target_from(self.get_option).key)

    def _raise_if_become(self) -> None:
        if self.become is not None:
            raise AnsibleError(
                "become is not possible in a sandbox: its processes have no privileges and cannot gain any, and tasks "
                "run as the user of the pod. Take become away from the task, or set ansible_become: false here."
            )

    def _do(self, work: t.Callable[[], Result]) -> Result:
        """Work, with the errors that Ansible knows: an unreachable host, or a task that cannot be done."""
        try:
            return work()
        except SandboxError as error:
            kind = AnsibleConnectionFailure if connection_work.is_unreachable(error) else AnsibleError
            raise kind(connection_work.described(error)) from None
