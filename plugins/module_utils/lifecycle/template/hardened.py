# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""A SandboxTemplate whose pods have no privileges, and the ConfigMap that brings the agent into them.

One function for role ``template`` and the filter of that name. Nothing of what keeps a pod without privileges can be
asked away. A member of a pool counts when it is ready, so its first second is looked at often and the rest is not.
"""

from __future__ import annotations

import collections.abc as c
import hashlib
import json
import typing as t

from ...cluster.resources import TEMPLATE, TEMPLATE_LABEL, Body
from ...errors import InputError
from ..names import check_name

#: What may be asked for, and what is taken when it is not; an option without a default has to be given. Role
#: ``template`` has the same ones, and a test holds the two together.
DEFAULTS: c.Mapping[str, t.Any] = {
    "image_pull_policy": "IfNotPresent",
    "image_pull_secrets": [],
    "python": "python3",
    "agent_port": 1024,
    "agent_roots": [],
    "run_as_user": 1000,
    "run_as_group": 1000,
    "workspace": "/workspace",
    "workspace_size": "1Gi",
    "tmp_size": "256Mi",
    "resources": {"requests": {"cpu": "50m", "memory": "64Mi"}, "limits": {"cpu": "1", "memory": "512Mi"}},
    "env": [],
    "volumes": [],
    "volume_mounts": [],
    "volume_claim_templates": [],
    "runtime_class": "",
    "host_users": True,
    "node_selector": {},
    "tolerations": [],
    "network_policy_management": "Unmanaged",
    "network_policy": {},
    "termination_grace_period": 5,
    "labels": {},
    "annotations": {},
    "pod_labels": {},
    "pod_annotations": {},
}
REQUIRED = ("name", "namespace", "image")

_AGENT = "/opt/namzu/agent"
#: Below it nothing can listen without a capability.
_LOWEST_PORT = 1024
_BOOLEANS = {"true": True, "yes": True, "false": False, "no": False}


def template_body(request: c.Mapping[str, t.Any], agent: c.Mapping[str, str]) -> Body:
    """The SandboxTemplate of a request.

    Args:
        request: ``name``, ``namespace``, ``image``, and what differs from ``DEFAULTS``.
        agent: the agent's files, by name.

    Raises:
        InputError: something is missing, unknown, or what pods would not bear.
    """
    asked = _checked(request)
    selector = {TEMPLATE_LABEL: asked["name"]}
    spec: Body = {
        "service": True,
        "networkPolicyManagement": asked["network_policy_management"],
        "networkPolicy": asked["network_policy"],
        "volumeClaimTemplates": asked["volume_claim_templates"],
        "podTemplate": {
            "metadata": _given(
                {"labels": {**asked["pod_labels"], **selector}, "annotations": asked["pod_annotations"]}
            ),
            "spec": _pod(asked, agent_config_map(asked["name"], agent)),
        },
    }
    metadata = {"name": asked["name"], "namespace": asked["namespace"], "labels": {**asked["labels"], **selector}}
    return {
        "apiVersion": TEMPLATE.api_version,
        "kind": TEMPLATE.name,
        "metadata": _given({**metadata, "annotations": asked["annotations"]}),
        "spec": _given(spec),
    }


def agent_body(request: c.Mapping[str, t.Any], agent: c.Mapping[str, str]) -> Body:
    """The ConfigMap of the agent that a request's template mounts.

    It is immutable: kubelets keep no watch on it then, and nobody changes it under a running agent. Arguments and
    errors are those of ``template_body``.
    """
    asked = _checked(request)
    name = agent_config_map(asked["name"], agent)
    metadata = {"name": name, "namespace": asked["namespace"], "labels": {TEMPLATE_LABEL: asked["name"]}}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "immutable": True, "data": dict(agent)}


def agent_config_map(template: str, agent: c.Mapping[str, str]) -> str:
    """The ConfigMap's name, which follows its content.

    So a running pod never sees files change under it, a pool notices a changed agent as a changed template, and a
    suspended workspace wakes up with the agent that it went to sleep with.
    """
    digest = hashlib.sha256(json.dumps(dict(agent), sort_keys=True).encode()).hexdigest()
    return f"{template}-agent-{digest[:10]}"


def _checked(request: c.Mapping[str, t.Any]) -> dict[str, t.Any]:
    unknown = sorted(request.keys() - DEFAULTS.keys() - set(REQUIRED))
    if unknown:
        raise InputError(f"A template has no {', '.join(unknown)}.")
    for field in REQUIRED:
        if not request.get(field):
            raise InputError(f"A template needs {field}.")
    asked = {**DEFAULTS, **request}
    asked["host_users"] = _boolean("host_users", asked["host_users"])
    check_name("name", str(asked["name"]))
    for field, least in (
        ("agent_port", _LOWEST_PORT),
        ("run_as_user", 1),
        ("run_as_group", 0),
        ("termination_grace_period", 0),
    ):
        asked[field] = _number(field, asked[field], least)
    for root in asked["agent_roots"]:
        if not str(root).startswith("/") or ":" in str(root):
            raise InputError(f"agent_roots has {root!r}; roots are absolute, without colons.")
    return asked


def _number(field: str, value: t.Any, least: int) -> int:
    if isinstance(value, bool) or not str(value).isdecimal() or int(value) < least:
        raise InputError(f"{field} is {value!r}; it is a number of at least {least}.")
    return int(value)


def _boolean(field: str, value: t.Any) -> bool:
    """A boolean, also as the text that Ansible's command line makes of one."""
    text = str(value).lower()
    if text not in _BOOLEANS:
        raise InputError(f"{field} is {value!r}; it must be true or false.")
    return _BOOLEANS[text]


def _given(fields: c.Mapping[str, t.Any]) -> Body:
    """The fields that say something."""
    return {key: value for key, value in fields.items() if value not in ("", [], {}, None)}


def _pod(asked: c.Mapping[str, t.Any], config_map: str) -> Body:
    volumes: list[Body] = [
        {"name": "namzu-agent", "configMap": {"name": config_map}},
        {"name": "namzu-tmp", "emptyDir": {"sizeLimit": asked["tmp_size"]}},
    ]
    # A claim template of this name is the workspace; without one it is a folder of the node that goes with the pod.
    if "workspace" not in [claim["metadata"]["name"] for claim in asked["volume_claim_templates"]]:
        volumes.append({"name": "workspace", "emptyDir": {"sizeLimit": asked["workspace_size"]}})
    optional = {
        "runtimeClassName": asked["runtime_class"],
        "imagePullSecrets": [{"name": name} for name in asked["image_pull_secrets"]],
        "nodeSelector": asked["node_selector"],
        "tolerations": asked["tolerations"],
    }
    return {
        "automountServiceAccountToken": False,
        "enableServiceLinks": False,
        "terminationGracePeriodSeconds": asked["termination_grace_period"],
        "securityContext": {
            "runAsNonRoot": True,
            "runAsUser": asked["run_as_user"],
            "runAsGroup": asked["run_as_group"],
            "fsGroup": asked["run_as_group"],
            "fsGroupChangePolicy": "OnRootMismatch",
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        **_given(optional),
        # True is the API's default, which it does not store.
        **({} if asked["host_users"] else {"hostUsers": False}),
        "containers": [_container(asked)],
        "volumes": [*volumes, *asked["volumes"]],
    }


def _container(asked: c.Mapping[str, t.Any]) -> Body:
    return {
        "name": "agent",
        "image": asked["image"],
        "imagePullPolicy": asked["image_pull_policy"],
        # -I: nothing from the environment or the working directory is imported.
        "command": [asked["python"], "-I", _AGENT],
        "workingDir": asked["workspace"],
        "env": _environment(asked),
        "ports": [{"name": "agent", "containerPort": asked["agent_port"], "protocol": "TCP"}],
        "startupProbe": {"tcpSocket": {"port": "agent"}, "periodSeconds": 1, "failureThreshold": 60},
        "readinessProbe": {"tcpSocket": {"port": "agent"}, "periodSeconds": 10},
        "resources": asked["resources"],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "privileged": False,
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "capabilities": {"drop": ["ALL"]},
        },
        "volumeMounts": [
            {"name": "namzu-agent", "mountPath": _AGENT, "readOnly": True},
            {"name": "namzu-tmp", "mountPath": "/tmp"},  # noqa: S108 - a folder of the pod
            {"name": "workspace", "mountPath": asked["workspace"]},
            *asked["volume_mounts"],
        ],
    }


def _environment(asked: c.Mapping[str, t.Any]) -> list[Body]:
    names = sorted(str(entry["name"]) for entry in asked["env"])
    ours: list[Body] = [
        # The agent serves only who knows its pod's uid, and only who may read the pod knows it.
        {"name": "NAMZU_AGENT_BIND_TOKEN", "valueFrom": {"fieldRef": {"fieldPath": "metadata.uid"}}},
        {"name": "NAMZU_AGENT_PORT", "value": str(asked["agent_port"])},
        {"name": "NAMZU_WORKSPACE", "value": asked["workspace"]},
    ]
    if asked["agent_roots"]:
        ours.append({"name": "NAMZU_AGENT_ROOTS", "value": ":".join(asked["agent_roots"])})
    # Commands start with a clean environment; what the template's user set is for them.
    passed = [{"name": "NAMZU_AGENT_PASS", "value": ",".join(names)}]
    return [*(passed if names and "NAMZU_AGENT_PASS" not in names else []), *asked["env"], *ours]
