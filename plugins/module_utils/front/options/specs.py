# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The options of the verbs: each stands once, here, as AnsibleModule's argument specification."""

from __future__ import annotations

import typing as t

from .backend import BACKENDS
from .refused import OF_A_TEMPLATE, OF_AN_ENGINE

Spec = dict[str, dict[str, t.Any]]

#: The options of a task, by name, after Ansible has checked their types.
Params = dict[str, t.Any]

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
            "heartbeat": {"type": "str", "default": "15s"},
        },
    },
}

#: Which sandbox or workspace is meant (documentation fragment ``guest``).
GUEST: Spec = {
    "name": {"type": "str"},
    "workspace_id": {"type": "str"},
    "uid": {"type": "str"},
    "sandbox": {"type": "dict"},
}

#: The constraints of ``GUEST``.
GUEST_EXCLUSIVE = [("name", "workspace_id", "sandbox"), ("uid", "sandbox")]
GUEST_REQUIRED = [("name", "workspace_id", "sandbox")]


def expand_kinds(options: Spec, given: t.Mapping[str, t.Any]) -> Params:
    """The options of a task, with a kind alone (``egress: no_network``) as the dictionary that it stands for.

    Args:
        options: the argument specification.
        given: what the task gives.
    """

    def expanded(name: str, value: t.Any) -> t.Any:
        # A text with an equals sign or a brace is a dictionary in Ansible's own short forms.
        plain = isinstance(value, str) and not {"=", "{"} & set(value)
        return {"kind": value} if plain and "kind" in options.get(name, {}).get("options", {}) else value

    return {name: expanded(name, value) for name, value in given.items()}


#: What an egress is made of, wherever one is asked for.
EGRESS_REQUEST: Spec = {
    "kind": {
        "type": "str",
        "required": True,
        "choices": ["no_network", "dns_only", "public_internet", "hosts", "allow_all"],
    },
    "except_cidrs": {"type": "list", "elements": "str"},
    "hosts": {"type": "list", "elements": "raw"},
    "ports": {"type": "list", "elements": "raw"},
    "dns": {
        "type": "dict",
        "options": {
            "namespace": {"type": "str"},
            "labels": {"type": "dict"},
            "addresses": {"type": "list", "elements": "str"},
            "names": {"type": "list", "elements": "str"},
        },
    },
    "engine": {"type": "str", "default": "core", "choices": ["core", "cilium"]},
}

#: What a sandbox may reach, and who may reach it (documentation fragment ``boundary``).
BOUNDARY: Spec = {
    "egress": {
        "type": "dict",
        "options": {
            **EGRESS_REQUEST,
            "name": {"type": "str"},
            "profile": {
                "type": "dict",
                "options": {
                    "key": {"type": "str", "default": "sandbox.users.io/egress-profile", "no_log": False},
                    "value": {"type": "str", "required": True},
                },
            },
            "verify": {"type": "str", "default": "union", "choices": ["union", "named_object"]},
        },
    },
    "ingress": {"type": "raw"},
    "network_probe": {"type": "bool", "default": False},
}

#: How strongly a sandbox is isolated from its machine (documentation fragment ``isolation``).
ISOLATION: Spec = {"isolation": {"type": "str", "default": "any", "choices": ["any", "gvisor", "vm"]}}

#: Accepted to be refused with a reason (documentation fragment ``refused``).
REFUSED: Spec = {option.name: dict(option.spec) for option in OF_A_TEMPLATE}

#: Where sandboxes run, and how to reach a container engine (documentation fragment ``backend``).
BACKEND: Spec = {
    "backend": {"type": "str", "choices": list(BACKENDS)},
    "docker_host": {"type": "str"},
    "tls": {"type": "bool"},
    "tls_hostname": {"type": "str"},
    "api_version": {"type": "str"},
}

#: A sandbox of the container backend (documentation fragment ``container``).
CONTAINER: Spec = {
    **{option.name: dict(option.spec) for option in (*OF_A_TEMPLATE, *OF_AN_ENGINE)},
    "cpus": {"type": "float"},
}

SANDBOX: Spec = {
    **ACCESS,
    **AGENT,
    **BACKEND,
    **BOUNDARY,
    **ISOLATION,
    **CONTAINER,
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "name": {"type": "str"},
    "uid": {"type": "str"},
    "sandbox": {"type": "dict"},
    "sandboxes": {"type": "list", "elements": "dict"},
    "names": {"type": "list", "elements": "str"},
    "label_selector": {"type": "str"},
    "count": {"type": "int"},
    "on_failure": {"type": "str", "default": "release_all", "choices": ["release_all", "keep"]},
    "warm_pool": {"type": "str"},
    "template": {"type": "str"},
    "runtime_class": {"type": "str"},
    "labels": {"type": "dict"},
    "pod_labels": {"type": "dict"},
    "per_sandbox_egress": {"type": "bool", "default": False},
    "ttl": {"type": "str", "default": "1h"},
    "release_on_end": {"type": "bool", "default": False},
    "ready_timeout": {"type": "str", "default": "60s"},
    "wait_for_template": {"type": "bool", "default": False},
    "on_stale": {"type": "str", "default": "ignore", "choices": ["ignore", "report", "refuse"]},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "str", "default": "60s"},
}

SANDBOX_EXEC: Spec = {
    **ACCESS,
    **AGENT,
    **BACKEND,
    **GUEST,
    "argv": {"type": "list", "elements": "str"},
    "command": {"type": "str"},
    "chdir": {"type": "str"},
    "environment": {"type": "dict"},
    "stdin": {"type": "str"},
    "timeout": {"type": "str"},
    "max_output": {"type": "int", "default": 1048576},
    "detach": {"type": "bool", "default": False},
    "attach": {
        "type": "dict",
        "options": {
            "id": {"type": "str", "required": True},
            "offset": {"type": "int", "default": 0},
            "cancel": {"type": "bool", "default": False},
        },
    },
}

SANDBOX_LEASE: Spec = {
    **ACCESS,
    **BACKEND,
    **GUEST,
    "holder_epoch": {"type": "int"},
    "remaining": {"type": "str", "required": True},
}

SANDBOX_EGRESS: Spec = {
    **ACCESS,
    "state": {"type": "str", "default": "present", "choices": ["present", "absent"]},
    "name": {"type": "str"},
    "uid": {"type": "str"},
    "sandbox": {"type": "dict"},
    "egress": {"type": "dict", "options": EGRESS_REQUEST},
    "ready_timeout": {"type": "str", "default": "60s"},
}

SANDBOX_INFO: Spec = {
    **ACCESS,
    **BACKEND,
    "name": {"type": "str"},
    "label_selector": {"type": "str"},
    "query": {"type": "str"},
}

WORKSPACE: Spec = {
    **ACCESS,
    **AGENT,
    **BOUNDARY,
    **ISOLATION,
    **REFUSED,
    "state": {"type": "str", "default": "running", "choices": ["running", "suspended", "absent"]},
    "workspace_id": {"type": "str", "required": True},
    "uid": {"type": "str"},
    "template": {"type": "str"},
    "holder_epoch": {"type": "int"},
    "runtime_class": {"type": "str"},
    "refresh": {"type": "bool", "default": False},
    "carry_over": {"type": "bool", "default": True},
    "on_stale": {"type": "str", "default": "refuse", "choices": ["ignore", "report", "refuse"]},
    "labels": {"type": "dict"},
    "pod_labels": {"type": "dict"},
    "ttl": {"type": "str"},
    "release_on_end": {"type": "bool", "default": False},
    "flush": {"type": "bool", "default": True},
    "quiesce": {"type": "bool", "default": False},
    "on_flush_failure": {"type": "str", "default": "refuse", "choices": ["refuse", "suspend"]},
    "delete_disk": {"type": "bool", "default": False},
    "resource_version": {"type": "str"},
    "ready_timeout": {"type": "str", "default": "60s"},
    "wait": {"type": "bool", "default": False},
    "wait_timeout": {"type": "str", "default": "60s"},
}

WORKSPACE_INFO: Spec = {
    **ACCESS,
    "workspace_id": {"type": "str"},
    "label_selector": {"type": "str"},
}

SANDBOX_SESSION: Spec = {
    **ACCESS,
    **AGENT,
    **BACKEND,
    **GUEST,
    "session": {"type": "str", "required": True},
    "state": {"type": "str", "default": "started", "choices": ["started", "stopped"]},
    "argv": {"type": "list", "elements": "str"},
    "command": {"type": "str"},
    "chdir": {"type": "str"},
    "environment": {"type": "dict"},
    "stdin": {"type": "str"},
    "timeout": {"type": "str"},
    "grace": {"type": "str", "default": "2s"},
}

SANDBOX_SESSION_INFO: Spec = {
    **ACCESS,
    **AGENT,
    **BACKEND,
    **GUEST,
    "session": {"type": "str"},
    "offset": {"type": "int", "default": 0},
    "max_output": {"type": "int", "default": 1048576},
}

SANDBOX_FILES: Spec = {
    **ACCESS,
    **AGENT,
    **BACKEND,
    **GUEST,
    "direction": {"type": "str", "default": "upload", "choices": ["upload", "download"]},
    "src": {"type": "str", "required": True},
    "dest": {"type": "str", "required": True},
    "include": {"type": "list", "elements": "str"},
    "exclude": {"type": "list", "elements": "str"},
    "delete": {"type": "bool", "default": False},
    "replace": {"type": "bool", "default": False},
    "timeout": {"type": "str"},
}

CAPACITY_INFO: Spec = {
    **ACCESS,
    "warm_pool": {"type": "str", "required": True},
}

BOUNDARY_CHECK: Spec = {
    **ACCESS,
    **AGENT,
    **BOUNDARY,
    **ISOLATION,
    "name": {"type": "str"},
    "pod": {"type": "str"},
    "warm_pool": {"type": "str"},
    "template": {"type": "str"},
    "labels": {"type": "dict"},
    "label_selector": {"type": "str"},
    "pod_labels": {"type": "dict"},
    "manifests": {"type": "list", "elements": "raw"},
    "required_sources": {
        "type": "list",
        "elements": "str",
        "choices": [
            "AdminNetworkPolicy",
            "BaselineAdminNetworkPolicy",
            "CiliumClusterwideNetworkPolicy",
            "ClusterNetworkPolicy",
        ],
    },
    "peer_namespaces": {"type": "list", "elements": "str"},
    "matrix": {"type": "bool", "default": False},
    "template_boundary": {"type": "bool"},
    "probe_timeout": {"type": "str", "default": "30s"},
    "fail": {"type": "bool", "default": True},
}

#: The tables of all verbs.
ALL = (
    SANDBOX,
    SANDBOX_EXEC,
    SANDBOX_LEASE,
    SANDBOX_EGRESS,
    SANDBOX_INFO,
    WORKSPACE,
    WORKSPACE_INFO,
    SANDBOX_SESSION,
    SANDBOX_SESSION_INFO,
    SANDBOX_FILES,
    CAPACITY_INFO,
    BOUNDARY_CHECK,
)
