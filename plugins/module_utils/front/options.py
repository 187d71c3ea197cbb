# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The options of the verbs: each stands once, here, as AnsibleModule's argument specification."""

from __future__ import annotations

import typing as t

Spec = dict[str, dict[str, t.Any]]

#: How to reach the API server (documentation fragment ``access``).
ACCESS: Spec = {
    "kubeconfig": {"type": "raw"},
    "context": {"type": "str"},
    "host": {"type": "str"},
    "api_key": {"type": "str", "no_log": True},
    "ca_cert": {"type": "path", "aliases": ["ssl_ca_cert"]},
    "client_cert": {"type": "path", "aliases": ["cert_file"]},
    "client_key": {"type": "path", "aliases": ["key_file"], "no_log": False},
    "validate_certs": {"type": "bool", "aliases": ["verify_ssl"]},
    "proxy": {"type": "str"},
    "impersonate_user": {"type": "str"},
    "impersonate_groups": {"type": "list", "elements": "str"},
    "namespace": {"type": "str"},
    "request_timeout": {"type": "str", "default": "30s"},
}

#: Where the guest agent answers (documentation fragment ``agent``).
AGENT: Spec = {
    "agent": {
        "type": "dict",
        "options": {
            "port": {"type": "int", "default": 1024},
            "address": {"type": "str", "default": "service", "choices": ["service", "pod_ip", "port_forward"]},
        },
    },
}

SANDBOX: Spec = {
    **ACCESS,
    **AGENT,
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "name": {"type": "str"},
    "names": {"type": "list", "elements": "str"},
    "label_selector": {"type": "str"},
    "count": {"type": "int"},
    "on_failure": {"type": "str", "default": "release_all", "choices": ["release_all", "keep"]},
    "warm_pool": {"type": "str"},
    "template": {"type": "str"},
    "runtime_class": {"type": "str"},
    "labels": {"type": "dict"},
    "pod_labels": {"type": "dict"},
    "ttl": {"type": "str", "default": "1h"},
    "ready_timeout": {"type": "str", "default": "60s"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "str", "default": "60s"},
}

SANDBOX_EXEC: Spec = {
    **ACCESS,
    **AGENT,
    "name": {"type": "str", "required": True},
    "argv": {"type": "list", "elements": "str"},
    "command": {"type": "str"},
    "chdir": {"type": "str"},
    "environment": {"type": "dict"},
    "stdin": {"type": "str"},
    "timeout": {"type": "str"},
    "max_output": {"type": "int", "default": 1048576},
}

SANDBOX_INFO: Spec = {
    **ACCESS,
    "name": {"type": "str"},
    "label_selector": {"type": "str"},
    "query": {"type": "str"},
}

CAPACITY_INFO: Spec = {
    **ACCESS,
    "warm_pool": {"type": "str", "required": True},
}
