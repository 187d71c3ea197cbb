# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""From a request to the container that is created for it."""

from __future__ import annotations

import os
import typing as t

from ..engine.client import Json
from ..engine.container_spec import Bind, ContainerSpec
from ..errors import InputError
from .channel import listening_path
from .names import (
    AGENT,
    FOLDER,
    LEASE,
    LEASE_USER,
    LISTENER_OFFER,
    OUTPUTS,
    RELAY,
    SOCKET_FOLDER,
    START_BY_LABEL,
    VOLUME_LABEL,
    WORKSPACE,
)
from .request import ContainerRequest

#: Bytes of each writable folder, which is memory; with a limit of memory, not more than that.
FOLDER_SIZE = 512 * 1024 * 1024
#: Writable in every sandbox whose image is read-only.
_WRITABLE = ("/tmp", "/var/tmp", WORKSPACE)  # noqa: S108
_WRITABLE_OPTIONS = "rw,nosuid,nodev,exec,mode=1777"
#: Podman gives a read-only container a writable /run without a limit of its own.
_RUN_OPTIONS = "rw,nosuid,nodev,noexec,mode=755,size=65536"


def container_spec(
    request: ContainerRequest,
    image: Json,
    name: str,
    channel: str,
    labels: t.Mapping[str, str],
    start_by: int,
) -> ContainerSpec:
    """The container of a sandbox.

    Args:
        image: the image as the engine has it.
        name: the sandbox's name.
        channel: the path of the agent's socket on this machine, or ``relay``.
        start_by: seconds since 1970 by which it must have been started.
    """
    binds = []
    if channel != RELAY:
        binds.append(Bind(os.path.dirname(channel), SOCKET_FOLDER))
    if request.outputs is not None:
        binds.append(Bind(checked_outputs(request.outputs), OUTPUTS))
    program = ("python3", "-E", "-s", "-S", "-B", f"{AGENT}/lease.py")
    own = {
        "NAMZU_AGENT_LISTENER": LISTENER_OFFER,
        "NAMZU_WORKSPACE": WORKSPACE,
        **({"NAMZU_OUTPUTS": OUTPUTS} if request.outputs is not None else {}),
    }
    passed = [*request.env, *(["NAMZU_OUTPUTS"] if request.outputs is not None else [])]
    return ContainerSpec(
        image=request.image,
        argv=(*program, LEASE, listening_path(channel), LISTENER_OFFER),
        user=LEASE_USER,
        hostname=name[:63],
        env={**request.env, **own, "NAMZU_AGENT_PASS": ",".join(passed)},
        labels={**labels, START_BY_LABEL: str(start_by)},
        volume=FOLDER,
        volume_labels={VOLUME_LABEL: name},
        binds=tuple(binds),
        tmpfs=_tmpfs(request, image),
        network=request.network or "none",
        read_only=request.read_only_rootfs,
        runtime=request.runtime,
        cpus=request.cpus,
        memory=request.memory,
        pids=request.pids,
        seccomp="unconfined" if request.seccomp == "unconfined" else None,
    )


def _tmpfs(request: ContainerRequest, image: Json) -> dict[str, str]:
    """Writable folders. Where the image declares a volume, which would be a disk without a limit, is one of them."""
    size = min(FOLDER_SIZE, request.memory or FOLDER_SIZE)
    declared = [str(path) for path in ((image.get("Config") or {}).get("Volumes") or {})]
    standard = _WRITABLE if request.read_only_rootfs else (WORKSPACE,)
    paths = dict.fromkeys([*standard, *declared, *request.writable_paths])
    options = {path: f"{_WRITABLE_OPTIONS},size={size}" for path in paths if path != FOLDER}
    return options if "/run" in options or not request.read_only_rootfs else {"/run": _RUN_OPTIONS, **options}


def checked_outputs(folder: str) -> str:
    """The real path of a folder for outputs.

    Raises:
        InputError: it does not exist, or has what belongs to the machine.
    """
    real = os.path.realpath(folder)
    if not os.path.isdir(real):
        raise InputError(f"outputs is {folder}, which is not a folder of this machine.", next_step="Create it first.")
    inside = real.split("/")[1]
    if real.count("/") < 2 or inside in ("proc", "sys", "dev", "run", "etc", "boot", "bin", "sbin", "lib", "usr"):
        raise InputError(
            f"outputs is {folder}, which belongs to the system.",
            next_step="Name a folder of its own, which has nothing but results.",
        )
    return real
