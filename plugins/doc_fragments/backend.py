# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that choose where sandboxes run, and of how a container engine is reached."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``backend`` fragment."""

    DOCUMENTATION = r"""
options:
  backend:
    description:
      - V(kubernetes) runs sandboxes with the agent-sandbox controller of a cluster. V(container) runs each as one
        container of a Docker Engine API, which Docker and Podman have.
      - When not given, E(NAMZU_SANDBOX_BACKEND), else V(kubernetes). A result of M(namzu.sandbox.sandbox) in option
        C(sandbox) names its backend.
      - The container backend does not use O(namespace), O(kubeconfig) and the other options of the API server.
    type: str
    choices: [kubernetes, container]
  docker_host:
    description:
      - With V(container), the engine, as V(unix:///var/run/docker.sock), V(tcp://192.0.2.7:2376) or an V(https) URL.
      - Also E(DOCKER_HOST), else V(unix:///var/run/docker.sock). O(ca_cert), O(client_cert), O(client_key) and
        O(validate_certs) are then about the engine's certificate (also E(DOCKER_CERT_PATH), E(DOCKER_TLS_VERIFY)), and
        O(request_timeout) bounds one request to the engine.
    type: str
  tls:
    description:
      - With V(container), whether the connection to an engine over TCP is encrypted. Also E(DOCKER_TLS).
    type: bool
  tls_hostname:
    description:
      - With V(container), the name in the engine's certificate; that of O(docker_host) when not given. Also
        E(DOCKER_TLS_HOSTNAME).
    type: str
  api_version:
    description:
      - With V(container), the version of the engine's API, such as V(1.41); the newest that the engine has when not
        given. Also E(DOCKER_API_VERSION).
    type: str
"""
