# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Options that a backend cannot enforce: one table for validation, documentation and tests.

They are accepted by the option parser, so that a task gets the reason and the alternative instead of "Unsupported
parameters", and refused before anything is sent.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...errors import InputError
from .backend import CONTAINER, KUBERNETES


@dataclasses.dataclass(frozen=True)
class RefusedOption:
    """An option that a backend refuses.

    Attributes:
        name: the option.
        spec: its type, as in an argument specification; a value other than its default is refused.
        why: why it cannot be enforced, as a sentence.
        instead: what to use instead, as a sentence.
        backend: the backend that refuses it.
    """

    name: str
    spec: t.Mapping[str, t.Any]
    why: str
    instead: str
    backend: str = KUBERNETES


_RUNS_ALREADY = "The pod template decides that, and a member of a warm pool runs already."

#: Why Kubernetes has no option for a whole sandbox: PodSpec has none, kubelet sets it for a node (podPidsLimit).
_NODE = "Kubernetes has no such limit for a pod; the kubelet sets one for all pods of a node."

_NO_OBJECTS = "It names a Kubernetes object, and a container engine has none."

#: Refused on Kubernetes, by verbs ``sandbox`` and ``workspace``.
OF_A_TEMPLATE = (
    RefusedOption(
        "env",
        {"type": "dict"},
        _RUNS_ALREADY,
        "For all commands set template_env of role namzu.sandbox.template; environment of sandbox_exec is for one.",
    ),
    RefusedOption(
        "memory",
        {"type": "str"},
        _RUNS_ALREADY,
        "Set limits.memory in template_resources of role namzu.sandbox.template.",
    ),
    RefusedOption(
        "cpus", {"type": "str"}, _RUNS_ALREADY, "Set limits.cpu in template_resources of role namzu.sandbox.template."
    ),
    RefusedOption("pids", {"type": "int"}, _NODE, "Set podPidsLimit in the configuration of the kubelet."),
    RefusedOption("image", {"type": "str"}, _RUNS_ALREADY, "Set template_image of role namzu.sandbox.template."),
    RefusedOption("user", {"type": "str"}, _RUNS_ALREADY, "Set template_run_as_user of role namzu.sandbox.template."),
)

#: Refused on Kubernetes, by verb ``sandbox``, which has them for the container backend.
OF_AN_ENGINE = (
    RefusedOption(
        "runtime",
        {"type": "str"},
        "Kubernetes names a runtime by a RuntimeClass.",
        "Set runtime_class, or template_runtime_class of role namzu.sandbox.template.",
    ),
    RefusedOption(
        "read_only_rootfs",
        {"type": "bool"},
        _RUNS_ALREADY,
        "Role namzu.sandbox.template makes the root file system read-only.",
    ),
    RefusedOption(
        "writable_paths",
        {"type": "list", "elements": "str"},
        _RUNS_ALREADY,
        "Role namzu.sandbox.template makes /tmp and the workspace writable.",
    ),
    RefusedOption(
        "network",
        {"type": "str"},
        "A pod has the network of its cluster, and policies decide what it reaches.",
        "Set egress, and apply the policy with role namzu.sandbox.boundary.",
    ),
    RefusedOption(
        "outputs",
        {"type": "path"},
        "A pod runs on a node that has no folder of this machine.",
        "Fetch files with ansible.builtin.fetch over connection namzu.sandbox.sandbox.",
    ),
    RefusedOption(
        "seccomp",
        {"type": "str", "choices": ["default", "unconfined"]},
        _RUNS_ALREADY,
        "Role namzu.sandbox.template sets the profile RuntimeDefault.",
    ),
)

#: Refused on the container backend.
OF_A_CLUSTER = tuple(
    RefusedOption(name, spec, why, instead, CONTAINER)
    for name, spec, why, instead in (
        ("warm_pool", {"type": "str"}, "A container engine has no warm pools.", "Set image."),
        ("template", {"type": "str"}, _NO_OBJECTS, "Set image, and the limits as options of the task."),
        ("runtime_class", {"type": "str"}, _NO_OBJECTS, "Set runtime to a runtime of the engine."),
        ("pod_labels", {"type": "dict"}, "A container has no pod.", "Set labels."),
        (
            "per_sandbox_egress",
            {"type": "bool", "default": False},
            "The network of a container decides what it reaches, and it cannot be narrowed later.",
            "Leave it out; without network the sandbox reaches nothing.",
        ),
        (
            "ingress",
            {"type": "raw"},
            "The engine reports no rules about who reaches a container.",
            "Leave it out; without network nobody reaches the sandbox.",
        ),
        ("wait_for_template", {"type": "bool", "default": False}, _NO_OBJECTS, "Leave it out."),
        (
            "on_stale",
            {"type": "str", "default": "ignore"},
            "A container has no template that could have changed.",
            "Leave it out; name the image by its digest.",
        ),
        (
            "namespaces",
            {"type": "list", "elements": "str"},
            "A container engine has no namespaces.",
            "Leave it out.",
        ),
        ("workspace_id", {"type": "str"}, "The container backend has no workspaces.", "Set name."),
        ("holder_epoch", {"type": "int"}, "The container backend has no workspaces.", "Leave it out."),
    )
)

REFUSED_OPTIONS = (*OF_A_TEMPLATE, *OF_AN_ENGINE, *OF_A_CLUSTER)


def check_refused_options(params: t.Mapping[str, t.Any], backend: str = KUBERNETES) -> None:
    """Refuse options of the table that a task gives.

    Args:
        backend: the one on which the task works.

    Raises:
        InputError: naming the first such option, why it is refused, and what to use instead.
    """
    for option in REFUSED_OPTIONS:
        value = params.get(option.name)
        if option.backend == backend and value is not None and value != option.spec.get("default"):
            what = "for one sandbox" if option in OF_A_TEMPLATE else f"on backend {backend}"
            raise InputError(f"{option.name} cannot be set {what}: {option.why}", next_step=option.instead)
