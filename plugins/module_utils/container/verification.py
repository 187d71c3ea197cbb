# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""What the engine reports about a running container, against what was asked for."""

from __future__ import annotations

import typing as t

from ..engine.client import Json
from ..engine.container_spec import ContainerSpec
from ..text import clean_text
from .errors import ConfinementError
from .names import FOLDER
from .request import Confinement, ContainerRequest

#: Field of HostConfig to the values that give a container nothing of its neighbours or of the machine.
_NAMESPACES: dict[str, tuple[str | None, ...]] = {
    # Podman makes every IPC namespace shareable: another container joins only when it is created so.
    "IpcMode": ("private", "shareable", "none"),
    "PidMode": ("", "private", None),
    "UTSMode": ("", "private", None),
    "UsernsMode": ("", "private", "auto", "keep-id", None),
}
_EMPTY = (
    "CapAdd",
    "Devices",
    "DeviceRequests",
    "DeviceCgroupRules",
    "VolumesFrom",
    "GroupAdd",
    "PortBindings",
    "Links",
)
_FALSE = ("Privileged", "PublishAllPorts", "OomKillDisable")
#: Security options that take protection away; the profile of seccomp is looked at apart.
_WEAKENING = ("apparmor=unconfined", "apparmor:unconfined", "label=disable", "label:disable", "systempaths=unconfined",
              "unmask=all", "no-new-privileges=false", "no-new-privileges:false")  # fmt: skip


def verify_confinement(inspected: Json, spec: ContainerSpec, request: ContainerRequest, seccomp: str) -> Confinement:
    """Compare a running container with what it was created from.

    Args:
        inspected: the container as the engine reports it.
        spec: what it was created from.
        seccomp: the profile that the engine reports for its containers.

    Raises:
        ConfinementError: it has more than was asked for, or less of a limit.
    """
    host, config = inspected.get("HostConfig") or {}, inspected.get("Config") or {}
    findings = [*_open(host), *_security(host, request), *_mounts(inspected, spec), *_limits(host, request)]
    if config.get("User") != spec.user:
        findings.append(f"user is {config.get('User')!r}")
    if bool(host.get("ReadonlyRootfs")) != request.read_only_rootfs:
        findings.append(f"ReadonlyRootfs is {host.get('ReadonlyRootfs')}")
    # Podman's API names no runtime but its own word for one.
    runtime = str(host.get("Runtime") or "")
    if request.runtime is not None and runtime not in (request.runtime, "oci"):
        findings.append(f"Runtime is {runtime!r}")
    if findings:
        name = str(inspected.get("Name", "")).lstrip("/")
        raise ConfinementError(
            f"Container {name}: the engine does not run it as asked for: {clean_text('; '.join(findings), 600)}.",
            findings=[clean_text(finding, 200) for finding in findings],
            object=f"Container {name}",
            next_step="Look at the engine's version, its configuration and its authorization plugins.",
        )
    limits = {"cpus": request.cpus, "memory": request.memory, "pids": request.pids}
    return Confinement(runtime, seccomp, request.read_only_rootfs, request.user, limits)


def _open(host: Json) -> t.Iterator[str]:
    for field in _FALSE:
        if host.get(field):
            yield f"{field} is {host[field]}"
    for field in _EMPTY:
        if host.get(field):
            yield f"{field} is {host[field]}"
    for field, allowed in _NAMESPACES.items():
        if host.get(field) not in allowed:
            yield f"{field} is {host.get(field)!r}"


def _security(host: Json, request: ContainerRequest) -> t.Iterator[str]:
    options = [str(option) for option in host.get("SecurityOpt") or ()]
    for option in options:
        unconfined = option in ("seccomp=unconfined", "seccomp:unconfined") and request.seccomp != "unconfined"
        if option in _WEAKENING or unconfined:
            yield f"SecurityOpt has {option}"
    if not any(option.startswith("no-new-privileges") for option in options):
        yield "SecurityOpt has no no-new-privileges"


def _mounts(inspected: Json, spec: ContainerSpec) -> t.Iterator[str]:
    binds = {bind.target: bind.source for bind in spec.binds}
    for mount in inspected.get("Mounts") or ():
        target, kind = str(mount.get("Destination")), mount.get("Type")
        ours = (kind == "volume" and target == FOLDER) or (kind == "tmpfs" and target in spec.tmpfs)
        if not ours and not (kind == "bind" and binds.get(target) == mount.get("Source")):
            yield f"{target} is mounted from {mount.get('Source') or kind}"


def _limits(host: Json, request: ContainerRequest) -> t.Iterator[str]:
    wanted = {
        "NanoCpus": round(request.cpus * 1e9) if request.cpus is not None else None,
        "Memory": request.memory,
        "PidsLimit": request.pids,
    }
    for field, value in wanted.items():
        found = host.get(field)
        # Podman reports cpus as a quota of a period.
        if field == "NanoCpus" and not found and host.get("CpuQuota"):
            found = round(host["CpuQuota"] / (host.get("CpuPeriod") or 100000) * 1e9)
        if value is not None and found != value:
            yield f"{field} is {found}, not {value}"
