# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""The variables that make a sandbox a host of a play, for connection ``namzu.sandbox.sandbox``.

They name things and files. A token, a password or the content of a kubeconfig is never among them: what a later play
needs of those it finds where the task found them, in the environment or in the variables of the host.
"""

from __future__ import annotations

import typing as t

from ...cluster.auth.access import ENVIRONMENT
from ..options.backend import CONTAINER

CONNECTION = "namzu.sandbox.sandbox"

#: The interpreter of the agent, found on the PATH of the image; without it Ansible looks for one, and warns.
PYTHON = "python3"

#: Access options that hold a name, an address or a path.
_NAMED = ("kubeconfig", "context", "host", "ca_cert", "client_cert", "client_key", "validate_certs", "impersonate_user",
          "impersonate_groups")  # fmt: skip

#: Options of a container engine that hold a name or a path.
_OF_ENGINE = ("tls", "tls_hostname", "api_version", "validate_certs", "ca_cert", "client_cert", "client_key")


def host_vars(
    sandbox: t.Mapping[str, t.Any], params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]
) -> dict[str, t.Any]:
    """Variables by which a host is this sandbox.

    Args:
        sandbox: has ``name``, ``namespace`` and ``uid``.
        params: the ``access`` options, and ``agent``.
        environ: the environment that the access options are completed from.
    """
    agent = params.get("agent") or {}
    way = {option: _given(option, params, environ) for option in _NAMED}
    if not (way["kubeconfig"] or params.get("kubeconfig") or _reads_no_file(way, params, environ)):
        way["kubeconfig"] = environ.get("KUBECONFIG") or None
    variables = {
        "name": sandbox["name"],
        "namespace": sandbox["namespace"],
        "uid": sandbox["uid"],
        "agent_port": agent.get("port", 1024),
        "agent_address": agent.get("address", "service"),
        "agent_heartbeat": agent.get("heartbeat", "15s"),
        **{option: value for option, value in way.items() if value is not None},
    }
    return {
        "ansible_connection": CONNECTION,
        "ansible_python_interpreter": PYTHON,
        **{f"ansible_sandbox_{name}": value for name, value in variables.items()},
    }


def container_host_vars(
    sandbox: t.Mapping[str, t.Any], params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]
) -> dict[str, t.Any]:
    """Variables by which a host is this sandbox of a container engine.

    Args:
        sandbox: has ``name`` and ``uid``.
        params: the ``backend`` options, and those of ``access`` that name certificates.
        environ: the environment that they are completed from.
    """
    docker_host = params.get("docker_host") or environ.get("DOCKER_HOST") or None
    given = {"docker_host": docker_host, **{name: params.get(name) for name in _OF_ENGINE}}
    variables = {
        "backend": CONTAINER,
        "name": sandbox["name"],
        "uid": sandbox["uid"],
        "agent_heartbeat": (params.get("agent") or {}).get("heartbeat", "15s"),
        **{option: value for option, value in given.items() if value is not None},
    }
    return {
        "ansible_connection": CONNECTION,
        "ansible_python_interpreter": PYTHON,
        **{f"ansible_sandbox_{name}": value for name, value in variables.items()},
    }


def _reads_no_file(way: t.Mapping[str, t.Any], params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> bool:
    """Whether the server and a credential are named, so that no kubeconfig counts (``cluster/auth/access.py``)."""
    credential = _given("api_key", params, environ) or (way["client_cert"] and way["client_key"])
    return bool(way["host"] and credential)


def _given(option: str, params: t.Mapping[str, t.Any], environ: t.Mapping[str, str]) -> t.Any:
    value = params.get(option)
    if value is None:
        return next((environ[name] for name in ENVIRONMENT[option] if environ.get(name)), None)
    return None if isinstance(value, dict) else value
