# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What an engine reports about the isolation of a container, or of one that is still to be created."""

from __future__ import annotations

from ..engine.client import EngineClient, Json
from ..guest.isolation import IsolationVerdict, Level, RuntimeEvidence, check_runtime, judge_isolation, runtime_level
from ..guest.privileges import Privileges
from .engine_support import runtime_name, seccomp_profile
from .request import Confinement, ContainerRequest

_NEXT_STEP = "Set runtime to a runtime of the engine with that isolation (runsc for gVisor), or ask for less isolation."
#: How an engine reports that user ids of containers are others on the machine.
_USER_NAMESPACES = ("userns", "rootless")


def check_engine_isolation(client: EngineClient, info: Json, request: ContainerRequest) -> None:
    """Refuse a runtime that isolates less than was asked for, before anything is created.

    Raises:
        IsolationError: it does.
    """
    check_runtime(_evidence(info, request, seccomp_profile(info)), request.isolation, client.name, _NEXT_STEP)


def judge_container(
    privileges: Privileges, info: Json, request: ContainerRequest, confinement: Confinement, subject: str
) -> IsolationVerdict:
    """The isolation of a running container.

    Args:
        info: what the engine reports about itself.
        confinement: what the engine reports about the container; namespaces of the machine are refused there.

    Raises:
        IsolationError: it is weaker than was asked for.
    """
    evidence = _evidence(info, request, confinement.seccomp)
    return judge_isolation(privileges, evidence, request.isolation, subject, _NEXT_STEP)


def _evidence(info: Json, request: ContainerRequest, seccomp: str | None) -> RuntimeEvidence:
    return RuntimeEvidence(
        handler=runtime_name(info, request.runtime) or None,
        level=_level(info, request.runtime),
        user_namespace=_has_user_namespaces(info),
        seccomp=seccomp,
    )


def _level(info: Json, runtime: str | None) -> Level:
    """By the runtime's program, which the engine reports; a name alone may belong to another program."""
    described = (info.get("Runtimes") or {}).get(runtime_name(info, runtime))
    described = described if isinstance(described, dict) else {}
    program, shim = str(described.get("path") or ""), str(described.get("runtimeType") or "")
    if shim.startswith("io.containerd.kata"):
        return "vm"
    if shim.startswith("io.containerd.runsc"):
        return "gvisor"
    return runtime_level(program.rpartition("/")[2])


def _has_user_namespaces(info: Json) -> bool:
    options = [
        dict(part.partition("=")[::2] for part in str(one).split(",")) for one in info.get("SecurityOptions") or ()
    ]
    return any(option.get("name") in _USER_NAMESPACES for option in options)
