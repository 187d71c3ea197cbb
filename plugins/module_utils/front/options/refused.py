# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Options that this backend cannot enforce: one table for validation, documentation and tests.

They are accepted by the option parser, so that a task gets the reason and the alternative instead of "Unsupported
parameters", and refused before anything is sent.
"""

from __future__ import annotations

import dataclasses
import typing as t

from ...errors import InputError


@dataclasses.dataclass(frozen=True)
class RefusedOption:
    """An option that is refused.

    Attributes:
        name: the option.
        spec: its type, as in an argument specification.
        why: why it cannot be enforced, as a sentence.
        instead: what to use instead, as a sentence.
    """

    name: str
    spec: t.Mapping[str, t.Any]
    why: str
    instead: str


_RUNS_ALREADY = "The pod template decides that, and a member of a warm pool runs already."

#: Why Kubernetes has no option for a whole sandbox: PodSpec has none, kubelet sets it for a node (podPidsLimit).
_NODE = "Kubernetes has no such limit for a pod; the kubelet sets one for all pods of a node."

REFUSED_OPTIONS = (
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


def check_refused_options(params: t.Mapping[str, t.Any]) -> None:
    """Refuse options of the table that a task gives.

    Raises:
        InputError: naming the first such option, why it is refused, and what to use instead.
    """
    for option in REFUSED_OPTIONS:
        if params.get(option.name) is not None:
            raise InputError(f"{option.name} cannot be set for one sandbox: {option.why}", next_step=option.instead)
