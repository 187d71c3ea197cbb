# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: GPL-3.0-or-later
"""Documentation of the options that say how to reach the API server."""

from __future__ import annotations


class ModuleDocFragment:
    """The ``access`` fragment."""

    DOCUMENTATION = r"""
options:
  kubeconfig:
    description:
      - Path of a kubeconfig, or its content as a dictionary.
      - E(K8S_AUTH_KUBECONFIG), then E(KUBECONFIG), then C(~/.kube/config) are used when it is not given.
      - Secrets in a dictionary are kept out of logs and results.
    type: raw
  context:
    description:
      - Name of a context in the kubeconfig; the current one when not given. Also E(K8S_AUTH_CONTEXT).
    type: str
  host:
    description:
      - URL of the API server. With a credential (O(api_key), or O(client_cert) and O(client_key)) no file is read.
      - Also E(K8S_AUTH_HOST).
    type: str
  api_key:
    description:
      - Bearer token. Also E(K8S_AUTH_API_KEY).
    type: str
  ca_cert:
    description:
      - Path of the certificate authority that signed the API server's certificate. Also E(K8S_AUTH_SSL_CA_CERT).
    type: path
    aliases: [ssl_ca_cert]
  client_cert:
    description:
      - Path of a client certificate. Also E(K8S_AUTH_CERT_FILE).
    type: path
    aliases: [cert_file]
  client_key:
    description:
      - Path of the client certificate's key. Also E(K8S_AUTH_KEY_FILE).
    type: path
    aliases: [key_file]
  validate_certs:
    description:
      - Whether the API server's certificate is checked; checked when not given. Also E(K8S_AUTH_VERIFY_SSL).
    type: bool
    aliases: [verify_ssl]
  proxy:
    description:
      - URL of an HTTP proxy. Also E(K8S_AUTH_PROXY); E(HTTPS_PROXY) and E(NO_PROXY) are honoured.
    type: str
  impersonate_user:
    description:
      - User on whose behalf requests are made. Also E(K8S_AUTH_IMPERSONATE_USER).
    type: str
  impersonate_groups:
    description:
      - Groups on whose behalf requests are made. Also E(K8S_AUTH_IMPERSONATE_GROUPS), separated by commas.
    type: list
    elements: str
  namespace:
    description:
      - The namespace to work in; the one of the context or of the service account when not given, else V(default).
    type: str
  request_timeout:
    description:
      - Bound on one request to the API server, in seconds or as V(90s), V(2m). At least one second; it cannot be
        switched off.
    type: str
    default: 30s
requirements:
  - urllib3
  - PyYAML (to read a kubeconfig from a file)
  - kubernetes (only where a kubeconfig logs in by C(auth-provider))
notes:
  - Without any of these options the service account that is mounted into a pod is used, as in an execution environment
    that runs in the cluster.
"""
