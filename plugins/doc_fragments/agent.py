# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say where the guest agent answers."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``agent`` fragment."""

    DOCUMENTATION = r"""
options:
  agent:
    description:
      - Where the guest agent in the sandbox's pod answers.
    type: dict
    suboptions:
      port:
        description:
          - The agent's port in the pod.
        type: int
        default: 1024
      address:
        description:
          - V(service) uses the sandbox's service name, and needs the cluster's DNS where the task runs.
          - V(pod_ip) uses the pod's own address, and needs a route to the pod network where the task runs.
          - V(port_forward) goes through the API server, and works from anywhere. It needs the Python library
            C(websocket-client), and create and get on C(pods/portforward) (option C(claimant_port_forward) of role
            C(claimant)).
        type: str
        choices: [service, pod_ip, port_forward]
        default: service
      heartbeat:
        description:
          - The interval at which the agent and the task send each other a heartbeat while a command runs or a file is
            copied, in seconds or as V(30s), V(1m); V(0.1s) to V(1h), or V(0) for none.
          - When three of them are missing, the connection counts as lost, and the agent ends what ran over it. A lost
            node or network is found out within three intervals, also when the command has no output.
        type: str
        default: 15s
"""
