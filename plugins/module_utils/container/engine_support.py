# SPDX-FileCopyrightText: 2026 The namzu.sandbox authors
# SPDX-License-Identifier: Apache-2.0
"""Whether an engine can enforce a request, by what it reports about itself, before anything is created."""

from __future__ import annotations

from ..engine.client import EngineClient, Json
from ..text import clean_text
from .errors import UnsupportedError
from .request import ContainerRequest

#: Option to the field of ``GET /info`` by which an engine reports that it cannot enforce it, and what it lacks.
_LIMITS = {
    "cpus": ("CpuCfsQuota", "the cpu controller of cgroups"),
    "memory": ("MemoryLimit", "the memory controller of cgroups"),
    "pids": ("PidsLimit", "the pids controller of cgroups"),
}


def check_support(client: EngineClient, info: Json, request: ContainerRequest) -> str:
    """Refuse what the engine cannot enforce; the seccomp profile that filters system calls is returned.

    Raises:
        UnsupportedError: not Linux containers, an unknown runtime, a limit that it cannot enforce, or no profile.
    """
    if info.get("OSType", "linux") != "linux":
        raise _refused(client, f"it runs {clean_text(info.get('OSType'), 40)} containers", "Use an engine for Linux.")
    runtimes = sorted(map(str, info.get("Runtimes") or {}))
    if request.runtime is not None and request.runtime not in runtimes:
        raise _refused(
            client,
            f"it has no runtime {request.runtime}; it has {clean_text(', '.join(runtimes), 300) or 'none'}",
            "Name one of these, or add the runtime to the engine's configuration.",
        )
    unenforced = _ignores_cgroups(info, request.runtime)
    for option, (field, lacking) in _LIMITS.items():
        if getattr(request, option) is not None and unenforced is not None:
            raise _refused(
                client,
                f"{option} is not enforced by the runtime {runtime_name(info, request.runtime)}, because {unenforced}",
                f"Leave out {option}, use the runtime runc, or change the runtime in the engine's configuration.",
            )
        if getattr(request, option) is not None and info.get(field) is False:
            raise _refused(client, f"{option} cannot be enforced, because {lacking} is missing", f"Leave out {option}.")
    profile = seccomp_profile(info)
    if request.seccomp == "unconfined":
        return "unconfined"
    if profile is None:
        raise _refused(
            client,
            "it filters no system calls (it reports no seccomp profile)",
            "Give the engine a seccomp profile, or ask for seccomp: unconfined.",
        )
    return profile


def seccomp_profile(info: Json) -> str | None:
    """The engine's seccomp profile, or None when it filters nothing."""
    for option in info.get("SecurityOptions") or ():
        fields = dict(part.partition("=")[::2] for part in str(option).split(","))
        if fields.get("name") == "seccomp":
            profile = fields.get("profile", "default")
            return None if profile == "unconfined" else clean_text(profile, 80)
    return None


def runtime_name(info: Json, runtime: str | None) -> str:
    """The runtime that is asked for, or the engine's default."""
    return runtime or str(info.get("DefaultRuntime") or "")


def runs_gvisor(info: Json, runtime: str | None) -> bool:
    """Whether a runtime is gVisor's, by its name, its program and its shim."""
    described = _described(info, runtime)
    named = (runtime_name(info, runtime), described.get("path"), described.get("runtimeType"))
    return any("runsc" in str(name or "") for name in named)


def offers_host_sockets(info: Json, runtime: str | None) -> bool:
    """Whether a Unix socket that is made in the container can be connected to from this machine."""
    if not runs_gvisor(info, runtime):
        return True
    return any(argument in ("--host-uds=all", "--host-uds=create") for argument in _arguments(info, runtime))


def _ignores_cgroups(info: Json, runtime: str | None) -> str | None:
    """Why a limit of a container would have no effect with this runtime, as part of a sentence; None when it has one.

    An engine reports a limit that it passed to the runtime. gVisor with ``--ignore-cgroups`` (runsc/config/flags.go)
    creates no cgroup, so nothing enforces the limit.
    """
    if not runs_gvisor(info, runtime):
        return None
    for argument in _arguments(info, runtime):
        flag, _equals, value = argument.lstrip("-").partition("=")
        if flag == "ignore-cgroups" and value.lower() not in ("false", "0", "f"):
            return f"the engine starts it with {clean_text(argument, 40)}"
    if (_described(info, runtime).get("options") or {}).get("ConfigPath"):
        return "its settings are in a file that the engine does not report (ConfigPath)"
    return None


def _described(info: Json, runtime: str | None) -> Json:
    found = (info.get("Runtimes") or {}).get(runtime_name(info, runtime))
    return found if isinstance(found, dict) else {}


def _arguments(info: Json, runtime: str | None) -> list[str]:
    return [str(argument) for argument in _described(info, runtime).get("runtimeArgs") or ()]


def _refused(client: EngineClient, why: str, next_step: str) -> UnsupportedError:
    name = client.name.capitalize()
    return UnsupportedError(f"{name}: {why}. Nothing was created.", object=client.name, next_step=next_step)
