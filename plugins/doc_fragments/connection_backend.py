# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the connection's options that choose the backend, and of how a container engine is reached."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``connection_backend`` fragment."""

    DOCUMENTATION = r"""
options:
  backend:
    description:
      - V(kubernetes) for a sandbox of a cluster, V(container) for one of a container engine.
    type: str
    choices: [kubernetes, container]
    default: kubernetes
    vars: [{name: ansible_sandbox_backend}]
    env: [{name: NAMZU_SANDBOX_BACKEND}]
    ini: [{section: namzu_sandbox_connection, key: backend}]
  docker_host:
    description:
      - With V(container), the engine; V(unix:///var/run/docker.sock) when not given. O(ca_cert), O(client_cert),
        O(client_key) and O(validate_certs) are then about the engine's certificate.
    type: str
    vars: [{name: ansible_sandbox_docker_host}]
    env: [{name: DOCKER_HOST}]
  tls:
    description:
      - With V(container), whether the connection to an engine over TCP is encrypted.
    type: bool
    vars: [{name: ansible_sandbox_tls}]
    env: [{name: DOCKER_TLS}]
  tls_hostname:
    description:
      - With V(container), the name in the engine's certificate; that of O(docker_host) when not given.
    type: str
    vars: [{name: ansible_sandbox_tls_hostname}]
    env: [{name: DOCKER_TLS_HOSTNAME}]
  api_version:
    description:
      - With V(container), the version of the engine's API; the newest that the engine has when not given.
    type: str
    vars: [{name: ansible_sandbox_api_version}]
    env: [{name: DOCKER_API_VERSION}]
"""
