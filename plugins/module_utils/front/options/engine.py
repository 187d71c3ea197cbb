# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The container engine that options name, for the verbs, the connection and the lease keeper."""

from __future__ import annotations

import typing as t

from ...deadline import SYSTEM_CLOCK, Clock
from ...engine.access import engine_access
from ...engine.client import EngineClient

#: Option to its name in ``engine_access``. Certificates have the names that they have for an API server.
_NAMES = {
    "docker_host": "docker_host",
    "tls": "tls",
    "tls_hostname": "tls_hostname",
    "api_version": "api_version",
    "validate_certs": "validate_certs",
    "ca_cert": "ca_path",
    "client_cert": "client_cert",
    "client_key": "client_key",
}

#: The options that name an engine.
ENGINE_OPTIONS = tuple(_NAMES)


def engine_client(
    params: t.Mapping[str, t.Any],
    environ: t.Mapping[str, str],
    timeout: float | None = None,
    clock: Clock = SYSTEM_CLOCK,
) -> EngineClient:
    """A client for the engine that options name, completed from the variables of Docker; nothing is sent.

    Args:
        params: the options of fragments ``backend`` and ``access``, each optional.
        environ: the environment that they are completed from.
        timeout: seconds for one request, or None for ``DOCKER_TIMEOUT``, else 60.

    Raises:
        AccessError, InputError: they name no engine that can be used.
    """
    options = {name: params.get(option) for option, name in _NAMES.items()}
    return EngineClient(engine_access({**options, "timeout": timeout}, environ), clock)
