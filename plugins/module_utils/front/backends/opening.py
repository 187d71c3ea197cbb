# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The backend of a task, by its options."""

from __future__ import annotations

import contextlib
import typing as t

from ..options.agent import heartbeat_of
from ..options.backend import CONTAINER, KUBERNETES, VARIABLE, backend_of
from ..options.refused import check_refused_options
from ..options.specs import Params
from ..verb import Context, connect
from .protocol import Backend


def load_backend(environ: t.Mapping[str, str]) -> None:
    """Load the backend that the environment names, in the process from which the workers of all tasks are forked.

    Without it each worker that needs the backend loads it: 0.05 to 0.1 s a task. A backend that does not exist is
    reported by the task.
    """
    if environ.get(VARIABLE) == CONTAINER:
        from . import container as _loaded
    else:
        from . import kubernetes as _loaded  # type: ignore[no-redef]
    del _loaded


@contextlib.contextmanager
def open_backend(params: Params, context: Context) -> t.Iterator[Backend[t.Any]]:
    """The backend that a task asks for, while the block lasts; no request is sent yet.

    Raises:
        AccessError, InputError: the options name no usable way to the API server, or to the engine.
    """
    name = backend_of(params, context.environ)
    check_refused_options(params, name)
    # Each loads what the other does not need.
    if name == KUBERNETES:
        from .kubernetes import KubernetesBackend

        with connect(params, context) as client:
            yield KubernetesBackend(client, params, context.environ)
    else:
        from .container import ContainerBackend

        heartbeat_of(params.get("agent"))
        yield ContainerBackend.of(params, context.environ)
