# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Option ``backend``: where sandboxes run."""

from __future__ import annotations

import typing as t

from ...errors import InputError

KUBERNETES = "kubernetes"
CONTAINER = "container"
BACKENDS = (KUBERNETES, CONTAINER)

#: The variable that is used where a task does not say.
VARIABLE = "NAMZU_SANDBOX_BACKEND"


def backend_of(params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> str:
    """The backend that a task asks for, or the environment; Kubernetes when neither does.

    Raises:
        InputError: there is no such backend.
    """
    option, value = "backend", params.get("backend")
    if value is None:
        option, value = VARIABLE, environ.get(VARIABLE) or KUBERNETES
    if value not in BACKENDS:
        raise InputError(f"{option} is {value!r}; it is one of {', '.join(BACKENDS)}.")
    return str(value)


def require_kubernetes(params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> None:
    """Refuse the container backend where only Kubernetes has what a task works on.

    Raises:
        InputError: the task or the environment asks for the container backend.
    """
    if backend_of(params, environ) == CONTAINER:
        raise InputError(
            "backend is container. This works on Kubernetes alone: a container engine has no workspaces, warm pools, "
            "network policies or watches.",
            next_step=f"Set {VARIABLE}: kubernetes in the environment of the task, or leave the variable out.",
        )
